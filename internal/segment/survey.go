package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/pandodb/pando/vfs"
)

// Surveyed is one segment file as Survey meets it.
type Surveyed struct {
	Info              // Class is Nodes where the header block does not verify; Live and LastSeq are not known
	Database [16]byte // zero where the header block does not verify
	Damage   error    // why it does not
}

// Survey lists the segment files of a database directory with what their header blocks say, in the order of their numbers. It is
// for tools that have no catalogue to go by: the result serves as the table of a read-only Open, and tells whose the files
// are. It changes nothing.
func Survey(fsys vfs.FS, dir string) ([]Surveyed, error) {
	names, err := fsys.List(filepath.Join(dir, DirName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", DirName, err)
	}
	var out []Surveyed
	for _, name := range names {
		id, ok := parseFileName(name)
		if !ok {
			continue
		}
		path := filepath.Join(dir, DirName, name)
		stat, err := fsys.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", DirName, name, err)
		}
		if stat.Dir {
			continue
		}
		s := Surveyed{Info: Info{ID: id, Class: Nodes, Size: stat.Size}}
		h, err := readFileHeader(fsys, path)
		switch {
		case err != nil:
			s.Damage = fmt.Errorf("%s/%s: %w", DirName, name, err)
		case h.id != id:
			s.Damage = fmt.Errorf("%s/%s: header block of segment %d", DirName, name, h.id)
		default:
			s.Class, s.Database = h.class, h.database
		}
		out = append(out, s)
	}
	return out, nil
}

func readFileHeader(fsys vfs.FS, path string) (h fileHeader, err error) {
	file, err := fsys.Open(path)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b := make([]byte, FileHeaderSize)
	n, err := file.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return h, err
	}
	return decodeFileHeader(b[:n])
}
