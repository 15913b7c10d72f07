package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// accountsSeed, where it is not 0, replaces the seeds of the random programs, to replay a failure.
const accountsSeed = 0

// Whatever happens to a database, what is kept of it beside its data is what the data says: the live bytes of each segment, the numbers of
// records, whether any has expired, where blobs may lie, and which memory is counted.
func TestAccountsAreWhatThereIs(t *testing.T) {
	seeds := []uint64{1, 2, 3}[:usualAccounts]
	if testing.Short() {
		seeds = seeds[:1]
	}
	if accountsSeed != 0 {
		seeds = []uint64{accountsSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &books{T: t, random: rand.New(rand.NewPCG(seed, 7)), disk: memfs.New()}
				b.open()
				defer func() {
					b.giveUp(0)
					if err := b.e.Close(); err != nil {
						t.Error(err)
					}
				}()
				for step := range usualSteps {
					b.step(b.random.IntN(18))
					if b.audit(); t.Failed() {
						t.Fatalf("after step %d", step)
					}
				}
			})
		})
	}
}

// books is a database of which the accounts are checked.
type books struct {
	*testing.T
	random *rand.Rand
	disk   *memfs.FS
	faults *faultfs.FS
	e      *Engine
	held   []*Held
}

func (b *books) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *books) open() {
	b.faults = faultfs.New(b.disk)
	e, err := Open(Options{FS: b.faults, Dir: "db", MemoryBytes: leastMemory})
	b.must(err)
	b.e = e
	for _, name := range []string{"tree", "hash", "bare"} {
		b.keyspace(name)
	}
}

// keyspace returns a keyspace, which it makes if there is none.
func (b *books) keyspace(name string) *Keyspace {
	o := map[string]*KeyspaceOptions{"tree": {LeafBytes: 1 << 10}, "hash": {Layout: Hash}, "bare": {NoFilters: true, LeafBytes: leastLeaf}}[name]
	ks, err := b.e.OpenKeyspace(name, o)
	b.must(err)
	return ks
}

// any returns one of the keyspaces.
func (b *books) any() *Keyspace {
	list := b.e.Keyspaces()
	return list[b.random.IntN(len(list))]
}

// key returns one of some keys, half of which are close to each other.
func (b *books) key() []byte {
	n := b.random.IntN(6000)
	if n%2 == 0 {
		n /= 20
	}
	return fmt.Appendf(nil, "key %06d", n)
}

// step does one thing.
func (b *books) step(what int) {
	switch what {
	case 0:
		b.drop()
	case 1:
		b.must(b.bulk(func() {}))
	case 2:
		b.must(b.compact())
	case 3, 4:
		b.fail()
	case 5:
		b.hold()
	case 6:
		b.giveUp(len(b.held) / 2)
	case 7:
		b.reopen()
	case 8, 9:
		time.Sleep(time.Duration(b.random.IntN(60)) * time.Second)
	default:
		for range 1 + b.random.IntN(3) {
			b.write(1 + b.random.IntN(300))
		}
	}
}

// fill adds a change to an encoder.
func (b *books) fill(enc *command.Encoder, hold *ValueHold) {
	ks, key := b.any(), b.key()
	expiry := uint64(0)
	if b.random.IntN(8) == 0 {
		expiry = b.e.Now() + uint64(b.random.IntN(90_000))
	}
	switch b.random.IntN(12) {
	case 0, 1, 2:
		enc.Delete(ks.ID, key)
	case 3:
		val := make([]byte, 1500+b.random.IntN(6000))
		for at := 0; at+8 <= len(val); at += 8 {
			binary.LittleEndian.PutUint64(val[at:], b.random.Uint64())
		}
		ref, err := hold.Store(ks, key, val)
		b.must(err)
		enc.PutApart(ks.ID, key, value.AppendRef(nil, ref), expiry)
	default:
		enc.Put(ks.ID, key, bytes.Repeat(fmt.Appendf(nil, "%d ", b.random.Uint32()), b.random.IntN(40)), expiry)
	}
}

// write commits so many changes, and at times a range delete.
func (b *books) write(n int) {
	var enc command.Encoder
	hold := b.e.HoldValues()
	if b.random.IntN(6) == 0 {
		low := b.key()
		enc.DeleteRange(b.any().ID, low, append(bytes.Clone(low[:len(low)-2]), "99"...))
	}
	for range n {
		b.fill(&enc, hold)
	}
	b.must(hold.End(b.e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()})))
}

// compact writes everything anew, as it is or with a dictionary.
func (b *books) compact() error {
	codec := []segment.Codec{segment.None, segment.S2, segment.Zstd}[b.random.IntN(3)]
	return b.e.Compact(context.Background(), &codec, nil)
}

// bulk commits a batch that is larger than memory, or would be. What fails of it is given up.
func (b *books) bulk(full func()) error {
	s, err := b.e.NewSpill()
	b.must(err)
	hold := b.e.HoldValues()
	for range 1 + b.random.IntN(4) {
		var enc command.Encoder
		for range 200 {
			b.fill(&enc, hold)
		}
		b.must(s.Add(&enc))
	}
	full()
	err = hold.End(b.e.CommitSpilled(s, nil))
	b.faults.Set()
	return errors.Join(err, s.Remove())
}

// drop drops a keyspace, and makes it anew, or first leaves it to a checkpoint.
func (b *books) drop() {
	name := []string{"tree", "hash", "bare"}[b.random.IntN(3)]
	b.must(b.e.DropKeyspace(name))
	if b.random.IntN(2) == 0 {
		b.must(b.e.Checkpoint(context.Background()))
	}
	b.keyspace(name)
	b.write(50)
}

