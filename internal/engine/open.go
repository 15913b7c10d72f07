package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/view"
	"github.com/pandodb/pando/internal/wal"
	"github.com/pandodb/pando/vfs"
)

// Names inside the database directory.
const (
	LockName       = "LOCK"       // holds the lock of the process that has the database open
	UnfinishedName = "UNFINISHED" // there as long as what makes the database is not done with it
	logDir         = "wal"
)

// ErrUnfinished is one of the errors that the public package shows.
var ErrUnfinished = errors.New("not a whole database: what was to make it was never finished")

// Open opens a database, creates it where there is none, and recovers it where it was not closed.
func Open(o Options) (*Engine, error) { return open(o, false) }

// OpenUnfinished is Open for whoever makes a database that bears the mark of an unfinished one.
func OpenUnfinished(o Options) (*Engine, error) { return open(o, true) }

func open(o Options, unfinished bool) (*Engine, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Dir, err)
	}
	e := &Engine{
		o: o, unfinished: unfinished, sizes: sizesFor(o.MemoryBytes), epoch: epoch.New(), keyspaces: newKeyspaces(),
		views: map[*view.View]struct{}{}, starts: map[*Start]struct{}{}, loose: map[uint64]struct{}{}, stuck: map[uint32]time.Time{},
		values: valueHolds{holds: map[*ValueHold]struct{}{}},
		kick:   make(chan struct{}, 1), kickSync: make(chan struct{}, 1), closing: closing{ended: make(chan struct{})},
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.changed = sync.NewCond(&e.mu)
	e.pipeline = commit.New(e.process)
	e.feed.init()
	if err := e.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", o.Dir, err), e.abandon())
	}
	e.space.settledWith(startingCheckpoint * int64(e.sizes.memtable))
	if !o.ReadOnly {
		e.fitCache()
		e.worker.Go(e.work)
		if e.log != nil {
			e.worker.Go(e.keepClock)
		}
		if o.Profile == Relaxed {
			if e.log != nil && e.atRisk() > 0 { // what recovery found
				e.kickSync <- struct{}{}
			}
			e.worker.Go(e.keepSynced)
		}
	}
	return e, nil
}

func (e *Engine) open() error {
	slot, err := e.openRoot()
	if err != nil {
		return err
	}
	e.cache = cache.New(e.sizes.most, e.epoch)
	e.cache.TakeFrom(e.arenas.Give)
	if e.o.ReadOnly {
		e.sizes.inner = e.sizes.cache / 2 // there is no worker that would fit the page cache to what nodes need
	}
	e.cacheSize.Store(e.sizes.cache - e.sizes.inner)
	e.cache.Resize(e.cacheSize.Load())
	if err := e.openStore(slot); err != nil {
		return e.unlessUnread(err)
	}
	roots, err := e.loadCatalogue()
	if err != nil {
		return err
	}
	return e.recover(slot, roots)
}

// openRoot takes the lock and reads the root slots, or makes a new database.
func (e *Engine) openRoot() (root.Slot, error) {
	fsys, dir := e.o.FS, e.o.Dir
	mode, create := vfs.Exclusive, !e.o.MustExist
	if e.o.ReadOnly {
		mode, create = vfs.Shared, false
	}
	_, err := fsys.Stat(filepath.Join(dir, root.Name))
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil {
		if err := CheckDirectory(fsys, dir); err != nil {
			return root.Slot{}, err
		}
		if !fresh {
			return root.Slot{}, err
		}
	}
	if fresh {
		if !create {
			return root.Slot{}, e.absent()
		}
		if err := e.refuseForeign(); err != nil {
			return root.Slot{}, err
		}
		if err := vfs.MkdirAllSync(fsys, dir); err != nil {
			return root.Slot{}, err
		}
	}
	if fsys, err = e.home.hold(fsys, dir); err != nil {
		return root.Slot{}, err
	}
	e.o.FS = fsys
	if e.lock, err = fsys.Lock(e.path(LockName), mode); err != nil {
		return root.Slot{}, err
	}
	e.unlogged = !e.orderly() // the last thing before a crash may have been a bulk load
	if err := e.refuseUnfinished(); err != nil {
		return root.Slot{}, err
	}
	e.fitFiles()
	if create && !fresh && !e.orderly() {
		// The directory may have come here without being made durable. A fresh one has been, just now.
		if err := vfs.MkdirAllSync(fsys, dir); err != nil {
			return root.Slot{}, err
		}
	}
	err = e.openRootFile(upgrades())
	if errors.Is(err, fs.ErrNotExist) && create {
		e.root, err = e.createRoot()
	}
	if errors.Is(err, ErrNotDatabase) {
		// A root that was wiped out does not look like one any more; what lies beside it tells what it was.
		if found, e := segment.Survey(fsys, dir); e == nil && len(found) > 0 {
			err = corrupt.New(root.Name, 0, 0, "it is no root, though there is %q", segment.DirName)
		}
	}
	if err != nil {
		return root.Slot{}, err
	}
	slot := e.root.Current()
	e.clock.raise(slot.Clock)
	e.clock.written.Store(slot.Clock)
	return slot, nil
}

