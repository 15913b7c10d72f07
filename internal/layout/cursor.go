package layout

import (
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// Cursor moves over the records of a root in key order (in some fixed order in a layout that keeps none, where the seeking
// methods fail with ErrNoOrder). Moves answer false when there is no such record or when something failed: ask Err then.
// Tombstones never appear; expired records do.
//
// A new cursor stands nowhere: Next goes to the first record, Prev to the last one. A cursor that has moved off one end
// comes back with the opposite move. Keys and records are valid until the next move; they lie in a page that the cursor
// pins, or in its own buffers.
type Cursor interface {
	// ReadOnce tells the cursor, before its first move, that what it reads will hardly be asked for again: it stays out of the cache.
	ReadOnce()
	First() bool
	Last() bool
	Next() bool
	Prev() bool
	SeekGE(key []byte) bool // to the first key >= key
	SeekLT(key []byte) bool // to the last key < key
	Key() []byte
	Record() record.Record
	// Window returns the page under the cursor and the position in it, so that callers may step inside the page without
	// calls: positions 0 to Len()-1 are consecutive records. The page is valid until the cursor moves to another page.
	Window() (p page.Page, i int)
	// MoveTo tells the cursor where in its window the caller stopped. It takes positions from 0 to Len()-1.
	MoveTo(i int)
	Err() error
	// Close gives up what the cursor holds. Moves after it answer false. Closing twice is no error.
	Close() error
}
