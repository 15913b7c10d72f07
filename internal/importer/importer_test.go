package importer

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// pairsOf reads everything and returns "key=value" strings.
func pairsOf(t testing.TB, input string, o Options) ([]string, error) {
	t.Helper()
	r := NewReader(strings.NewReader(input), o)
	var got []string
	for {
		k, v, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, string(k)+"="+string(v))
	}
}

func TestReaders(t *testing.T) {
	id := []string{"_id"}
	tests := []struct {
		name, input string
		o           Options
		want        []string
	}{
		{"json is compacted, digits stay", `{"_id": "a b", "n": 1.50, "x": [1, {"_id": "no"}]}` + "\n", Options{JSONLines, id, ""},
			[]string{`a b={"_id":"a b","n":1.50,"x":[1,{"_id":"no"}]}`}},
		{"last line without newline, empty lines, mark", "\ufeff{\"_id\":1}\r\n\n{\"_id\":2}", Options{JSONLines, id, ""},
			[]string{`1={"_id":1}`, `2={"_id":2}`}},
		{"lines of white space", "{\"_id\":1}\n \t\r\n  \n {\"_id\":2}\n\t", Options{JSONLines, id, ""}, []string{`1={"_id":1}`, `2={"_id":2}`}},
		{"several fields, numbers in decimal", `{"b":{"y":[]},"m":1e3,"y":2013,"t":true}`, Options{JSONLines, []string{"y", "m", "t"}, ""},
			[]string{`2013/1000/true={"b":{"y":[]},"m":1e3,"y":2013,"t":true}`}},
		{"numbers keep every digit", `{"_id":12345678901234567891e0}` + "\n" + `{"_id":-1.25E-3}` + "\n" + `{"_id":10.50e1}` + "\n" + `{"_id":0.0e7}` + "\n" +
			`{"_id":1.234e+2}`, Options{JSONLines, id, ""}, []string{`12345678901234567891={"_id":12345678901234567891e0}`,
			`-0.00125={"_id":-1.25E-3}`, `105={"_id":10.50e1}`, `0={"_id":0.0e7}`, `123.4={"_id":1.234e+2}`}},
		{"escapes in names and texts", `{"\u005fid":"q\"\u00e9","z":"}\\"}`, Options{JSONLines, id, ""},
			[]string{"q\"\u00e9=" + `{"\u005fid":"q\"\u00e9","z":"}\\"}`}},
		{"the last of two counts", `{"_id":"a","_id":"b"}`, Options{JSONLines, id, ""}, []string{`b={"_id":"a","_id":"b"}`}},
		{"no key", `[1, 2]`, Options{Format: JSONLines}, []string{`=[1,2]`}},
		{"csv", "\ufeffa,b,c\n1,x,007\n-2.5e3,NA,\n\"say \"\"hi\"\"\",<b>,0\n", Options{CSV, []string{"a"}, ""},
			[]string{`1={"a":1,"b":"x","c":"007"}`, `-2.5e3={"a":-2.5e3}`, `say "hi"={"a":"say \"hi\"","b":"<b>","c":0}`}},
		{"csv with a mark and quotes", "\ufeff\"a\",\"b\"\n1,x\n", Options{CSV, []string{"a"}, ""}, []string{`1={"a":1,"b":"x"}`}},
		{"csv keeps the ends of lines that are inside of a value", "a,\"b\r\nc\"\r\n\"\r\n\"\"\r\n\r\r\n\n\",\"\r\"\r\n1,\"\"\r\n\"2\",3\r", Options{Format: CSV},
			[]string{`={"a":"\r\n\"\r\n\r\r\n\n","b\r\nc":"\r"}`, `={"a":1}`, `={"a":2,"b\r\nc":3}`}},
		{"surrogate pairs", `{"_id":"\ud83d\ude00\\\ud83d\ude00"}`, Options{JSONLines, id, ""},
			[]string{"\U0001f600\\\U0001f600=" + `{"_id":"\ud83d\ude00\\\ud83d\ude00"}`}},
		{"csv without key", "a,b\n1,2\n", Options{Format: CSV}, []string{`={"a":1,"b":2}`}},
		{"csv with texts that look like numbers beyond all doubles", "a,b\n1e400,-12e4567\n1e-400,0e-400\n1e308," + strings.Repeat("9", 400) + "\n",
			Options{Format: CSV}, []string{`={"a":"1e400","b":"-12e4567"}`, `={"a":"1e-400","b":0e-400}`, `={"a":1e308,"b":"` + strings.Repeat("9", 400) + `"}`}},
		{"csv with a carriage return in a name", "\"a\rb\"\n1\n", Options{Format: CSV}, []string{`={"a\rb":1}`}},
		{"lines", "a\tb\tc\n\tempty key\nempty value\t\n", Options{Format: Lines}, []string{"a=b\tc", "=empty key", "empty value="}},
		{"lines with another separator", "a => b\n", Options{Format: Lines, Separator: " => "}, []string{"a=b"}},
		{"pairs", `{"key":"a","value":""}` + "\n" + `{"key":"/w==","value":"gA==","base64":"key,value"} `, Options{Format: Pairs},
			[]string{"a=", "\xff=\x80"}},
		{"lines of white space between pairs", " \n{\"key\":\"a\",\"value\":\"\"}\n \n", Options{Format: Pairs}, []string{"a="}},
		{"lines of white space are keys and values", " \t \n", Options{Format: Lines}, []string{" = "}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := pairsOf(t, tc.input, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	id := []string{"id"}
	tests := []struct {
		input string
		o     Options
		want  error
		text  string
	}{
		{"{\"id\":1}\n{\"id\":", Options{JSONLines, id, ""}, ErrSyntax, "line 2"},
		{`{"x":1}`, Options{JSONLines, id, ""}, ErrNoKey, `field "id" is missing`},
		{`{"id":null}`, Options{JSONLines, id, ""}, ErrNoKey, `field "id" is null`},
		{`{"id":[1]}`, Options{JSONLines, id, ""}, ErrNoKey, `field "id" is [1]`},
		{`"text"`, Options{JSONLines, id, ""}, ErrNoKey, "not an object"},
		{"{\"id\":1}\n{\"id\":\"\\ud800\"}", Options{JSONLines, id, ""}, ErrNoKey, `line 2: record has no key: field "id" has half of a surrogate pair`},
		{`{"id":"\udc00\ud800"}`, Options{JSONLines, id, ""}, ErrNoKey, "half of a surrogate pair"},
		{"{\"id\":\"\\n\xff\"}", Options{JSONLines, id, ""}, ErrNoKey, `field "id" is not UTF-8`},
		{`{"id":1e401}`, Options{JSONLines, id, ""}, ErrNoKey, `field "id" has an exponent`},
		{`{"id":1e-99999999999999999999}`, Options{JSONLines, id, ""}, ErrNoKey, `field "id" has an exponent`},
		{"", Options{Format: CSV}, ErrSyntax, "empty"},
		{"a,a\n", Options{Format: CSV}, ErrSyntax, "twice"},
		{"a,b\n", Options{CSV, id, ""}, ErrNoKey, `no column "id"`},
		{"id,b\n1,2\n\n3\n", Options{CSV, id, ""}, ErrSyntax, "line 4"},
		{"id,b\nNA,2\n", Options{CSV, id, ""}, ErrNoKey, `line 2: record has no key: column "id" is empty`},
		{"id,b\n1,\xe9t\xe9\n", Options{CSV, id, ""}, ErrSyntax, "not UTF-8"},
		{"id,b\r1,2\r3,4\r", Options{Format: CSV}, ErrSyntax, "line 1: record is malformed: carriage returns alone"},
		{"id,b\n1,\"open\n", Options{CSV, id, ""}, ErrSyntax, "line"},
		{"a b\n", Options{Format: Lines}, ErrNoKey, "line 1"},
		{`{"key":"a"}`, Options{Format: Pairs}, ErrSyntax, "no value"},
		{`{"value":"a"}`, Options{Format: Pairs}, ErrNoKey, "line 1"},
		{"{\"key\":\"a\",\"value\":\"\"}\n{\"key\":\"\xff\",\"value\":\"b\"}", Options{Format: Pairs}, ErrSyntax, "line 2: record is malformed: it is not UTF-8"},
		{`{"key":"a","value":"\ud800"}`, Options{Format: Pairs}, ErrSyntax, "half of a surrogate pair"},
		{`{"key":"a","value":"b"}{}`, Options{Format: Pairs}, ErrSyntax, "follows"},
		{`{"key":"a","value":"?","base64":"value"}`, Options{Format: Pairs}, ErrSyntax, "base64"},
		{`{"key":"a","value":"?","base64":"other"}`, Options{Format: Pairs}, ErrSyntax, `no member "other"`},
		{`{"key":"a","value":"b","x":1}`, Options{Format: Pairs}, ErrSyntax, "unknown field"},
	}
	for _, tc := range tests {
		_, err := pairsOf(t, tc.input, tc.o)
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%q: got %v, want %v with %q", tc.input, err, tc.want, tc.text)
		}
	}
}

// endless gives the same bytes again and again.
type endless struct {
	part  string
	given int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, strings.Repeat(e.part, len(p)/len(e.part)+1))
	e.given += int64(n)
	return n, nil
}

func TestRecordsAreBounded(t *testing.T) {
	for _, tc := range []struct {
		head string
		f    Format
	}{{"", JSONLines}, {"", Lines}, {"a\n\"", CSV}} {
		source := &endless{part: "x"}
		r := NewReader(io.MultiReader(strings.NewReader(tc.head), source), Options{Format: tc.f})
		_, _, err := r.Next()
		if !errors.Is(err, ErrRecordTooLong) || !strings.Contains(err.Error(), "line 1: ") {
			t.Errorf("%v: got %v", tc.f, err)
		}
		if source.given > MaxRecordBytes+1<<20 {
			t.Errorf("%v: %d bytes were read", tc.f, source.given)
		}
	}
}

func TestLinesAreBoundedAsTheyAreAskedToBe(t *testing.T) {
	source := &endless{part: "x"}
	_, err := newLinesOf(source, 1<<20).next()
	if !errors.Is(err, ErrRecordTooLong) || source.given > 2<<20 {
		t.Errorf("%v behind %d bytes", err, source.given)
	}
}

// The longest line of Pairs is that of a value of 1 GiB; a line of 64 MiB was once too long for those who read it.
func TestLongPairsComeBack(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	value := bytes.Repeat([]byte{0xff}, MaxRecordBytes/4*3+1<<20)
	line, err := json.Marshal(NewPair([]byte("key"), value))
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := NewReader(bytes.NewReader(line), Options{Format: Pairs}).Next()
	if err != nil || !bytes.Equal(got, value) {
		t.Errorf("a line of %d bytes gives a value of %d: %v", len(line), len(got), err)
	}
	const aPair, escaped, longestKey, longestValue = 100, len(`\u0000`), 64 << 10, 1 << 30
	if text := escaped * longestText; text+aPair > MaxPairBytes {
		t.Errorf("text of %d bytes may be %d as JSON", longestText, text)
	}
	if n := base64.StdEncoding.EncodedLen(longestValue) + escaped*longestKey; n+aPair > MaxPairBytes {
		t.Errorf("a line may have %d bytes", n)
	}
}

func TestDecompress(t *testing.T) {
	const text = "some text\n"
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	fmt.Fprint(g, text)
	g.Close()
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(z, text)
	z.Close()
	for name, input := range map[string]string{"plain": text, "gzip": gz.String(), "zstd": zst.String()} {
		r, err := Decompress(strings.NewReader(input))
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, short := range []string{"", "a"} {
		r, err := Decompress(strings.NewReader(short))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != short {
			t.Errorf("%q: %q, %v", short, got, err)
		}
	}
	if r, err := Decompress(strings.NewReader(zst.String()[:zst.Len()-3])); err == nil {
		if _, err := io.ReadAll(r); err == nil {
			t.Error("a zstd stream without its end was read")
		}
	}
}

// A gzip file that is cut off anywhere is told from a whole one: also in the header of a member, where the name of the file stands.
func TestDecompressCutGzip(t *testing.T) {
	var file bytes.Buffer
	ends := map[int]string{0: ""} // what is whole, and what is in it
	for range 2 {
		g := gzip.NewWriter(&file)
		g.Name, g.Comment, g.Extra = "words.txt", "a comment", []byte("extra")
		fmt.Fprint(g, "some text\n")
		g.Close()
		ends[file.Len()] = strings.Repeat("some text\n", len(ends))
	}
	for cut := range file.Len() + 1 {
		var got []byte
		r, err := Decompress(bytes.NewReader(file.Bytes()[:cut]))
		if err == nil {
			got, err = io.ReadAll(iotest.OneByteReader(r))
		}
		want, whole := ends[cut]
		if whole && (err != nil || string(got) != want) {
			t.Errorf("%d bytes: %q, %v", cut, got, err)
		}
		if !whole && cut > 1 && !errors.Is(err, io.ErrUnexpectedEOF) { // one byte is taken for text
			t.Errorf("%d bytes of %d: %q, %v", cut, file.Len(), got, err)
		}
	}
}

func TestFormats(t *testing.T) {
	for name, want := range map[string]Format{
		"a.jsonl": JSONLines, "a.JSONL.zst": JSONLines, "dir/x.ndjson.gz": JSONLines, "a.json": JSONLines, "a.b.csv": CSV, "a.csv.gz": CSV,
		"a": 0, "-": 0, "a.txt": 0, "csv": 0, "a.gz": 0,
	} {
		if got, ok := FormatOf(name); got != want || ok != (want != 0) {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, f := range []Format{JSONLines, CSV, Pairs, Lines} {
		if got, err := ParseFormat(f.String()); err != nil || got != f {
			t.Errorf("%v: %v, %v", f, got, err)
		}
	}
	if _, err := ParseFormat("xml"); err == nil {
		t.Error("xml was taken for a format")
	}
}

func TestSequence(t *testing.T) {
	s, err := NewSequence(nil)
	if err != nil {
		t.Fatal(err)
	}
	last := []byte(nil)
	for range 300 {
		last = bytes.Clone(s.Next())
	}
	again, err := NewSequence(last)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.Next(), s.Next(); !bytes.Equal(got, want) || !bytes.Equal(got, []byte{0, 0, 0, 0, 0, 0, 1, 45}) {
		t.Errorf("%x follows %x, want %x", got, last, want)
	}
	for _, highest := range []string{"", "text", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if _, err := NewSequence([]byte(highest)); err == nil {
			t.Errorf("a sequence continues behind %q", highest)
		}
	}
}

func TestChunksHoldEveryRecordInOrder(t *testing.T) {
	const n = 5000
	var input strings.Builder
	for i := range n {
		fmt.Fprintf(&input, "key%d\t%s\n", i, strings.Repeat("v", i%50))
	}
	for _, size := range []int{1, 100, 1 << 20} {
		r := NewReader(strings.NewReader(input.String()+"broken\n"), Options{Format: Lines})
		i, failed := 0, error(nil)
		for c, err := range Chunks(t.Context(), r, size) {
			if failed = err; err != nil {
				break
			}
			for k, v := range c.All() {
				if string(k) != fmt.Sprintf("key%d", i) || len(v) != i%50 {
					t.Fatal(i, string(k), len(v))
				}
				i++
			}
		}
		if i != n || !errors.Is(failed, ErrNoKey) {
			t.Errorf("size %d: %d records, then %v", size, i, failed)
		}
	}
}

// Records of no bytes take memory too: what says where they are.
func TestChunksOfEmptyRecordsAreBounded(t *testing.T) {
	const n, size = 10_000, 1000
	records := 0
	for c, err := range Chunks(t.Context(), NewReader(strings.NewReader(strings.Repeat("\t\n", n)), Options{Format: Lines}), size) {
		if err != nil {
			t.Fatal(err)
		}
		if records += c.Len(); c.Len() > size {
			t.Fatalf("a chunk of %d records, where %d bytes are wanted", c.Len(), size)
		}
	}
	if records != n {
		t.Errorf("%d records, want %d", records, n)
	}
}

// A key of no bytes is a key: the first record that had one was once numbered, as those that have none are.
func TestEmptyKeysAreKeys(t *testing.T) {
	for format, input := range map[Format]string{
		JSONLines: `{"id":""}`, Pairs: `{"key":"","value":""}`, Lines: "\t",
	} {
		o := Options{Format: format}
		if format == JSONLines {
			o.Key = []string{"id"}
		}
		n := 0
		for c, err := range Chunks(t.Context(), NewReader(strings.NewReader(input+"\n"+input), o), 1) {
			if err != nil {
				t.Fatal(format, err)
			}
			for k := range c.All() {
				if n++; k == nil || len(k) > 0 {
					t.Errorf("%v: key %d is %q, nil: %v", format, n, k, k == nil)
				}
			}
		}
		if n != 2 {
			t.Errorf("%v: %d records", format, n)
		}
	}
}

func TestChunksEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pr, pw := io.Pipe() // nothing ever arrives
	defer pw.Close()
	r := NewReader(pr, Options{Format: Lines})
	cancel()
	for _, err := range Chunks(ctx, r, 10) {
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

func TestPairsComeBack(t *testing.T) {
	for _, key := range []string{"", "a", "\xff", "\x00\u2028<"} {
		for _, value := range []string{"", "{\"a\":1}", "\x80", "line\nline"} {
			var b bytes.Buffer
			if err := json.NewEncoder(&b).Encode(NewPair([]byte(key), []byte(value))); err != nil {
				t.Fatal(err)
			}
			got, err := pairsOf(t, b.String(), Options{Format: Pairs})
			if err != nil || len(got) != 1 || got[0] != key+"="+value {
				t.Errorf("%q=%q became %q, %v", key, value, got, err)
			}
		}
	}
}

// What pzstd writes begins with a frame that holds no data.
func TestFrameWithoutDataInFront(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	file := encoder.EncodeAll([]byte("a\t1\nb\t2\n"), []byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4})
	got, err := pairsOf(t, string(file), Options{Format: Lines})
	if diff := cmp.Diff([]string{"a=1", "b=2"}, got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
}
