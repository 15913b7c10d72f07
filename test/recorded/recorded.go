// Package recorded reads what a MongoDB server answered once, and was recorded for tests to compare with: files of Extended JSON, a
// document on each line. A file that cannot be read, or a line that is no document of the kind, ends the test.
package recorded

import (
	"bufio"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxLine is how long a line may be, in bytes.
const maxLine = 1 << 20

// Lines calls each for every line of a file, with its number, from 1 on.
func Lines[T any](t testing.TB, file string, each func(line int, v *T)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		v := new(T)
		if err := bson.UnmarshalExtJSON(lines.Bytes(), false, v); err != nil {
			t.Fatalf("%s:%d: %v", file, n, err)
		}
		each(n, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