// fail has something go wrong while settling.
func (b *books) fail() {
	b.write(200)
	full := func() {
		b.faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: "*.seg", Skip: b.random.IntN(6), Times: 1 + b.random.IntN(20), Err: vfs.ErrNoSpace})
	}
	var err error
	switch b.random.IntN(4) {
	case 0:
		full()
		err = b.compact()
	case 1:
		err = b.bulk(full)
	case 2:
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err = b.e.Checkpoint(ctx)
	default:
		full()
		err = b.e.Checkpoint(context.Background())
	}
	b.faults.Set()
	if err != nil && !isDiskFull(err) && !errors.Is(err, context.Canceled) {
		b.Fatal(err)
	}
}

// hold keeps a snapshot.
func (b *books) hold() {
	s, err := b.e.Snapshot()
	b.must(err)
	h := new(Held)
	b.must(b.e.Hold(h, s))
	b.held = append(b.held, h)
}

// giveUp gives the snapshots from number n on up.
func (b *books) giveUp(n int) {
	for _, h := range b.held[n:] {
		h.End(ErrClosed)
	}
	b.held = b.held[:n]
}

// reopen opens the database anew, or what a power cut leaves of it.
func (b *books) reopen() {
	b.giveUp(0)
	crash := b.random.IntN(2) == 0
	image := b.disk
	if crash {
		image = b.disk.CrashImage(memfs.Policy{Unsynced: memfs.None})
	}
	b.must(b.e.Close())
	b.disk = image
	b.open()
}

// audit compares what is kept with what there is.
func (b *books) audit() {
	b.Helper()
	b.must(b.e.Checkpoint(context.Background()))
	if len(b.held) > 0 {
		s, err := b.held[b.random.IntN(len(b.held))].Use()
		b.must(err)
		for id, r := range s.View.Roots.All() { // what it brings into memory is counted for no longer than others
			b.records(id, r)
		}
		s.Release()
	}
	e := b.e
	e.settling.Lock()
	defer e.settling.Unlock()
	live := map[uint32]int64{}
	if p := e.root.Current().Catalogue; !p.IsZero() {
		live[p.Segment] += int64(p.Length)
	}
	for _, d := range e.dictionaries {
		live[d.Pointer.Segment] += int64(d.Pointer.Length)
	}
	resident := int64(0)
	for id, r := range e.current.Load().Roots.All() {
		b.records(id, r)
		under := new(segment.Set)
		b.must(e.layoutOf(id).Walk(b.Context(), r, func(p segment.Pointer, kind segment.Kind) error {
			live[p.Segment] += int64(p.Length)
			if kind != segment.KindValue && kind != segment.KindValueIndex {
				under.Add(p.Segment)
			}
			return nil
		}))
		for s := range under.All() {
			if !r.MayLieIn(segment.SetOf(s)) {
				b.Errorf("keyspace %d has a blob in segment %d, and says that it has none", id, s)
			}
		}
		resident += e.layoutOf(id).Stats(r).ResidentBytes
	}
	b.segments(live)
	if inner := e.env.Inner.Load(); len(b.held) == 0 && (inner > resident || inner < 0) {
		b.Errorf("%d bytes of inner nodes are counted, %d are there", inner, resident)
	}
	if n := e.cache.Stats().Pinned; n != 0 {
		b.Errorf("%d pages are pinned", n)
	}
}

// segments compares the table of segments with what lives in each of them.
func (b *books) segments(live map[uint32]int64) {
	b.Helper()
	e := b.e
	e.epoch.Drain()
	below := e.unheldValues()
	for _, i := range e.store.Segments() {
		if i.Live != live[i.ID] {
			b.Errorf("segment %d of class %d: %d bytes are live, the table says %d", i.ID, i.Class, live[i.ID], i.Live)
		}
		if i.Live == 0 && len(b.held) == 0 && (i.Class == segment.Nodes || i.ID < below && i.LastSeq > 0) {
			b.Errorf("segment %d of class %d has nothing live, and is still there", i.ID, i.Class)
		}
		delete(live, i.ID)
	}
	if len(live) > 0 {
		b.Errorf("what is live lies in segments that are not listed: %v", live)
	}
}

// records compares what a root says of its records with what it has.
func (b *books) records(id uint32, r layout.Root) {
	b.Helper()
	now := b.e.Now()
	there, hidden := int64(0), int64(0)
	c := r.NewCursor()
	defer c.Close()
	for ok := c.First(); ok; ok = c.Next() {
		there++
		if rec := c.Record(); rec.Expired(now) {
			hidden++
		} else if rec.Kind == record.Tombstone {
			b.Errorf("keyspace %d: a tombstone under the cursor", id)
		}
	}
	b.must(c.Err())
	if n, exact := r.Records(); n < there || exact && n != there {
		b.Errorf("keyspace %d: %d records, the root says %d (exact: %v)", id, there, n, exact)
	}
	if n, err := r.Count(nil, nil, now); err != nil || n != there-hidden {
		b.Errorf("keyspace %d: %d records of which %d are hidden, counted %d, %v", id, there, hidden, n, err)
	}
	if hidden > 0 && !r.MayHide(now) {
		b.Errorf("keyspace %d hides %d records, and says that it hides none", id, hidden)
	}
	if r.Empty() && there > 0 {
		b.Errorf("keyspace %d has %d records, and says that it is empty", id, there)
	}
}
