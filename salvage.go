package pando

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/salvage"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// SalvageReport says what Salvage recovered and what it did not. Err returns nil when nothing was lost, String tells the report
// line by line. Its fields:
//
//	Keyspaces int64 // in the new database
//	Records   int64 // pairs in the new database
//	Bytes     int64 // of keys and values that were written to it
//	Older     int64 // records taken from older versions of what is lost: see Salvage
//	Lost      []Loss // at most 10,000
//	Truncated bool   // there are more
type SalvageReport = salvage.Report

// Loss is one thing that Salvage could not recover: keys, or a stretch of a file. String tells it in one line. Its fields:
//
//	Keyspace string // empty: not known, or it concerns the whole database
//	Keys     bool   // Lo and Hi say which keys are concerned
//	Lo, Hi   []byte // the keys in [Lo, Hi); a nil bound is open
//	File     string // where the damage lies, inside the database directory; empty: not known
//	Offset   int64  // in bytes
//	Length   int64  // in bytes; 0: not known
//	Reason   string
type Loss = salvage.Loss

// Salvage recovers what can be read of the damaged database in dir into a new database in target, which must not exist or be
// empty, and reports what was lost. Nothing is written into dir. It needs neither the root file nor the catalogue, though with
// them it knows more.
//
// Everything outside of the damage comes over as it was. Where a part of a keyspace is lost, older versions of it are looked
// for; SalvageReport.Older counts the records that were found there. They may have been changed or deleted since, and a value above
// ValueThreshold may be that of a write that failed. The log ends where Open would end it: in front of a commit that was never known to be
// synced and of which a value is missing. That is in the report.
//
// opts are for the new database: its budget, compression and file system, which is that of dir too. Its profile is ignored: all
// is on stable storage when Salvage returns. Damage is no error: an error says that there is nothing to recover (ErrNotFound where dir
// is empty or not there, ErrNotDatabase where nothing in it says which database it was), that somebody has dir open for writing
// (ErrLocked), that target holds something (fs.ErrExist), is a file or lies inside of a database (ErrNotDatabase), or that the new database
// could not be written, which is removed again then. A process or system that ends meanwhile leaves a part, to which Open answers
// ErrUnfinished: remove it.
func Salvage(ctx context.Context, dir, target string, opts *Options) (*SalvageReport, error) {
	return SalvageWith(ctx, dir, target, opts, nil)
}

// SalvageWith is Salvage with work to do on what was recovered before it counts as a database: until finish has returned nil, Open answers
// ErrUnfinished, and its error is one of the salvage.
func SalvageWith(ctx context.Context, dir, target string, opts *Options, finish func(*DB, *SalvageReport) error) (*SalvageReport, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.FS == nil {
		o.FS = osfs.New()
	}
	o.Profile, o.ReadOnly, o.MustExist, o.KeepChanges = Bench, false, false, 0
	report, err := runSalvage(ctx, dir, target, &o, finish)
	if err != nil {
		return report, fmt.Errorf("salvage %s into %s: %w", dir, target, err)
	}
	return report, nil
}

