package commit

import (
	"sync"
	"testing"
)

func TestRequestsAreCarriedOutOnceAndInOrder(t *testing.T) {
	const writers, each = 8, 2000
	seen := make([]int, writers)
	running := 0
	p := New(func(group []*Request) {
		running++
		if running != 1 {
			t.Error("two leaders at once")
		}
		for _, r := range group {
			w, n := int(r.Commands[0]), r.Count
			if seen[w] != n {
				t.Errorf("writer %d: request %d carried out when %d was due", w, n, seen[w])
			}
			seen[w]++
			r.Seq = uint64(n) + 1
		}
		running--
	})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			r := &Request{Commands: []byte{byte(w)}}
			for n := range each {
				r.Count = n
				if err := p.Do(r); err != nil || r.Seq != uint64(n)+1 {
					t.Errorf("writer %d: request %d: seq %d, error %v", w, n, r.Seq, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for w, n := range seen {
		if n != each {
			t.Errorf("writer %d: %d of %d requests carried out", w, n, each)
		}
	}
}

func TestAcquireKeepsOthersOut(t *testing.T) {
	var mu sync.Mutex
	var log []string
	p := New(func(group []*Request) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range group {
			log = append(log, string(r.Commands))
		}
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				r := &Request{}
				p.Acquire(r)
				r.Commands = []byte("begin")
				p.Carry(r)
				r.Commands = []byte("end")
				p.Carry(r)
				p.Release()
			}
		})
		wg.Go(func() {
			for range 500 {
				p.Do(&Request{Commands: []byte("single")})
			}
		})
	}
	wg.Wait()
	if len(log) != 4*500*3 {
		t.Fatalf("%d requests carried out, want %d", len(log), 4*500*3)
	}
	for i, s := range log {
		if s == "begin" && log[i+1] != "end" {
			t.Fatalf("%q came between begin and end", log[i+1])
		}
	}
}

func TestTryAcquire(t *testing.T) {
	p := New(func([]*Request) {})
	if !p.TryAcquire() {
		t.Fatal("nobody leads, yet there was no lead to be had")
	}
	if p.TryAcquire() {
		t.Fatal("two leaders")
	}
	done := make(chan error)
	go func() { done <- p.Do(&Request{}) }()
	select {
	case <-done:
		t.Fatal("a request was carried out behind the leader's back")
	default:
	}
	p.Release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func BenchmarkUncontended(b *testing.B) {
	p := New(func([]*Request) {})
	r := &Request{}
	for b.Loop() {
		p.Do(r)
	}
}

func BenchmarkContended(b *testing.B) {
	p := New(func([]*Request) {})
	b.RunParallel(func(pb *testing.PB) {
		r := &Request{}
		for pb.Next() {
			p.Do(r)
		}
	})
}
