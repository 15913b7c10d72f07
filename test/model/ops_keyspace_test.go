package model

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando"
)

func (w *world) opCreateKeyspace() {
	if len(w.state) > 5 {
		return
	}
	name := fmt.Sprintf("space%d", w.rng.IntN(8))
	c := pando.Compression(w.rng.IntN(4))
	o := &pando.KeyspaceOptions{LeafBytes: []int{0, 256, 512, 4096}[w.rng.IntN(4)], Compression: &c}
	if w.rng.IntN(4) == 0 {
		o = nil
	}
	if hashed(name) {
		o = &pando.KeyspaceOptions{Layout: pando.Hash, Compression: &c}
	}
	w.create(name, o)
}

func (w *world) create(name string, o *pando.KeyspaceOptions) {
	ks, err := w.db.Keyspace(name, o)
	w.must(err, "open keyspace")
	w.ks[name] = ks
	if w.state[name] == nil {
		w.state[name] = map[string]Value{}
	}
}

func (w *world) opDropKeyspace() {
	if len(w.txs) > 0 {
		return
	}
	n := w.name()
	if n == "default" {
		return
	}
	ks := w.ks[n]
	w.must(w.db.DropKeyspace(n), "drop keyspace")
	delete(w.state, n)
	delete(w.ks, n)
	for what, err := range map[string]error{"put": ks.Put(w.key(), w.value()), "delete": ks.Delete(w.key())} {
		if !errors.Is(err, pando.ErrDropped) {
			w.fail("%s in a dropped keyspace: %v", what, err)
		}
	}
	if _, err := ks.Get(w.key()); !errors.Is(err, pando.ErrDropped) {
		w.fail("get in a dropped keyspace: %v", err)
	}
	for _, s := range w.snaps { // snapshots still read it
		if s.state[n] != nil && w.rng.IntN(2) == 0 {
			w.checkAll(s.snap.In(ks), s.state, n)
		}
		delete(s.state, n)
	}
}

func (w *world) opDropAndCreate() {
	w.opDropKeyspace()
	w.opCreateKeyspace()
}
