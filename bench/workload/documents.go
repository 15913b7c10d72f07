package workload

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

const (
	documentsBatch  = 16_000 // documents that go into one commit
	collectionUsers = 1000   // users in each of many collections
	userBytes       = 250    // about, of a user as BSON
)

// documents is what a program does that stores documents: users with an index of their unique email and one of their city, and
// a table of flights. Engines are package document of Pando, and SQLite with native columns and with JSON.
func documents() []Workload {
	tenth := func(s Sizes) int { return s.Documents / 10 }
	all := func(s Sizes) int { return s.Documents }
	users := func(size func(Sizes) int) func(Sizes) string {
		return func(s Sizes) string { return thousands(size(s)) + " users" }
	}
	collections := func(s Sizes) string { return thousands(s.Collections) + " collections" }
	w := func(name, about string, class engine.Class, scale func(Sizes) string, stages ...func(*Run) error) Workload {
		return Workload{Name: name, About: about, Class: class, Documents: true, Stages: stages, scale: scale}
	}
	return []Workload{
		w("documents", "a tenth of the users, two indexes, batches of 16,000: insert, read, size", engine.Relaxed, users(tenth), usersLoad(tenth), usersRead(tenth), usersCompact(tenth)),
		w("documents-large", "all users, the same", engine.Relaxed, users(all), usersLoad(all), usersRead(all), usersCompact(all)),
		w("documents-durable", "a tenth of the users, every commit synced", engine.Durable, users(tenth), usersLoad(tenth)),
		w("documents-flights", "flights with an index of tailnum: filter without an index, size", engine.Relaxed, flightsScale, flightsLoad, flightsFilter),
		w("documents-many", "many collections of 1,000 users: open, and read from each", engine.Relaxed, collections, manyLoad, manyOpen),
	}
}

