package document

// window is which of the documents that match a source gives: it passes over some, and ends after a number of them.
type window struct {
	skip int64 // documents still to be passed over
	left int64 // documents still to be given; -1: all that come
}

// windowOf returns the window of a skip and a limit; no limit is 0.
func windowOf(skip, limit int64) window {
	if limit <= 0 {
		limit = -1
	}
	return window{skip: skip, left: limit}
}

// ended reports whether all that may be given was given.
func (w *window) ended() bool { return w.left == 0 }

// admits counts a document that matches, and reports whether it is to be given.
func (w *window) admits() bool {
	if w.skip > 0 {
		w.skip--
		return false
	}
	if w.left > 0 {
		w.left--
	}
	return true
}
