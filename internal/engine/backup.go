package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/progress"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/wal"
	"github.com/pandodb/pando/vfs"
)

// Backup writes a consistent copy of the database into a directory, as hard links where the file system has them. What is
// there from an earlier backup of the same database is used again.
func (e *Engine) Backup(ctx context.Context, dir string) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := CheckDirectory(e.o.FS, dir); err != nil {
		return fmt.Errorf("backup: %s: %w", dir, err)
	}
	if err := e.notInside(dir); err != nil {
		return fmt.Errorf("backup: %s: %w", dir, err)
	}
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

// notInside refuses a directory that is that of the database, or lies inside of it or of another one.
func (e *Engine) notInside(dir string) error {
	const refused = "the copy would lie inside of the database, where all is in use"
	if filepath.Clean(dir) == filepath.Clean(e.o.Dir) {
		return fmt.Errorf("%s: %w", refused, ErrLocked)
	}
	if at := Above(e.o.FS, dir); at != "" {
		return fmt.Errorf("%w: %s", insideError(refused), at)
	}
	return nil
}

// insideError is ErrNotDatabase for a directory inside of a database, of which it would be wrong to say that it is none.
type insideError string

// Error implements error.
func (e insideError) Error() string { return string(e) }

// Is reports whether target is the error that it stands for.
func (e insideError) Is(target error) bool { return target == ErrNotDatabase }

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
	if _, err := fsys.Stat(filepath.Join(dir, root.Name)); errors.Is(err, fs.ErrNotExist) {
		if err := e.checkUnfinished(dir, slot); err != nil { // once more under the lock; now nothing has been made there
			return fmt.Errorf("backup: %s: %w", dir, err)
		}
	}
	if err := vfs.MkdirAllSync(fsys, dir); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	lock, err := fsys.Lock(filepath.Join(dir, LockName), vfs.Exclusive) // fails on the database itself, and on one in use
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	earlier, err := e.checkTarget(dir, slot)
	if err != nil {
		return err
	}
	if !earlier { // else there is a backup until its root goes
		if err := vfs.WriteFile(fsys, filepath.Join(dir, UnfinishedName), []byte(backupMark)); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	segments := filepath.Join(dir, segment.DirName)
	if err := vfs.MkdirAllSync(fsys, segments); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	wanted := map[string]bool{}
	var waiting []string // the names of those that lie beside what they replace
	ids, total := []uint32{slot.Catalogue.Segment}, int64(0)
	for _, i := range c.Segments {
		ids = append(ids, i.ID)
		total += i.Size
	}
	meter := progress.From(ctx)
	meter.Begin(total)
	for _, id := range ids {
		if id == 0 || wanted[segment.FileName(id)] {
			continue
		}
		wanted[segment.FileName(id)] = true
		waits, err := e.copySegment(ctx, id, segments)
		if err != nil {
			return fmt.Errorf("backup segment %d: %w", id, err)
		}
		if waits {
			waiting = append(waiting, segment.FileName(id))
		}
	}
	meter.End()
	if err := fsys.SyncDir(segments); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := replaceBackup(fsys, dir, slot, waiting); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return removeOthers(fsys, segments, wanted)
}

// checkTarget refuses to write over anything but an earlier backup of this database. A backup opens as a database, so somebody
// may have written to it: then it has a history of its own, which its root's generation or its log tells. It reports whether there is an
// earlier one.
func (e *Engine) checkTarget(dir string, slot root.Slot) (earlier bool, err error) {
	old, err := root.OpenReadOnly(e.o.FS, dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := e.checkUnfinished(dir, slot); err != nil {
			return false, fmt.Errorf("backup: %s: %w", dir, err)
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("backup: look at %s: %w", dir, err)
	}
	there := old.Current()
	if err := old.Close(); err != nil {
		return false, fmt.Errorf("backup: look at %s: %w", dir, err)
	}
	if there.Database != slot.Database {
		return false, fmt.Errorf("backup: %s holds another database", dir)
	}
	blank, err := wal.Blank(e.o.FS, filepath.Join(dir, logDir))
	if err != nil {
		return false, fmt.Errorf("backup: look at %s: %w", dir, err)
	}
	if !blank || there.Generation != root.FirstGeneration {
		return false, fmt.Errorf("backup: %s holds a database that was written to, not a backup", dir)
	}
	return true, nil
}

// checkUnfinished refuses a directory without a root that holds more than what is left of a backup of this database which was not
// finished: of what lies where a backup has its files, most is going to be removed.
func (e *Engine) checkUnfinished(dir string, slot root.Slot) error {
	fsys := e.o.FS
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		foreign := false
		switch name {
		case LockName, root.Name + ".tmp", UnfinishedName + ".tmp":
		case UnfinishedName:
			mark, err := readMark(fsys, dir)
			if err != nil {
				return err
			}
			foreign = mark != backupMark
		case logDir:
			blank, err := wal.Blank(fsys, filepath.Join(dir, logDir))
			if err != nil {
				return err
			}
			foreign = !blank
		case segment.DirName:
			own, err := e.ownSegments(dir, slot)
			if err != nil {
				return err
			}
			foreign = !own
		default:
			foreign = true
		}
		if foreign {
			return fmt.Errorf("the directory holds %q, which is not of a backup of this database: %w", name, ErrNotDatabase)
		}
	}
	return nil
}

