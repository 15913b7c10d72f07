package crash

import (
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando"
)

// agree compares what the changes lead to that are kept with what there is. They are all there from the oldest one on.
func agree(db *pando.DB, spaces map[string]*pando.Keyspace) error {
	type place struct{ space, key string }
	told := map[place]string{}
	oldest := db.OldestChange()
	for c, err := range db.Changes(context.Background(), pando.ChangesOptions{From: oldest}) {
		if err != nil {
			return fmt.Errorf("changes from %d: %w", oldest, err)
		}
		switch c.Kind {
		case pando.ChangePut:
			told[place{c.Keyspace, string(c.Key)}] = string(c.Value)
		case pando.ChangeCreate, pando.ChangeDrop:
			for at := range told {
				if at.space == c.Keyspace {
					delete(told, at)
				}
			}
		}
	}
	for at, want := range told {
		ks := spaces[at.space]
		if ks == nil {
			continue // it was dropped before the database was opened: its changes have no name
		}
		if got, err := ks.Get([]byte(at.key)); err != nil || string(got) != want {
			return errors.Join(err, fmt.Errorf("the changes from %d tell of %d bytes in %q/%s, and there are %d",
				oldest, len(want), at.space, at.key, len(got)))
		}
	}
	return nil
}
