package engine

import (
	"fmt"
	"math"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
)

// diskSpace keeps a database from filling its disk to the last byte. Nothing could be deleted from it any more then: what is deleted
// gives its space back when it has settled, and to settle takes space first. So what adds is refused as long as there is less free than
// checkpoints may need, and what deletes goes on. That takes a file system that tells how much there is; where others fill it, or a quota
// ends sooner than the file system, it is as full as they leave it.
type diskSpace struct {
	next  atomic.Int64 // of the bytes that were handed over, where the file system is asked again
	short atomic.Bool  // there was too little when it was asked last
	free  atomic.Int64 // what there was then
	left  atomic.Int64 // bytes that were free when making space was in vain last
	size  atomic.Int64 // bytes of all segments when they were last added up
	aged  atomic.Int64 // of the bytes that were handed over, where they are added up again
	most  atomic.Int64 // bytes that the one of the last checkpoints wrote which wrote most; changed under settling
	// When deletes have settled while there was little, much may still lie in segments of nodes below this number that a leaf would be written
	// without. 0: nothing.
	hollow atomic.Uint32
	vain   int // rounds of collect that were not worth it, one behind the other; of the one who leads
	// Before that nobody waits for a checkpoint that may make room; nil: it is long past. A moment by the clock that nobody sets: of Unix
	// nanoseconds there would be as many to wait for as the system's clock is set back.
	again atomic.Pointer[time.Time]
}

// The file system is asked again when a quarter of what is left over has been written, within these limits; after each checkpoint; and each
// time while there is too little.
const (
	askLeast = 64 << 10
	askMost  = 16 << 20
)

// losing is the part of what is needed that goes after an attempt to make space that was in vain until those who delete make another, however
// short a time that takes: they would go on to the end of the disk beside what they have left dead meanwhile.
const losing = 8

// agedBy is how many bytes are handed over until segments are added up again, if there is no checkpoint.
const agedBy = 1 << 20

// someMore is the part of what is needed by which there has to be more before there is enough again.
const someMore = 8

// handedOver is how many bytes commits and values have brought.
func (e *Engine) handedOver() int64 { return e.counters.userBytes.Load() + e.valuesWritten.Load() }

// spaceFor sees to it that a commit leaves as much space as checkpoints need, or else deletes. What may give space back is done before it
// is refused, and before what is kept for those that delete comes to its end. The caller leads.
func (e *Engine) spaceFor(commands []byte) error {
	d := &e.space
	if !d.short.Load() && e.handedOver() < d.next.Load() || e.enoughSpace() {
		return nil
	}
	refused := adds(commands, e.shortens)
	if !refused && d.free.Load() >= e.spaceNeeded()*3/4 {
		d.again.Store(nil) // what it deletes may be what makes room
		return nil
	}
	losesMuch := !refused && d.free.Load() < d.left.Load()-e.spaceNeeded()/losing
	if losesMuch || e.mayMakeSpace() {
		if err := e.makeSpace(); err != nil && (refused || !isDiskFull(err)) {
			return err
		}
	}
	if refused && d.short.Load() {
		return e.tooLittleSpace()
	}
	return nil
}

// spaceForValue is spaceFor before a value apart is written: where the commit that comes next would be refused without further ado, so is
// the value. Anybody may call it.
func (e *Engine) spaceForValue() error {
	if !e.space.short.Load() || e.enoughSpace() || e.mayMakeSpace() {
		return nil
	}
	return e.tooLittleSpace()
}

// mayMakeSpace reports whether the last attempt to make space that was in vain was long enough ago.
func (e *Engine) mayMakeSpace() bool {
	again := e.space.again.Load()
	return again == nil || !e.o.Clock.Now().Before(*again)
}

func (e *Engine) tooLittleSpace() error {
	const mb = 1e6
	return fmt.Errorf("%w: %.1f MB of the disk are free, and %.1f MB are kept for checkpoints, or nothing could be deleted",
		ErrDiskFull, float64(e.space.free.Load())/mb, float64(e.spaceWanted())/mb)
}

// shorteningMost is how many puts of a commit are compared with what they replace: an update of many documents takes fewer at a time.
const shorteningMost = 1024

// adds reports whether commands put more keys than they delete, those left out that become shorter. What drops or deletes more than a key does
// not, whatever comes with it.
func adds(commands []byte, shortens func(*command.Command) bool) bool {
	added, puts := 0, 0
	d := command.NewDecoder(commands)
	for d.Next() {
		c := d.Command()
		switch c.Op {
		case command.Put, command.PutApart:
			puts++
			if puts > shorteningMost || !shortens(&c) {
				added++
			}
		case command.Delete:
			added--
		case command.DeleteRange, command.DropKeyspace:
			return false
		}
	}
	return added > 0
}

// shortens reports whether a put replaces what is longer, in a record.
func (e *Engine) shortens(c *command.Command) bool {
	ks := e.keyspaces.id(c.Keyspace)
	if ks == nil || c.Op != command.Put {
		return false
	}
	g := e.epoch.Enter()
	v, seq := e.acquire()
	v.Ref()
	g.Exit()
	defer v.Unref()
	scratch := e.scratch.get()
	defer e.scratch.put(scratch)
	r, ok, err := e.find(scratch, v, nil, ks, record.Hash(ks.ID, c.Key), c.Key, seq)
	return err == nil && ok && (r.Kind == record.Apart || len(c.Value) < len(r.Value))
}

