package epoch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRetiredRunsOnceReadersLeft(t *testing.T) {
	d := New()
	early := d.Enter()
	ran := 0
	d.Retire(func() { ran++ })
	for range 5 {
		if d.Collect() != 0 || ran != 0 {
			t.Fatal("ran while a reader was inside")
		}
	}
	late := d.Enter() // must not hold back what was retired before
	early.Exit()
	for range 3 {
		d.Collect()
	}
	if ran != 1 {
		t.Fatalf("ran %d times", ran)
	}
	late.Exit()
	if d.Collect() != 0 || d.Pending() != 0 {
		t.Fatal("ran twice")
	}
}

func TestCollectWithoutReadersRunsAll(t *testing.T) {
	d := New()
	var order []int
	for i := range 10 {
		d.Retire(func() { order = append(order, i) })
	}
	if n := d.Collect(); n != 10 {
		t.Fatalf("Collect ran %d", n)
	}
	for i, v := range order {
		if i != v {
			t.Fatalf("order %v", order)
		}
	}
}

func TestSectionsNestAcrossPhases(t *testing.T) {
	d := New()
	ran := 0
	outer := d.Enter()
	d.Retire(func() { ran++ })
	d.Collect()
	inner := d.Enter()
	d.Retire(func() { ran++ })
	d.Collect()
	inner.Exit()
	d.Collect()
	if ran != 0 {
		t.Fatal("ran inside of the outer section")
	}
	outer.Exit()
	d.Collect()
	d.Collect()
	if ran != 2 {
		t.Fatalf("ran %d", ran)
	}
}

func TestCloseRunsWhatRetiredFunctionsRetire(t *testing.T) {
	d := New()
	ran := 0
	d.Retire(func() {
		ran++
		d.Collect() // allowed, does nothing
		d.Retire(func() { ran++ })
	})
	g := d.Enter()
	go g.Exit()
	d.Close()
	if ran != 2 {
		t.Fatalf("ran %d", ran)
	}
}

// Readers follow a pointer to a slot that a writer swaps and, after the grace period, marks as dead. No reader may ever
// see a dead slot. Under the race detector the plain writes to the slots also prove the ordering.
func TestNoReaderSeesReusedMemory(t *testing.T) {
	type slot struct{ alive bool }
	d := New()
	var current atomic.Pointer[slot]
	current.Store(&slot{alive: true})
	var stop atomic.Bool
	var reads atomic.Int64
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				g := d.Enter()
				s := current.Load()
				if reads.Add(1)%64 == 0 {
					runtime.Gosched()
				}
				if !s.alive {
					t.Error("a reader saw reused memory")
				}
				g.Exit()
			}
		})
	}
	freed := 0
	for i := range 20000 {
		old := current.Swap(&slot{alive: true})
		d.Retire(func() { old.alive = false; freed++ })
		if i%3 == 0 {
			d.Collect()
		}
		if i%512 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	readers.Wait()
	d.Close()
	if freed != 20000 {
		t.Fatalf("freed %d", freed)
	}
}

func TestEnterDoesNotAllocate(t *testing.T) {
	d := New()
	if n := testing.AllocsPerRun(100, func() { d.Enter().Exit() }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkEnterExit(b *testing.B) {
	d := New()
	for b.Loop() {
		d.Enter().Exit()
	}
}

func BenchmarkEnterExitParallel(b *testing.B) {
	d := New()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			d.Enter().Exit()
		}
	})
}

func TestDrainWaitsForReadersInsideAndForNoneLater(t *testing.T) {
	d := New()
	early := d.Enter()
	ran := make(chan bool, 1)
	d.Retire(func() { ran <- true })
	drained := make(chan bool)
	go func() {
		d.Drain()
		drained <- true
	}()
	for range 100 {
		runtime.Gosched()
		select {
		case <-drained:
			t.Fatal("drained while a reader was inside")
		default:
		}
	}
	for d.phase.Load() == 1 { // Drain has flipped it: a reader that comes now is not waited for
		runtime.Gosched()
	}
	late := d.Enter()
	early.Exit()
	<-drained
	if len(ran) != 1 {
		t.Fatal("drained before what was retired ran")
	}
	late.Exit()
	d.Drain() // with nothing to wait for
}
