package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// tempSuffix marks a file that WriteFile has not yet put into its place. One that is found later was left by a crash and
// may be removed.
const tempSuffix = ".tmp"

// WriteFile puts data into name so that after a crash at any moment name holds either all of data or what it held before,
// and so that it is durable when WriteFile returns nil. It is the one place in the project that replaces a file.
func WriteFile(fsys FS, name string, data []byte) error {
	temp := name + tempSuffix
	if err := writeSynced(fsys, temp, data); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), removeIfThere(fsys, temp))
	}
	if err := fsys.Rename(temp, name); err != nil {
		return errors.Join(fmt.Errorf("write %s: put into place: %w", name, err), removeIfThere(fsys, temp))
	}
	if err := fsys.SyncDir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("write %s: sync directory: %w", name, err)
	}
	return nil
}

// MostHandles is how many files the process may have open, as far as fsys knows; 0 where it does not.
func MostHandles(fsys FS) int {
	if l, ok := fsys.(HandleLimiter); ok {
		return l.MostHandles()
	}
	return 0
}

// Free is how many bytes more may be written to files in dir, as far as fsys knows; false where it does not.
func Free(fsys FS, dir string) (bytes int64, known bool) {
	if t, ok := fsys.(SpaceTeller); ok {
		return t.Free(dir)
	}
	return 0, false
}

// SyncDir is fsys.SyncDir, and tells whether it was tried. If it was not, what it was to make durable is as it was before; else a failure
// leaves that unknown.
func SyncDir(fsys FS, dir string) (tried bool, err error) {
	d, err := OpenDir(fsys, dir)
	if err != nil {
		return false, err
	}
	return true, errors.Join(d.Sync(), d.Close())
}

// HoldDir returns an FS that keeps to a directory, and what to close when nothing in it is used any more. That is fsys itself where it is no
// DirHolder, and where the directory may be searched but not read, and so not be opened.
func HoldDir(fsys FS, dir string) (FS, io.Closer, error) {
	holder, ok := fsys.(DirHolder)
	if !ok {
		return fsys, io.NopCloser(nil), nil
	}
	held, err := holder.HoldDir(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fsys, io.NopCloser(nil), nil
	case err != nil:
		return nil, nil, err
	}
	return held, held, nil
}

// OpenDir opens a directory for who syncs it again and again, and must be able to where no more files can be opened. Where fsys is no
// DirOpener each Sync is a SyncDir of the path.
func OpenDir(fsys FS, dir string) (Dir, error) {
	if o, ok := fsys.(DirOpener); ok {
		return o.OpenDir(dir)
	}
	return pathDir{fsys, dir}, nil
}

// pathDir is a directory that is not open.
type pathDir struct {
	fsys FS
	path string
}

func (d pathDir) Sync() error { return d.fsys.SyncDir(d.path) }
func (pathDir) Close() error  { return nil }

func writeSynced(fsys FS, name string, data []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync: %w", err), f.Close())
	}
	return f.Close()
}

func removeIfThere(fsys FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadFile returns the whole content of name. It fails with ErrTooLarge, before it allocates, when there are more than max
// bytes.
func ReadFile(fsys FS, name string, max int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := readAll(f, max)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

func readAll(f File, max int64) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > max {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, max)
	}
	data := make([]byte, size)
	n, err := f.ReadAt(data, 0)
	if n == len(data) {
		return data, nil // io.EOF together with all bytes is not a failure
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // the file became shorter under us
	}
	return nil, err
}

// RemoveAll removes dir and everything below it, or the file of that name. A missing dir is no error. It goes on after a
// failure and returns all of them. Nothing is synced.
func RemoveAll(fsys FS, dir string) error {
	info, err := fsys.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Dir {
		return removeIfThere(fsys, dir)
	}
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		failed = append(failed, RemoveAll(fsys, filepath.Join(dir, name)))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return removeIfThere(fsys, dir)
}

// MkdirAllSync makes dir and its missing parents durable. The entry of the lowest directory that was there is synced too: a
// process that was killed may have made it a moment ago.
func MkdirAllSync(fsys FS, dir string) error {
	made, found, err := missing(fsys, filepath.Clean(dir))
	if err != nil {
		return err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, d := range made {
		if err := fsys.SyncDir(filepath.Dir(d)); err != nil {
			return fmt.Errorf("make directory %s durable: %w", d, err)
		}
	}
	err = fsys.SyncDir(filepath.Dir(found))
	if err != nil && !errors.Is(err, fs.ErrPermission) { // where we may not look, we made nothing
		return fmt.Errorf("make directory %s durable: %w", found, err)
	}
	return nil
}

// missing lists dir and its parents up to the first that exists, which is found.
func missing(fsys FS, dir string) (made []string, found string, err error) {
	for {
		_, err := fsys.Stat(dir)
		if err == nil || dir == filepath.Dir(dir) && errors.Is(err, fs.ErrNotExist) {
			return made, dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
		made = append(made, dir)
		dir = filepath.Dir(dir)
	}
}
