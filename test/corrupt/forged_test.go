package corrupt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
)

// forgeRecord changes the record of a key in a hash table, and makes its checksum right again. fn gets the record from its kind on, with a
// key and a value of less than 128 bytes.
func forgeRecord(t *testing.T, fsys vfs.FS, key []byte, fn func(record []byte)) (place string) {
	t.Helper()
	const head = segment.PieceSumSize + 3 // kind and lengths
	files, err := segment.Survey(fsys, dir)
	must(t, err)
	numbers := keyspaceNumbers(t, fsys)
	for _, s := range files {
		name := segment.FilePath(s.ID)
		change(t, fsys, dir+"/"+name, func(b []byte) []byte {
			for at := head; ; at++ {
				i := bytes.Index(b[at:], key)
				if i < 0 {
					return b
				}
				at += i
				first := at - head
				end := at + len(key) + int(b[at-1])
				if end > len(b) {
					continue
				}
				piece, seed := b[first:end], xxh3.Hash(s.Database[:])^(uint64(s.ID)<<32|uint64(first))
				sum := func(keyspace uint64) uint32 {
					return uint32(xxh3.HashSeed(piece[segment.PieceSumSize:], seed^keyspace<<17))
				}
				for _, keyspace := range numbers {
					if sum(keyspace) == binary.LittleEndian.Uint32(piece) {
						fn(piece[segment.PieceSumSize:])
						binary.LittleEndian.PutUint32(piece, sum(keyspace))
						place = fmt.Sprintf("%s: damaged at offset %d", name, first)
					}
				}
			}
		})
	}
	if place == "" {
		t.Fatalf("no record of %q", key)
	}
	return place
}

// keyspaceNumbers are those of the keyspaces that have settled.
func keyspaceNumbers(t *testing.T, fsys vfs.FS) (numbers []uint64) {
	t.Helper()
	slots, err := root.OpenReadOnly(fsys, dir)
	must(t, err)
	slot := slots.Current()
	must(t, slots.Close())
	raw, err := segment.ReadBlob(segment.Options{FS: fsys, Dir: dir, Database: slot.Database}, slot.Catalogue)
	must(t, err)
	catalogue, err := root.Decode(raw)
	must(t, err)
	for _, k := range catalogue.Keyspaces {
		numbers = append(numbers, uint64(k.ID))
	}
	return numbers
}

// A record that verifies and makes no sense is left where it is by the cleaner, and gives way to what is written over it: it keeps nothing
// from settling, of its keyspace or of others.
func TestForgedRecordsDoNotStopWriters(t *testing.T) {
	inline, apart := []byte("bad/050 inline"), []byte("bad/050 apart")
	for name, c := range map[string]struct {
		key   []byte
		forge func(record []byte)
	}{
		"unknown kind": {inline, func(r []byte) { r[0] = 9 }},
		"another key":  {inline, func(r []byte) { r[3] = 'B' }},
		"no length":    {inline, func(r []byte) { r[1] = 0xff }},
		"no reference": {apart, func(r []byte) { clear(r[3+len(apart):]) }},
		"half of one":  {apart, func(r []byte) { r[1], r[2] = r[1]+9, r[2]-9 }}, // which is a part of another key
	} {
		for what, act := range map[string]func(k *pando.Keyspace) error{
			"nothing":     func(*pando.Keyspace) error { return nil },
			"changed":     func(k *pando.Keyspace) error { return k.Put(c.key, []byte("new")) },
			"deleted":     func(k *pando.Keyspace) error { return k.Delete(c.key) },
			"all deleted": func(k *pando.Keyspace) error { return k.DeleteRange(nil, nil) },
		} {
			t.Run(name+"/"+what, func(t *testing.T) { forgedRecord(t, c.key, c.forge, what, act) })
		}
	}
}

