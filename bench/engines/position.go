package engines

import "github.com/pandodb/pando/bench/engine"

// cursor is what the iterators of several engines have in common.
type cursor interface {
	First() bool
	Last() bool
	Prev() bool
	Key() []byte
}

// position moves to where a scan begins; seek moves to the first key that is not below the given one.
func position(it cursor, seek func(key []byte) bool, s engine.Scan) bool {
	switch {
	case s.From == nil && s.Reverse:
		return it.Last()
	case s.From == nil:
		return it.First()
	}
	ok := seek(s.From)
	switch {
	case !s.Reverse || ok && string(it.Key()) == string(s.From):
		return ok
	case !ok:
		return it.Last()
	}
	return it.Prev()
}
