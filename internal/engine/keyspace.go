package engine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/view"
)

// The default keyspace is there from the start and cannot be dropped.
const (
	DefaultID   = view.DefaultKeyspace
	DefaultName = "default"
)

// The first keyspace that is created gets a number from lowestFirst to below highestFirst: four bytes in the log, and so do very many
// that come behind it.
const (
	lowestFirst  = 1 << 21
	highestFirst = 3 << 26
)

// Keyspace is what the engine knows of one keyspace. Apart from Dropped and the dictionary it never changes.
type Keyspace struct {
	Spec
	Dropped    atomic.Bool
	droppedBy  atomic.Uint64 // the command that dropped it
	dictionary atomic.Uint32 // number of its compression dictionary; 0: none. Changed under settling
	noSeek     error         // what seeking in it fails with; nil: it keeps an order
}

func newKeyspace(spec Spec) *Keyspace {
	ks := &Keyspace{Spec: spec}
	if !ks.ordered() {
		ks.noSeek = ks.noOrder("seek in")
	}
	return ks
}

// Spec is what the catalogue, and the command that creates a keyspace, keep of it.
type Spec struct {
	ID   uint32
	Name string
	KeyspaceOptions
}

// keyspaces is the catalogue in memory.
type keyspaces struct {
	mu      sync.RWMutex
	byName  map[string]*Keyspace
	byID    map[uint32]*Keyspace
	nextID  uint32
	dropped map[uint32]*Keyspace // those dropped in this run, as long as the change feed, a view or what frees them may ask for them
	events  []keyspaceEvent      // what has not settled, oldest first
	bytes   int                  // what those that there are may take of the catalogue
}

// keyspaceEvent is that a keyspace was created or dropped, by the command with the number seq.
type keyspaceEvent struct {
	seq     uint64
	ks      *Keyspace
	dropped bool
}

func newKeyspaces() *keyspaces {
	return &keyspaces{byName: map[string]*Keyspace{}, byID: map[uint32]*Keyspace{}, dropped: map[uint32]*Keyspace{}, nextID: DefaultID}
}

// create adds a keyspace. Creating one that is there is no error: recovery may meet a creation that the catalogue holds.
func (k *keyspaces) create(spec Spec, seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, there := k.byID[spec.ID]; there || (spec.ID < k.nextID && k.nextID != DefaultID) {
		return // it is there, or was dropped later on
	}
	ks := newKeyspace(spec)
	k.add(ks)
	k.nextID = max(k.nextID, spec.ID+1)
	k.events = append(k.events, keyspaceEvent{seq: seq, ks: ks})
}

// expect makes room for n keyspaces, before the first one is restored.
func (k *keyspaces) expect(n int) {
	k.byName, k.byID = make(map[string]*Keyspace, n), make(map[uint32]*Keyspace, n)
}

// restore adds a keyspace that the catalogue holds.
func (k *keyspaces) restore(spec Spec, dictionary uint16) {
	ks := newKeyspace(spec)
	ks.dictionary.Store(uint32(dictionary))
	k.add(ks)
}

// add adds a keyspace to those that there are, and remove takes it away.
func (k *keyspaces) add(ks *Keyspace) {
	k.byName[ks.Name], k.byID[ks.ID] = ks, ks
	k.bytes += keyspaceMost + len(ks.Name)
}

func (k *keyspaces) remove(ks *Keyspace) {
	delete(k.byID, ks.ID)
	delete(k.byName, ks.Name)
	k.bytes -= keyspaceMost + len(ks.Name)
}

func (k *keyspaces) drop(id uint32, seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ks, ok := k.byID[id]
	if !ok {
		return
	}
	ks.droppedBy.Store(seq)
	ks.Dropped.Store(true)
	k.dropped[id] = ks
	k.remove(ks)
	k.events = append(k.events, keyspaceEvent{seq: seq, ks: ks, dropped: true})
}

// undo takes back what commands behind the one with the number seq have done, of which a failed sync has made nothing.
func (k *keyspaces) undo(seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := len(k.events) - 1; n >= 0 && k.events[n].seq > seq; n-- {
		ks, dropped := k.events[n].ks, k.events[n].dropped
		k.events = k.events[:n]
		if dropped {
			k.add(ks)
			delete(k.dropped, ks.ID)
			ks.Dropped.Store(false)
			continue
		}
		k.remove(ks)
	}
}

// settled forgets what happened up to a command that a stored root has, and returns the keyspaces that were dropped by then.
func (k *keyspaces) settled(seq uint64) (dropped []*Keyspace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	later := slices.IndexFunc(k.events, func(ev keyspaceEvent) bool { return ev.seq > seq })
	if later < 0 {
		later = len(k.events)
	}
	for _, ev := range k.events[:later] {
		if ev.dropped {
			dropped = append(dropped, ev.ks)
		}
	}
	k.events = slices.Delete(k.events, 0, later)
	return dropped
}

