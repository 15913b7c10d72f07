package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/wal"
	"github.com/pandodb/pando/vfs"
)

// Compact rewrites everything as small as it gets: full leaves, no deltas, no garbage. Readers and writers go on meanwhile.
// codec may be nil; progress is told bytes done and the total.
func (e *Engine) Compact(ctx context.Context, codec *segment.Codec, progress func(done, total int64)) error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.freezeNow(); err != nil {
		return err
	}
	if err := e.settle(ctx, work{}); err != nil {
		return err
	}
	e.store.SealValues()
	w := work{rewrite: true, codec: codec}
	if progress != nil {
		done, total := int64(0), int64(1)
		for _, i := range e.store.Segments() {
			total += i.Live
		}
		w.progress = func(n int64) {
			done = min(done+n, total)
			progress(done, total)
		}
		defer progress(total, total)
	}
	return e.settle(ctx, w)
}

// Damage is told to the callback of Check: what, and where.
type Damage struct {
	Keyspace string // empty: the damage concerns the whole database
	Err      error
}

// CheckReport sums a check up.
type CheckReport struct {
	Keyspaces, Blobs, Bytes int64
}

// Check reads and verifies everything that readers can reach, and reports each damage.
func (e *Engine) Check(ctx context.Context, report func(Damage)) (CheckReport, error) {
	var sum CheckReport
	if err := e.enter(); err != nil {
		return sum, err
	}
	defer e.leave()
	s, err := e.Snapshot()
	if err != nil {
		return sum, err
	}
	defer s.Release()
	if e.root.Damaged() {
		report(Damage{Err: corrupt.New(root.Name, 0, 0, "one of the two root slots does not verify; the next checkpoint repairs it")})
	}
	for _, err := range e.store.Damage() {
		report(Damage{Err: err})
	}
	for _, ks := range e.Keyspaces() {
		sum.Keyspaces++
		r := s.View.Root(ks.ID)
		if r == nil {
			continue
		}
		here := func(err error) { report(Damage{Keyspace: ks.Name, Err: err}) }
		if err := e.trees.Check(ctx, r, here); err != nil {
			return sum, fmt.Errorf("check keyspace %q: %w", ks.Name, err)
		}
		if err := e.checkValues(ctx, s, ks, &sum, here); err != nil {
			return sum, fmt.Errorf("check keyspace %q: %w", ks.Name, err)
		}
	}
	return sum, nil
}

// checkValues counts the blobs of a keyspace and reads those of values apart, which the layout does not look into.
func (e *Engine) checkValues(ctx context.Context, s Snapshot, ks *Keyspace, sum *CheckReport, report func(error)) error {
	var buf segment.Buffer
	err := e.trees.Walk(ctx, s.View.Root(ks.ID), func(p segment.Pointer, kind segment.Kind) error {
		sum.Blobs++
		sum.Bytes += int64(p.Length)
		if kind != segment.KindValue && kind != segment.KindValueIndex {
			return nil
		}
		_, h, err := e.store.Read(p, &buf)
		if err == nil && h.Kind != kind {
			err = corrupt.New(segment.FileName(p.Segment), int64(p.Offset), int64(p.Length), "a blob of kind %d where one of kind %d belongs", h.Kind, kind)
		}
		if err != nil {
			report(err)
		}
		return ctx.Err()
	})
	if errors.Is(err, corrupt.Err) {
		return nil // the layout's check has reported it
	}
	return err
}

// Backup writes a consistent copy of the database into a directory, as hard links where the file system has them. What is
// there from an earlier backup of the same database is used again.
func (e *Engine) Backup(ctx context.Context, dir string) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if !e.o.ReadOnly {
		if err := e.Checkpoint(ctx); err != nil {
			return err
		}
	} else if last, settled := e.LastSeq(), e.settledSeq.Load(); last != settled {
		return fmt.Errorf("backup: changes %d to %d lie in the log only, which who reads cannot settle: %w", settled+1, last, ErrReadOnly)
	}
	slot, catalogue, snap, err := e.settledState()
	if err != nil {
		return err
	}
	defer snap.Release()
	return e.writeBackup(ctx, dir, slot, catalogue)
}

