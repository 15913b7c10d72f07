package wal

import (
	"path/filepath"

	"github.com/pandodb/pando/vfs"
)

// Salvage reads devices that do not give every sector back. What they do not give is taken for zeroes, of which it is known that
// something else may have stood there.

// sectorBytes is how much is given up around what cannot be read.
const sectorBytes = 4 << 10

// unreadable is a file of the log of which nothing is known but its name and its size.
func unreadable(o *Options, segment uint64) found {
	f := found{segment: segment, size: MinSegmentBytes, condition: damaged}
	if info, err := o.FS.Stat(o.path(segment)); err == nil {
		f.size = info.Size
	}
	return f
}

// readWhatCan fills b as far as the file reaches, with zeroes where it cannot be read. unread is the offset in the file behind the last
// sector that it cannot; 0: it gives all.
func readWhatCan(file vfs.File, b []byte, offset int64) (data []byte, unread int64) {
	if data, err := readUpTo(file, b, offset); err == nil {
		return data, 0
	}
	for from := 0; from < len(b); from += sectorBytes {
		part := b[from:min(from+sectorBytes, len(b))]
		got, err := readUpTo(file, part, offset+int64(from))
		if err != nil {
			clear(part)
			unread = offset + int64(from+len(part))
		} else if len(got) < len(part) {
			return b[:from+len(got)], unread
		}
	}
	return b, unread
}

// inspectWhatCan is inspect for a file that may not be readable everywhere. One copy of the header will do.
func inspectWhatCan(o *Options, segment uint64) (found, error) {
	file, err := o.FS.Open(o.path(segment))
	if err != nil {
		return unreadable(o, segment), nil
	}
	defer file.Close() // which was only read
	size, err := file.Size()
	if err != nil {
		return unreadable(o, segment), nil
	}
	front, unread := readWhatCan(file, make([]byte, headerLength), 0)
	var back []byte
	if size >= MinSegmentBytes {
		var more int64
		back, more = readWhatCan(file, make([]byte, headerLength), size-blockSize)
		unread = max(unread, more)
	}
	f, err := judge(o.Database, segment, size, front, back)
	if f.condition == blank && unread > 0 && size >= firstFrame {
		f.condition = damaged
	}
	return f, err
}

// content returns what a file holds, and where the last sector ends that it does not give.
func (s *salvager) content(f *found) (data []byte, unread int64) {
	n := min(f.size, f.header.size)
	file, err := s.io.o.FS.Open(s.io.o.path(f.segment))
	if err != nil {
		return nil, n
	}
	defer file.Close() // which was only read
	if int64(cap(s.io.buf)) < n {
		s.io.buf = make([]byte, n)
	}
	return readWhatCan(file, s.io.buf[:n], 0)
}

// unknown returns the newest file that has something to tell and does not tell it: what stood in it is lost.
func unknown(dir string, files []found) (name string, any bool) {
	for i := len(files) - 1; i >= 0; i-- {
		switch files[i].condition {
		case damaged:
			return filepath.Base(dir) + "/" + baseName(files[i].segment), true
		case inUse:
			return "", false
		}
	}
	return "", false
}
