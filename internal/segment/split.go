package segment

import "fmt"

// Segments are emptied by freeing, and by moving what is left. So blobs that will be freed at the same time had better lie together.

// stream is where blobs go one behind the other.
type stream struct {
	file   *file  // the segment in work, nil before the first blob
	start  int64  // where buffer will lie in file
	buffer []byte // blobs that wait to be written
}

// splitCapacity is the capacity of the buffers of what does not stay for long, at first: there is little of it for the most part.
const splitCapacity = 64 << 10

// How long blobs stay, as their kinds tell.
const (
	lasting   = iota // until their records change, or longer
	brief            // for a few checkpoints: deltas are merged into their leaf then, pages of an index with theirs
	fleeting         // until the next checkpoint, which writes nodes and groups anew up to the root
	lifetimes        // how many there are
)

// lifetime is how long blobs of a kind stay.
func (k Kind) lifetime() int {
	switch k {
	case KindInner:
		return fleeting
	case KindDelta, KindIndex, KindIndexDelta:
		return brief
	}
	return lasting
}

// Split makes the Writer put blobs that stay for long, for a few checkpoints and until the next one into segments of their own. Those of
// the last kinds are empty before long, where among the others they would leave holes that only moving those closes. It is for Writers
// of much: each file takes a sync. Call it before the first Append.
//
// Separating by how long data stays is what log-structured stores have done since Rosenblum and Ousterhout, "The Design and
// Implementation of a Log-Structured File System" (1991), found that hot and cold data in one segment make cleaning dear.
func (w *Writer) Split() {
	if w.split {
		return
	}
	w.split = true
	for i := range w.streams {
		if i != lasting {
			w.streams[i].buffer = make([]byte, 0, splitCapacity)
		}
	}
}

// stream returns where blobs of a kind go. A catalogue goes where all that was written before it lies before it, as salvage reads segments:
// into the newest.
func (w *Writer) stream(k Kind) *stream {
	to := &w.streams[lasting]
	switch {
	case k == KindCatalogue:
		for i := range w.streams {
			if f := w.streams[i].file; f != nil && (to.file == nil || f.id > to.file.id) {
				to = &w.streams[i]
			}
		}
	case w.split:
		to = &w.streams[k.lifetime()]
	}
	return to
}

// inWork returns the stream that goes on in a segment; nil: none does.
func (w *Writer) inWork(f *file) *stream {
	for i := range w.streams {
		if w.streams[i].file == f {
			return &w.streams[i]
		}
	}
	return nil
}

// makeRoom makes sure that the blob of length bytes which begins at begin in the buffer fits into the segment in work, or is
// the first of a new one.
func (w *Writer) makeRoom(to *stream, begin, length int) error {
	if to.file != nil {
		end := to.start + int64(begin) + int64(length)
		if end <= w.store.options.SegmentBytes {
			return nil
		}
		if to.start+int64(begin) == FileHeaderSize && end <= maxEnd {
			return nil
		}
	}
	if err := w.store.enter(); err != nil {
		return err
	}
	defer w.store.leave()
	if to.file != nil {
		if err := to.write(begin); err != nil {
			return err
		}
		to.file.growing.Store(false)
	}
	f, err := w.store.add(w.class, w.keyspace)
	if err != nil {
		return err
	}
	to.file, to.start = f, FileHeaderSize
	w.made = append(w.made, f)
	to.buffer = append(to.buffer[:0], to.buffer[begin:]...)
	return nil
}

// write writes the first n bytes of the buffer to the segment in work. The buffer stays as it is. The caller has entered.
func (to *stream) write(n int) error {
	if n == 0 {
		return nil
	}
	h, err := to.file.opened()
	if err != nil {
		return err
	}
	if _, err := h.WriteAt(to.buffer[:n], to.start); err != nil {
		return fmt.Errorf("%s: write %d bytes at %d: %w", to.file.name, n, to.start, err)
	}
	to.file.wrote(to.start, n)
	to.start += int64(n)
	to.file.size.Store(to.start)
	to.file.dirty.Store(true)
	return nil
}

// giveBack makes the buffer of a stream that of the next Writer, if it is of a usual length.
func (w *Writer) giveBack(i int) {
	buffer := w.streams[i].buffer[:0]
	if i == lasting && cap(buffer) > 0 && cap(buffer) <= keepCapacity {
		w.store.buffers.Put(&buffer)
	}
	w.streams[i].buffer = nil
}