// enoughSpace asks the file system. Anybody may call it.
func (e *Engine) enoughSpace() bool {
	d := &e.space
	written, wanted := e.handedOver(), e.spaceWanted()
	free, known := vfs.Free(e.o.FS, e.path(segment.DirName))
	if !known {
		free = math.MaxInt64
	}
	over := free - wanted
	d.free.Store(free)
	d.next.Store(written + min(max(over/4, askLeast), askMost))
	if short := over < 0; d.short.Swap(short) != short {
		e.tellOfSpace(short)
	}
	return over >= 0
}

func (e *Engine) tellOfSpace(short bool) {
	if short {
		e.o.Logger.Warn("the disk is nearly full: writes that add are refused", "free", e.space.free.Load(), "needed", e.spaceNeeded())
	} else {
		e.o.Logger.Info("there is room on the disk again")
	}
	e.wakeWorker()
}

// spaceWanted is how many bytes have to be free for what adds. After there was too little that is some more than is needed: else the next
// writer would meet with the same again.
func (e *Engine) spaceWanted() int64 {
	needed := e.spaceNeeded()
	if e.space.short.Load() {
		needed += needed / someMore
	}
	return needed
}

// spaceNeeded is how many bytes have to be free for what is in memory to settle, and for more to be deleted. What is in memory may take its
// own size and, where it is much beside what there is, so that there are as many changes as records in a leaf, that of what it replaces.
func (e *Engine) spaceNeeded() int64 {
	kept, unsettled := e.spaceKept(), e.unsettled()
	return kept + unsettled + min(unsettled, e.space.size.Load())
}

// unsettled is how many bytes there are in memtables. Anybody may call it.
func (e *Engine) unsettled() int64 {
	defer e.epoch.Enter().Exit()
	n := int64(0)
	for _, t := range e.current.Load().Tables {
		n += int64(t.Bytes())
	}
	return n
}

// startingCheckpoint is how many memtables a checkpoint is taken to write until there has been one.
const startingCheckpoint = 2

// forgetting is after how many checkpoints the largest of them counts for little more than a third.
const forgetting = 256

// What is kept for the sake of much data alone is the part slack of it, up to mostSlack.
const (
	slack     = 5
	mostSlack = 8 << 30
)

// spaceKept is how many bytes checkpoints may need beside what is in memory. That is twice what one of the last has written, for leaves that
// get deltas at the same time are written anew at about the same time; a fifth of all at least; and what the cleaner moves. A small database
// needs little.
//
// The fifth is what deletes live on until they give space back: each takes about as much, for what tells of it, as the record that goes, and
// the fuller the segments are, the more the cleaner moves for a little room. With an eighth, random deletes of small records have met the end
// of the disk on the way.
func (e *Engine) spaceKept() int64 {
	d := &e.space
	if written := e.handedOver(); written >= d.aged.Load() {
		d.size.Store(e.segmentBytes()) // of a large database that takes longer than a commit
		d.aged.Store(written + agedBy)
	}
	size := d.size.Load()
	return max(min(2*d.most.Load(), size/4), min(size/slack, mostSlack)) + min(2*e.sizes.segment, size/8)
}

// segmentsLeast is how many segment files there should be on a full disk at least, and twice as many of the log: what is garbage goes by files,
// and they are emptied into what is free.
const segmentsLeast = 32

// fitFiles makes files smaller than the budget has them where there is a small disk for them.
func (e *Engine) fitFiles() {
	enough := segmentsLeast * max(e.sizes.segment, 2*e.sizes.logSegment)
	room, known := vfs.Free(e.o.FS, e.o.Dir)
	if !known || room >= enough || e.o.ReadOnly {
		return
	}
	names, _ := e.o.FS.List(e.path(segment.DirName)) // of a new database there are none
	for _, name := range names {
		if room >= enough {
			return // a large database, of which it is not worth asking for more files
		}
		if info, err := e.o.FS.Stat(filepath.Join(e.path(segment.DirName), name)); err == nil {
			room += info.Size
		}
	}
	e.sizes.segment = min(e.sizes.segment, max(room/segmentsLeast, leastSegment))
	e.sizes.logSegment = min(e.sizes.logSegment, max(room/segmentsLeast/2, leastLogSegment)&^(logBlock-1))
}

// stale has the file system asked, and segments added up, when it matters next: a checkpoint takes more than what was handed over for it.
func (d *diskSpace) stale() {
	d.aged.Store(0)
	d.next.Store(0)
}

// settledWith takes note of what a checkpoint has written.
func (d *diskSpace) settledWith(bytes int64) {
	most := d.most.Load()
	d.most.Store(max(bytes, most-most/forgetting))
}

func (e *Engine) segmentBytes() int64 { return segment.Bytes(e.store.Segments()) }

// shortTable is how many bytes a memtable may have before it settles while there is too little space: the log of it takes some, too.
func (e *Engine) shortTable() int64 {
	if !e.space.short.Load() {
		return math.MaxInt64
	}
	return max(e.space.free.Load()/4, leastMemtable/2)
}

// patienceNow is how long a pause in writing must be for what is in the memtable in front to settle.
func (e *Engine) patienceNow() time.Duration {
	if e.space.short.Load() {
		return idleDelay
	}
	return patience(e.current.Load().Tables[0].Bytes(), e.sizes.memtable)
}
