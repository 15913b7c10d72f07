package workload

import (
	"testing"
)

func TestValuesAreCheckedToTheLastByte(t *testing.T) {
	for _, n := range []int{8, 9, 21, 64, 100, 512, 100_000} {
		d := &Data{KeyBytes: 16, ValueBytes: n}
		v := d.Value(nil, 7, 3)
		if err := d.Check(v, 7); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if Version(v) != 3 {
			t.Fatalf("%d bytes: version %d", n, Version(v))
		}
		if n > 8 && d.Check(v, 8) == nil {
			t.Errorf("%d bytes: the value of another record passes", n)
		}
		for at := 8; at < n && n <= longValue; at++ {
			v[at] ^= 1
			if d.Check(v, 7) == nil {
				t.Fatalf("%d bytes: damage at %d passes", n, at)
			}
			v[at] ^= 1
		}
	}
}

// A walk that goes by lines sees damage in each of them.
func TestValuesAreCheckedInEachLine(t *testing.T) {
	for _, n := range []int{8, 100, 1000, 4000, 4096, 4097, 16_000} {
		d := &Data{KeyBytes: 16, ValueBytes: n}
		v := d.Value(nil, 7, 3)
		if err := d.CheckLines(v, 7); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if n > 8 && d.CheckLines(v, 8) == nil {
			t.Errorf("%d bytes: the value of another record passes", n)
		}
		if d.CheckLines(v[:n-1], 7) == nil {
			t.Errorf("%d bytes: a byte less passes", n)
		}
		for at := 8; at+128 <= n; at += 64 {
			for k := range 64 {
				v[at+k] ^= 1
			}
			if d.CheckLines(v, 7) == nil {
				t.Errorf("%d bytes: damage to the 64 from %d on passes", n, at)
			}
			for k := range 64 {
				v[at+k] ^= 1
			}
		}
	}
}

func TestDocuments(t *testing.T) {
	d := &Data{KeyBytes: 16, ValueBytes: 200, JSON: true}
	v := d.Value(nil, 7, 3)
	if err := d.Check(v, 7); err != nil {
		t.Fatal(err)
	}
	if d.Check(v, 8) == nil {
		t.Error("the document of another record passes")
	}
	if len(v) < 180 || len(v) > 240 {
		t.Errorf("document of %d bytes: %s", len(v), v)
	}
}

func TestKeys(t *testing.T) {
	for _, d := range []*Data{{KeyBytes: 16}, {KeyBytes: 21}, {KeyBytes: 16, Ordered: true}} {
		seen := map[string]bool{}
		for i := range uint64(1000) {
			k := d.Key(nil, i)
			if len(k) != d.KeyBytes || d.Index(k) != i {
				t.Fatalf("key %x of record %d: index %d", k, i, d.Index(k))
			}
			m := d.Missing(nil, i)
			if seen[string(k)] || seen[string(m)] || string(k) == string(m) {
				t.Fatalf("key of record %d is not its own", i)
			}
			seen[string(k)], seen[string(m)] = true, true
		}
	}
}

func TestZipf(t *testing.T) {
	const n, draws = 10_000, 200_000
	z := newZipf(n)
	r := newRand(1)
	top := 0
	for range draws {
		rank := z.rank(r)
		if rank >= n {
			t.Fatalf("rank %d of %d", rank, n)
		}
		if rank < n/100 {
			top++
		}
	}
	// The sum of i^-0.99 up to 100 over that up to 10,000 is 0.51.
	if share := float64(top) / draws; share < 0.48 || share > 0.55 {
		t.Errorf("the most popular hundredth draws %.2f", share)
	}
}

func TestCoprimeVisitsAll(t *testing.T) {
	for _, n := range []int{1, 2, 10, 1000, 4096, 99_991} {
		step, seen := coprime(n), make([]bool, n)
		for i := range n {
			seen[i*step%n] = true
		}
		for i, ok := range seen {
			if !ok {
				t.Fatalf("n = %d: %d is never visited", n, i)
			}
		}
	}
}
