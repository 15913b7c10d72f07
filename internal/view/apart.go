package view

import (
	"unsafe"

	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/value"
)

// Values that lie apart are read when the caller asks for them, each from another place. In the order of keys these are places without order:
// to wait until a value comes from memory takes longer than to copy and verify it. Who reads the value of one pair after the other is likely
// to read those that follow, so the processor is asked for these meanwhile. Who reads one now and then is not: a walk over keys
// that looks at the value of one in 64 takes a fifth to a half longer where it fetches those of four more.

const (
	// valuesAhead is how many settled values are on their way at a time. With one a walk over values of 4 KB takes a sixth longer.
	valuesAhead = 4
	// valuesApart is how far apart the pairs are at most whose values are read one after the other.
	valuesApart = 2
)

func (it *Iterator) slowValue() []byte {
	switch {
	case it.o.KeysOnly:
		return nil
	case it.kind == record.Inline:
		return it.here().Value
	case it.kind != record.Apart || it.err != nil:
		return nil
	}
	if err := it.readApart(); err != nil {
		it.err = err
		it.alone() // no move goes on from here
		return nil
	}
	return it.value
}

// readApart reads the value of the pair at hand, which lies apart, unless it has been read, or nothing may be read any more.
func (it *Iterator) readApart() (err error) {
	if it.read == it.n {
		return nil
	}
	if err := it.stop.Err(); err != nil {
		return err
	}
	it.askAhead()
	if it.value, err = it.view.env.ReadValue(it.value[:0], it.here().Value); err == nil {
		it.read = it.n
	}
	return err
}

// ReleaseValue gives back the memory of a value that lies apart. Value reads it again.
func (it *Iterator) ReleaseValue() { it.value, it.read = nil, noPair }

// askAhead asks the processor for the values that follow the current one, as far as they are known without a further look at the disk.
func (it *Iterator) askAhead() {
	s := &it.settled
	switch {
	case it.fast:
		here := it.begin + it.n
		last := s.looked
		s.looked = here
		switch {
		case max(here-last, last-here) > valuesApart:
		case s.back:
			it.askBackward(here - 1)
		default:
			it.askForward(here+1, it.run)
		}
	case it.ahead:
		if s.valid {
			it.askForward(s.at, s.limit)
		}
		it.askMemory()
	}
}

// askForward asks for the values of some settled entries, of those before limit, from one on.
func (it *Iterator) askForward(from, limit int) {
	s := &it.settled
	end := min(from+valuesAhead, limit)
	for i := max(from, s.told); i < end; i++ {
		it.ask(s.page.Record(i))
	}
	s.told = max(s.told, end)
}

// askBackward asks for the values of some settled entries, from one on backward.
func (it *Iterator) askBackward(from int) {
	s := &it.settled
	end := max(from-valuesAhead, it.floor-1)
	for i := min(from, s.told); i > end; i-- {
		it.ask(s.page.Record(i))
	}
	s.told = min(s.told, end)
}

// askMemory asks for the value of the key that comes next in the memtables.
func (it *Iterator) askMemory() {
	next := it.front.lead
	if !next.valid {
		return
	}
	r, _ := next.cursor.Record()
	if at := unsafe.Pointer(unsafe.SliceData(r.Value)); at != it.asked {
		it.asked = at
		it.ask(r)
	}
}

func (it *Iterator) ask(r record.Record) {
	if r.Kind == record.Apart {
		value.Prefetch(it.view.env.Store, r.Value)
	}
}
