package fault

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/pandodb/pando"
)

// told is what the change feed says of a key.
type told struct {
	value  []byte // nil: it is gone
	expiry time.Time
}

// feed is what the changes that are kept lead to, by keyspace and key.
type feed map[string]map[string]told

// take takes a change in.
func (f feed) take(c pando.Change) {
	keys := f[c.Keyspace]
	if keys == nil {
		keys = map[string]told{}
		f[c.Keyspace] = keys
	}
	switch c.Kind {
	case pando.ChangePut:
		keys[string(c.Key)] = told{append([]byte{}, c.Value...), c.Expires}
	case pando.ChangeDelete:
		keys[string(c.Key)] = told{}
	case pando.ChangeDeleteRange:
		for key := range keys {
			if key >= string(c.Key) && (c.End == nil || key < string(c.End)) {
				keys[key] = told{}
			}
		}
	case pando.ChangeCreate, pando.ChangeDrop:
		clear(keys)
	}
}

// lookAtChanges compares what the changes that are kept lead to with what there is.
func (s *storm) lookAtChanges() {
	s.t.Helper()
	f := feed{}
	for c, err := range s.db.Changes(ctx, pando.ChangesOptions{From: s.db.OldestChange()}) {
		if errors.Is(err, pando.ErrChangesGone) && (s.options.KeepChanges == 0 || s.options.Profile == pando.Bench) {
			return
		}
		if err != nil {
			s.fatalf("changes from %d: %v", s.db.OldestChange(), err)
		}
		f.take(c)
	}
	for name, keys := range f {
		if s.model.tables[name] == nil {
			continue
		}
		ks := s.named(name)
		for key, want := range keys {
			if ks == nil {
				break
			}
			if err := agrees(ks, key, want); err != nil {
				s.fatalf("the changes from %d of %q/%s: %v", s.db.OldestChange(), name, key, err)
			}
		}
	}
}

// agrees compares a key with what the change feed says of it.
func agrees(ks *pando.Keyspace, key string, want told) error {
	if !want.expiry.IsZero() && time.Now().Add(2*time.Second).After(want.expiry) {
		return nil // it has expired, or is about to
	}
	got, err := ks.Get([]byte(key))
	if errors.Is(err, pando.ErrNotFound) && want.value == nil {
		return nil
	}
	if err != nil || want.value == nil || !bytes.Equal(got, want.value) {
		return fmt.Errorf("there are %d bytes, %v, where %d bytes (there: %t) are told of", len(got), err, len(want.value), want.value != nil)
	}
	return nil
}
