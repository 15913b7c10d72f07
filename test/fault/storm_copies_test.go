package fault

import (
	"errors"
	"fmt"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// backup makes a backup, and opens it where it has succeeded.
func (s *storm) backup() {
	s.t.Helper()
	dir := fmt.Sprint("backup", s.rng.IntN(2))
	if s.judge("backup", s.db.Backup(ctx, dir)) || s.damages() {
		return
	}
	s.lookAtCopy("backup", dir, s.base.KillImage())
}

// loseSlot opens a copy of the database, which is closed, without one of its root slots. That is an answer, or it is refused.
func (s *storm) loseSlot() {
	s.t.Helper()
	image, slot := s.base.KillImage(), s.rng.Int64N(2)
	f, err := image.OpenReadWrite("db/ROOT")
	s.must("open the root", err)
	_, err = f.WriteAt(make([]byte, 64), slot*4096+20)
	s.must("damage the root", errors.Join(err, f.Close()))
	s.note("root slot %d of a copy is damaged", slot)
	s.lookAtCopy(fmt.Sprintf("copy without root slot %d", slot), "db", image)
}

// lookAtCopy compares a copy of the database with what it ought to hold.
func (s *storm) lookAtCopy(what, dir string, image *memfs.FS) {
	s.t.Helper()
	image.SetCapacity(0)
	o := s.options
	o.FS, o.Logger = image, nil
	db, err := pando.Open(dir, &o)
	if dir == "db" && errors.Is(err, pando.ErrCorrupt) {
		return
	}
	s.must("open a "+what, err)
	defer func() { s.must("close a "+what, db.Close()) }()
	for _, name := range s.model.names() {
		if s.model.tables[name].vague || s.model.moved[name] {
			continue
		}
		ks, err := db.Keyspace(name, nil)
		s.must("keyspace of a "+what, err)
		for key := range s.model.tables[name].possible {
			before := time.Now()
			got, err := ks.Get([]byte(key))
			if errors.Is(err, pando.ErrNotFound) {
				got, err = nil, nil
			} else if got == nil {
				got = []byte{}
			}
			s.must("get from a "+what, err)
			if !s.model.allows(name, key, got, before, s.soon()) {
				s.fatalf("a %s has %d bytes in %q/%s (there: %t), which it never had", what, len(got), name, key, got != nil)
			}
		}
	}
}
