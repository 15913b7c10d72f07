package engines

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/pandodb/pando/bench/engine"
)

// rawDriver is no engine: it is the floor of a synced write. One write call and one fsync-like call into space that is
// already allocated, one writer at a time. It can do nothing else. The floor of a get, which is an access to memory, needs no adapter.
func rawDriver() engine.Driver {
	return engine.Driver{
		Name: "raw", Version: "-", Floor: true,
		Kind:    "not an engine: one write and one fdatasync into allocated space; a get is one access to memory",
		Classes: map[engine.Class]string{engine.Relaxed: "nothing", engine.Durable: "fdatasync per write"},
		Open:    openRaw,
	}
}

type rawStore struct {
	unsupported
	mu     sync.Mutex
	file   *os.File
	at     int64
	record []byte
}

// rawBytes is allocated and written before the first record: a later sync has no metadata to write.
const rawBytes = 16 << 20

func openRaw(o engine.Options) (engine.Store, error) {
	f, err := os.Create(filepath.Join(o.Dir, "raw.log"))
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, rawBytes)); err != nil {
		return nil, err
	}
	return &rawStore{file: f}, f.Sync()
}

// Put is a batch of one.
func (s *rawStore) Put(key, value []byte) error {
	return s.Write([]engine.Op{{Key: key, Value: value}})
}

// Write appends the bytes and syncs them, and begins again at the front when the space is full.
func (s *rawStore) Write(batch []engine.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = s.record[:0]
	for _, op := range batch {
		s.record = append(append(s.record, op.Key...), op.Value...)
	}
	if s.at+int64(len(s.record)) > rawBytes {
		s.at = 0
	}
	if _, err := s.file.WriteAt(s.record, s.at); err != nil {
		return err
	}
	s.at += int64(len(s.record))
	return syncData(s.file)
}

// Close closes the file.
func (s *rawStore) Close() error { return s.file.Close() }

// unsupported answers everything with ErrUnsupported. Adapters embed it for what their engine has not.
type unsupported struct{}

func (unsupported) Get(dst, _ []byte) ([]byte, bool, error) { return dst, false, engine.ErrUnsupported }
func (unsupported) Has([]byte) (bool, error)                { return false, engine.ErrUnsupported }
func (unsupported) Scan(engine.Scan, engine.Visit) error    { return engine.ErrUnsupported }
func (unsupported) Put(_, _ []byte) error                   { return engine.ErrUnsupported }
func (unsupported) Delete([]byte) error                     { return engine.ErrUnsupported }
func (unsupported) Write([]engine.Op) error                 { return engine.ErrUnsupported }
func (unsupported) Snapshot() (engine.Snapshot, error)      { return nil, engine.ErrUnsupported }
func (unsupported) Settle() error                           { return nil }
func (unsupported) Compact() error                          { return engine.ErrUnsupported }
