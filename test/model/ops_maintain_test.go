package model

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
)

func (w *world) opCompact() {
	o := pando.CompactOptions{Progress: func(done, total int64) {
		if done > total || done < 0 {
			w.fail("progress %d of %d", done, total)
		}
	}}
	if w.rng.IntN(3) == 0 {
		o.Compression = pando.Zstd
	}
	w.must(w.db.Compact(context.Background(), o), "compact")
}

func (w *world) opCheck() {
	r, err := w.db.Check(context.Background())
	w.must(err, "check")
	w.must(r.Err(), "check found damage")
}

func (w *world) opBackup() {
	dir := "backup"
	if w.rng.IntN(2) == 0 {
		dir = fmt.Sprintf("backup%d", w.step)
	}
	w.must(w.db.Backup(context.Background(), dir), "backup")
	o := w.opts
	o.ReadOnly = w.rng.IntN(3) == 0
	db, err := pando.Open(dir, &o)
	w.must(err, "open the backup")
	for _, name := range w.state.Names() {
		ks, err := db.Keyspace(name, nil)
		w.must(err, "open a keyspace of the backup")
		w.checkAll(ks, w.state, name)
	}
	r, err := db.Check(context.Background())
	w.must(err, "check the backup")
	w.must(r.Err(), "damage in the backup")
	w.must(db.Close(), "close the backup")
	if dir != "backup" || !o.ReadOnly {
		w.must(vfs.RemoveAll(w.fs, dir), "remove the backup")
		w.must(w.fs.SyncDir(filepath.Dir(dir)), "sync the removal") // half of a backup, as a power cut leaves it, is refused
	}
}
