package pando

import (
	"bytes"
	"io"

	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/view"
)

// PutReader stores what r gives, up to MaxValueBytes, under key. A value of any length takes a megabyte of memory on its way
// in. Nothing is stored when r fails.
func (k *Keyspace) PutReader(key []byte, r io.Reader) error {
	if err := k.checkKey(key); err != nil {
		return err
	}
	if err := k.db.e.Writable(); err != nil {
		return err
	}
	head := make([]byte, k.db.e.Threshold()+1)
	n, err := readHead(r, head)
	if err != nil {
		return keyspaceError("read a value for", k.ks, err)
	}
	if n < len(head) {
		return k.Put(key, head[:n])
	}
	return k.stream(key, io.MultiReader(bytes.NewReader(head), r), 0)
}

// readHead fills head from r, and returns how much there is of it. It is not io.ReadFull, which says io.ErrUnexpectedEOF where r has come to
// its end: that is what r itself says where it was cut short.
func readHead(r io.Reader, head []byte) (n int, err error) {
	for n < len(head) && err == nil {
		var more int
		more, err = r.Read(head[n:])
		n += more
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// stream stores what r gives apart, however short it is.
func (k *Keyspace) stream(key []byte, r io.Reader, expiry uint64) error {
	return k.putApart(key, expiry, k.db.e.Syncs(), func(h *engine.ValueHold) (value.Ref, error) { return h.Stream(k.ks, key, r) })
}

// OpenValue opens the value of key for reading piece by piece, as it is now, or returns ErrNotFound. It must be closed; while
// it is open the disk space of the value is not given back.
func (k *Keyspace) OpenValue(key []byte) (*ValueReader, error) {
	s, err := k.db.e.SnapshotFor(k.ks)
	if err != nil {
		return nil, err
	}
	r, err := openValue(s, k.ks, key, k.db.e.Stop())
	if err != nil {
		s.Release()
		return nil, err
	}
	return r, nil
}

func openValue(s engine.Snapshot, ks *engine.Keyspace, key []byte, stop *view.Stop) (*ValueReader, error) {
	r, ok, err := s.Find(nil, ks, key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNotFound
	}
	v := &ValueReader{snap: s, stop: stop}
	if r.Kind == record.Inline {
		b := bytes.NewReader(r.Value)
		v.source, v.size = b, int64(b.Len())
		return v, nil
	}
	apart, err := s.OpenValue(r.Value)
	if err != nil {
		return nil, err
	}
	v.source, v.size = apart, apart.Size()
	return v, nil
}

// ValueReader reads one value piece by piece, in at most a megabyte of memory; every byte is verified before it is handed out.
// It is used by one goroutine at a time. Once it is closed, or its database is, it answers with ErrClosed.
type ValueReader struct {
	source interface {
		io.Reader
		io.ReaderAt
		io.Seeker
		io.WriterTo
	}
	size   int64
	snap   engine.Snapshot
	stop   *view.Stop // of the database
	closed bool
}

// usable returns ErrClosed when there is nothing to read from any more. Files of a database that is closed may be removed by who opens it
// next, and to read on would tell of damage then.
func (r *ValueReader) usable() error {
	if r.closed {
		return ErrClosed
	}
	return r.stop.Err()
}

// Size returns the length of the value in bytes.
func (r *ValueReader) Size() int64 { return r.size }

// Read implements io.Reader.
func (r *ValueReader) Read(p []byte) (int, error) {
	if err := r.usable(); err != nil {
		return 0, err
	}
	return r.source.Read(p)
}

// ReadAt implements io.ReaderAt.
func (r *ValueReader) ReadAt(p []byte, offset int64) (int, error) {
	if err := r.usable(); err != nil {
		return 0, err
	}
	return r.source.ReadAt(p, offset)
}

// Seek implements io.Seeker.
func (r *ValueReader) Seek(offset int64, whence int) (int64, error) {
	if err := r.usable(); err != nil {
		return 0, err
	}
	return r.source.Seek(offset, whence)
}

// WriteTo implements io.WriterTo.
func (r *ValueReader) WriteTo(w io.Writer) (int64, error) {
	if err := r.usable(); err != nil {
		return 0, err
	}
	return r.source.WriteTo(stoppable{r, w})
}

// stoppable is the writer of a value that is written piece by piece, which may take long.
type stoppable struct {
	r *ValueReader
	w io.Writer
}

func (s stoppable) Write(p []byte) (int, error) {
	if err := s.r.usable(); err != nil {
		return 0, err
	}
	return s.w.Write(p)
}

// Close gives the reader up. Closing twice is no error.
func (r *ValueReader) Close() error {
	if !r.closed {
		r.closed = true
		r.snap.Release()
	}
	return nil
}

// PutReader is Keyspace.PutReader on the default keyspace.
func (db *DB) PutReader(key []byte, r io.Reader) error { return db.main.PutReader(key, r) }

// OpenValue is Keyspace.OpenValue on the default keyspace.
func (db *DB) OpenValue(key []byte) (*ValueReader, error) { return db.main.OpenValue(key) }