// forget forgets keyspaces that were dropped.
func (k *keyspaces) forget(list []doomedKeyspace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range list {
		delete(k.dropped, d.id.ID)
	}
}

func (k *keyspaces) named(name string) *Keyspace {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byName[name]
}

func (k *keyspaces) id(id uint32) *Keyspace {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.byID[id]
}

// known returns the keyspace with an id, be it one that was dropped in this run and is not forgotten; nil when there was none.
func (k *keyspaces) known(id uint32) *Keyspace {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if ks := k.byID[id]; ks != nil {
		return ks
	}
	return k.dropped[id]
}

// all returns the keyspaces that there are.
func (k *keyspaces) all() []*Keyspace {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return slices.AppendSeq(make([]*Keyspace, 0, len(k.byID)), maps.Values(k.byID))
}

// at returns the keyspaces as they were after the command with the number seq, which is not older than the root in force, in the order
// of their ids, and the id that came next.
func (k *keyspaces) at(seq uint64) ([]*Keyspace, uint32) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	other, next := map[uint32]*Keyspace{}, k.nextID // what was there of those that have changed since; nil: nothing
	for _, ev := range slices.Backward(k.events) {
		switch {
		case ev.seq <= seq:
		case ev.dropped:
			other[ev.ks.ID] = ev.ks
		default:
			other[ev.ks.ID] = nil
			next = min(next, ev.ks.ID)
		}
	}
	then := make([]*Keyspace, 0, len(k.byID)+len(other))
	for id, ks := range k.byID {
		if _, changed := other[id]; !changed {
			then = append(then, ks)
		}
	}
	for _, ks := range other {
		if ks != nil {
			then = append(then, ks)
		}
	}
	slices.SortFunc(then, func(a, b *Keyspace) int { return cmp.Compare(a.ID, b.ID) })
	return then, next
}

// begin chooses the number of the first keyspace that is created, where there was none yet: by chance, since the hash of a key is that of
// its keyspace's number too. Who does not know the number cannot make keys that collide. It comes after recovery: the log may tell of
// numbers that were chosen before.
func (k *keyspaces) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nextID == DefaultID+1 {
		k.nextID = lowestFirst + rand.Uint32N(highestFirst-lowestFirst)
	}
}

// The catalogue is one blob. What would make it larger than that can be is refused when it is created: later nothing would settle any more.
const (
	// catalogueMost is what keyspaces may take of it. The rest is for segments, and for the roots of large hash tables.
	catalogueMost = segment.MaxBlob / 4 * 3
	// keyspaceMost is what one takes beside its name, with the root of a tree.
	keyspaceMost = 80
)

// roomFor reports whether the catalogue has room for one more keyspace.
func (k *keyspaces) roomFor(name string) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.bytes+keyspaceMost+len(name) <= catalogueMost
}

// next returns the id of the keyspace that is created next.
func (k *keyspaces) next() uint32 {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.nextID
}

// ReadableAt returns ErrDropped when the keyspace was dropped before what a reader sees, up to the command with the number seq: what is
// there of it is what has not been given back yet.
func (ks *Keyspace) ReadableAt(seq uint64) error {
	if ks.Dropped.Load() && ks.droppedBy.Load() <= seq {
		return fmt.Errorf("keyspace %q: %w", ks.Name, ErrDropped)
	}
	return nil
}

// KeyspaceOptions says how to create a keyspace.
type KeyspaceOptions struct {
	Layout    Layout
	Codec     segment.Codec
	OwnCodec  bool // Codec counts; else the database's does
	LeafBytes int
	NoFilters bool // the layout keeps no filters over the keys of its leaves
}

// optionsSize is the length of encoded options, and optionsVersion their first byte. The bytes are described in
// docs/format/root.md.
const (
	optionsSize    = 10
	optionsVersion = 1

	optionOwnCodec  = 1 << 0
	optionNoFilters = 1 << 1
	optionAll       = optionOwnCodec | optionNoFilters
)

// encode returns the form in which the catalogue and the log keep the options, and the dictionary in use.
func (o KeyspaceOptions) encode(dictionary uint16) []byte {
	b := []byte{optionsVersion, byte(o.Layout), byte(o.Codec), 0}
	if o.OwnCodec {
		b[3] |= optionOwnCodec
	}
	if o.NoFilters {
		b[3] |= optionNoFilters
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(o.LeafBytes))
	return binary.LittleEndian.AppendUint16(b, dictionary)
}

// decodeOptions reads encoded options.
func decodeOptions(b []byte) (o KeyspaceOptions, dictionary uint16, err error) {
	if len(b) != optionsSize || b[0] != optionsVersion || b[3]&^optionAll != 0 {
		return o, 0, fmt.Errorf("keyspace options %x: %w", b, corrupt.Err)
	}
	o = KeyspaceOptions{
		Layout: Layout(b[1]), Codec: segment.Codec(b[2]), OwnCodec: b[3]&optionOwnCodec != 0,
		LeafBytes: int(binary.LittleEndian.Uint32(b[4:])), NoFilters: b[3]&optionNoFilters != 0,
	}
	return o, binary.LittleEndian.Uint16(b[8:]), nil
}