// openDocuments opens the engine for about n users.
func (r *Run) openDocuments(n int) (err error) {
	r.docs, err = r.Driver.OpenDocuments(engine.Options{
		Dir: r.Spec.Dir, Class: r.Class, MemoryBytes: int64(r.Sizes.MemoryMB) << 20, Writers: 1, DataBytes: int64(n) * userBytes,
	})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

// closeDocuments closes it, and notes what it takes on the disk.
func (r *Run) closeDocuments(name string) error {
	d := r.docs
	r.docs = nil
	if err := d.Close(); err != nil {
		return err
	}
	r.amount(name, mega(measure.DiskBytes(r.Spec.Dir)), "MB")
	return nil
}

// insertUsers stores users [from, to) in batches. What it takes to make them up is not counted: it is the same for all engines, and
// would bring their costs together.
func (r *Run) insertUsers(name string, from, to int) error {
	runtime.GC()
	before := measure.Now()
	for at := from; at < to; at += documentsBatch {
		pause := measure.Now()
		users := Users(at, min(at+documentsBatch, to))
		before = before.Skip(pause, measure.Now())
		if err := r.docs.Insert(0, users); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	r.add(cellBetween(name, to-from, before, measure.Now()))
	return nil
}

func usersLoad(size func(Sizes) int) func(*Run) error {
	return func(r *Run) error {
		n := size(r.Sizes)
		if err := r.openDocuments(n); err != nil {
			return err
		}
		return steps(
			func() error { return r.docs.Create(0) },
			func() error { return r.insertUsers("insert", 0, n) },
			func() error { return r.settleAfter("insert") },
			func() error { return r.someUsers(n) },
		)
	}
}

func usersRead(size func(Sizes) int) func(*Run) error {
	return func(r *Run) error {
		n := size(r.Sizes)
		if err := r.openDocuments(n); err != nil {
			return err
		}
		reads := max(n/5, 1000)
		inCity := map[string]int{}
		for i := range n {
			inCity[userCity(i)]++
		}
		byCity := func(i int) error { return r.byCity(i, min(10, inCity[userCity(i)])) }
		return steps(
			func() error { return r.readUsers("read by primary key", n, reads, 1, r.byID) },
			func() error { return r.readUsers("read by unique index", n, reads, 1, r.byEmail) },
			func() error { return r.readUsers("read 10 by non-unique index", n, reads/10, 1, byCity) },
			func() error { return r.readUsers("read by primary key, 2 readers", n, reads, 2, r.byID) },
			func() error { return r.readBesideWriter(n, reads) },
		)
	}
}

func (r *Run) readUsers(name string, n, reads, goroutines int, fn func(i int) error) error {
	return r.loop(name, reads, goroutines, sampled, func(w *worker, _ int) error { return fn(w.rng.IntN(n)) })
}

func (r *Run) byID(i int) error {
	email, err := r.docs.ByID(0, int64(i))
	if err == nil && email != userEmail(i) {
		return fmt.Errorf("user %d has the email %q", i, email)
	}
	return err
}

func (r *Run) byEmail(i int) error {
	id, err := r.docs.ByEmail(0, userEmail(i))
	if err == nil && id != int64(i) {
		return fmt.Errorf("%s is user %d", userEmail(i), id)
	}
	return err
}

// byCity asks for ten users of the city in which one lives, and expects so many.
func (r *Run) byCity(i, want int) error {
	n, err := r.docs.ByCity(0, userCity(i), 10)
	if err == nil && n != want {
		return fmt.Errorf("%d users in %s, want %d", n, userCity(i), want)
	}
	return err
}

// someUsers reads, unmeasured, some of n users.
func (r *Run) someUsers(n int) error {
	for _, i := range spread(n) {
		if err := errors.Join(r.byID(int(i)), r.byEmail(int(i))); err != nil {
			return err
		}
	}
	return nil
}

// readBesideWriter reads while another goroutine inserts as fast as it can. The time of one read is what counts.
func (r *Run) readBesideWriter(n, reads int) error {
	var stop atomic.Bool
	var wg sync.WaitGroup
	var werr error
	wg.Go(func() {
		for at := n; !stop.Load() && werr == nil; at += 1000 {
			werr = r.docs.Insert(0, Users(at, at+1000))
		}
	})
	err := r.readUsers("read by primary key beside a writer", n, reads, 1, r.byID)
	stop.Store(true)
	wg.Wait()
	if err != nil || werr != nil {
		return fmt.Errorf("reader: %w; writer: %w", err, werr)
	}
	c := &r.Cells[len(r.Cells)-1]
	c.Info = true // processor time is of both; wall time and percentiles of the reader
	r.amount("read by primary key beside a writer: half within", float64(c.P50), "ns")
	r.amount("read by primary key beside a writer: 99 of 100 within", float64(c.P99), "ns")
	return nil
}

// usersCompact loads what was read beside a writer no more: the size is that of n users exactly.
func usersCompact(size func(Sizes) int) func(*Run) error {
	return func(r *Run) error {
		n := size(r.Sizes)
		r.Spec.Dir += "-fresh"
		if err := makeFresh(r.Spec.Dir); err != nil {
			return err
		}
		defer removeAll(r.Spec.Dir)
		if err := r.openDocuments(n); err != nil {
			return err
		}
		return steps(
			func() error { return r.docs.Create(0) },
			func() error { return r.insertUsers("insert again", 0, n) },
			r.info,
			func() error { return r.section("compaction", n, r.docs.Compact) },
			r.info,
			func() error { return r.someUsers(n) },
			func() error { return r.closeDocuments("disk compacted") },
		)
	}
}

func flightsLoad(r *Run) error {
	t, kind, err := flightTable(r.Sizes)
	if err != nil {
		return err
	}
	n := len(t.Rows)
	if err := r.openDocuments(n); err != nil {
		return err
	}
	return steps(
		func() error { return r.section(kind+": insert", n, func() error { return r.docs.LoadFlights(t) }) },
		func() error { return r.settleAfter(kind + ": insert") },
		func() error { return r.section(kind+": compaction", n, r.docs.Compact) },
		r.info,
		func() error { return r.closeDocuments(kind + ": disk compacted") },
	)
}

func flightsFilter(r *Run) error {
	t, kind, err := flightTable(r.Sizes)
	if err != nil {
		return err
	}
	want, n := late(t, "JFK", 60), len(t.Rows)
	if err := r.openDocuments(n); err != nil {
		return err
	}
	const passes = 5
	return r.section(kind+": filter without an index", n*passes, func() error {
		for range passes {
			got, err := r.docs.LateFlights("JFK", 60)
			if err == nil && got != want {
				err = fmt.Errorf("%d late flights, not %d", got, want)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func manyLoad(r *Run) error {
	n := r.Sizes.Collections
	if err := r.openDocuments(n * collectionUsers); err != nil {
		return err
	}
	const name = "create and fill many collections"
	users := Users(0, collectionUsers) // which is not counted, as elsewhere
	err := r.section(name, n*collectionUsers, func() error {
		for i := range n {
			if err := r.docs.Create(i); err != nil {
				return err
			}
			if err := r.docs.Insert(i, users); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.settleAfter(name)
}

func manyOpen(r *Run) error {
	n := r.Sizes.Collections
	return steps(
		func() error {
			return r.section("open with many collections, first read", 1, func() error {
				if err := r.openDocuments(n * collectionUsers); err != nil {
					return err
				}
				return r.byID(1)
			})
		},
		func() error {
			return r.section("one read from each of many collections", n, func() error {
				for i := range n {
					if email, err := r.docs.ByID(i, 500); err != nil || email != userEmail(500) {
						return fmt.Errorf("collection %d: %q, %w", i, email, err)
					}
				}
				return nil
			})
		},
		func() error {
			_, anonymous := measure.Memory()
			r.amount("anonymous memory after reading from many collections", mega(anonymous), "MB")
			return nil
		},
	)
}
