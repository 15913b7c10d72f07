// Package collation is MongoDB's collation document on top of golang.org/x/text/collate.
//
// It promises that a document is accepted, refused and shown with its defaults as MongoDB does it, and that Compare, Equal strings and
// sort keys agree: comparing is comparing sort keys. Parsing fails with a *mongoerror.Error; nothing else fails.
//
// What differs from MongoDB, which uses ICU 57 with CLDR 29:
//   - The tables are those of CLDR 23 with Unicode 6.2. Newer characters and letters that were tailored later sort as the root order
//     has them, and so do languages without a table there (as cy, ga, ka or zu, where ICU often has none either). Of the variants
//     behind @collation=, those without a table (such as search, eor, emoji, traditional, zhuyin) sort as the language itself.
//   - Scripts are never reordered: where ICU sorts the script of a language before Latin (as in ru, uk, el, ja, zh, ko), Latin is
//     first here.
//   - The levels of caseLevel and caseFirst are made here, from the case of each letter. Width and other tertiary differences do not
//     enter into them, and one letter that sorts as two (as ae in one sign) has one case.
//   - maxVariable "space" leaves white space out before comparing, and at strength 4 orders strings that differ in it alone by
//     code point.
//   - normalization has no effect: strings are always normalised. A strength of 4 without alternate "shifted" is one of 3: hiragana
//     and katakana are not told apart by it.
package collation

import (
	"bytes"
	"strings"
	"sync"
	"unicode"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Collation compares strings as a locale does. nil is the simple collation: byte by byte. It is safe for concurrent use.
type Collation struct {
	spec     specification
	document bsoncore.Document
	workers  sync.Pool // of *worker: collators keep state
}

// worker is what one goroutine at a time makes keys with.
type worker struct {
	whole *collate.Collator // all levels
	a, b  []byte            // keys that are compared
	cases []byte            // the level of case
	buf   collate.Buffer

	number, zero []byte // weights: of the beginning of a number, and of the digit 0
}

func newCollation(s specification) *Collation {
	c := &Collation{spec: s, document: s.document()}
	c.workers.New = func() any { return s.worker() }
	return c
}

// worker makes the collator of a specification.
func (s *specification) worker() *worker {
	w := &worker{whole: collate.New(s.tag())}
	if s.NumericOrdering {
		ten := split(w.whole.KeyFromString(&w.buf, "10")).primary // begin, two digits, 1, 0
		w.number, w.zero = bytes.Clone(ten[:weight(ten)]), bytes.Clone(ten[len(ten)-weight(ten):])
	}
	return w
}

// cased reports whether keys have a level of case.
func (s *specification) cased() bool {
	return s.CaseLevel || s.Strength > 2 && (s.CaseFirst != "off" || s.capitalsFirst())
}

// capitalsFirst reports whether capitals are first: by request, or because the language has it so (which Document does not show).
func (s *specification) capitalsFirst() bool {
	return s.CaseFirst == "upper" || s.CaseFirst == "off" && (s.Locale == "da" || s.Locale == "mt")
}

// stripsSpace reports whether white space alone is ignored, which x/text cannot do.
func (s *specification) stripsSpace() bool {
	return s.Alternate == "shifted" && s.MaxVariable == "space"
}

// tag returns the language tag with the options that x/text reads from it.
func (s *specification) tag() language.Tag {
	name, variant, _ := strings.Cut(s.Locale, "@collation=")
	b := strings.Builder{}
	b.WriteString(strings.TrimSuffix(strings.ReplaceAll(name, "_", "-"), "-POSIX"))
	b.WriteString("-u")
	switch {
	case strings.HasSuffix(name, "_POSIX"):
		variant = ""
	case variant == "phonebook":
		variant = "phonebk"
	case variant == "big5han" || variant == "gb2312han" || len(variant) > 8:
		variant = "" // no table of that kind
	}
	if variant != "" {
		b.WriteString("-co-" + variant)
	}
	if s.Alternate == "shifted" && !s.stripsSpace() {
		b.WriteString("-ka-shifted")
	}
	if s.Backwards {
		b.WriteString("-kb-true")
	}
	if s.NumericOrdering {
		b.WriteString("-kn-true")
	}
	b.WriteString([...]string{"", "-ks-level1", "-ks-level2", "-ks-level3", "-ks-level4", "-ks-level4"}[s.Strength])
	if strings.HasSuffix(name, "_POSIX") {
		b.WriteString("-va-posix")
	}
	return language.Make(b.String())
}

// Document returns the complete specification, with all defaults filled in, as listIndexes shows it.
func (c *Collation) Document() bsoncore.Document {
	if c == nil {
		return simple()
	}
	return c.document
}

// Equal reports whether both collate alike; both may be nil.
func (c *Collation) Equal(o *Collation) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.spec == o.spec
}

// Compare compares two strings.
func (c *Collation) Compare(a, b string) int {
	if c == nil || a == b {
		return strings.Compare(a, b)
	}
	w := c.workers.Get().(*worker)
	defer c.workers.Put(w)
	w.a = c.spec.appendKey(w.a[:0], a, w)
	w.b = c.spec.appendKey(w.b[:0], b, w)
	return bytes.Compare(w.a, w.b)
}

// AppendKey appends the sort key of s: bytes.Compare of keys is Compare of strings.
func (c *Collation) AppendKey(dst []byte, s string) []byte {
	if c == nil {
		return append(dst, s...)
	}
	w := c.workers.Get().(*worker)
	defer c.workers.Put(w)
	return c.spec.appendKey(dst, s, w)
}

// appendKey makes a key of x/text's, with a level of case before the tertiary one, and the characters themselves at strength 5.
func (s *specification) appendKey(dst []byte, text string, w *worker) []byte {
	stripped := text
	if s.stripsSpace() {
		stripped = strings.Map(withoutSpace, text)
	}
	w.buf.Reset()
	levels := split(w.whole.KeyFromString(&w.buf, stripped))
	k := key{bytes: w.appendPrimary(dst, levels.primary)}
	k.add(trim(levels.secondary, commonSecondary))
	if s.cased() {
		w.cases = s.appendCase(w.cases[:0], stripped)
		k.add(trim(w.cases, "\x01"))
	}
	k.add(trim(levels.tertiary, commonTertiary))
	k.add(levels.quaternary)
	if s.Strength == 5 || s.Strength == 4 && s.stripsSpace() {
		w.cases = norm.NFD.AppendString(w.cases[:0], text)
		k.add(w.cases)
	}
	return k.bytes
}

func withoutSpace(r rune) rune {
	if unicode.IsSpace(r) {
		return -1
	}
	return r
}

// appendCase appends the case of each letter: lower 1, title 2, upper 3, or with capitals first the other way round. What has no case
// is lower; marks and control characters have no place.
func (s *specification) appendCase(dst []byte, text string) []byte {
	var i norm.Iter
	i.InitString(norm.NFKD, text)
	for !i.Done() {
		for _, r := range string(i.Next()) {
			if unicode.Is(unicode.M, r) || unicode.IsControl(r) {
				continue
			}
			rank := byte(1)
			switch {
			case unicode.IsUpper(r):
				rank = 3
			case unicode.IsTitle(r):
				rank = 2
			}
			if s.capitalsFirst() {
				rank = 4 - rank
			}
			dst = append(dst, rank)
		}
	}
	return dst
}
