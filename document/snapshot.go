package document

import (
	"context"
	"errors"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Snapshot reads the store as it was at one moment. It is safe for concurrent use, but the cursors from it are not. It must be
// closed; what is open on it then fails with ErrClosed. While it is open the space of what has changed since is not given back.
type Snapshot struct {
	store *Store
	at    *moment
}

// Snapshot returns the store as it is now.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := errors.Join(s.usable(), ctx.Err()); err != nil {
		return nil, err
	}
	for {
		names := s.current.Load()
		at := s.moment(nil)
		if at.names = names; s.current.Load() == names {
			return &Snapshot{store: s, at: at}, nil
		}
		if err := at.close(); err != nil { // a collection was made, dropped or renamed meanwhile
			return nil, err
		}
	}
}

// In returns a collection as it was at that moment, under the name that it had then: it can be read also when it has been dropped or got
// another name since, and one that was made since reads as empty. Writing to it fails.
func (s *Snapshot) In(c *Collection) *Collection {
	return &Collection{store: s.store, ns: c.ns, at: s.at}
}

// Newest reports whether the snapshot is still what another one of now would be: after each commit it says no, and when it cannot tell.
func (s *Snapshot) Newest() bool {
	return s.at.names == s.store.current.Load() && s.at.seq == s.store.db.LastSeq()
}

// Close gives the snapshot up. Closing twice is no error.
func (s *Snapshot) Close() error { return s.at.close() }

// alterable refuses to make, drop or alter a collection through the handle of a snapshot, or of a transaction, whose part it would not be.
func (c *Collection) alterable() error {
	switch {
	case c.at != nil:
		return onSnapshot()
	case c.tx != nil:
		return mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "Cannot drop or alter collection %s in a multi-document transaction.", c.ns)
	}
	return nil
}

func onSnapshot() error {
	return mongoerror.New(mongoerror.InvalidOptions, "a snapshot cannot be written to")
}