// orderly reports whether who had the database open before left its root durable, and nothing in one slot alone: see storeTwice.
func (e *Engine) orderly() bool {
	l, ok := e.lock.(vfs.OrderedLock)
	return ok && l.Orderly()
}

// leaveInOrder tells who opens the database next that it is orderly, if it is. Who could not open it behind a crash has settled nothing.
func (e *Engine) leaveInOrder() {
	l, ok := e.lock.(vfs.OrderedLock)
	if !ok || e.root == nil || !e.root.Durable() || e.failure.Load() != nil || e.unlogged && e.root.Alone() {
		return
	}
	l.LeaveInOrder()
}

// openRootFile opens the root file, after it was brought up to date where it is of an older format.
func (e *Engine) openRootFile(steps []upgrade) (err error) {
	opener := root.Open
	switch {
	case e.o.ReadOnly:
		opener = root.OpenReadOnly
	case e.orderly():
		opener = root.OpenDurable
	}
	if e.root, err = opener(e.o.FS, e.o.Dir); !errors.Is(err, ErrVersion) {
		return err
	}
	if err := upgradeFrom(e.o.FS, e.o.Dir, err, steps, e.o.ReadOnly); err != nil {
		return err
	}
	e.root, err = opener(e.o.FS, e.o.Dir)
	return err
}

