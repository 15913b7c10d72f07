package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/offheap"
	"github.com/pandodb/pando/vfs"
	"github.com/zeebo/xxh3"
)

const (
	// DefaultSegmentBytes is the size from which on a segment is full, unless Options say otherwise.
	DefaultSegmentBytes = 64 << 20
	// MaxSegmentBytes keeps every offset within 32 bits: a segment may exceed its size by one blob.
	MaxSegmentBytes = 2 << 30
)

var (
	// ErrClosed is what errors.Is finds after Close.
	ErrClosed = errors.New("segment store is closed")
	// ErrReadOnly is what errors.Is finds when a read-only store was asked to write.
	ErrReadOnly = errors.New("segment store is read-only")
	// ErrFailed is what errors.Is finds in every write after a sync has failed.
	ErrFailed = errors.New("segment store failed to sync before")
	// ErrUnknownSegment is what errors.Is finds when an operation names a segment that is not there.
	ErrUnknownSegment = errors.New("no such segment")
)

// Options say where a store lies.
type Options struct {
	FS           vfs.FS
	Dir          string      // the database directory; segment files lie in its DirName "segments"
	Database     [16]byte    // no blob of another database verifies
	SegmentBytes int64       // a segment of this size is full; 0: DefaultSegmentBytes
	ReadOnly     bool        // create, change and remove nothing
	MapBytes     int64       // of the files at most as much is mapped, for reading without system calls; 0: nothing
	Ahead        bool        // write zeros ahead of values: see room
	Spares       int         // at most so many files of removed value segments are kept to be used again
	Clock        clock.Clock // tells for how long something cannot be read; nil: that of the system
}

// Info is what the catalogue keeps about a segment.
//
// Live is the number of bytes in blobs that are in use. For Nodes it is exact with respect to the roots whose Writers were
// committed. For Values it is too: a value counts from the commit of the Writer that was told to Keep it, since a root
// refers to it, until that of one that was told to Free it. Values that only the log refers to, or nobody, do not count;
// LastSeq tells how far the log has to be settled before Live says everything.
type Info struct {
	ID      uint32
	Class   Class
	Size    int64 // bytes of the file, header block included
	Live    int64
	LastSeq uint64 // highest sequence number that refers to a value in it (SetLastSeq)
}

// Bytes is what all segments of the list take.
func Bytes(list []Info) int64 {
	bytes := int64(0)
	for _, i := range list {
		bytes += i.Size
	}
	return bytes
}

// LiveBytes is what all segments of the list have in use.
func LiveBytes(list []Info) int64 {
	live := int64(0)
	for _, i := range list {
		live += max(i.Live, 0)
	}
	return live
}

// Store is the set of segments of one database. All its methods may be called concurrently.
type Store struct {
	options      Options
	dir          string
	databaseHash uint64
	codecs       codecs
	files        atomic.Pointer[fileTable] // replaced, never changed
	mu           sync.Mutex                // guards replacing files, next, damage, spares and stale; taken after values.mu
	next         uint64                    // above 32 bits: no number is left
	spares       []string                  // paths of the files that are kept: see reuse
	stale        []string                  // ... and of those that are to go and could not be removed
	damage       []error
	values       valueLog
	names        nameSync
	learnt       learnt
	buffers      sync.Pool // *[]byte for Writers
	scratch      sync.Pool // *valueScratch for AppendValue
	spare        sync.Pool // *Buffer
	mappings     mappings
	failures     failures
	handles      handles
	paging       paging
	failure      atomic.Pointer[error]
	door         door
	closed       atomic.Bool
}

// Open opens the segments in o.Dir, making the directory when it is missing. table and nextID are those of the catalogue
// and root slot in force; a new database has none, and any nextID.
//
// A file that the table does not list was left by a crash. One of class Nodes belongs to no root and is removed. One of
// class Values may be referred to by the log: it is readable, is reported by Orphans, and stays outside of Segments until
// it is adopted or removed. The same goes for a file whose header block cannot be read.
//
// A listed file that is missing or too short does not keep the rest from being opened: Damage reports it, and reading from
// it fails. No number of a file that is there, listed or below nextID is given to a new segment.
func Open(o Options, table []Info, nextID uint32) (*Store, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.SegmentBytes < FileHeaderSize || o.SegmentBytes > MaxSegmentBytes {
		return nil, fmt.Errorf("open segments: segments of %d bytes, at most %d", o.SegmentBytes, int64(MaxSegmentBytes))
	}
	s := newStore(o)
	s.next = max(uint64(nextID), 1)
	names, err := s.list()
	if err != nil {
		return nil, fmt.Errorf("open segments: %w", err)
	}
	if err := s.load(table, names); err != nil {
		return nil, fmt.Errorf("open segments: %w", err)
	}
	return s, nil
}

