package wal

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// A segment that somebody has made of as many frames as fit into it, each of which says that it reaches to the end, is read in a moment: to look
// at all of their payloads would take hours.
func TestFramesThatReachToTheEnd(t *testing.T) {
	h := header{database: database, segment: 1, salt: 7, size: DefaultSegmentBytes, prevSegment: noSegment}
	data := make([]byte, h.size)
	copy(data, h.encode())
	copy(data[h.limit():], h.encode())
	for offset := int64(firstFrame); offset+frameHeader <= h.limit(); offset += frameHeader {
		// They claim that what comes before them is durable, so none can be the torn end of the log.
		f := frame{length: h.limit() - offset - frameHeader, sum: 1, seq: 1, claim: at(1, offset), span: 1, kind: kindFull}
		f.put(data[offset:], &h, offset)
	}
	fsys := newFS(t)
	o := options(fsys, true)
	o.SegmentBytes = h.size
	must(t, vfs.WriteFile(fsys, o.path(1), data))
	if _, err := Replay(o, Position{Segment: 1}, func(uint64, []byte, bool) error { return nil }); !errors.Is(err, corrupt.Err) {
		t.Errorf("replay: %v", err)
	}
	if c := salvage(t, fsys, nil); len(c.seqs) > 0 || len(c.lost) != 1 {
		t.Errorf("salvage: records %v, lost %v", c.seqs, c.lost)
	}
}
