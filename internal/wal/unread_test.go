package wal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs"
)

// spoilt is a file system on a device that does not give some bytes of a file back.
type spoilt struct {
	vfs.FS
	name     string
	from, to int64
	whole    bool // the file cannot even be opened
}

type spoiltFile struct {
	vfs.File
	fs *spoilt
}

var errDevice = errors.New("the device fails")

func (s *spoilt) Open(name string) (vfs.File, error) {
	if name == s.name && s.whole {
		return nil, errDevice
	}
	f, err := s.FS.Open(name)
	if err == nil && name == s.name {
		f = &spoiltFile{f, s}
	}
	return f, err
}

func (f *spoiltFile) ReadAt(b []byte, offset int64) (int, error) {
	if offset < f.fs.to && f.fs.from < offset+int64(len(b)) {
		return 0, errDevice
	}
	return f.File.ReadAt(b, offset)
}

// A sector of the log that could not be read once ended a salvage, or took all of its file along, the last one without a word.
func TestSalvageOfLogsThatCannotBeRead(t *testing.T) {
	intact, want := aLongLog(t)
	names, err := intact.List(dir)
	must(t, err)
	for i, name := range names {
		name = dir + "/" + name
		info, err := intact.Stat(name)
		must(t, err)
		for at := int64(0); at < info.Size; at += sectorBytes {
			c := salvage(t, &spoilt{FS: intact, name: name, from: at + 7, to: at + 8}, want.size)
			if len(c.seqs) < 60-6 || len(c.seqs) < 60 && len(c.lost) == 0 {
				t.Errorf("%s, sector at %d: %d records, lost %v", name, at, len(c.seqs), c.lost)
			}
		}
		for what, fs := range map[string]*spoilt{"no byte": {from: 0, to: info.Size}, "no file": {whole: true}} {
			fs.FS, fs.name = intact, name
			c := salvage(t, fs, want.size)
			if len(c.lost) == 0 || i > 0 && len(c.seqs) == 0 {
				t.Errorf("%s, %s: %d records, lost %v", name, what, len(c.seqs), c.lost)
			}
		}
	}
	if who, err := Databases(&spoilt{FS: intact, name: dir + "/" + names[0], whole: true}, dir); err != nil || len(who) != 1 {
		t.Errorf("databases: %v, %v", who, err)
	}
}

// A segment has its header twice, so that a sector that cannot be read under one of them keeps nobody from recovering the log.
func TestRecoverWithHalfOfTheHeaders(t *testing.T) {
	intact, want := aLongLog(t)
	names, err := intact.List(dir)
	must(t, err)
	for _, name := range names {
		name = dir + "/" + name
		info, err := intact.Stat(name)
		must(t, err)
		for _, at := range []int64{0, info.Size - blockSize} {
			disk := intact.KillImage()
			bad := &spoilt{FS: disk, name: name, from: at, to: at + blockSize}
			records := 0
			l, _, err := Recover(options(bad, true), Position{Segment: 1}, func(seq uint64, got []byte, _ bool) error {
				records++
				if !bytes.Equal(got, payload(seq, want.size[seq])) {
					t.Errorf("record %d has another payload", seq)
				}
				return nil
			})
			if err != nil || records != len(want.size) {
				t.Errorf("%s, header at %d: %d records, want %d: %v", name, at, records, len(want.size), err)
				continue
			}
			must(t, l.Close())
		}
		both := &spoilt{FS: intact, name: name, from: 100, to: info.Size - blockSize + 1}
		if _, err := Replay(options(both, true), Position{Segment: 1}, func(uint64, []byte, bool) error { return nil }); !errors.Is(err, errDevice) {
			t.Errorf("%s, neither header: %v", name, err)
		}
	}
}