func runSalvage(ctx context.Context, dir, target string, o *Options, finish func(*DB, *SalvageReport) error) (report *SalvageReport, err error) {
	for _, name := range []string{dir, target} {
		if err := engine.CheckDirectory(o.FS, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	unlock, err := lockDamaged(o.FS, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if inside, err := filepath.Rel(dir, target); err == nil && filepath.IsLocal(inside) || engine.Above(o.FS, target) != "" {
		return nil, fmt.Errorf("the new database would lie inside of the damaged one, or of another: %w", ErrNotDatabase)
	}
	if err := vacant(o.FS, target, ""); err != nil {
		return nil, err
	}
	found, err := o.FS.List(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(found) == 0 {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	begun, err := markUnfinished(o.FS, target)
	if err != nil && !begun {
		return nil, err // somebody else was faster
	}
	finished := false
	defer func() {
		if !finished { // also where finish panics, or who is told of the progress
			err = errors.Join(err, discard(o.FS, target))
		}
	}()
	if err == nil {
		report, err = salvageAndFinish(ctx, dir, target, o, finish)
	}
	if err == nil {
		err = markFinished(o.FS, target)
	}
	finished = err == nil
	return report, err
}

// salvageAndFinish makes and fills the new database, which is closed and durable then.
func salvageAndFinish(ctx context.Context, dir, target string, o *Options, finish func(*DB, *SalvageReport) error) (report *SalvageReport, err error) {
	db, err := open(target, o, engine.OpenUnfinished)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	report, err = salvageInto(ctx, dir, db, o.FS)
	if err == nil && finish != nil {
		err = errors.Join(finish(db, report), db.Checkpoint(ctx))
	}
	return report, err
}

// vacant refuses a directory that holds something else than a file that may be there.
func vacant(fsys vfs.FS, dir, but string) error {
	names, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.Contains(names, engine.UnfinishedName) {
		return fmt.Errorf("%s: %w: %w", dir, ErrUnfinished, fs.ErrExist)
	}
	for _, name := range names {
		if name != but {
			return fmt.Errorf("%s holds %q: %w", dir, name, fs.ErrExist)
		}
	}
	return nil
}

// markUnfinished makes the directory of a database that must not be taken for a whole one. What it does after it has begun has to be
// discarded when it fails. Under the lock nobody else makes a database there, and later on the mark keeps them from it.
func markUnfinished(fsys vfs.FS, dir string) (begun bool, err error) {
	if err := vfs.MkdirAllSync(fsys, dir); err != nil {
		return true, err
	}
	lock, err := fsys.Lock(filepath.Join(dir, engine.LockName), vfs.Exclusive)
	if err != nil {
		return !errors.Is(err, ErrLocked), err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := vacant(fsys, dir, engine.LockName); err != nil {
		return !errors.Is(err, fs.ErrExist), err
	}
	return true, vfs.WriteFile(fsys, filepath.Join(dir, engine.UnfinishedName), []byte(engine.SalvageMark))
}

// markFinished says that a database, which is durable, is a whole one.
func markFinished(fsys vfs.FS, dir string) error {
	if err := fsys.Remove(filepath.Join(dir, engine.UnfinishedName)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// discard removes a part of a database. What makes it one goes first, so that a power cut does not leave it without its mark.
func discard(fsys vfs.FS, dir string) error {
	err := fsys.Remove(filepath.Join(dir, root.Name))
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, vfs.RemoveAll(fsys, dir))
}

// salvageInto fills the new database.
func salvageInto(ctx context.Context, dir string, db *DB, fsys vfs.FS) (*SalvageReport, error) {
	s := &salvageSink{db: db, keyspaces: map[uint32]*Keyspace{}, batch: db.NewBatch()}
	defer func() { s.batch.Reset() }() // which may have a file
	report, err := salvage.Run(ctx, fsys, dir, s)
	if err != nil {
		return report, err
	}
	if err := s.flush(); err != nil {
		return report, err
	}
	if err := db.Checkpoint(ctx); err != nil {
		return report, err
	}
	for _, k := range s.keyspaces {
		n, err := k.Count(nil, nil)
		if err != nil {
			return report, err
		}
		report.Keyspaces++
		report.Records += n
	}
	return report, nil
}

// lockDamaged keeps a writer out of the damaged directory, as far as that is possible without writing into it.
func lockDamaged(fsys vfs.FS, dir string) (unlock func() error, err error) {
	name := filepath.Join(dir, engine.LockName)
	if _, err := fsys.Stat(name); err != nil {
		return func() error { return nil }, nil
	}
	lock, err := fsys.Lock(name, vfs.Shared)
	if errors.Is(err, ErrLocked) {
		return nil, err
	}
	if err != nil { // a file system that is mounted for reading only
		return func() error { return nil }, nil
	}
	return lock.Close, nil
}

// salvageSink writes into the new database. Writes wait in one batch, so that a commit serves many of them.
type salvageSink struct {
	db        *DB
	keyspaces map[uint32]*Keyspace
	batch     *Batch
}

// salvageBatch is how many bytes wait for a commit.
const salvageBatch = 64 << 10

// Keyspace makes the keyspace for what has this number. One that cannot be made so is named after the number, with the options of a new one.
func (s *salvageSink) Keyspace(id uint32, name string, options []byte) error {
	var o *KeyspaceOptions
	if e, err := engine.ReadOptions(options); err == nil && (e.Layout == Tree || e.Layout == Hash) {
		o = &KeyspaceOptions{Layout: e.Layout, LeafBytes: e.LeafBytes, NoBloomFilters: e.NoFilters}
		if e.OwnCodec {
			o.Compression = compressionOf(e.Codec)
		}
	}
	k, err := s.db.Keyspace(name, o)
	if errors.Is(err, engine.ErrName) || err != nil && o != nil {
		k, err = s.db.Keyspace(fmt.Sprintf("keyspace-%d", id), nil)
	}
	s.keyspaces[id] = k
	return err
}

// compressionOf is the inverse of Compression.codec; nil: the default.
func compressionOf(codec segment.Codec) *Compression {
	for _, c := range []Compression{None, S2, Zstd} {
		if c.codec() == codec {
			return &c
		}
	}
	return nil
}

// Put stores a pair.
func (s *salvageSink) Put(id uint32, key, val []byte, expiry uint64) error {
	if err := s.batch.state.put(s.keyspaces[id], key, val, expiry); err != nil {
		return err
	}
	return s.flushFull()
}

// Delete removes a key that an older version of the data has brought back.
func (s *salvageSink) Delete(id uint32, key []byte) error {
	if err := s.batch.state.delete(s.keyspaces[id], key); err != nil {
		return err
	}
	return s.flushFull()
}

// DeleteRange is Delete for the keys in [lo, hi).
func (s *salvageSink) DeleteRange(id uint32, lo, hi []byte) error {
	if err := s.batch.state.deleteRange(s.keyspaces[id], lo, hi); err != nil {
		return err
	}
	return s.flushFull()
}

// PutReader stores a long value as a stream. What came before it is committed first: streams are commits of their own.
func (s *salvageSink) PutReader(id uint32, key []byte, r io.Reader, expiry uint64) error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.keyspaces[id].stream(key, r, expiry)
}

func (s *salvageSink) flushFull() error {
	if s.batch.Size() < salvageBatch {
		return nil
	}
	return s.flush()
}

func (s *salvageSink) flush() error {
	if s.batch.Len() == 0 {
		return nil
	}
	err := s.db.Write(s.batch)
	s.batch.Reset()
	return err
}
