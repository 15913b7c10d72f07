package fault

import (
	"crypto/sha256"
	"path"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// written are the documents that somebody ever wanted to write, by their hashes: Salvage may find values of writes that failed.
type written map[[sha256.Size]byte]bool

func (w written) add(doc bson.Raw) { w[sha256.Sum256(doc)] = true }

func (w written) has(doc bson.Raw) bool { return w[sha256.Sum256(doc)] }

// salvage saves a copy of the store, with damage or without, and looks at what is there then: without a loss, it is all; else every document
// is one that somebody wanted to write, and every index tells what the documents tell.
func (s *docStorm) salvage() {
	s.t.Helper()
	image := s.base.KillImage()
	places, whole := s.rng.IntN(4), true // whole: the log is
	for range places {
		name := s.damage(image)
		whole = whole && inSegment(name)
	}
	o := s.options
	o.Storage.FS, o.FS = image, image
	report, err := document.Salvage(ctx, "db", "saved", &o)
	s.must("salvage", err)
	s.note("salvage with %d damaged places: %v", places, report)
	for _, loss := range report.Lost {
		if loss.Keyspace == "documents" || loss.Keyspace == "" {
			return // which collections there are is not known
		}
	}
	saved, err := document.Open("saved", &o)
	s.must("open what was saved", err)
	saved, s.store = s.store, saved
	defer func() { s.must("close what was saved", s.store.Close()); s.store = saved }()
	if places == 0 {
		s.must("salvage", report.Err())
	}
	if report.Err() == nil && report.Older == 0 && whole {
		s.lookAtAll()
	} else {
		s.lookAtSaved()
	}
}

// damage overwrites a place of a file, and returns its name.
func (s *docStorm) damage(image *memfs.FS) string {
	s.t.Helper()
	var files []string
	for _, dir := range []string{"db/segments", "db/wal"} {
		names, err := image.List(dir)
		s.must("list", err)
		for _, name := range names {
			files = append(files, path.Join(dir, name))
		}
	}
	name := files[s.rng.IntN(len(files))]
	f, err := image.OpenReadWrite(name)
	s.must("open", err)
	size, err := f.Size()
	s.must("size", err)
	from := s.rng.Int64N(max(size, 1))
	noise := make([]byte, min(1+s.rng.Int64N(1<<s.rng.IntN(13)), size-from))
	for i := range noise {
		noise[i] = byte(s.rng.Uint32())
	}
	_, err = f.WriteAt(noise, from)
	s.must("damage", err)
	s.note("damage: %d bytes at %d of %s, which has %d", len(noise), from, name, size)
	s.must("close", f.Close())
	return name
}

func (s *docStorm) lookAtSaved() {
	s.t.Helper()
	list, err := s.database().Collections(ctx)
	s.must("collections", err)
	for _, info := range list {
		c := s.collection(info.Name)
		for doc, err := range c.Find(ctx, nil, nil) {
			s.must("find", err)
			if s.rows[info.Name] == nil && !s.written.has(doc) {
				s.fatalf("saved %s has %v, which nobody wrote", info.Name, doc)
			}
		}
		if info.Series {
			continue
		}
		s.agrees("saved "+info.Name, c, func(err error) { s.must("validate", err) })
	}
}
