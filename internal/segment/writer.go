package segment

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

const (
	writerBytes    = 512 << 10 // a Writer writes when it holds as much
	writerCapacity = 768 << 10 // of its buffer, so that an ordinary blob more does not make it grow
	keepCapacity   = 2 << 20   // a longer buffer is given to the garbage collector instead of the next Writer
	maxEnd         = 1<<32 - 1 // offsets have 32 bits
)

// ErrFinished is what errors.Is finds when a Writer is used after Commit or Abort.
var ErrFinished = errors.New("segment writer is finished")

// Writer appends blobs to segments of its own: it continues no other's, and no other continues its. Any number may be open.
// A Writer is used by one goroutine at a time.
//
// After an error of Append, Flush or Sync it fails for ever with the same error; Abort it. The sequence of a checkpoint is
// Append and Free for everything that changes, Table for the catalogue, Append of the catalogue itself, Sync, store the root
// slot, Commit. Do not Abort once a root slot may have reached the disk, even if storing it failed: Open removes what turns
// out not to be needed.
//
// The catalogue cannot count itself, because it lists the live bytes before it is appended. So whoever opens a database says
// Live(pointer of the catalogue, +its length) afterwards.
type Writer struct {
	store    *Store
	class    Class
	keyspace uint32
	streams  [lifetimes]stream
	split    bool    // blobs go where their lifetime says; else all of them where those that last do
	made     []*file // all segments of this Writer
	synced   int     // how many of made, from the first on, are durable and full
	pending  map[uint32]int64
	written  int64
	habits   habits
	effort   effort
	aborted  atomic.Bool
	passing  bool // the leaves that follow will be written again before long
	err      error
}

// NewWriter returns a Writer for segments of one class. keyspaceHint says to which keyspace most of the blobs belong; it is
// noted in the segments for tools that look at damaged databases.
func (s *Store) NewWriter(class Class, keyspaceHint uint32) *Writer {
	w := &Writer{store: s, class: class, keyspace: keyspaceHint, pending: map[uint32]int64{}}
	w.err = s.writable()
	if b, ok := s.buffers.Get().(*[]byte); ok {
		w.streams[lasting].buffer = (*b)[:0]
	} else {
		w.streams[lasting].buffer = make([]byte, 0, writerCapacity)
	}
	return w
}

// Hurry makes the Writer compress in less time, if not quite as well: with the fastest level of zstd, and with S2 instead of zstd
// where zstd does not save much more.
func (w *Writer) Hurry() { w.effort = quick }

// Passing tells whether the leaves that follow are likely to be written again before long: then those that do not shrink are stored
// without a stencil, which takes a tenth off records that are alike, and some time of everybody who goes over them.
func (w *Writer) Passing(passing bool) { w.passing = passing }