// ownSegments reports whether the segments in a directory are those of this database, as far as can be told, and nothing lies beside
// them.
func (e *Engine) ownSegments(dir string, slot root.Slot) (bool, error) {
	names, err := e.o.FS.List(filepath.Join(dir, segment.DirName))
	if err != nil {
		return false, err
	}
	found, err := segment.Survey(e.o.FS, dir)
	if err != nil {
		return false, err
	}
	for _, s := range found {
		if s.Damage == nil && s.Database != slot.Database {
			return false, nil
		}
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !segment.IsFileName(strings.TrimSuffix(name, freshSuffix)) }), nil
}

// freshSuffix ends the name of a segment in a backup until it is complete, and until it may replace another one.
const freshSuffix = ".new"

// copySegment links or copies a segment file. A link is made anew even where there is one: it costs less than to find out
// whether it is the same file. Two databases that were one have different files under the same numbers, so what is there already may be
// what an earlier backup needs: then the new file waits beside it.
func (e *Engine) copySegment(ctx context.Context, id uint32, dir string) (waits bool, err error) {
	fsys := e.o.FS
	from := filepath.Join(e.o.Dir, segment.DirName, segment.FileName(id))
	to := filepath.Join(dir, segment.FileName(id))
	have, err := fsys.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		err = corrupt.New(segment.FilePath(id), 0, 0, "the file is missing")
	}
	if err != nil {
		return false, err
	}
	fresh := to + freshSuffix
	if err := fsys.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	err = fsys.Link(from, fresh)
	switch {
	case err == nil:
		progress.From(ctx).Add(have.Size)
	case !errors.Is(err, errors.ErrUnsupported):
		return false, err
	default:
		if same, err := sameFile(ctx, fsys, from, to, have.Size); err != nil || same {
			progress.From(ctx).Add(have.Size)
			return false, err
		}
		// What has its final name is on stable storage: the next backup compares it with what it should be, which does not show that.
		if err := copyFile(ctx, fsys, from, fresh, have.Size); err != nil {
			return false, err
		}
	}
	if _, err := fsys.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	return false, fsys.Rename(fresh, to)
}

// sameFile compares a segment with the one of an earlier backup. It reads both, which costs less than to write one.
func sameFile(ctx context.Context, fsys vfs.FS, from, to string, size int64) (bool, error) {
	there, err := fsys.Stat(to)
	if err != nil || there.Size != size {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	a, err := fsys.Open(from)
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := fsys.Open(to)
	if err != nil {
		return false, err
	}
	defer b.Close()
	x, y := make([]byte, 256<<10), make([]byte, 256<<10)
	for at := int64(0); at < size; at += int64(len(x)) {
		n, err1 := a.ReadAt(x, at)
		m, err2 := b.ReadAt(y, at)
		if n == 0 || m == 0 {
			return false, errors.Join(err1, err2)
		}
		if !bytes.Equal(x[:n], y[:m]) {
			return false, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return true, nil
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
	meter, buf := progress.From(ctx), make([]byte, 1<<20)
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
		meter.Add(int64(n))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return dst.Sync()
}

// replaceBackup puts the segments that wait and the root of a backup in the place of those of an earlier one. From the first step on
// that one is none any more, which the mark says.
func replaceBackup(fsys vfs.FS, dir string, slot root.Slot, waiting []string) error {
	mark := filepath.Join(dir, UnfinishedName)
	if err := vfs.WriteFile(fsys, mark, []byte(backupMark)); err != nil {
		return err
	}
	segments := filepath.Join(dir, segment.DirName)
	for _, name := range waiting {
		name = filepath.Join(segments, name)
		if err := fsys.Rename(name+freshSuffix, name); err != nil {
			return err
		}
	}
	if err := fsys.SyncDir(segments); err != nil {
		return err
	}
	if err := writeBackupRoot(fsys, dir, slot); err != nil {
		return err
	}
	if err := fsys.Remove(mark); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// writeBackupRoot puts the root of a backup in place, with a log that begins where the root ends.
func writeBackupRoot(fsys vfs.FS, dir string, slot root.Slot) error {
	// The old root goes first: without one the directory is no database, and the next backup starts afresh.
	if err := fsys.Remove(filepath.Join(dir, root.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fsys.SyncDir(dir); err != nil {
		return err
	}
	logs := filepath.Join(dir, logDir)
	if err := vfs.RemoveAll(fsys, logs); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
