package path

import (
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

func TestSplit(t *testing.T) {
	for s, want := range map[string][]string{
		"a": {"a"}, "a.b": {"a", "b"}, "a.$id.0": {"a", "$id", "0"}, "$ref": {"$ref"}, "a.$db": {"a", "$db"},
	} {
		if got, err := Split(s); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	for s, want := range map[string]mongoerror.Code{
		"": 40352, ".": 40353, "a.": 40353, "a.$b.": 40353, ".a": 15998, "a..b": 15998, "$a": 16410, "a.$": 16410, "a.$idx": 16410, "a\x00": 16411,
		strings.Repeat("a.", MaxNames) + "a": mongoerror.Overflow,
	} {
		if got, err := Split(s); mongoerror.CodeOf(err) != want {
			t.Errorf("%.20q: %q, %v; want %d", s, got, err, want)
		}
	}
	if err := CheckName("a.b"); mongoerror.CodeOf(err) != 16412 {
		t.Errorf("a dot: %v", err)
	}
}