// ReadOptions reads the options of a keyspace as the catalogue and the log keep them.
func ReadOptions(encoded []byte) (KeyspaceOptions, error) {
	o, _, err := decodeOptions(encoded)
	return o, err
}

// Bounds of LeafBytes.
const (
	leastLeaf = 256
	mostLeaf  = 256 << 10
)

// OpenKeyspace opens a keyspace, or creates it. o may be nil.
func (e *Engine) OpenKeyspace(name string, o *KeyspaceOptions) (*Keyspace, error) {
	if len(name) == 0 || len(name) > MaxNameBytes || !utf8.ValidString(name) {
		return nil, fmt.Errorf("keyspace %.40q: %w", name, ErrName)
	}
	if e.closed.Load() {
		return nil, ErrClosed
	}
	if ks := e.keyspaces.named(name); ks != nil {
		return ks, ks.fits(o)
	}
	if err := e.usable(); err != nil {
		if err == ErrReadOnly {
			err = ErrNotFound
		}
		return nil, fmt.Errorf("create keyspace %q: %w", name, err)
	}
	var want KeyspaceOptions
	if o != nil {
		want = *o
	}
	switch {
	case !e.layouts.makes(want.Layout):
		return nil, fmt.Errorf("create keyspace %q: this version makes no %v layout: %w", name, want.Layout, ErrLayout)
	case want.LeafBytes != 0 && (want.LeafBytes < leastLeaf || want.LeafBytes > mostLeaf):
		return nil, fmt.Errorf("create keyspace %q: %w: LeafBytes is %d, want %d to %d", name, ErrOptions, want.LeafBytes, leastLeaf, mostLeaf)
	}
	if want.Layout == Hash {
		want.LeafBytes, want.NoFilters = 0, false // which it does not have
	}
	return e.createKeyspace(name, want)
}

// fits checks that an existing keyspace is what the caller asks for.
func (ks *Keyspace) fits(o *KeyspaceOptions) error {
	if o != nil && o.Layout != ks.Layout {
		return fmt.Errorf("keyspace %q: layout is %v, asked for %v: %w", ks.Name, ks.Layout, o.Layout, ErrLayout)
	}
	return nil
}

func (e *Engine) createKeyspace(name string, o KeyspaceOptions) (*Keyspace, error) {
	r := &commit.Request{Count: 1, Sync: e.o.Profile == Durable}
	e.pipeline.Acquire(r)
	defer e.pipeline.Release()
	if ks := e.keyspaces.named(name); ks != nil { // somebody was faster
		return ks, ks.fits(&o)
	}
	id := e.keyspaces.next()
	if id == math.MaxUint32 { // the one behind it, which the catalogue names, would have none
		return nil, fmt.Errorf("create keyspace %q: all numbers of keyspaces are used up", name)
	}
	if !e.keyspaces.roomFor(name) {
		return nil, fmt.Errorf("create keyspace %q: the catalogue is full", name)
	}
	var enc command.Encoder
	enc.CreateKeyspace(id, []byte(name), o.encode(0))
	r.Commands = enc.Payload()
	if err := e.pipeline.Carry(r); err != nil {
		return nil, fmt.Errorf("create keyspace %q: %w", name, err)
	}
	return e.keyspaces.id(id), nil
}

// DropKeyspace makes a keyspace disappear. Its space comes back with the next checkpoints.
func (e *Engine) DropKeyspace(name string) error {
	if err := e.usable(); err != nil {
		return fmt.Errorf("drop keyspace %q: %w", name, err)
	}
	if name == DefaultName {
		return fmt.Errorf("drop keyspace %q: the default keyspace stays: %w", name, ErrName)
	}
	r := &commit.Request{Count: 1, Sync: e.o.Profile == Durable}
	e.pipeline.Acquire(r)
	defer e.pipeline.Release()
	ks := e.keyspaces.named(name)
	if ks == nil {
		return fmt.Errorf("drop keyspace %q: %w", name, ErrNotFound)
	}
	var enc command.Encoder
	enc.DropKeyspace(ks.ID)
	r.Commands = enc.Payload()
	if err := e.pipeline.Carry(r); err != nil {
		return fmt.Errorf("drop keyspace %q: %w", name, err)
	}
	return nil
}

// Keyspaces lists the keyspaces in the order of their names.
func (e *Engine) Keyspaces() []*Keyspace {
	list := e.keyspaces.all()
	slices.SortFunc(list, func(a, b *Keyspace) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Keyspace returns the keyspace with an id, nil when there is none.
func (e *Engine) Keyspace(id uint32) *Keyspace { return e.keyspaces.id(id) }
