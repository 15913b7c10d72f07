package workload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pandodb/pando/bench/engine"
)

// The steps that several families share. Each is one cell.

// batchRecords is the size of a batch where a workload names none.
const batchRecords = 1000

// load writes records [from, to) in batches, version v.
func (r *Run) load(name string, d *Data, from, to, batch int, v uint64) error {
	w := &worker{}
	err := r.section(name, to-from, func() error {
		for at := from; at < to; at += batch {
			if err := r.store.Write(w.batch(d, at, min(at+batch, to), v)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		r.Cells[len(r.Cells)-1].Data = d.Bytes(to - from)
	}
	return err
}

// batch makes the records [from, to).
func (w *worker) batch(d *Data, from, to int, v uint64) []engine.Op {
	return w.batchOf(d, to-from, v, func(k int) uint64 { return uint64(from + k) })
}

func (w *worker) batchOf(d *Data, n int, v uint64, record func(k int) uint64) []engine.Op {
	for len(w.ops) < n {
		w.ops = append(w.ops, engine.Op{})
	}
	for k := range n {
		op := &w.ops[k]
		i := record(k)
		op.Key, op.Value, op.Delete = d.Key(op.Key, i), d.Value(op.Value, i, v), false
	}
	return w.ops[:n]
}

// get reads one record and checks it.
func (w *worker) get(from engine.Reader, d *Data, i uint64) error {
	if err := w.read(from, d, i); err != nil {
		return err
	}
	return d.Check(w.got, i)
}

// read makes w.key and w.got the key and the value of a record, which has to be there.
func (w *worker) read(from engine.Reader, d *Data, i uint64) error {
	w.key = d.Key(w.key, i)
	v, found, err := from.Get(w.got[:0], w.key)
	if err != nil {
		return err
	}
	w.got = v
	if !found {
		return fmt.Errorf("record %d: not found", i)
	}
	return nil
}

// gets reads records at random.
func (r *Run) gets(name string, from engine.Reader, d *Data, n, ops, goroutines int) error {
	return r.loop(name, ops, goroutines, sampled, func(w *worker, _ int) error {
		return w.get(from, d, w.rng.Uint64N(uint64(n)))
	})
}

// absent asks for keys that are not there.
func (r *Run) absent(name string, d *Data, n, ops int) error {
	return r.loop(name, ops, 1, sampled, func(w *worker, _ int) error {
		w.key = d.Missing(w.key, w.rng.Uint64N(uint64(n)))
		v, found, err := r.store.Get(w.got[:0], w.key)
		if err != nil || !found {
			return err
		}
		return fmt.Errorf("found %d bytes under a key that was never written", len(v))
	})
}

// walk checks the records of a scan.
type walk struct {
	d       *Data
	last    uint64 // head of the last key
	reverse bool
	values  bool // the value of each record is looked at
	n       int
	key     []byte // as it has to be
	err     error
}

const (
	// checkedOneIn is how often a scan checks a whole key and a whole value, beginning with the first.
	checkedOneIn = 64
	// lookedAt is the length from which on a walk looks into each value. Shorter ones lie beside their keys, or as good as: an engine
	// that shows the key has been there. Longer ones can be shown without a look at any byte of them, which is no walk over values.
	lookedAt = 1000
)

// walkOf is a walk over records of d.
func walkOf(d *Data) *walk { return &walk{d: d, values: d.ValueBytes >= lookedAt} }

func (w *walk) visit(key, value []byte) bool {
	head := binary.BigEndian.Uint64(key)
	if w.n > 0 && ((head < w.last) != w.reverse || head == w.last) {
		w.err = fmt.Errorf("scan: key %x after %016x", key, w.last)
		return false
	}
	w.last = head
	switch {
	case w.n%checkedOneIn == 0:
		w.err = w.whole(key, value)
	case w.values:
		w.err = w.d.CheckLines(value, w.d.Index(key))
	}
	w.n++
	return w.err == nil
}

// whole checks a whole record.
func (w *walk) whole(key, value []byte) error {
	i := w.d.Index(key)
	if w.key = w.d.Key(w.key, i); !bytes.Equal(key, w.key) {
		return fmt.Errorf("scan: key %x, which no record has", key)
	}
	return w.d.Check(value, i)
}

// seek reads up to `length` records from one on that is there.
func (w *worker) seek(from engine.Reader, d *Data, i uint64, length int) (n int, err error) {
	w.key = d.Key(w.key, i)
	c := walkOf(d)
	begins := true
	err = from.Scan(engine.Scan{From: w.key, Limit: length}, func(key, value []byte) bool {
		begins = begins && (c.n > 0 || bytes.Equal(key, w.key))
		return c.visit(key, value)
	})
	switch {
	case err != nil:
		return c.n, err
	case c.err != nil:
		return c.n, c.err
	case c.n == 0 || c.n > length || !begins:
		return c.n, fmt.Errorf("seek: %d records, want up to %d from record %d on", c.n, length, i)
	}
	return c.n, nil
}

// scan walks over everything and expects n records, the first n of the data. An engine without order has no such cell; it reads them one
// by one instead.
func (r *Run) scan(name string, from engine.Reader, d *Data, n int, reverse bool) error {
	if r.Driver.NoOrder {
		return r.readAll(name, from, d, n)
	}
	return r.walkOver(name, from, d, reverse, n)
}

// scanSome is a scan that goes by keys, and looks at the value of one record in checkedOneIn only. It is made as often as shows as many
// records as there are short ones elsewhere: going by a thousand keys once takes less time than what a process does beside it. An engine
// without order has no such cell.
func (r *Run) scanSome(name string, d *Data, n int) error {
	if r.Driver.NoOrder {
		r.pass()
		return nil
	}
	times := max(r.Sizes.Records/n, 1)
	return r.section(name, n*times, func() error {
		for range times {
			w := walk{d: d}
			if err := w.over(r.store, engine.Scan{ValueOneIn: checkedOneIn}, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanRest is a scan of what is left of n records after the first `gone` ones of the scattered order of deletes are gone.
func (r *Run) scanRest(name string, d *Data, n, gone int) error {
	if r.Driver.NoOrder {
		return r.deleted(d, n, gone, 1)
	}
	return r.walkOver(name, r.store, d, false, n-gone)
}

// readAll gets every record once, unmeasured, in place of a walk that checks what is there: nothing that the walk notices may go
// unnoticed, and what memory an engine takes in the end is after as many records read. Limits of time hold for it as for other reads.
func (r *Run) readAll(name string, from engine.Reader, d *Data, n int) error {
	w, start := &worker{}, time.Now()
	for i := range n {
		if i%batchRecords == 0 && r.past(start, r.readLimit) {
			break
		}
		if err := w.get(from, d, uint64(i)); err != nil {
			return fmt.Errorf("in place of %q: %w", name, err)
		}
	}
	return nil
}

func (r *Run) walkOver(name string, from engine.Reader, d *Data, reverse bool, n int) error {
	return r.section(name, n, func() error { return walkOf(d).over(from, engine.Scan{Reverse: reverse}, n) })
}

// over walks, and expects n records.
func (w *walk) over(from engine.Reader, s engine.Scan, n int) error {
	w.reverse = s.Reverse
	if err := from.Scan(s, w.visit); err != nil {
		return err
	}
	if w.err != nil {
		return w.err
	}
	if w.n != n {
		return fmt.Errorf("scan: %d records, want %d", w.n, n)
	}
	return nil
}

// shortScans is how many of the scans may end early at most: of the places to begin at, length/n are so near to the end that fewer
// records follow.
func shortScans(ops, length, n int) int { return 10 + 4*ops*length/n }

// seeks seeks to records at random and reads `length` from there. An engine without order has no such cell.
func (r *Run) seeks(name string, d *Data, n, ops, length int) error {
	if r.Driver.NoOrder {
		r.pass()
		return nil
	}
	short := 0
	err := r.loop(name, ops, 1, 1, func(w *worker, _ int) error {
		got, err := w.seek(r.store, d, w.rng.Uint64N(uint64(n)), length)
		if got < length {
			short++
		}
		return err
	})
	if err == nil && short > shortScans(ops, length, n) {
		return fmt.Errorf("%s: %d of %d scans ended early", name, short, ops)
	}
	return err
}

// updates overwrites records at random in batches.
func (r *Run) updates(name string, d *Data, n, ops, batch int, v uint64) error {
	var some []uint64
	err := r.loop(name, ops/batch, 1, 1, func(w *worker, _ int) error {
		return r.store.Write(w.batchOf(d, batch, v, func(int) uint64 {
			i := w.rng.Uint64N(uint64(n))
			if len(some) < probes {
				some = append(some, i)
			}
			return i
		}))
	})
	if err != nil {
		return err
	}
	r.perRecord(d, batch)
	return r.written(name, d, v, some)
}

// probes is how many records are looked at, unmeasured, after writes that nothing else would notice the loss of.
const probes = 32

// spread are some of the numbers below n, the first and the last among them.
func spread(n int) (some []uint64) {
	for k := range min(n, probes) {
		some = append(some, uint64(k*(n-1)/max(min(n, probes)-1, 1)))
	}
	return some
}

// written checks that records have the version that was written last.
func (r *Run) written(name string, d *Data, v uint64, records []uint64) error {
	w := &worker{}
	for _, i := range records {
		err := w.get(r.store, d, i)
		if err == nil && len(w.got) >= 8 && Version(w.got) != v && !d.JSON {
			err = fmt.Errorf("record %d: version %d, want %d", i, Version(w.got), v)
		}
		if errors.Is(err, engine.ErrUnsupported) {
			return nil // the floor of a synced write keeps nothing
		}
		if err != nil {
			return fmt.Errorf("after %q: %w", name, err)
		}
	}
	return nil
}

// gone checks that records are not there any more.
func (r *Run) gone(name string, d *Data, records []uint64) error {
	w := &worker{}
	for _, i := range records {
		w.key = d.Key(w.key, i)
		v, found, err := r.store.Get(w.got[:0], w.key)
		if err == nil && found {
			err = fmt.Errorf("%d bytes are still there", len(v))
		}
		if err != nil {
			return fmt.Errorf("after %q: record %d: %w", name, i, err)
		}
	}
	return nil
}

// perRecord turns the last cell, whose operations were batches, into one whose operations are records.
func (r *Run) perRecord(d *Data, batch int) {
	c := &r.Cells[len(r.Cells)-1]
	c.Ops *= int64(batch)
	c.Data = d.Bytes(int(c.Ops))
}

// deletes removes records [0, ops) in a scattered order, in batches; batch 1 is a single delete.
func (r *Run) deletes(name string, d *Data, n, ops, batch int) error {
	stride := coprime(n)
	err := r.loop(name, ops/batch, 1, 1, func(w *worker, at int) error {
		if batch == 1 {
			w.key = d.Key(w.key, uint64(at*stride%n))
			return r.store.Delete(w.key)
		}
		for len(w.ops) < batch {
			w.ops = append(w.ops, engine.Op{})
		}
		for k := range batch {
			w.ops[k] = engine.Op{Key: d.Key(w.ops[k].Key, uint64((at*batch+k)*stride%n)), Delete: true}
		}
		return r.store.Write(w.ops[:batch])
	})
	if err != nil {
		return err
	}
	r.perRecord(d, batch)
	some := spread(ops / batch * batch)
	for k := range some {
		some[k] = some[k] * uint64(stride) % uint64(n)
	}
	return r.gone(name, d, some)
}

// deleted checks, unmeasured, that of n records exactly the first `gone` ones of the scattered order of deletes are gone. It looks at one
// in so many.
func (r *Run) deleted(d *Data, n, gone, oneIn int) error {
	stride := coprime(n)
	w := &worker{}
	for at := 0; at < n; at += oneIn {
		w.key = d.Key(w.key, uint64(at*stride%n))
		found, err := r.store.Has(w.key)
		if err != nil {
			return err
		}
		if found != (at >= gone) {
			return fmt.Errorf("after deletes: record %d found = %v", at*stride%n, found)
		}
		if !found {
			continue
		}
		if err := w.get(r.store, d, uint64(at*stride%n)); err != nil {
			return fmt.Errorf("after deletes: %w", err)
		}
	}
	return nil
}

// coprime returns a step that visits every number below n once.
func coprime(n int) int {
	step := n*5/8 | 1
	for gcd(step, n) != 1 {
		step += 2
	}
	return step
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// puts writes records one call each.
func (r *Run) puts(name string, d *Data, from, ops, goroutines, each int, v uint64) error {
	err := r.loop(name, ops, goroutines, each, func(w *worker, i int) error {
		w.key = d.Key(w.key, uint64(from+i))
		w.value = d.Value(w.value, uint64(from+i), v)
		return r.store.Put(w.key, w.value)
	})
	if err != nil {
		return err
	}
	r.Cells[len(r.Cells)-1].Data = d.Bytes(ops)
	some := spread(ops)
	for k := range some {
		some[k] += uint64(from)
	}
	return r.written(name, d, v, some)
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// settleAfter waits for background work and records the earlier cell of that name with it added. Cells between the two
// (reads of the state as loaded) are not part of it.
func (r *Run) settleAfter(name string) error {
	for k := len(r.Cells) - 1; k >= 0; k-- {
		if r.Cells[k].Name == name {
			return r.settle(r.Cells[k])
		}
	}
	return fmt.Errorf("settle: there is no cell %q", name)
}