// settledState returns the root slot in force with what it lists, and a snapshot that keeps its files.
func (e *Engine) settledState() (root.Slot, *root.Catalogue, Snapshot, error) {
	e.settling.Lock()
	defer e.settling.Unlock()
	e.store.SealValues()
	slot := e.root.Current()
	snap, err := e.Snapshot()
	if err != nil {
		return slot, nil, snap, err
	}
	if slot.Catalogue.IsZero() {
		return slot, &root.Catalogue{}, snap, nil
	}
	var buf segment.Buffer
	raw, _, err := e.store.Read(slot.Catalogue, &buf)
	var c *root.Catalogue
	if err == nil {
		c, err = root.Decode(append([]byte(nil), raw...))
	}
	if err != nil {
		snap.Release()
		return slot, nil, Snapshot{}, fmt.Errorf("read the catalogue: %w", err)
	}
	return slot, c, snap, nil
}

func (e *Engine) writeBackup(ctx context.Context, dir string, slot root.Slot, c *root.Catalogue) (err error) {
	fsys := e.o.FS
	segments := filepath.Join(dir, segment.DirName)
	if err := vfs.MkdirAllSync(fsys, segments); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	lock, err := fsys.Lock(filepath.Join(dir, LockName), vfs.Exclusive) // fails on the database itself, and on one in use
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := e.checkTarget(dir, slot); err != nil {
		return err
	}
	wanted := map[string]bool{}
	ids := []uint32{slot.Catalogue.Segment}
	for _, i := range c.Segments {
		ids = append(ids, i.ID)
	}
	for _, id := range ids {
		if id == 0 || wanted[segment.FileName(id)] {
			continue
		}
		wanted[segment.FileName(id)] = true
		if err := e.copySegment(ctx, id, segments); err != nil {
			return fmt.Errorf("backup segment %d: %w", id, err)
		}
	}
	if err := fsys.SyncDir(segments); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := writeBackupRoot(fsys, dir, slot); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return removeOthers(fsys, segments, wanted)
}

// checkTarget refuses to write over anything but an earlier backup of this database.
func (e *Engine) checkTarget(dir string, slot root.Slot) error {
	old, err := root.OpenReadOnly(e.o.FS, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("backup: look at %s: %w", dir, err)
	}
	defer old.Close()
	if old.Current().Database != slot.Database {
		return fmt.Errorf("backup: %s holds another database", dir)
	}
	return nil
}

// copySegment links or copies a segment file. Segment files are never changed once they are complete, so one of the same name
// and length in a backup of the same database is the same.
func (e *Engine) copySegment(ctx context.Context, id uint32, dir string) error {
	fsys := e.o.FS
	from := filepath.Join(e.o.Dir, segment.DirName, segment.FileName(id))
	to := filepath.Join(dir, segment.FileName(id))
	have, err := fsys.Stat(from)
	if err != nil {
		return err
	}
	if there, err := fsys.Stat(to); err == nil {
		if there.Size == have.Size {
			return nil
		}
		if err := fsys.Remove(to); err != nil {
			return err
		}
	}
	if err := fsys.Link(from, to); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return copyFile(ctx, fsys, from, to, have.Size)
}

func copyFile(ctx context.Context, fsys vfs.FS, from, to string, size int64) (err error) {
	src, err := fsys.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := fsys.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	buf := make([]byte, 1<<20)
	for at := int64(0); at < size; {
		n, err := src.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if n == 0 && err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		if _, err := dst.WriteAt(buf[:n], at); err != nil {
			return err
		}
		at += int64(n)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return dst.Sync()
}

// writeBackupRoot puts the root of a backup in place, with a log that begins where the root ends.
func writeBackupRoot(fsys vfs.FS, dir string, slot root.Slot) error {
	logs := filepath.Join(dir, logDir)
	if err := vfs.RemoveAll(fsys, logs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := filepath.Join(dir, root.Name)
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := vfs.MkdirAllSync(fsys, logs); err != nil {
		return err
	}
	slot.Log = root.Position{Segment: 1}
	log, err := wal.Create(wal.Options{FS: fsys, Dir: logs, Database: slot.Database, Seq: slot.Seq, SegmentBytes: wal.MinSegmentBytes}, 1)
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	f, err := root.Create(fsys, dir, slot)
	if err != nil {
		return err
	}
	return f.Close()
}

// removeOthers removes the segments of an earlier backup that are no longer needed.
func removeOthers(fsys vfs.FS, dir string, wanted map[string]bool) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !wanted[name] {
			if err := fsys.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return fsys.SyncDir(dir)
}
