package model

import (
	"bytes"
	"fmt"
	"io"
)

func (w *world) opPut() {
	n := w.name()
	k, v := w.key(), w.value()
	w.state.Put(n, string(k), string(v), 0)
	w.changed(n, string(k))
	if len(v) == 0 && w.rng.IntN(2) == 0 {
		v = nil
	}
	w.must(w.ks[n].Put(k, v), "put")
	scribble(k)
	scribble(v)
}

func (w *world) opPutMany() {
	n := w.name()
	for range w.rng.IntN(300) {
		w.randomWrite(w.ks[n], n, w.direct())
	}
}

func (w *world) opPutExpiring() {
	n := w.name()
	k, v := w.key(), w.value()
	at, ms := w.expiry()
	w.state.Put(n, string(k), string(v), ms)
	w.changed(n, string(k))
	w.must(w.ks[n].PutExpiring(k, v, at), "put expiring")
}

func (w *world) opPutReader() {
	n := w.name()
	k, v := w.key(), w.value()
	w.state.Put(n, string(k), string(v), 0)
	w.changed(n, string(k))
	w.must(w.ks[n].PutReader(k, io.LimitReader(bytes.NewReader(v), int64(len(v)))), "put reader")
}

func (w *world) opOverwriteSame() {
	n := w.name()
	k := w.key()
	for i := range 20 + w.rng.IntN(200) {
		v := fmt.Sprintf("version %d of it", i)
		w.state.Put(n, string(k), v, 0)
		w.must(w.ks[n].Put(k, []byte(v)), "put")
	}
	w.changed(n, string(k))
}

func (w *world) opDelete() {
	n, k := w.name(), w.key()
	w.state.Delete(n, string(k))
	w.changed(n, string(k))
	w.must(w.ks[n].Delete(k), "delete")
}

func (w *world) opDeleteRange() {
	n, b := w.name(), w.narrow()
	w.deleteRange(n, b)
}

func (w *world) deleteRange(n string, b Bounds) {
	err := w.ks[n].DeleteRange(b.Lo, b.Hi)
	if w.refused(n, b, err) {
		return
	}
	w.must(err, "delete range")
	w.state.DeleteRange(n, b)
	w.changedRange(n, b)
}

func (w *world) opDeleteRangeThenPut() {
	w.opDeleteRange()
	n, b := w.name(), w.narrow()
	w.deleteRange(n, b)
	if b.Lo != nil {
		w.state.Put(n, string(b.Lo), "again", 0)
		w.must(w.ks[n].Put(b.Lo, []byte("again")), "put")
		w.changed(n, string(b.Lo))
	}
}

func (w *world) opDeleteAll() {
	n := w.name()
	w.state.DeleteRange(n, Bounds{})
	w.changedRange(n, Bounds{})
	w.must(w.ks[n].DeleteRange(nil, nil), "delete range")
}

func (w *world) opModify() {
	n, k := w.name(), w.key()
	old, there := w.state.Get(n, string(k))
	v := w.value()
	del := w.rng.IntN(4) == 0
	err := w.ks[n].Modify(k, func(got []byte, found bool) ([]byte, error) {
		if found != there || there && string(got) != old {
			w.fail("modify %q: %q %v, want %q %v", short(string(k)), short(string(got)), found, short(old), there)
		}
		if del {
			return nil, nil
		}
		return append([]byte{}, v...), nil
	})
	w.must(err, "modify")
	w.changed(n, string(k))
	if del {
		w.state.Delete(n, string(k))
		return
	}
	w.state.Put(n, string(k), string(v), 0)
}

func (w *world) opCompareAndSet() {
	n, k := w.name(), w.key()
	old, there := w.state.Get(n, string(k))
	want := []byte(old)
	if !there {
		want = nil
	} else if want == nil {
		want = []byte{}
	}
	match := w.rng.IntN(2) == 0
	if !match {
		want = []byte("never this value")
	}
	done, err := w.ks[n].CompareAndSet(k, want, []byte("set"))
	if err != nil || done != match {
		w.fail("compare and set %q: %v, %v, want %v", short(string(k)), done, err, match)
	}
	if done {
		w.state.Put(n, string(k), "set", 0)
		w.changed(n, string(k))
	}
}
