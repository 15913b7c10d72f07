package pando

import (
	"bytes"
	"errors"
)

// CompareAndSet stores value under key if what is there now is old, and reports whether it did. A nil old means that key must
// be absent; an empty one that is not nil, that its value must be empty. A nil value is stored as
// an empty one. No other write comes in between.
func (k *Keyspace) CompareAndSet(key, old, value []byte) (bool, error) {
	done := false
	err := k.Modify(key, func(now []byte, found bool) ([]byte, error) {
		if found != (old != nil) || !bytes.Equal(now, old) {
			return nil, ErrUnchanged
		}
		done = true
		if value == nil {
			return []byte{}, nil // as Put stores it; to Modify nil would mean to delete
		}
		return value, nil
	})
	return done && err == nil, err
}

// ErrUnchanged is what the function of Modify returns to leave the key as it is.
var ErrUnchanged = errors.New("leave the key unchanged")

// Modify reads the value of key, has fn make a new one of it, and stores that. No other write comes in between, and fn is
// called once. When fn returns nil without an error the key is deleted; when it returns ErrUnchanged nothing is written and
// Modify returns nil; any other error is returned. old is valid during the call, found tells whether the key is there. It is an
// Update: fn must not write to the database itself, nor close it, as that would wait for Modify to end.
func (k *Keyspace) Modify(key []byte, fn func(old []byte, found bool) (value []byte, err error)) error {
	err := k.db.updateIn(k, func(tx *Tx) error {
		old, err := tx.Get(key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		value, err := fn(old, err == nil)
		if err != nil {
			return err
		}
		if value == nil {
			return tx.Delete(key)
		}
		return tx.Put(key, value)
	})
	if errors.Is(err, ErrUnchanged) {
		return nil
	}
	return err
}

// CompareAndSet is Keyspace.CompareAndSet on the default keyspace.
func (db *DB) CompareAndSet(key, old, value []byte) (bool, error) {
	return db.main.CompareAndSet(key, old, value)
}

// Modify is Keyspace.Modify on the default keyspace.
func (db *DB) Modify(key []byte, fn func(old []byte, found bool) (value []byte, err error)) error {
	return db.main.Modify(key, fn)
}
