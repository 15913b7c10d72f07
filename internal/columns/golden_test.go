package columns

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pandodb/pando/test/golden"
)

// skewedPage has columns of which most bytes are the same, of some nearly all.
func skewedPage() []byte {
	var list []pair
	noise := uint32(1)
	for i := range 400 {
		noise = noise*1664525 + 1013904223
		often, seldom := byte('n'), byte('n')
		if noise>>24 < 45 {
			often = 'y'
		}
		if noise>>16&63 == 0 {
			seldom = byte('a' + i/16)
		}
		value := string([]byte{often, seldom, 'a' + byte(i/150)})
		if i == 7 {
			value += "alone"
		}
		list = append(list, pair{key: fmt.Sprintf("%c%c", 'a'+i/20, 'a'+i%20), value: value})
	}
	return pageOf("", list)
}

// goldenPage has columns of the other kinds, and entries that are in none.
func goldenPage() []byte {
	var list []pair
	noise := uint32(1)
	for i := range 96 {
		noise = noise*1664525 + 1013904223
		v := []byte{byte('0' + i/10), byte('0' + i%10), 'v', byte(noise >> 24), "aaaaabbbc"[noise>>16%9], "0000000000000001"[noise>>12%16], byte(i / 3), 'w'}
		if i%32 == 5 {
			v = append(v, "alone"...)
		}
		list = append(list, pair{key: fmt.Sprintf("%c%02d", 'p'+i/40, i), value: string(v[:len(v)-i%2*(i/64)])})
	}
	return pageOf("users/", list)
}

// TestGolden keeps the bytes on disk what they have always been: see docs/format/segment.md. The page is written as text of
// Go, columns and rest as hexadecimal numbers.
func TestGolden(t *testing.T) {
	isGolden(t, "columns.txt", goldenPage())
	isGolden(t, "skewed.txt", skewedPage())
}

func isGolden(t *testing.T, file string, page []byte) {
	t.Helper()
	var c Coder
	cols, rest, ok := c.Split(nil, nil, page)
	if !ok {
		t.Fatal("not split")
	}
	got := fmt.Sprintf("page %q\ncolumns % x\nrest % x\n", page, cols, rest)
	isRead(t, file, golden.Compare(t, file, got))
}

// TestEarlier reads what versions wrote that knew fewer ways to store a column, and took those they knew more often.
func TestEarlier(t *testing.T) {
	text, err := os.ReadFile("testdata/earlier.txt")
	if err != nil {
		t.Fatal(err)
	}
	isRead(t, "earlier.txt", string(text))
}

// isRead decodes the columns of a file.
func isRead(t *testing.T, file, want string) {
	t.Helper()
	var c Coder
	var wantPage string
	var wantCols, wantRest []byte
	lines := strings.Split(want, "\n")
	for i, scan := range []struct {
		format string
		into   any
	}{{"page %q", &wantPage}, {"columns % x", &wantCols}, {"rest % x", &wantRest}} {
		line := strings.ReplaceAll(lines[i], "% x", "%x")
		if i > 0 {
			name, hex, _ := strings.Cut(line, " ")
			line = name + " " + strings.ReplaceAll(hex, " ", "")
		}
		if _, err := fmt.Sscanf(line, strings.ReplaceAll(scan.format, "% x", "%x"), scan.into); err != nil {
			t.Fatalf("%s, line %d: %v", file, i+1, err)
		}
	}
	back := make([]byte, len(wantPage))
	if err := c.Decode(back, wantCols, wantRest); err != nil || !bytes.Equal(back, []byte(wantPage)) {
		t.Errorf("the golden columns give another page: %v", err)
	}
}
