package document

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestFirstGetKeepsNoCodec: the first document that is got of a collection is decoded without keeping templates and dictionaries, and
// from the second one on they stay.
func TestFirstGetKeepsNoCodec(t *testing.T) {
	o := &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1}
	town := func(i int) string { return fmt.Sprint("a town that is met again ", i%7) }
	s := opened(t, o)
	c, err := s.Collection(t.Context(), "people", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "town", Value: town(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = opened(t, o)
	c = s.Database(DefaultDatabase).Lookup("people")
	x := s.current.Load().byName[DefaultDatabase+".people"]
	if x == nil {
		t.Fatalf("collections are %v", s.current.Load().byName)
	}
	for gets := range 3 {
		doc, err := c.Get(t.Context(), 90+gets)
		if err != nil || doc.Lookup("town").StringValue() != town(90+gets) {
			t.Errorf("get %d: %s, %v", gets, doc, err)
		}
		if kept := x.codec != nil; kept != (gets > 0) {
			t.Errorf("after get %d the codec is kept: %v", gets, kept)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// readHook is a file system that calls then at the left-th read of a segment. Its files cannot be mapped, so that all is read.
type readHook struct {
	vfs.FS
	left int
	then func()
}

type hookedFile struct {
	vfs.File
	of *readHook
}

func (h *readHook) Open(name string) (vfs.File, error) {
	f, err := h.FS.Open(name)
	if err != nil || filepath.Ext(name) != ".seg" {
		return f, err
	}
	return hookedFile{f, h}, nil
}

func (f hookedFile) ReadAt(p []byte, off int64) (int, error) {
	if f.of.left--; f.of.left == 0 {
		f.of.then()
	}
	return f.File.ReadAt(p, off)
}

func (f hookedFile) Map(int64) (vfs.Mapping, error) { return nil, errors.New("no mappings here") }

// The first document that is got of a collection is decoded with templates that are read for it. One that was put in its place
// meanwhile, by a template that came after these, was once taken for damage.
func TestFirstGetBesideANewTemplate(t *testing.T) {
	ctx := t.Context()
	hook := &readHook{FS: memfs.New()}
	o := &Options{Storage: pando.Options{FS: hook, MemoryBytes: 1 << 20}, TTLInterval: -1}
	s := opened(t, o)
	c := s.Database("d").Lookup("c")
	for i := range 100 {
		if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i}}); err != nil {
			t.Fatal(err)
		}
	}
	beside := 0
	for n := 1; n <= 8; n++ {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = opened(t, o)
		c = s.Database("d").Lookup("c")
		field := string(rune('a' + n)) // of documents as there have not been any yet
		hook.then = func() {
			beside++
			for i := range 5 {
				if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 1000*n + i}, {Key: field, Value: i}}); err != nil {
					t.Error(err)
				}
			}
			if _, err := c.Replace(ctx, bson.D{{Key: "_id", Value: 7}}, bson.D{{Key: field, Value: 1}}, nil); err != nil {
				t.Error(err)
			}
		}
		hook.left = n
		if doc, err := c.Get(ctx, 7); err != nil {
			t.Errorf("when others write with read %d: %s, %v", n, doc, err)
		}
		hook.left = 0
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if beside == 0 {
		t.Error("nobody ever wrote beside a get")
	}
}