// refuseForeign keeps Open from turning a directory full of other things into a database.
func (e *Engine) refuseForeign() error {
	names, err := e.o.FS.List(e.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.refuseUnfinished(); err != nil {
		return err
	}
	for _, name := range names {
		switch name {
		case LockName, UnfinishedName, root.Name + ".tmp":
		case logDir:
			// A crash while the database was created leaves a log without records.
			if blank, err := wal.Blank(e.o.FS, e.path(logDir)); err != nil || !blank {
				return errors.Join(err, corrupt.New(root.Name, 0, 0, "the file is missing, though there is a log with records"))
			}
		case segment.DirName:
			return corrupt.New(root.Name, 0, 0, "the file is missing, though there is %q", name)
		default:
			return fmt.Errorf("the directory holds %q: %w", name, ErrNotDatabase)
		}
	}
	return nil
}

// createRoot makes a new database. A crash before it is complete leaves a directory without a root, which Open starts afresh.
func (e *Engine) createRoot() (*root.File, error) {
	slot := root.Slot{Generation: 1, NextSegment: 1, Log: root.Position{Segment: 1}}
	if _, err := rand.Read(slot.Database[:]); err != nil {
		return nil, err
	}
	if err := vfs.RemoveAll(e.o.FS, e.path(logDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := vfs.MkdirAllSync(e.o.FS, e.path(logDir)); err != nil {
		return nil, err
	}
	log, err := wal.Create(e.logOptions(slot), slot.Log.Segment)
	if err != nil {
		return nil, err
	}
	if err := log.Close(); err != nil {
		return nil, err
	}
	return root.Create(e.o.FS, e.o.Dir, slot)
}

// firstLogSegment is the size of the first file of a log: a database that is written to little takes little space.
const firstLogSegment = 256 << 10

func (e *Engine) logOptions(slot root.Slot) wal.Options {
	return wal.Options{
		FS: e.o.FS, Dir: e.path(logDir), Database: slot.Database, SegmentBytes: e.sizes.logSegment,
		FirstBytes: min(firstLogSegment, e.sizes.logSegment),
		KeepBytes:  e.o.KeepChanges, Seq: slot.Seq,
		SettleLater: e.o.Profile == Relaxed, // a power cut may cost what was acknowledged a moment before a crash, as before it
	}
}

// openStore opens the segments that the catalogue of a slot lists.
func (e *Engine) openStore(slot root.Slot) error {
	so := segment.Options{
		FS: e.o.FS, Dir: e.o.Dir, Database: slot.Database, SegmentBytes: e.sizes.segment, ReadOnly: e.o.ReadOnly, MapBytes: e.sizes.mapped,
		Clock:  e.o.Clock,
		Ahead:  e.o.Profile != Durable, // a sync after each value would bring the zeros to the device
		Spares: valueSegments,          // what a checkpoint for the sake of values frees
	}
	var err error
	var table []segment.Info
	e.catalogue = &root.Catalogue{}
	if !slot.Catalogue.IsZero() {
		once := so
		once.MapBytes = 0 // to map a file for one blob takes longer than to read it
		var raw []byte
		err := corrupt.Twice(func() (err error) {
			raw, err = segment.ReadBlob(once, slot.Catalogue)
			return err
		})
		if err != nil {
			return fmt.Errorf("read the catalogue: %w", err)
		}
		if e.catalogue, err = root.Decode(raw); err != nil {
			return fmt.Errorf("read the catalogue: %w", err)
		}
		table = withSegment(e.catalogue.Segments, slot.Catalogue)
	}
	if e.root.Damaged() {
		if err := e.distrustOlder(slot, table); err != nil {
			return err
		}
	}
	if e.store, err = segment.Open(so, table, slot.NextSegment); err != nil {
		return err
	}
	if !slot.Catalogue.IsZero() {
		e.store.Live(slot.Catalogue, int64(slot.Catalogue.Length))
	}
	e.reads = view.Environment{Store: e.store, Epoch: e.epoch}
	e.env.Store, e.env.Cache, e.env.Epoch, e.env.InnerBytes = e.store, e.cache, e.epoch, e.sizes.inner
	e.env.FreeValue = func(w *segment.Writer, encoded []byte) error {
		ref, err := value.DecodeRef(encoded)
		if err == nil {
			err = value.Free(e.store, ref, w)
		}
		if errors.Is(err, corrupt.Err) {
			e.env.Dropped(err) // whoever writes over a damaged value, or one to which nothing leads, gets rid of it
			return nil
		}
		return err
	}
	e.env.Dropped = func(err error) {
		e.o.Logger.Error("damage in what was deleted: a part of it goes on taking room", "error", err)
	}
	e.env.Damaged = func(err error) {
		e.o.Logger.Error("damage found while settling: what was written to it is kept beside it", "error", err)
	}
	e.env.WalkValue = func(encoded []byte, fn func(segment.Pointer, segment.Kind) error) error {
		ref, err := value.DecodeRef(encoded)
		if err != nil {
			return err
		}
		return value.Walk(e.store, ref, fn)
	}
	e.env.CheckValue = e.checkValue
	e.layouts = newLayouts()
	return nil
}

// withSegment returns the table with the segment of the catalogue. A catalogue that is the first blob of its segment was
// written before there was anything to list.
func withSegment(table []segment.Info, catalogue segment.Pointer) []segment.Info {
	if slices.ContainsFunc(table, func(i segment.Info) bool { return i.ID == catalogue.Segment }) {
		return table
	}
	return append(slices.Clip(table), segment.Info{
		ID: catalogue.Segment, Class: segment.Nodes, Size: int64(catalogue.Offset) + int64(catalogue.Length),
	})
}

// loadCatalogue makes the keyspaces and their roots.
func (e *Engine) loadCatalogue() (roots view.Roots, err error) {
	c := e.catalogue
	e.catalogue = &root.Catalogue{}
	lost := map[uint16]bool{}
	for _, d := range c.Dictionaries {
		err := e.loadDictionary(d)
		if lost[d.ID] = errors.Is(err, corrupt.Err); lost[d.ID] {
			err = e.loseDictionary(c, d, err)
		}
		if err != nil {
			return roots, err
		}
	}
	if n := len(c.Keyspaces); n > 0 {
		e.keyspaces.expect(n)
	}
	for _, k := range c.Keyspaces {
		if !e.layouts.makes(Layout(k.Layout)) {
			return roots, fmt.Errorf("keyspace %q: %v: %w", k.Name, Layout(k.Layout), ErrLayout)
		}
		o, dictionary, err := decodeOptions(k.Options)
		if err == nil && o.Layout != Layout(k.Layout) {
			err = fmt.Errorf("layout is %v, its options say %v: %w", Layout(k.Layout), o.Layout, corrupt.Err)
		}
		if err != nil {
			return roots, fmt.Errorf("keyspace %q: %w", k.Name, err)
		}
		if lost[dictionary] {
			dictionary = 0
		}
		e.keyspaces.restore(Spec{ID: k.ID, Name: k.Name, KeyspaceOptions: o}, dictionary)
		r, err := e.layouts[o.Layout].Load(&e.env, k.ID, k.Root)
		if err != nil {
			return roots, fmt.Errorf("keyspace %q: %w", k.Name, err)
		}
		roots.Set(k.ID, r)
	}
	e.keyspaces.nextID = max(c.NextKeyspace, DefaultID+1)
	if e.keyspaces.id(DefaultID) == nil {
		e.keyspaces.restore(Spec{ID: DefaultID, Name: DefaultName}, 0)
	}
	return roots.Clone(), nil // for the sake of the row that it makes
}

// loadDictionary reads a compression dictionary.
func (e *Engine) loadDictionary(d root.Dictionary) error {
	var buf segment.Buffer
	var raw []byte
	var header segment.Header
	err := corrupt.Twice(func() (err error) {
		raw, header, err = e.store.Read(d.Pointer, &buf)
		return err
	})
	if err == nil {
		err = e.store.AddDictionary(d.ID, raw)
	}
	if err != nil {
		return fmt.Errorf("compression dictionary %d: %w", d.ID, err)
	}
	e.dictionaries = append(e.dictionaries, dictionary{d, header.Keyspace})
	e.lastDictionary = max(e.lastDictionary, d.ID) // readers may need it for longer than the catalogue lists it
	return nil
}

// loseDictionary notes that a dictionary is damaged. It stays in the catalogue as long as its keyspace may have leaves that need it, for the
// number must not become that of another one.
func (e *Engine) loseDictionary(c *root.Catalogue, d root.Dictionary, damage error) error {
	e.o.Logger.Error("a compression dictionary is damaged, and what was compressed with it cannot be read", "error", damage)
	lost := dictionary{d, 0}
	for _, k := range c.Keyspaces {
		if _, used, err := decodeOptions(k.Options); err == nil && used == d.ID {
			lost.keyspace = k.ID
		}
	}
	e.dictionaries = append(e.dictionaries, lost)
	return e.store.LoseDictionary(d.ID, damage)
}

// recover replays the log into memtables and publishes the first view.
func (e *Engine) recover(slot root.Slot, roots view.Roots) error {
	e.lastSeq = slot.Seq
	e.settledSeq.Store(slot.Seq)
	table, err := e.arenas.New(e.sizes.memtable)
	if err != nil {
		return fmt.Errorf("make a memtable of %d bytes: %w", e.sizes.memtable, err)
	}
	e.mu.Lock()
	e.publish([]*view.Table{view.NewTable(table)}, roots)
	e.mu.Unlock()
	lo := e.logOptions(slot)
	from := wal.Position(slot.Log)
	var got wal.Recovered
	var log *wal.Log
	r := e.newReplay()
	lo.Settling = r.settling
	if e.o.ReadOnly {
		got, err = wal.Replay(lo, from, r.take)
	} else {
		log, got, err = wal.Recover(lo, from, r.take)
	}
	if applyErr := r.drain(); err == nil {
		err = applyErr
	}
	e.log = log
	if err != nil {
		return err
	}
	if got.Records > 0 {
		e.o.Logger.Info("recovered from the log", "records", got.Records, "bytes", got.Bytes, "last", e.lastSeq)
	}
	if got.Cut != nil {
		e.o.Logger.Warn("the log ended in an unfinished record, which was never acknowledged as synced", "segment", got.Cut.Segment, "offset", got.Cut.Offset)
	}
	e.visible.Store(e.lastSeq)
	if e.o.ReadOnly {
		return nil
	}
	e.keyspaces.begin()
	// Files that waited to be used again when there was a kill look like log that is kept.
	if err := log.Recycle(from); err != nil {
		e.o.Logger.Warn("log is not recycled", "error", err)
	}
	if len(e.current.Load().Tables) > 1 {
		// Where the records of each memtable end in the log is not known, but where all of them do is. They settle as one.
		if err := e.freeze(0, 0); err != nil {
			return err
		}
	}
	return e.startWriting()
}

// startWriting takes in what a crash left and, in the Bench profile, puts the log away.
func (e *Engine) startWriting() error {
	for _, o := range e.store.Orphans() {
		if err := e.store.Adopt(o.ID); err != nil {
			return fmt.Errorf("segment %d: %w", o.ID, err)
		}
		e.store.SetLastSeq(o.ID, e.lastSeq)
	}
	if err := e.sweepSpills(); err != nil {
		return err
	}
	if e.o.Profile != Bench {
		return nil
	}
	if err := e.settleRecovered(); err != nil {
		return err
	}
	log := e.log
	e.log = nil
	return log.Close()
}

// settleRecovered settles what recovery found, so that the log is not needed any more.
func (e *Engine) settleRecovered() error {
	if _, err := e.freezeFront(); err != nil { // the worker does not run yet: nobody may wait for it
		return err
	}
	return e.settle(context.Background(), work{})
}
