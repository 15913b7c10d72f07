package hash

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/pandodb/pando/internal/segment"
)

// A delta is a blob of changes to an index page, each of deltaEntry bytes: the first 32 bits of the hash, the segment, and the place as in
// an image, with flags where an image has the number of the segment. Changes are sorted by hash, and those of one hash are made in turn.
const (
	deltaEntry = 16
	deltaHead  = 4 // number of changes

	opDrop = 1 << 0 // takes away what there is of this hash
	opAdd  = 1 << 1 // puts an entry in front of what is there of this hash
	opAll  = opDrop | opAdd
)

// op is one change to an index page.
type op struct {
	entry
	flags uint64
}

func appendDelta(dst []byte, ops []op) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(ops)))
	for i := range ops {
		o := &ops[i]
		dst = binary.LittleEndian.AppendUint32(dst, uint32(o.hash>>32))
		dst = binary.LittleEndian.AppendUint32(dst, o.at.Segment)
		dst = binary.LittleEndian.AppendUint64(dst, o.place()|o.flags<<segmentAt)
	}
	return dst
}

// decodeDelta appends the changes of a delta of page number of so many to ops.
func decodeDelta(ops []op, raw []byte, depth int, number uint64) ([]op, error) {
	if len(raw) < deltaHead || uint64(len(raw)) != deltaHead+deltaEntry*uint64(binary.LittleEndian.Uint32(raw)) {
		return ops, fmt.Errorf("delta of %d bytes", len(raw))
	}
	last, alike, most, from := uint64(0), 0, 0, len(ops)
	for i := deltaHead; i < len(raw); i += deltaEntry {
		o := opAt(raw, i)
		if o.flags&^opAll != 0 || o.flags == 0 || o.hash < last || pageOf(o.hash, depth) != number {
			return ops, fmt.Errorf("change %d of a delta of page %d: flags %x, hash %016x after %016x", i/deltaEntry, number, o.flags, o.hash, last)
		}
		if o.hash != last {
			alike = 0
		}
		alike++
		most = max(most, alike)
		last = o.hash
		ops = append(ops, o)
	}
	if all := ops[from:]; most > fewAlike {
		return ops, lieApart(len(all), func(i int) uint64 { return all[i].hash }, func(i int) segment.Piece { return all[i].at })
	}
	return ops, nil
}

// opAt reads the change that begins at a place in a delta.
func opAt(raw []byte, at int) op {
	place := binary.LittleEndian.Uint64(raw[at+8:])
	o := op{flags: place >> segmentAt & (maxSegments - 1)}
	o.hash = uint64(binary.LittleEndian.Uint32(raw[at:]))<<32 | place>>restAt<<(32-restBits)
	o.apart = place>>apartAt&1 != 0
	o.at = segment.Piece{
		Segment: binary.LittleEndian.Uint32(raw[at+4:]),
		Offset:  uint32(place & (1<<offsetBits - 1)),
		Length:  uint32(place >> lengthAt & (1<<lengthBits - 1)),
	}
	return o
}

// takeDelta appends the places that a delta has for a hash to m.found, newest first. all tells that there are no older ones.
func (m *reader) takeDelta(raw []byte, hash uint64) (all bool, err error) {
	if len(raw) < deltaHead || (len(raw)-deltaHead)%deltaEntry != 0 {
		return false, fmt.Errorf("delta of %d bytes", len(raw))
	}
	hash &= keptBits
	ops := raw[deltaHead:]
	i := sort.Search(len(ops)/deltaEntry, func(i int) bool { return opAt(ops, i*deltaEntry).hash > hash })
	for i--; i >= 0; i-- {
		o := opAt(ops, i*deltaEntry)
		if o.hash != hash {
			return false, nil
		}
		if o.flags&opAdd != 0 {
			m.found = append(m.found, o.at)
		}
		if o.flags&opDrop != 0 {
			return true, nil
		}
	}
	return false, nil
}

// merge appends what a page has after the changes to dst: list is what it had.
func merge(dst, list []entry, ops []op) []entry {
	for len(ops) > 0 {
		hash := ops[0].hash
		for len(list) > 0 && list[0].hash < hash {
			dst, list = append(dst, list[0]), list[1:]
		}
		n := 0
		for n < len(list) && list[n].hash == hash {
			n++
		}
		from := len(dst)
		dst, list = append(dst, list[:n]...), list[n:]
		for len(ops) > 0 && ops[0].hash == hash {
			if ops[0].flags&opDrop != 0 {
				dst = dst[:from]
			}
			if ops[0].flags&opAdd != 0 {
				dst = append(dst, entry{})
				copy(dst[from+1:], dst[from:])
				dst[from] = ops[0].entry
			}
			ops = ops[1:]
		}
	}
	return append(dst, list...)
}