// newStore returns a store without segments.
func newStore(o Options) *Store {
	s := &Store{options: o, dir: filepath.Join(o.Dir, DirName), databaseHash: xxh3.Hash(o.Database[:])}
	s.files.Store(newFileTable(nil))
	s.handles.most.Store(handlesFor(o.FS))
	if s.failures.clock = o.Clock; o.Clock == nil {
		s.failures.clock = clock.System()
	}
	s.paging.init(s.failures.clock, offheap.MajorFaults, s.forgetMarks)
	return s
}

// list makes the directory when it is missing, and lists it.
func (s *Store) list() ([]string, error) {
	fsys := s.options.FS
	names, err := fsys.List(s.dir)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || s.options.ReadOnly {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // every listed segment will be reported as missing
		}
		return names, err
	}
	return nil, fsys.MkdirAll(s.dir)
}

// load fills the table of files from what was listed and what lies there.
func (s *Store) load(table []Info, names []string) (err error) {
	files := make(map[uint32]*file, len(table))
	defer func() {
		if err != nil {
			for _, f := range files {
				err = errors.Join(err, f.close())
			}
		}
	}()
	present := make(map[uint32]bool, len(names))
	for _, name := range names {
		if id, ok := parseFileName(name); ok {
			present[id] = true
		}
	}
	for _, info := range table {
		f, err := s.loadListed(info, present[info.ID])
		if err != nil {
			return err
		}
		if files[info.ID] != nil {
			return fmt.Errorf("segment %d is listed twice: %w", info.ID, corrupt.Err)
		}
		files[info.ID] = f
		s.next = max(s.next, uint64(info.ID)+1)
	}
	for id := range present {
		if files[id] != nil {
			continue
		}
		f, err := s.loadOrphan(id)
		if err != nil {
			return err
		}
		if f != nil {
			files[id] = f
		}
		s.next = max(s.next, uint64(id)+1)
	}
	s.files.Store(newFileTable(files))
	return nil
}

func (s *Store) loadListed(info Info, present bool) (*file, error) {
	if info.ID == 0 || info.Class != Nodes && info.Class != Values {
		return nil, fmt.Errorf("segment %d of class %d in the table: %w", info.ID, info.Class, corrupt.Err)
	}
	f := s.newFile(info.ID, info.Class)
	f.earlier = true
	f.state.Store(listed)
	f.size.Store(info.Size)
	f.live.Store(info.Live)
	f.lastSeq.Store(info.LastSeq)
	if !present {
		s.damage = append(s.damage, corrupt.New(f.name, 0, info.Size, "the file is missing"))
		return f, nil
	}
	stat, err := s.options.FS.Stat(f.path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.Class == Values && stat.Size > info.Size:
		s.distrust(f)
	case info.Class == Nodes && stat.Size < info.Size:
		// A value segment may end before its listed size without damage: the size counts places that were taken by
		// writes which a crash kept from being made.
		s.damage = append(s.damage, corrupt.New(f.name, stat.Size, info.Size-stat.Size, "the file is too short"))
	}
	f.size.Store(min(stat.Size, longest))
	return f, nil
}

// loadOrphan returns nil of a file with nothing in it that counts, which it removes, now or later, and of a directory, which is none of
// ours.
func (s *Store) loadOrphan(id uint32) (*file, error) {
	f := s.newFile(id, Values)
	stat, err := s.options.FS.Stat(f.path)
	if err != nil || stat.Dir {
		return nil, err
	}
	remove := stat.Size < FileHeaderSize // nothing can be in it
	if !remove {
		block := make([]byte, FileHeaderSize)
		f.acquire()
		err := f.readAt(block, 0)
		f.release()
		if err != nil && !errors.Is(err, ErrUnreadable) {
			return nil, errors.Join(err, f.close())
		}
		var h fileHeader
		if err == nil {
			h, err = decodeFileHeader(block)
		}
		remove = err == nil && h.class == Nodes
	}
	if remove {
		err := f.close()
		if err == nil && !s.options.ReadOnly {
			_ = s.discard(f.path) // what stays is tried again, and keeps nobody from opening
		}
		return nil, err
	}
	f.size.Store(min(stat.Size, longest))
	f.earlier = true
	f.state.Store(orphan)
	s.distrust(f)
	return f, nil
}

func (s *Store) path(base string) string { return filepath.Join(s.dir, base) }

// Damage reports what Open found wrong with listed files that have not been removed since. Reading from them fails, the others are not concerned.
func (s *Store) Damage() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.damage)
}

// LiveIn returns how many bytes of a segment roots refer to. ok is false where there is no such segment.
func (s *Store) LiveIn(id uint32) (live int64, ok bool) {
	f := s.files.Load().find(id)
	if f == nil {
		return 0, false
	}
	return f.live.Load(), true
}

