package importer

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzReaders: no input makes a reader panic, and what JSON and CSV readers give is valid JSON.
func FuzzReaders(f *testing.F) {
	f.Add(uint8(JSONLines), `{"a": "x\"}", "b": {"a": [1,"]"]}}`+"\n{}", "a")
	f.Add(uint8(JSONLines), `{"a":1e400}`, "a")
	f.Add(uint8(JSONLines), `{"a":"\ud83d\ude00\ud800"}`, "a")
	f.Add(uint8(JSONLines), `{"a":-10.50E-1}`, "a")
	f.Add(uint8(CSV), "a,b\n1,\"x\ny\"\n", "a")
	f.Add(uint8(CSV), "a\n\x00\x7f\\\n", "a")
	f.Add(uint8(Pairs), `{"key":"a","value":"gA==","base64":"value"}`, "")
	f.Add(uint8(Lines), "a\tb\n", "")
	f.Fuzz(func(t *testing.T, format uint8, input, key string) {
		o := Options{Format: Format(format % 6)}
		if key != "" {
			o.Key = []string{key}
		}
		r := NewReader(strings.NewReader(input), o)
		for {
			_, value, err := r.Next()
			if err != nil {
				return
			}
			if (o.Format == JSONLines || o.Format == CSV) && !json.Valid(value) {
				t.Fatalf("%q is not JSON", value)
			}
		}
	})
}

// FuzzMembers: the members that a walk over an object finds are those that encoding/json finds.
func FuzzMembers(f *testing.F) {
	f.Add(`{"a":"x","b":[{"c":"}"}],"d":-1.5e3,"":null}`)
	f.Fuzz(func(t *testing.T, input string) {
		var want map[string]json.RawMessage
		if !utf8.ValidString(input) || json.Unmarshal([]byte(input), &want) != nil || want == nil {
			return
		}
		key := newKeyBuilder(nil)
		r := &jsonReader{lines: newLines(strings.NewReader(strings.ReplaceAll(input, "\n", " "))), key: key}
		_, doc, err := r.Next()
		if err != nil {
			return
		}
		got := map[string]json.RawMessage{}
		eachMember(doc, func(name, value []byte) { got[unescaped(name)] = value })
		if len(got) != len(want) {
			t.Fatalf("found %d members of %q, want %d", len(got), doc, len(want))
		}
		for name, value := range got {
			if !json.Valid(value) {
				t.Fatalf("member %q of %q is %q", name, doc, value)
			}
		}
	})
}

// FuzzDecompress: no input makes the detection of compression panic.
func FuzzDecompress(f *testing.F) {
	f.Add("\x1f\x8b")
	f.Add("\x28\xb5\x2f\xfd\x04")
	f.Add("text")
	f.Fuzz(func(t *testing.T, input string) {
		r, err := Decompress(strings.NewReader(input))
		if err != nil {
			return
		}
		buf := make([]byte, 4096)
		for total := 0; total < 1<<20; {
			n, err := r.Read(buf)
			if err != nil {
				return
			}
			total += n
		}
	})
}
