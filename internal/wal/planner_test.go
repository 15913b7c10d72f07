package wal

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/pandodb/pando/internal/corrupt"
)

// image is a log as the planner sees it: files of bytes.
type image struct {
	files map[uint64]*imageFile
}

type imageFile struct {
	header header
	data   []byte
	offset int64 // of the next frame
}

// TestPlanner runs transcripts: they build a log frame by frame, damage it, and ask what recovery would believe.
//
//	segment n=2 prev=1 [cut=5000] [durable=1:4200]    a segment and its header
//	blank n=2 | stale n=2 | foreign n=2               a file that is no segment of this log (yet)
//	frame n=1 seq=3 [kind=first] [span=1] [len=100] [claim=1:4096] [at=4096]
//	break n=1 at=4130 [len=1]                         inverts bytes
//	zero n=1 at=4130 len=100
//	truncate n=1 size=5000
//	remove n=1
//	recover from=1:0 [seq=0] [cut=5]                  cut: the callback refuses that record
func TestPlanner(t *testing.T) {
	datadriven.Walk(t, "testdata/planner", func(t *testing.T, path string) {
		im := &image{files: map[uint64]*imageFile{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return im.run(t, d)
		})
	})
}

type arguments struct {
	t *testing.T
	d *datadriven.TestData
}

func (a arguments) has(key string) bool { return a.d.HasArg(key) }

func (a arguments) text(key, fallback string) string {
	if !a.has(key) {
		return fallback
	}
	var s string
	a.d.ScanArgs(a.t, key, &s)
	return s
}

func (a arguments) number(key string, fallback int64) int64 {
	if !a.has(key) {
		return fallback
	}
	n, err := strconv.ParseInt(a.text(key, ""), 10, 64)
	must(a.t, err)
	return n
}

func (a arguments) position(key string) Position {
	if !a.has(key) {
		return Position{}
	}
	segment, offset, _ := strings.Cut(a.text(key, ""), ":")
	s, err := strconv.ParseUint(segment, 10, 32)
	must(a.t, err)
	o, err := strconv.ParseInt(offset, 10, 64)
	must(a.t, err)
	return Position{Segment: s, Offset: o}
}

func (im *image) run(t *testing.T, d *datadriven.TestData) string {
	a := arguments{t, d}
	n := uint64(a.number("n", 1))
	f := im.files[n]
	switch d.Cmd {
	case "reset":
		clear(im.files)
	case "segment":
		im.segment(a, n)
	case "blank":
		im.files[n] = &imageFile{data: make([]byte, MinSegmentBytes)}
	case "stale":
		im.segment(a, n)
		im.files[n].data[offSegment]++
		im.stamp(n, im.files[n].data[:headerLength])
	case "foreign":
		im.segment(a, n)
		im.files[n].data[offDatabase]++
		im.stamp(n, im.files[n].data[:headerLength])
	case "frame":
		return f.add(a, n)
	case "break":
		for i := range a.number("len", 1) {
			f.data[a.number("at", 0)+i] ^= 0xff
		}
	case "zero":
		at := a.number("at", 0)
		clear(f.data[at : at+a.number("len", 1)])
	case "truncate":
		f.data = f.data[:a.number("size", 0)]
	case "remove":
		delete(im.files, n)
	case "recover":
		return im.recover(a)
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	return ""
}

func (im *image) segment(a arguments, n uint64) {
	h := header{database: database, segment: n, salt: 1000 + n, size: MinSegmentBytes, prevSegment: noSegment}
	if a.has("prev") {
		h.prevSegment = uint64(a.number("prev", 0))
		h.prevSalt = 1000 + h.prevSegment
		h.prevEnd = a.number("cut", 0)
	}
	if a.has("durable") {
		h.durable = a.position("durable").place()
	}
	f := &imageFile{header: h, data: make([]byte, h.size), offset: firstFrame}
	copy(f.data, h.encode())
	copy(f.data[h.limit():], h.encode())
	im.files[n] = f
}

// stamp makes the checksum of a changed header right again, in both copies.
func (im *image) stamp(n uint64, h []byte) {
	sum := crc32.Checksum(h[:offHeaderCRC], castagnoli)
	h[offHeaderCRC], h[offHeaderCRC+1], h[offHeaderCRC+2], h[offHeaderCRC+3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	copy(im.files[n].data[MinSegmentBytes-blockSize:], h)
}

var kinds = map[string]kind{"full": kindFull, "first": kindFirst, "middle": kindMiddle, "last": kindLast, "mark": kindMark}

func (f *imageFile) add(a arguments, n uint64) string {
	offset := a.number("at", f.offset)
	seq := uint64(a.number("seq", 1))
	var length int64
	switch a.text("kind", "full") {
	case "first", "middle": // fill the segment
		length = f.header.limit() - offset - frameHeader
	case "mark":
	default:
		length = a.number("len", 100)
	}
	p := payload(seq, int(length))
	fr := frame{length: length, sum: crc32.Checksum(p, castagnoli), seq: seq, span: uint32(a.number("span", 1)), kind: kinds[a.text("kind", "full")]}
	if a.has("claim") {
		fr.claim = a.position("claim").place()
	}
	copy(f.data[offset+frameHeader:], p)
	fr.put(f.data[offset:], &f.header, offset)
	f.offset = offset + fr.room()
	return fmt.Sprintf("%d to %d\n", offset, f.offset)
}

func (im *image) recover(a arguments) string {
	from := a.position("from")
	var b strings.Builder
	err := im.plan(a, from, &b)
	var damage *corrupt.Error
	switch {
	case errors.As(err, &damage):
		fmt.Fprintf(&b, "corrupt: %v\n", damage)
	case err != nil:
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	return b.String()
}

func (im *image) plan(a arguments, from Position, b *strings.Builder) error {
	var files []found
	for n, f := range im.files {
		size := int64(len(f.data))
		var back []byte
		if size >= MinSegmentBytes {
			back = f.data[size-blockSize:][:headerLength]
		}
		g, err := judge(database, n, size, f.data[:min(headerLength, size)], back)
		if err != nil {
			return err
		}
		files = append(files, g)
	}
	slices.SortFunc(files, func(x, y found) int { return cmp.Compare(x.segment, y.segment) })
	chain, older, strays, err := link("log", files, from.Segment)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "chain%v older%v strays%v\n", numbers(chain), numbers(older), numbers(strays))
	p := planner{dir: "log", chain: chain, strays: strays}
	p.load = func(f found) (content, error) { return content{data: im.files[f.segment].data}, nil }
	p.deliver = func(seq uint64, payload []byte, _ bool) error {
		if seq == uint64(a.number("cut", 0)) {
			return ErrCut
		}
		fmt.Fprintf(b, "record %d, %d bytes\n", seq, len(payload))
		return nil
	}
	out, err := p.run(from.place(), uint64(a.number("seq", 0)))
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%d records up to %d, end %v, durable %v", out.Records, out.LastSeq, out.End, out.durable.position())
	if out.Cut != nil {
		fmt.Fprintf(b, ", cut")
	}
	if out.unclaimed {
		fmt.Fprintf(b, ", unclaimed")
	}
	if out.whole {
		fmt.Fprintf(b, ", whole")
	}
	fmt.Fprintf(b, "\nbefore%v\n", out.before)
	return nil
}

func numbers(files []found) []uint64 {
	list := []uint64{}
	for _, f := range files {
		list = append(list, f.segment)
	}
	return list
}
