package keyenc

import (
	"bytes"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FuzzDecode decodes any bytes: an error that wraps ErrMalformed, or a valid value whose encoding is what was decoded.
func FuzzDecode(f *testing.F) {
	for _, v := range []any{1, -70000.5, 0.1, "a\x00b", bson.D{{Key: "a", Value: bson.A{1, "x"}}}, bson.CodeWithScope{Code: "a", Scope: bson.D{}}, bson.Regex{Pattern: "a"}, decimal(f, "-0.1"), decimal(f, "12345678901234567890.5")} {
		f.Add(Append(nil, value(f, v), false, nil), false)
		f.Add(Append(nil, value(f, v), true, nil), true)
	}
	f.Fuzz(func(t *testing.T, src []byte, descending bool) {
		v, _, rest, err := Decode(nil, src, descending)
		skipped, skipErr := Skip(src, descending)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || skipErr != nil && !errors.Is(skipErr, ErrMalformed) {
				t.Fatalf("%v, %v", err, skipErr)
			}
			return
		}
		if skipErr != nil || len(skipped) != len(rest) {
			t.Fatalf("decoding leaves %d bytes, skipping %d: %v", len(rest), len(skipped), skipErr)
		}
		if again := Append(nil, v, descending, nil); !bytes.Equal(again, src[:len(src)-len(rest)]) {
			t.Fatalf("%x is %v, which is %x", src, v, again)
		}
	})
}
