package document_test

import (
	"errors"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestOptionsThatContradict: what makes no sense together is refused as MongoDB's create command refuses it, and nothing is made.
func TestOptionsThatContradict(t *testing.T) {
	s := open(t, memfs.New())
	for what, o := range map[string]document.CollectionOptions{
		"a size, and not capped":           {SizeBytes: 1 << 20},
		"a number of documents, likewise":  {MaxDocuments: 5},
		"a pipeline, and no view":          {Pipeline: document.JSON(`[]`)},
		"a view with a size":               {ViewOn: "other", SizeBytes: 1 << 20},
		"a number of documents beyond all": {Capped: true, SizeBytes: 1 << 20, MaxDocuments: 1 << 40},
	} {
		if _, err := s.Collection(ctx, "c", &o); document.CodeOf(err) == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := s.Database("test").Collections(ctx); len(list) != 0 || err != nil {
		t.Errorf("there are %v, %v", list, err)
	}
}

// TestBoundsThatAreNegative are no options of a store: nothing would fit, or everything.
func TestBoundsThatAreNegative(t *testing.T) {
	fs := memfs.New()
	db := open(t, fs).DB()
	for _, o := range []document.Options{{QueryMemoryBytes: -1}, {TotalQueryMemoryBytes: -1}, {ScratchBytes: -1}} {
		o.Storage = pando.Options{FS: fs, MemoryBytes: 1 << 20}
		if _, err := document.Open("new", &o); !errors.Is(err, pando.ErrOptions) {
			t.Errorf("open: %v", err)
		}
		if _, err := fs.Stat("new"); err == nil {
			t.Error("a directory was made")
		}
		if _, err := document.NewWith(db, &o); !errors.Is(err, pando.ErrOptions) {
			t.Errorf("a store in an open database: %v", err)
		}
	}
}
