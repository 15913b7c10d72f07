package execute

import "github.com/pandodb/pando"

// Reader reads keyspaces as they were at one moment. Like what it stands on, one from a transaction is used by one goroutine at a time.
type Reader interface {
	// GetTo appends the value of key to dst; pando.ErrNotFound when there is none.
	GetTo(ks *pando.Keyspace, dst, key []byte) ([]byte, error)
	// Iter opens an iterator, which must be closed.
	Iter(ks *pando.Keyspace, o *pando.IterOptions) *pando.Iterator
	// Count returns the number of pairs in [lo, hi).
	Count(ks *pando.Keyspace, lo, hi []byte) (int64, error)
}

// FromSnapshot reads from a snapshot, which must stay open for as long.
func FromSnapshot(s *pando.Snapshot) Reader { return snapshotReader{s} }

// FromTx reads from a transaction, its own writes included.
func FromTx(tx *pando.Tx) Reader { return txReader{tx} }

type snapshotReader struct{ s *pando.Snapshot }

func (r snapshotReader) GetTo(ks *pando.Keyspace, dst, key []byte) ([]byte, error) {
	return r.s.In(ks).GetTo(dst, key)
}

func (r snapshotReader) Iter(ks *pando.Keyspace, o *pando.IterOptions) *pando.Iterator {
	return r.s.In(ks).Iter(o)
}

func (r snapshotReader) Count(ks *pando.Keyspace, lo, hi []byte) (int64, error) {
	return r.s.In(ks).Count(lo, hi)
}

type txReader struct{ tx *pando.Tx }

func (r txReader) GetTo(ks *pando.Keyspace, dst, key []byte) ([]byte, error) {
	return r.tx.In(ks).GetTo(dst, key)
}

func (r txReader) Iter(ks *pando.Keyspace, o *pando.IterOptions) *pando.Iterator {
	return r.tx.In(ks).Iter(o)
}

func (r txReader) Count(ks *pando.Keyspace, lo, hi []byte) (int64, error) {
	return r.tx.In(ks).Count(lo, hi)
}

// estimating returns what the planner counts with. A transaction would depend on every range that it counts, and fail when another one
// writes there: for it the newest state is near enough.
func estimating(r Reader) Reader {
	if tracks(r) {
		return newestReader{}
	}
	return r
}

// tracks reports whether what is read becomes what a commit depends on, so that ranges should be no wider than needed.
func tracks(r Reader) bool {
	_, ok := r.(txReader)
	return ok
}

type newestReader struct{}

func (newestReader) GetTo(ks *pando.Keyspace, dst, key []byte) ([]byte, error) {
	return ks.GetTo(dst, key)
}

func (newestReader) Iter(ks *pando.Keyspace, o *pando.IterOptions) *pando.Iterator { return ks.Iter(o) }

func (newestReader) Count(ks *pando.Keyspace, lo, hi []byte) (int64, error) { return ks.Count(lo, hi) }
