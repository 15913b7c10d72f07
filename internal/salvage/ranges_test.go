package salvage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

// keysIn lists the one-byte keys of a stretch; nil is open.
func keysIn(lo, hi []byte) []byte {
	var out []byte
	for i := range 256 {
		k := []byte{byte(i)}
		if bytes.Compare(k, lo) >= 0 && (hi == nil || bytes.Compare(k, hi) < 0) {
			out = append(out, byte(i))
		}
	}
	return out
}

func TestLostKeysAgainstAModel(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var k lostKeys
		lost := map[byte]bool{}
		cuts := map[byte]bool{}
		for range rng.IntN(12) {
			cuts[byte(rng.IntN(256))] = true
		}
		bounds := [][]byte{nil}
		for i := range 256 {
			if cuts[byte(i)] {
				bounds = append(bounds, []byte{byte(i)})
			}
		}
		bounds = append(bounds, nil)
		for i := range len(bounds) - 1 {
			if rng.IntN(2) == 0 {
				continue
			}
			if !k.add(bounds[i], bounds[i+1]) {
				t.Fatal("no room")
			}
			for _, key := range keysIn(bounds[i], bounds[i+1]) {
				lost[key] = true
			}
		}
		for i := range 256 {
			if k.has([]byte{byte(i)}) != lost[byte(i)] {
				t.Fatalf("seed %d: key %d: %v, want %v", seed, i, !lost[byte(i)], lost[byte(i)])
			}
		}
		for range 20 {
			lo, hi := []byte{byte(rng.IntN(256))}, []byte{byte(rng.IntN(256))}
			if rng.IntN(4) == 0 {
				lo = nil
			}
			if rng.IntN(4) == 0 {
				hi = nil
			}
			var got, want []byte
			err := k.within(lo, hi, func(lo, hi []byte) error {
				got = append(got, keysIn(lo, hi)...)
				return nil
			})
			for _, key := range keysIn(lo, hi) {
				if lost[key] {
					want = append(want, key)
				}
			}
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("seed %d: within [%x, %x): %v, want %v", seed, lo, hi, got, want)
			}
		}
	}
}

func TestLostKeysAreBounded(t *testing.T) {
	var k lostKeys
	n := 0
	for k.add(fmt.Appendf(nil, "%010d", 2*n), fmt.Appendf(nil, "%010d", 2*n+1)) {
		n++
	}
	if n < 100_000 || n > mostLostBytes/64 {
		t.Errorf("%d stretches", n)
	}
	if !k.has(fmt.Appendf(nil, "%010d", 2*(n/2))) || k.has(fmt.Appendf(nil, "%010d", n/2*2+1)) {
		t.Error("keys that are lost and that are not")
	}
	all := &lostKeys{all: true}
	var none *lostKeys
	if !all.has(nil) || none.has(nil) || !none.empty() || all.empty() {
		t.Error("all and none")
	}
}

func TestReportIsBoundedAndReadable(t *testing.T) {
	r := &Report{Keyspaces: 2, Records: 10, Older: 3}
	if r.Err() != nil || !strings.Contains(r.String(), "nothing was lost") {
		t.Error(r.String())
	}
	for range MaxLosses + 5 {
		r.lose(Loss{Keyspace: "users", Keys: true, Lo: []byte("anna"), Hi: successor([]byte("anna"))}, fmt.Errorf("gone"))
	}
	if len(r.Lost) != MaxLosses || !r.Truncated || r.Err() == nil {
		t.Errorf("%d losses", len(r.Lost))
	}
	for _, want := range []string{`keyspace "users": keys "anna": gone`, "10 records in 2 keyspaces", "3 of the records", "only the first"} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("the report does not say %q:\n%.300s", want, r)
		}
	}
	one := &Report{Keyspaces: 1, Records: 1, Bytes: 1, Lost: []Loss{{Reason: "x"}}}
	if got := one.String(); !strings.HasPrefix(got, "recovered 1 record in 1 keyspace (1 byte of keys and values)\n") {
		t.Error(got)
	}
	if err := one.Err(); !strings.HasPrefix(err.Error(), "1 loss, the first one: x: ") {
		t.Error(err)
	}
	l := Loss{Keys: true, Lo: []byte("a"), Reason: "x"}
	if got := l.String(); got != `keys from "a" to the last: x` {
		t.Error(got)
	}
}

func TestLostHashesAgainstAModel(t *testing.T) {
	const keyspace = 7
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		k := lostKeys{keyspace: keyspace}
		var lost []hashStretch
		for from := rng.Uint64N(1 << 62); ; { // in ascending order, some of them adjoining
			to := from + rng.Uint64N(1<<61)
			lost = append(lost, hashStretch{from, max(to, from)})
			if !k.addHashes(from, max(to, from)) {
				t.Fatal("no room")
			}
			if to > 1<<63 {
				break
			}
			from = to + 1 + rng.Uint64N(2)*rng.Uint64N(1<<61)
		}
		if k.empty() || (&lostKeys{keyspace: keyspace}).empty() == k.empty() {
			t.Fatal("empty or not")
		}
		for range 200 {
			key := fmt.Append(nil, rng.Uint64())
			hash := record.Hash(keyspace, key)
			want := slices.ContainsFunc(lost, func(s hashStretch) bool { return s.from <= hash && hash <= s.to })
			if k.has(key) != want {
				t.Fatalf("seed %d: hash %x: %v, want %v of %x", seed, hash, !want, want, lost)
			}
		}
	}
	all := lostKeys{}
	all.addHashes(0, 1<<64-1)
	if !all.addHashes(5, 6) || len(all.hashes) != 1 || !all.has(nil) {
		t.Error("all hashes are not all keys")
	}
}

// The end of a stretch is a key itself, even behind one that is as long as a key can be.
func TestSuccessor(t *testing.T) {
	long := strings.Repeat("k", record.MaxKey-2)
	for key, want := range map[string]string{
		"":                "\x00",
		"k":               "k\x00",
		"k\xff":           "k\xff\x00",
		long + "k":        long + "k\x00",
		long + "kk":       long + "kl",
		long + "k\xff":    long + "l",
		long + "\xff\xff": long[1:] + "l",
		long + "\xff\xfe": long + "\xff\xff",
		long + "\x00\xff": long + "\x01",
	} {
		if got := successor([]byte(key)); string(got) != want {
			t.Errorf("behind %d bytes that end with %q come %d that end with %q", len(key), key[max(len(key)-2, 0):], len(got), got[max(len(got)-2, 0):])
		}
	}
	if got := successor(bytes.Repeat([]byte{0xff}, record.MaxKey)); got != nil {
		t.Errorf("behind the last key comes one of %d bytes", len(got))
	}
}
