package fault

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// docRecord is a document of a storm, but for its _id.
type docRecord struct {
	n     int32
	tag   string
	u     string // of which no other document has the same, for the most part
	arr   []int32
	shape uint16 // which of the fields f0 to f15 it has
	pad   int    // lines of a text
}

// with returns a changed copy; of none, none.
func (r *docRecord) with(change func(r *docRecord)) *docRecord {
	if r == nil {
		return nil
	}
	c := *r
	change(&c)
	return &c
}

func (r *docRecord) raw(id int32) bson.Raw {
	d := bson.D{{Key: "_id", Value: id}, {Key: "n", Value: r.n}, {Key: "tag", Value: r.tag}, {Key: "u", Value: r.u}, {Key: "arr", Value: r.arr}}
	for i := range 16 {
		if r.shape&(1<<i) != 0 {
			d = append(d, bson.E{Key: fmt.Sprint("f", i), Value: int64(i) * 1000})
		}
	}
	d = append(d, bson.E{Key: "pad", Value: strings.Repeat("pad\n", r.pad)})
	raw, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	return raw
}

// docTable is a collection as the model has it.
type docTable struct {
	possible map[int32][]*docRecord // what each _id may have, the newest first; nil: none. More than one after a write that failed
	earlier  map[int32][]*docRecord // what each had since all was durable, which a profile that may lose the last writes may bring back
	vague    bool                   // to make it, to drop it or to rename it failed: it may be there or not
	or       string                 // the name that it has if it has not this one; empty: there may be none
	indexes  map[string]bool        // false: it may be there or not
	retries  map[int32]*docRetry    // writes that failed, of documents that have not been written since
	written  written                // of all collections
}

func newDocTable(w written) *docTable {
	return &docTable{possible: map[int32][]*docRecord{}, earlier: map[int32][]*docRecord{}, indexes: map[string]bool{}, retries: map[int32]*docRetry{}, written: w}
}

func (t *docTable) ids() []int32 { return slices.Sorted(maps.Keys(t.possible)) }

func (t *docTable) cells(id int32) []*docRecord {
	if c := t.possible[id]; len(c) > 0 {
		return c
	}
	return []*docRecord{nil}
}

// presence tells whether a document of which a condition holds may be there, and whether it must.
func (t *docTable) presence(id int32, holds func(r *docRecord) bool) (may, must bool) {
	must = true
	for _, r := range t.cells(id) {
		is := r != nil && (holds == nil || holds(r))
		may, must = may || is, must && is
	}
	return may, must
}

// wrote notes a write. One that met a full disk is not there, unless it is of many; whether another one that failed is, nobody knows.
func (t *docTable) wrote(id int32, change func(r *docRecord) *docRecord, many bool, err error) {
	delete(t.retries, id)
	before := t.cells(id)
	var after []*docRecord
	for _, r := range before {
		r = change(r)
		after = append(after, r)
		if r != nil {
			t.written.add(r.raw(id))
		}
	}
	switch {
	case err == nil:
	case foundNoRoom(err) && !many:
		return
	default:
		after = append(after, before...)
	}
	t.may(id, after)
}

// may notes what an _id may have.
func (t *docTable) may(id int32, list []*docRecord) {
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(r *docRecord) bool {
		key := ""
		if r != nil {
			key = string(r.raw(id))
		}
		is := seen[key]
		seen[key] = true
		return is
	})
	if t.possible[id] = list; len(list) == 1 && list[0] == nil {
		delete(t.possible, id)
	}
}

// lost notes that what is not durable may be gone.
func (t *docTable) lost() {
	for id, list := range t.earlier {
		t.may(id, slices.Concat(t.cells(id), list))
	}
	clear(t.retries)
}

// allows reports whether an _id may have a document: none, if that is nil.
func (t *docTable) allows(id int32, got bson.Raw) bool {
	return slices.ContainsFunc(t.cells(id), func(r *docRecord) bool {
		return (r == nil) == (got == nil) && (r == nil || bytes.Equal(r.raw(id), got))
	})
}

// taken reports whether another document may have such a u.
func (t *docTable) taken(u string, but int32) bool {
	for id := range t.possible {
		if may, _ := t.presence(id, func(r *docRecord) bool { return r.u == u }); may && id != but {
			return true
		}
	}
	return false
}

// tell notes what became of an attempt to make or drop an index.
func (t *docTable) tell(name string, there bool, err error) {
	switch {
	case err != nil:
		if sure, is := t.indexes[name]; is != there || !sure {
			t.indexes[name] = false
		}
	case there:
		t.indexes[name] = true
	default:
		delete(t.indexes, name)
	}
}