func forgedRecord(t *testing.T, key []byte, forge func(record []byte), what string, act func(k *pando.Keyspace) error) {
	fsys, o, db := uncompressed(t)
	open := func() (bad, good *pando.Keyspace) {
		var err error
		db, err = pando.Open(dir, o)
		must(t, err)
		bad, err = db.Keyspace("bad", &pando.KeyspaceOptions{Layout: pando.Hash})
		must(t, err)
		good, err = db.Keyspace("good", nil)
		must(t, err)
		return bad, good
	}
	must(t, db.Close())
	bad, good := open()
	for i := range 100 {
		must(t, good.Put(fmt.Appendf(nil, "good %d", i), distinct(i)))
		must(t, bad.Put(fmt.Appendf(nil, "bad/%03d inline", i), fmt.Appendf(nil, "inline %d", i)))
		must(t, bad.Put(fmt.Appendf(nil, "bad/%03d apart", i), distinct(i)))
	}
	must(t, db.Close())
	place := forgeRecord(t, fsys, key, forge)
	bad, good = open()
	if _, err := bad.Get(key); !errors.Is(err, pando.ErrCorrupt) {
		t.Errorf("the forged record: %v", err)
	}
	must(t, act(bad))
	const rounds = 8
	for round := range rounds { // of garbage, so that the cleaner gets to every segment
		for i := range 100 {
			must(t, good.Put(fmt.Appendf(nil, "good %d", i), distinct(i*rounds+round)))
			if what != "all deleted" && i != 50 {
				must(t, bad.Put(fmt.Appendf(nil, "bad/%03d inline", i), fmt.Appendf(nil, "round %d", round)))
			}
		}
		must(t, db.Checkpoint(context.Background()))
	}
	err := db.Compact(context.Background(), pando.CompactOptions{})
	if refused := errors.Is(err, pando.ErrCorrupt) && strings.Contains(err.Error(), place); what == "nothing" && !refused && !bytes.HasSuffix(key, []byte("apart")) {
		t.Errorf("all is written anew beside what is forged at %s: %v", place, err) // a reference is moved as it is
	}
	must(t, db.Close())
	bad, good = open()
	for i := range 100 {
		if v, err := good.Get(fmt.Appendf(nil, "good %d", i)); err != nil || !bytes.Equal(v, distinct(i*rounds+rounds-1)) {
			t.Fatalf("record %d of the other keyspace: %d bytes, %v", i, len(v), err)
		}
		if what == "all deleted" {
			continue
		}
		if v, err := bad.Get(fmt.Appendf(nil, "bad/%03d inline", i)); i != 50 && (err != nil || string(v) != fmt.Sprintf("round %d", rounds-1)) {
			t.Fatalf("record %d: %q, %v", i, v, err)
		}
		if v, err := bad.Get(fmt.Appendf(nil, "bad/%03d apart", i)); i != 50 && (err != nil || !bytes.Equal(v, distinct(i))) {
			t.Fatalf("record %d apart: %d bytes, %v", i, len(v), err)
		}
	}
	v, err := bad.Get(key)
	switch {
	case what == "nothing" && !errors.Is(err, pando.ErrCorrupt),
		what == "changed" && (err != nil || string(v) != "new"),
		what != "nothing" && what != "changed" && !errors.Is(err, pando.ErrNotFound):
		t.Errorf("%s: %q, %v", what, v, err)
	}
	report, err := db.Check(context.Background())
	must(t, err)
	if healed := report.Err() == nil; what == "nothing" && healed || what == "all deleted" && !healed {
		t.Errorf("%s, forged at %s: %v", what, place, report.Damage)
	}
	must(t, db.Close())
}

// forgeOwner makes a value apart, which is not compressed, one that does not say whose it is, with a checksum that is right.
func forgeOwner(t *testing.T, fsys vfs.FS, content []byte) (file string) {
	t.Helper()
	files, err := segment.Survey(fsys, dir)
	must(t, err)
	for _, s := range files {
		name := dir + "/" + segment.FilePath(s.ID)
		change(t, fsys, name, func(b []byte) []byte {
			at := bytes.Index(b, content) - segment.HeaderSize
			if at < 0 {
				return b
			}
			header := b[at : at+segment.HeaderSize]
			payload := b[at+segment.HeaderSize:][:binary.LittleEndian.Uint32(header[16:])]
			binary.LittleEndian.PutUint32(payload[len(payload)-4:], 1<<31) // the length of its key
			seed := xxh3.HashSeed(header[8:], xxh3.Hash(s.Database[:])^(uint64(s.ID)<<32|uint64(at)))
			binary.LittleEndian.PutUint64(header, xxh3.HashSeed(payload, seed))
			file = name
			return b
		})
	}
	if file == "" {
		t.Fatal("the value is not where it was looked for")
	}
	return file
}

// A value that does not say whose it is once kept the cleaner from all segments that it was about to empty with that one, for as long as the
// database was open.
func TestForgedValueDoesNotStopTheCleaner(t *testing.T) {
	fsys, o, db := uncompressed(t)
	value := func(i int) []byte { return bytes.Repeat(distinct(i), 10) }
	for half := range 2 { // each in a segment of its own
		for i := half * 60; i < half*60+60; i++ {
			must(t, db.Put(fmt.Append(nil, i), value(i)))
		}
		must(t, db.Close())
		var err error
		db, err = pando.Open(dir, o)
		must(t, err)
	}
	must(t, db.Close())
	forged, other := forgeOwner(t, fsys, value(5)), ""
	for _, name := range list(t, fsys, dir+"/segments") {
		if bytes.Contains(contents(t, fsys, name), value(65)) {
			other = name
		}
	}
	if other == "" || other == forged {
		t.Fatalf("the values lie in %q and %q", forged, other)
	}
	db, err := pando.Open(dir, o)
	must(t, err)
	stay := []int{5, 6, 65, 66}
	for i := range 120 {
		if !slices.Contains(stay, i) {
			must(t, db.Delete(fmt.Append(nil, i)))
		}
	}
	there := func(name string) bool {
		_, err := fsys.Stat(name)
		return err == nil
	}
	for i := 0; i < 4 || i < 100 && there(other); i++ { // the worker may be at it too
		must(t, db.Put([]byte("other"), fmt.Append(nil, i)))
		must(t, db.Checkpoint(context.Background()))
	}
	if there(other) || !there(forged) {
		t.Errorf("%s could be emptied, and is there: %v; %s could not, and is there: %v", other, there(other), forged, there(forged))
	}
	for _, i := range stay {
		if v, err := db.Get(fmt.Append(nil, i)); i != 5 && (err != nil || !bytes.Equal(v, value(i))) || i == 5 && !errors.Is(err, pando.ErrCorrupt) {
			t.Errorf("value %d: %d bytes, %v", i, len(v), err)
		}
	}
	must(t, db.Close())
}
