package page_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/test/golden"
)

// goldenPairs has an entry of each kind.
func goldenPairs() []pair {
	return []pair{
		{[]byte("tree"), record.Record{Kind: record.Inline}},
		{[]byte("tree/a"), record.Record{Kind: record.Inline, Value: []byte("aspen")}},
		{[]byte("tree/b"), record.Record{Kind: record.Tombstone}},
		{[]byte("tree/c"), record.Record{Kind: record.Inline, Expiry: 1700000000000, Value: []byte("0123456789abcdef")}},
		{[]byte("tree/d"), record.Record{Kind: record.Apart, Value: bytes.Repeat([]byte{0xee}, 28)}},
		{[]byte("tree/e"), record.Record{Kind: record.Apart, Expiry: 1, Value: bytes.Repeat([]byte{0xdd}, 28)}},
		{append([]byte("tree/f"), bytes.Repeat([]byte{'x'}, 130)...), record.Record{Kind: record.Inline, Value: []byte("long key")}},
	}
}

// annotate writes raw as one line of hexadecimal numbers a part.
func annotate(raw []byte, pairs []pair) string {
	var s strings.Builder
	at := 0
	line := func(n int, what string) {
		fmt.Fprintf(&s, "%04x  % x  # %s\n", at, raw[at:at+n], what)
		at += n
	}
	line(1, "count")
	line(1, "prefix length")
	line(len("tree"), "prefix")
	var b page.Builder
	end := 0
	for i, p := range pairs {
		// The length of an entry is by how much it makes a page longer that has the same prefix.
		end = b.Size()
		if err := b.Add(p.Key, p.Record); err != nil {
			panic(err)
		}
		if i == 0 {
			end = 1 + 1 + len("tree")
		}
		line(b.Size()-end, fmt.Sprintf("%.12q kind %d expiry %d value of %d bytes", p.Key, p.Record.Kind, p.Record.Expiry, len(p.Record.Value)))
	}
	return s.String()
}

// TestGolden keeps the bytes on disk what they have always been: see docs/format/page.md.
func TestGolden(t *testing.T) {
	var b page.Builder
	raw := build(t, &b, goldenPairs())
	want := golden.Compare(t, "page.txt", annotate(raw, goldenPairs()))
	var old []byte
	for line := range strings.Lines(want) {
		line, _, _ = strings.Cut(line[len("0000  "):], "#")
		for field := range strings.FieldsSeq(line) {
			var x byte
			if _, err := fmt.Sscanf(field, "%02x", &x); err != nil {
				t.Fatal(err)
			}
			old = append(old, x)
		}
	}
	checkPage(t, load(t, old), goldenPairs(), nil)
}

// Each byte of a page that is changed is either refused or changes what the page says: none is ignored.
func TestEveryByteCounts(t *testing.T) {
	var b page.Builder
	raw := build(t, &b, goldenPairs())
	for i := range raw {
		for bit := range 8 {
			bad := bytes.Clone(raw)
			bad[i] ^= 1 << bit
			pairs, err := readAll(bad)
			if err == nil && len(pairs) == len(goldenPairs()) {
				same := true
				for j, p := range goldenPairs() {
					same = same && bytes.Equal(p.Key, pairs[j].Key) && sameRecord(p.Record, pairs[j].Record)
				}
				if same {
					t.Errorf("byte %d, bit %d changes nothing", i, bit)
				}
			}
		}
	}
	for n := range raw {
		if _, err := readAll(raw[:n]); err == nil {
			t.Errorf("cut after %d bytes: no error", n)
		}
	}
}
