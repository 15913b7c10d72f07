package aggregate

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/scratch"
)

// group is a group in memory.
type group struct {
	hash         uint64
	id           value
	accumulators []accumulator
	evicted      bool // a part of what it has gathered is in the sorter
}

// groupTable is a hash table of groups with open addressing. When it has used up its memory it takes no new groups: their
// inputs go into a sorter, and are accumulated group by group at the end. So every accumulator sees its inputs in order and
// whole, and no partial result ever needs a form on disk. What goes on growing in the groups that there are is moved there too, as the
// inputs that it was made of.
type groupTable struct {
	s       *groupStage
	o       *Options
	x       *extractor
	seed    uint64   // of the hashes: nobody can know which keys collide
	slots   []uint32 // number of a group, plus one
	groups  []group
	share   scratch.Share
	held    int64
	closed  bool
	sorter  *scratch.Sorter
	key     []byte
	row     []byte
	pending pendingRow
	sorted  bool
}

// pendingRow is the first row of the next group of the sorter.
type pendingRow struct {
	key, value []byte
	ok         bool
}

func newGroupTable(s *groupStage, o *Options) *groupTable {
	return &groupTable{s: s, o: o, share: o.allowance().Share(), x: s.x.fork(), seed: rand.Uint64(), slots: make([]uint32, 64)}
}

const groupCost = 96 // bytes of a group beside its accumulators

// add takes a document.
func (t *groupTable) add(doc document) error {
	t.x.extract(doc)
	id, err := t.x.eval(&t.s.id, doc)
	if err != nil {
		return err
	}
	switch {
	case id.Type == 0:
		id = null()
	case t.s.empty.Type != 0 && id.Type == bsoncore.TypeEmbeddedDocument && len(id.Data) <= bsoncore.EmptyDocumentLength:
		id = t.s.empty
	}
	hash := order.Hash(t.seed, id, t.o.Collation)
	g, slot := t.find(hash, id)
	if g == nil {
		if t.closed {
			return t.spillInputs(id, doc)
		}
		if g, err = t.insert(hash, id, slot); err != nil {
			return err
		}
	}
	for i, a := range t.s.fields {
		if g.evicted && a.sequential() {
			if err := t.spillInput(g.id, i, doc); err != nil {
				return err
			}
			continue
		}
		var grew int
		grew, t.key, err = a.feed(g.accumulators[i], t.x, doc, t.key)
		if err != nil {
			return err
		}
		if t.held += int64(grew); grew > 0 && !t.share.Fits(t.held) {
			if err := t.relieve(); err != nil {
				return err
			}
		}
	}
	if !t.share.Fits(t.held) {
		return t.relieve()
	}
	return nil
}

// find returns the group of an id, or nil and the slot where it belongs.
func (t *groupTable) find(hash uint64, id value) (*group, int) {
	mask := len(t.slots) - 1
	for i := int(hash) & mask; ; i = (i + 1) & mask {
		n := t.slots[i]
		if n == 0 {
			return nil, i
		}
		g := &t.groups[n-1]
		if g.hash == hash && (g.id.Type == id.Type && bytes.Equal(g.id.Data, id.Data) || order.Equal(g.id, id, t.o.Collation)) {
			return g, i
		}
	}
}

func (t *groupTable) insert(hash uint64, id value, slot int) (*group, error) {
	g, err := t.newGroup(id)
	if err != nil {
		return nil, err
	}
	g.hash = hash
	t.groups = append(t.groups, g)
	t.slots[slot] = uint32(len(t.groups))
	t.held += int64(groupCost + len(id.Data) + accumulatorCost*len(g.accumulators))
	if 4*len(t.groups) > 3*len(t.slots) {
		t.grow()
	}
	return &t.groups[len(t.groups)-1], nil
}

