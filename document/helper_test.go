package document

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// opened opens the store in "db".
func opened(t *testing.T, o *Options) *Store {
	t.Helper()
	s, err := Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustDocument returns the document that a text of extended JSON is.
func mustDocument(t *testing.T, text string) document {
	t.Helper()
	doc, err := toDocument(JSON(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// keyspacesOf returns how many keyspaces the documents of a store have.
func keyspacesOf(t *testing.T, s *Store) int {
	t.Helper()
	all, err := s.DB().Keyspaces()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// fillWith leaves a file system as good as full: documents take the room that is left, in a collection of their own. pad says how
// much the last of them take, so that callers who vary it find the disk full at each point of what they do.
func fillWith(t *testing.T, s *Store, fs *memfs.FS, pad int) {
	t.Helper()
	fs.SetCapacity(fs.Used())
	storeUntilFull(t, s, 4000, pad)
}

// storeUntilFull stores documents until there is room for none: of size and pad bytes first, and of half the size each time that
// one finds no room.
func storeUntilFull(t *testing.T, s *Store, size, pad int) {
	t.Helper()
	for size > 0 {
		_, err := s.Database("d").Lookup("other").Insert(t.Context(), bson.D{{Key: "s", Value: make([]byte, size+pad)}})
		if errors.Is(err, pando.ErrDiskFull) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// segmentsCannotBeRead is a fault.
func segmentsCannotBeRead() faultfs.Rule {
	return faultfs.Rule{Ops: faultfs.Ops(faultfs.OpOpen, faultfs.OpReadAt, faultfs.OpMap), Name: "*.seg", Times: -1}
}