// lookup returns the file of a segment, acquired.
func (s *Store) lookup(id uint32) (*file, error) {
	for {
		f := s.files.Load().find(id)
		if f == nil {
			if s.closed.Load() {
				return nil, ErrClosed
			}
			return nil, ErrUnknownSegment
		}
		if f.acquire() {
			if !f.read.Load() { // a store would take the line from other readers each time
				f.read.Store(true)
			}
			return f, nil
		}
		// It is being closed, so it has left the table already: look again.
	}
}

// add makes the file of a new segment, writes its header block and enters it into the table of files. The caller has entered.
func (s *Store) add(class Class, keyspace uint32) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return nil, err
	}
	if s.next >= math.MaxUint32 { // so that there always is a number for NextID
		return nil, errors.New("all segment numbers are used up")
	}
	f := s.newFile(uint32(s.next), class)
	s.next++ // even when what follows fails: a number is never used twice
	if err := s.openNames(); err != nil {
		return nil, fmt.Errorf("create %s: %w", f.name, err)
	}
	handle := s.reuse(f)
	if handle == nil {
		var err error
		if handle, err = s.options.FS.Create(f.path); err != nil {
			return nil, fmt.Errorf("create %s: %w", f.name, err)
		}
	}
	s.names.created.Add(1)
	block := fileHeader{id: f.id, database: s.options.Database, class: class, keyspace: keyspace}.encode()
	if _, err := handle.WriteAt(block, 0); err != nil {
		err = fmt.Errorf("create %s: write header block: %w", f.name, err)
		return nil, errors.Join(err, handle.Close(), s.discardLocked(f.path))
	}
	f.growing.Store(true)
	f.size.Store(FileHeaderSize)
	f.admit(handle)
	files := maps.Clone(s.files.Load().all)
	files[f.id] = f
	s.files.Store(newFileTable(files))
	s.handles.enough()
	return f, nil
}

// writable tells why nothing may be written, or nil.
func (s *Store) writable() error {
	switch {
	case s.closed.Load() || s.door.shut.Load():
		return ErrClosed
	case s.options.ReadOnly:
		return ErrReadOnly
	}
	return s.failed()
}

// failed returns the error of the first sync that failed, or nil.
func (s *Store) failed() error {
	if err := s.failure.Load(); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, *err)
	}
	return nil
}

// Failed reports whether a sync has failed, so that nothing can be written any more.
func (s *Store) Failed() bool { return s.failure.Load() != nil }

// fail makes the store refuse every further write.
func (s *Store) fail(err error) { s.failure.CompareAndSwap(nil, &err) }

// Remove takes a segment out of the table, waits for the readers that are inside, and deletes the file, or keeps it for values to come.
// The caller makes sure that no root that may still be asked for refers to it. After HandOver the file stays, for the next Open to remove.
func (s *Store) Remove(id uint32) error {
	if s.options.ReadOnly {
		return fmt.Errorf("remove segment %d: %w", id, ErrReadOnly)
	}
	s.values.mu.Lock()
	if s.values.current != nil && s.values.current.id == id {
		s.values.begin(nil)
	}
	s.values.unsynced = slices.DeleteFunc(s.values.unsynced, func(f *file) bool { return f.id == id })
	s.values.mu.Unlock()

	s.mu.Lock()
	f := s.files.Load().find(id)
	if f == nil {
		s.mu.Unlock()
		return fmt.Errorf("remove segment %d: %w", id, ErrUnknownSegment)
	}
	files := maps.Clone(s.files.Load().all)
	delete(files, id)
	s.files.Store(newFileTable(files))
	s.damage = slices.DeleteFunc(s.damage, func(err error) bool {
		named := (*corrupt.Error)(nil)
		return errors.As(err, &named) && named.File == f.name
	})
	s.mu.Unlock()

	err := f.close()
	if s.enter() != nil {
		return err
	}
	defer s.leave()
	if err == nil && s.keep(f) {
		return nil
	}
	if rerr := s.discard(f.path); rerr != nil {
		err = errors.Join(err, fmt.Errorf("remove %s: %w", f.name, rerr))
	}
	return err
}

// Close is HandOver, and then waits for the readers that are inside and closes all files. It syncs nothing. Whatever is called afterwards
// fails with ErrClosed; a second Close does nothing.
func (s *Store) Close() error {
	s.HandOver()
	s.mu.Lock()
	if s.closed.Swap(true) {
		s.mu.Unlock()
		return nil
	}
	files := s.files.Load().all
	s.files.Store(newFileTable(nil))
	s.mu.Unlock()

	errs := []error{s.names.close()}
	for _, f := range files {
		errs = append(errs, f.close())
	}
	s.codecs.close()
	return errors.Join(errs...)
}