// Append adds a blob and returns where it will lie. Store.Read finds it after Flush. It counts as live when the Writer is
// committed. raw may be changed when Append has returned. When compressing does not save a sixteenth, or did not for many
// blobs of its kind in the keyspace before, the blob is stored as it is. dictionary is the number of a dictionary that was added, for ZstdDictionary;
// with Columns too, or 0; else 0.
func (w *Writer) Append(kind Kind, keyspace uint32, codec Codec, dictionary uint16, raw []byte) (Pointer, error) {
	if w.err != nil {
		return Pointer{}, w.err
	}
	if len(raw) > MaxBlob || kind == 0 || kind > maxKind || codec != ZstdDictionary && codec != Columns && dictionary != 0 {
		return Pointer{}, fmt.Errorf("append blob of %d bytes, kind %d, codec %d, dictionary %d: not allowed", len(raw), kind, codec, dictionary)
	}
	to := w.stream(kind)
	begin := len(to.buffer)
	var header [HeaderSize]byte
	if w.habits.keyspace != keyspace {
		w.turnTo(keyspace)
	}
	wanted, weigh := w.habits.codecFor(kind, codec, w.effort, len(raw))
	if w.habits.doubts(kind) && wanted != None && !worthwhile(wanted, raw) {
		wanted = None
	}
	buffer, used, err := w.store.codecs.appendShrunk(append(to.buffer, header[:]...), wanted, dictionary, w.effort, raw)
	if err != nil {
		return Pointer{}, fmt.Errorf("append blob: %w", err)
	}
	if codec != None && len(raw) >= minCompress {
		w.habits.note(kind, used)
	}
	if weigh {
		if buffer, err = w.weigh(buffer, begin, raw); err != nil {
			return Pointer{}, err
		}
	}
	if used == None && kind == KindLeaf {
		buffer, used = inParts(buffer, raw, !w.passing && codec != None)
	} else if used == None {
		buffer = append(buffer, raw...)
	}
	to.buffer = buffer
	length := len(buffer) - begin
	if err := w.makeRoom(to, begin, length); err != nil {
		to.buffer = to.buffer[:0]
		return Pointer{}, w.poison(err)
	}
	begin = len(to.buffer) - length
	h := Header{Kind: kind, Codec: used, Keyspace: keyspace, Stored: uint32(length - HeaderSize), Raw: uint32(len(raw))}
	if used == ZstdDictionary {
		h.Dictionary = dictionary
	}
	p := w.store.seal(to.buffer[begin:], h, to.file.id, uint32(to.start+int64(begin)))
	if err := w.appended(to, length, 0); err != nil {
		return Pointer{}, err
	}
	return p, nil
}

// appended accounts for a blob that was put into the buffer, of so many live bytes and others, and writes when there is enough.
func (w *Writer) appended(to *stream, live, other int) error {
	w.pending[to.file.id] += int64(live)
	w.written += int64(live + other)
	if len(to.buffer) < writerBytes {
		return nil
	}
	return w.flush(to)
}

// turnTo makes the habits at hand those of another keyspace. Only a Writer in a hurry takes and leaves what others have learnt: one that
// has time finds out for itself.
func (w *Writer) turnTo(keyspace uint32) {
	if w.effort != quick {
		w.habits = habits{keyspace: keyspace}
		return
	}
	w.store.learnt.keep(w.habits)
	w.habits = w.store.learnt.of(keyspace)
}

// weigh compares the blob at begin, the last one in a buffer, which is only its header where it did not shrink, with what it would be by S2.
func (w *Writer) weigh(buffer []byte, begin int, raw []byte) ([]byte, error) {
	end := len(buffer)
	buffer, _, err := w.store.codecs.appendTried(buffer, S2, 0, w.effort, raw)
	if err != nil {
		return buffer, fmt.Errorf("append blob: %w", err)
	}
	stored := end - begin - HeaderSize
	if stored == 0 {
		stored = len(raw)
	}
	w.habits.weigh(len(raw), len(buffer)-end, stored)
	return buffer[:end], nil
}

func (w *Writer) poison(err error) error {
	w.err = err
	return err
}

// Free accounts the blob under p dead when the Writer is committed.
func (w *Writer) Free(p Pointer) {
	if !p.IsZero() && w.pending != nil {
		w.pending[p.Segment] -= int64(p.Length)
	}
}

// Keep accounts a value blob live when the Writer is committed: from then on a root refers to it.
func (w *Writer) Keep(p Pointer) {
	if !p.IsZero() && w.pending != nil {
		w.pending[p.Segment] += int64(p.Length)
	}
}

// KeepAll accounts everything live, when the Writer is committed, that lies in segments of values that are no newer than newest, and that the
// log has referred to since the sequence number settled: a root will refer to some of it, and nobody knows to what.
func (w *Writer) KeepAll(newest uint32, settled uint64) {
	if w.pending == nil {
		return
	}
	for id, f := range w.store.files.Load().all {
		if f.class == Values && id <= newest && f.lastSeq.Load() > settled {
			w.pending[id] += max(f.size.Load()-f.live.Load()-w.pending[id], 0)
		}
	}
}

// Written is the number of bytes appended so far, headers included.
func (w *Writer) Written() int64 { return w.written }

// Flush writes what is buffered, so that Store.Read finds it and a kill of the process does not lose it.
func (w *Writer) Flush() error {
	for i := range w.streams {
		if err := w.flush(&w.streams[i]); err != nil {
			return err
		}
	}
	return nil
}