func (t *groupTable) newGroup(id value) (group, error) {
	g := group{id: clone(id), accumulators: make([]accumulator, len(t.s.fields))}
	for i, a := range t.s.fields {
		var err error
		if g.accumulators[i], err = a.accumulator(id); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (t *groupTable) grow() {
	t.slots = make([]uint32, 4*len(t.slots))
	mask := len(t.slots) - 1
	for n := range t.groups {
		i := int(t.groups[n].hash) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(n + 1)
	}
}

// relieve makes the table use less memory from now on, and moves what has been gathered out of it where that was not enough.
func (t *groupTable) relieve() error {
	if t.o.Scratch == nil {
		return mongoerror.New(mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed,
			"Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.")
	}
	if t.sorter == nil {
		a := t.o.allowance()
		a.Memory /= 2
		t.sorter = scratch.NewSorter(a, 0)
	}
	if !t.closed {
		t.closed = true
		return nil
	}
	if most := t.share.Most(); t.held < most+most/4 {
		return nil
	}
	freed := false
	for n := range t.groups {
		g := &t.groups[n]
		for i, a := range g.accumulators {
			e, ok := a.(evictable)
			if !ok {
				continue
			}
			err := e.evict(func(key []byte, v value) error {
				g.evicted, freed = true, true
				return t.spillRow(g.id, i, key, v)
			})
			if err != nil {
				return err
			}
		}
	}
	if t.held = int64(len(t.groups)) * groupCost; !freed {
		t.held = -maxAccumulated // what cannot be evicted has limits of its own
	}
	return nil
}

// allFields is a row's number of its accumulator when the row has the inputs of all.
const allFields = 1<<32 - 1

// spillInputs keeps the inputs of a group that is not in memory.
func (t *groupTable) spillInputs(id value, doc document) error {
	b, start := begin(t.startRow(id, allFields))
	for i, a := range t.s.fields {
		key, v, err := t.input(a, doc)
		if err != nil {
			return err
		}
		if b = appendInput(b, 2*i, key, v); len(b) > longestRow {
			t.row = b
			return t.spillEach(id, doc)
		}
	}
	t.row = end(b, start)
	return t.sorter.Add(t.key, t.row)
}

// input returns what an accumulator takes of a document, and where that stands in its order, if it has one.
func (t *groupTable) input(a *accumulation, doc document) (key []byte, v value, err error) {
	if v, err = t.x.eval(&a.input, doc); err == nil && a.keys != nil {
		key, err = a.key(nil, doc)
	}
	return key, v, err
}

// longestRow is how long the inputs of all accumulators may be together; longer ones are rows of their own.
const longestRow = 16 << 20

// appendInput appends two items, the sort key of an input and the input.
func appendInput(b []byte, i int, key []byte, v value) []byte {
	b = appendItem(b, i, value{Type: bsoncore.TypeBinary, Data: bsoncore.AppendBinary(nil, 0, key)})
	if v.Type == 0 {
		return appendItem(b, i+1, value{Type: bsoncore.TypeMinKey}) // stands for missing, as in replay
	}
	return appendItem(b, i+1, array(v))
}

// spillEach is spillInputs with a row for each accumulator.
func (t *groupTable) spillEach(id value, doc document) error {
	for i := range t.s.fields {
		if err := t.spillInput(id, i, doc); err != nil {
			return err
		}
	}
	return nil
}

// spillInput keeps what one accumulator takes of a document.
func (t *groupTable) spillInput(id value, field int, doc document) error {
	key, v, err := t.input(t.s.fields[field], doc)
	if err != nil {
		return err
	}
	return t.spillRow(id, field, key, v)
}

// spillRow keeps one input of one accumulator.
func (t *groupTable) spillRow(id value, field int, key []byte, v value) error {
	b, start := begin(t.startRow(id, uint32(field)))
	t.row = end(appendInput(b, 0, key, v), start)
	return t.sorter.Add(t.key, t.row)
}

// startRow makes the key of a row, and begins its value: the accumulator's number and the id.
func (t *groupTable) startRow(id value, field uint32) []byte {
	t.key = keyenc.Append(t.key[:0], id, false, t.o.Collation)
	b := binary.LittleEndian.AppendUint32(t.row[:0], field)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(id.Data)))
	b = append(b, byte(id.Type))
	return append(b, id.Data...)
}

// done ends the input.
func (t *groupTable) done() error {
	if t.sorter == nil {
		return nil
	}
	return t.sorter.Sort()
}

// nextSpilled returns the next group of which there are rows in the sorter; nil at the end.
func (t *groupTable) nextSpilled(ctx context.Context) (*group, error) {
	if t.sorter == nil {
		return nil, nil
	}
	if !t.sorted {
		t.sorted = true
		if err := t.readRow(); err != nil {
			return nil, err
		}
	}
	if !t.pending.ok {
		return nil, nil
	}
	key := append([]byte(nil), t.pending.key...)
	g, err := t.newGroup(rowID(t.pending.value))
	if err != nil {
		return nil, err
	}
	resident, _ := t.find(order.Hash(t.seed, g.id, t.o.Collation), g.id)
	for n := 1; t.pending.ok && bytes.Equal(t.pending.key, key); n++ {
		if n%pollEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := t.replay(&g, t.pending.value); err != nil {
			return nil, err
		}
		if err := t.readRow(); err != nil {
			return nil, err
		}
	}
	if resident == nil {
		return &g, nil
	}
	for i, a := range resident.accumulators {
		if e, ok := a.(evictable); ok {
			err := e.evict(func(key []byte, v value) error {
				_, err := g.accumulators[i].add(key, v)
				return err
			})
			if err != nil {
				return nil, err
			}
			resident.accumulators[i] = g.accumulators[i]
		}
	}
	return resident, nil
}

func (t *groupTable) readRow() (err error) {
	t.pending.key, t.pending.value, t.pending.ok, err = t.sorter.Next()
	return err
}

func rowID(row []byte) value {
	n := binary.LittleEndian.Uint32(row[4:])
	return value{Type: bsoncore.Type(row[8]), Data: row[9 : 9+n]}
}

// replay gives the inputs of a row to the accumulators.
func (t *groupTable) replay(g *group, row []byte) error {
	field := binary.LittleEndian.Uint32(row)
	inputs := path.ElementsOf(row[9+binary.LittleEndian.Uint32(row[4:]):])
	for i := range g.accumulators {
		if field != allFields && uint32(i) != field {
			continue
		}
		_, key, _ := inputs.Next()
		_, wrapped, _ := inputs.Next()
		v := value{}
		if wrapped.Type == bsoncore.TypeArray {
			it := path.ElementsOf(wrapped.Data)
			_, v, _ = it.Next()
		}
		if v.Type == 0 && t.s.fields[i].keys != nil {
			v = null()
		}
		if _, err := g.accumulators[i].add(key.Data[5:], v); err != nil {
			return err
		}
	}
	return nil
}

func (t *groupTable) close() error {
	t.groups, t.slots = nil, nil
	t.share.Shrink(0)
	if t.sorter == nil {
		return nil
	}
	return t.sorter.Close()
}
