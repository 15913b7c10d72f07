package document

import (
	"errors"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// readHook is a file system that calls something when so many reads of segments have come, which have no mappings.
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

// The first document that is got of a collection is decoded with templates that are read for it. One that was put in its place meanwhile, by a
// template that came after these, was taken for damage.
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
