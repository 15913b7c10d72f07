package wal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// condition says what the two header copies of a file tell.
type condition uint8

const (
	inUse   condition = iota // the header belongs to the name
	blank                    // nothing like a header: a crash came before it was written
	stale                    // the header of an earlier use: a crash came after the rename
	damaged                  // was a header, but neither copy verifies
	foreign                  // the header of another database
)

// found is one segment file as recovery meets it.
type found struct {
	segment   uint64 // from the name
	size      int64  // of the file
	condition condition
	header    header // of whatever use; zero when blank or damaged
	content   []byte // all of a small file, which need not be opened again
}

// judge says what a file is, from its name, its size, and the bytes where the two copies of the header belong (short or
// empty where the file does not reach).
func judge(database [16]byte, segment uint64, size int64, front, back []byte) (found, error) {
	f := found{segment: segment, size: size}
	h, err := decodeHeader(front)
	if errors.Is(err, errNoHeader) {
		h, err = decodeHeader(back)
		if err == nil && h.size != size {
			err = errNoHeader // this is not where the copy belongs: it may be the content of a record
		}
	}
	switch {
	case errors.Is(err, errNoHeader) && size >= firstFrame && (hasMagic(front) || hasMagic(back)):
		f.condition = damaged
	case errors.Is(err, errNoHeader):
		f.condition = blank
	case err != nil:
		return f, err
	case h.database != database:
		f.condition, f.header = foreign, h
	case h.segment != segment:
		f.condition, f.header = stale, h
	default:
		f.header = h
	}
	return f, nil
}

// hasMagic tells damage from a file that was never written, whose bytes may be anything: not every file system clears the
// blocks that it gives to a file.
func hasMagic(b []byte) bool { return bytes.HasPrefix(b, []byte(magic)) }

// survey looks at every segment file of the log, in the order of their numbers. Where there is no directory there are none.
func survey(o *Options) ([]found, error) { return surveyBy(o, inspect) }

// surveyBy is survey with the function that looks at one file.
func surveyBy(o *Options, look func(o *Options, segment uint64) (found, error)) ([]found, error) {
	names, err := o.FS.List(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("log: list %s: %w", o.Dir, err)
	}
	var files []found
	for _, name := range names {
		segment, ok := parseName(name)
		if !ok {
			continue
		}
		f, err := look(o, segment)
		if err != nil {
			return nil, fmt.Errorf("log: %s: %w", name, err)
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b found) int { return cmp.Compare(a.segment, b.segment) })
	return files, nil
}

// inspect looks at one file. Where the device does not give one copy of the header back the other one will do, if it is that of a segment in use.
func inspect(o *Options, segment uint64) (f found, err error) {
	file, err := o.FS.Open(o.path(segment))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return f, err
	}
	head := int64(headerLength)
	if size < leastMapped {
		head = max(head, size)
	}
	front, unread := readUpTo(file, make([]byte, head), 0)
	if unread != nil {
		front, unread = readUpTo(file, make([]byte, headerLength), 0)
	}
	var back []byte
	if size >= MinSegmentBytes {
		back, err = readUpTo(file, make([]byte, headerLength), size-blockSize)
		unread = cmp.Or(unread, err)
	}
	f, err = judge(o.Database, segment, size, front, back)
	if unread != nil && (err != nil || f.condition != inUse) {
		return f, unread
	}
	if size < leastMapped {
		f.content = front
	}
	return f, err
}

// readUpTo fills b as far as the file reaches.
func readUpTo(file vfs.File, b []byte, offset int64) ([]byte, error) {
	n, err := file.ReadAt(b, offset)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return b[:n], nil
}

// link puts the files in order: chain is the log from segment from on, older are the segments before it that lead to it
// without a gap (oldest first), strays is everything else. Each header names its predecessor, so the chain is found by going
// back from its newest segment; what a recovery has cut off is not reached and becomes a stray.
//
// A file above from that nothing can be learnt from is an error, unless the chain passes it by.
func link(dir string, files []found, from uint64) (chain, older, strays []found, err error) {
	byNumber := make(map[uint64]found, len(files))
	for _, f := range files {
		byNumber[f.segment] = f
		if f.condition == foreign && f.segment >= from {
			return nil, nil, nil, corrupt.New(filepath.Join(dir, baseName(f.segment)), 0, headerLength, "the segment belongs to another database")
		}
	}
	for _, newest := range slices.Backward(files) {
		if newest.segment < from {
			break
		}
		if newest.condition == damaged {
			return nil, nil, nil, corrupt.New(filepath.Join(dir, baseName(newest.segment)), 0, headerLength, "both copies of the header are damaged")
		}
		if newest.condition != inUse {
			continue
		}
		var broken *found
		chain, broken = walkBack(byNumber, newest, from)
		if broken != nil && broken.condition == damaged {
			return nil, nil, nil, corrupt.New(filepath.Join(dir, baseName(broken.segment)), 0, headerLength, "both copies of the header are damaged")
		}
		if chain != nil {
			break
		}
	}
	if chain == nil {
		return nil, nil, nil, corrupt.New(filepath.Join(dir, baseName(from)), 0, 0, "the segment at which the log starts is missing")
	}
	older = predecessors(byNumber, chain[0])
	for _, f := range files {
		same := func(g found) bool { return g.segment == f.segment }
		if !slices.ContainsFunc(chain, same) && !slices.ContainsFunc(older, same) {
			strays = append(strays, f)
		}
	}
	return chain, older, strays, nil
}

// walkBack follows the predecessors of newest down to segment from. It returns no chain when that does not lead there, and
// the file at which it broke when there is one.
func walkBack(byNumber map[uint64]found, newest found, from uint64) (chain []found, broken *found) {
	for f := newest; ; {
		chain = append(chain, f)
		if f.segment == from {
			slices.Reverse(chain)
			return chain, nil
		}
		if f.header.prevSegment == noSegment || f.header.prevSegment < from {
			return nil, nil
		}
		prev, ok := byNumber[f.header.prevSegment]
		if !ok {
			return nil, nil
		}
		if prev.condition != inUse || prev.header.salt != f.header.prevSalt {
			return nil, &prev
		}
		f = prev
	}
}

// predecessors returns the unbroken line of segments before f, oldest first.
func predecessors(byNumber map[uint64]found, f found) []found {
	var line []found
	for f.header.prevSegment != noSegment {
		prev, ok := byNumber[f.header.prevSegment]
		if !ok || prev.condition != inUse || prev.header.salt != f.header.prevSalt {
			break
		}
		line = append(line, prev)
		f = prev
	}
	slices.Reverse(line)
	return line
}