// flush is Flush for one stream.
func (w *Writer) flush(to *stream) error {
	if w.err != nil {
		return w.err
	}
	if err := w.store.enter(); err != nil {
		return w.poison(err)
	}
	defer w.store.leave()
	if err := to.write(len(to.buffer)); err != nil {
		return w.poison(err)
	}
	to.buffer = to.buffer[:0]
	if cap(to.buffer) > keepCapacity {
		to.buffer = make([]byte, 0, writerCapacity)
	}
	return nil
}

// Rest gives the Writer's buffers back, for one who keeps the Writer and does not append for long. Flush comes before.
func (w *Writer) Rest() {
	for i := range w.streams {
		if len(w.streams[i].buffer) == 0 {
			w.giveBack(i)
		}
	}
}

// Sync makes everything durable that was appended, and the names of the segments. When it fails the store accepts no more
// writes.
func (w *Writer) Sync() error {
	if err := w.Flush(); err != nil {
		return err
	}
	if err := w.store.writable(); err != nil {
		return w.poison(err)
	}
	for i := w.synced; i < len(w.made); i++ {
		if err := w.syncMade(w.made[i]); err != nil {
			return w.poison(err)
		}
	}
	for w.synced < len(w.made) && w.inWork(w.made[w.synced]) == nil {
		w.synced++
	}
	if len(w.made) == 0 {
		return nil
	}
	if err := w.store.syncNames(); err != nil {
		return w.poison(err)
	}
	return nil
}

// syncMade syncs a segment. From when it does not count as dirty any more, which is before the sync, until the sync has ended, nothing but a
// reader inside keeps the handle of one that is full from being closed for the sake of others.
func (w *Writer) syncMade(f *file) error {
	if !f.acquire() {
		return fmt.Errorf("sync %s: %w", f.name, ErrClosed)
	}
	defer f.release()
	return w.store.syncFile(f)
}

// Table is what Store.Segments would return after Commit.
func (w *Writer) Table() []Info {
	table := w.store.Segments()
	for _, f := range w.made {
		info := f.info()
		if to := w.inWork(f); to != nil {
			info.Size = to.start + int64(len(to.buffer))
		}
		table = append(table, info)
	}
	for i := range table {
		table[i].Live += w.pending[table[i].ID]
	}
	slices.SortFunc(table, func(a, b Info) int { return cmp.Compare(a.ID, b.ID) })
	return table
}

// Commit puts the segments of the Writer into the table and makes the accounting of Append and Free count. The Writer is
// finished. Flush before: what is still buffered is written now, and if that fails the store accepts no more writes.
func (w *Writer) Commit() {
	if w.pending == nil {
		return
	}
	if err := w.Flush(); err != nil {
		w.store.fail(err)
	}
	w.store.values.mu.Lock() // Segments sees all of it or nothing
	for _, f := range w.made {
		f.growing.Store(false)
		f.state.Store(listed)
	}
	files := w.store.files.Load()
	for id, delta := range w.pending {
		if f := files.find(id); f != nil {
			f.live.Add(delta)
		}
	}
	w.store.values.mu.Unlock()
	w.finish()
}

// Abort removes the segments of the Writer and forgets its accounting. After Commit it does nothing.
func (w *Writer) Abort() error {
	if w.pending == nil {
		return nil
	}
	w.aborted.Store(true)
	var errs []error
	for _, f := range w.made {
		errs = append(errs, w.store.Remove(f.id))
	}
	w.finish()
	return errors.Join(errs...)
}

// Aborted reports whether Abort has made nothing of what was appended. Anybody may ask, at any time.
func (w *Writer) Aborted() bool { return w.aborted.Load() }

func (w *Writer) finish() {
	if w.effort == quick {
		w.store.learnt.keep(w.habits)
	}
	for i := range w.streams {
		w.giveBack(i)
		w.streams[i] = stream{}
	}
	w.pending, w.made = nil, nil
	w.err = ErrFinished
}
