package document

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
)

// viewer is what those who go over records need of a codec's view.
type viewer interface {
	Reset(stored []byte) error
	Release()
	Lookup(name string) (bsoncore.Value, bool)
	Document(dst []byte) ([]byte, error)
	Err() error
}

// lookAt makes a view show the record on which an iterator stands. That one cannot be read now says nothing of what it is.
func lookAt(v viewer, it *pando.Iterator) error {
	stored := it.Value()
	if len(stored) == 0 && it.Err() != nil {
		return it.Err()
	}
	return v.Reset(stored)
}
