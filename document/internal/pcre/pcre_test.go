package pcre

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFind(t *testing.T) {
	for _, c := range []struct {
		pattern, options, s string
		start               int
		want                []int
		linear              bool
	}{
		{"b(c)?", "", "abcd", 0, []int{1, 3, 2, 3}, true},
		{"b(x)?", "", "abcd", 0, []int{1, 2, -1, -1}, true},
		{"B", "i", "ab", 0, []int{1, 2}, true},
		{"b$", "", "ab\n", 0, []int{1, 2}, true},
		{"b$", "m", "ab\nc", 0, []int{1, 2}, true},
		{`b\Z`, "", "b\n", 0, []int{0, 1}, true},
		{"b # c", "x", "ab", 0, []int{1, 2}, true},
		{"a.b", "s", "a\nb", 0, []int{0, 3}, true},
		{`\w+`, "", "\u00e4b", 0, []int{2, 3}, true},
		{"[[:alpha:]]+", "", "1ab", 0, []int{1, 3}, true},
		{"[[:]+", "", "a[:b", 0, []int{1, 3}, true},
		{"[[:]]", "", "a:]b", 0, []int{1, 3}, true},
		{"[[:^alpha:]]+", "", "a1-\u00e9b", 0, []int{1, 5}, true},
		{"[[:punct:]x]+", "", "a]-x^b", 0, []int{1, 5}, true},
		{`([[:punct:]x])(?!\w)`, "", "xa]a\\", 0, []int{4, 5, 4, 5}, false},
		{"[[:<:]]b", "", "ab b", 0, []int{3, 4}, false},
		{"b[[:>:]]", "", "ba b", 0, []int{3, 4}, false},
		{`[a-\d]+`, "", "b-1a", 0, []int{1, 4}, true},
		{`[\d-z]+`, "", "b-1z", 0, []int{1, 4}, true},
		{"b", "", "bab", 1, []int{2, 3}, true},
		{"^b", "", "bb", 1, nil, true},
		{`(a)\1`, "", "abaa", 0, []int{2, 4, 2, 3}, false},
		{"a(?!b)", "", "abac", 0, []int{2, 3}, false},
		{"(?<x>a)(b)", "", "ab", 0, []int{0, 2, 0, 1, 1, 2}, true},
		{"c", "", "ab", 0, nil, true},
		{`\i\y\_`, "", "aiy_", 0, []int{1, 4}, true},
		{`[\_\z\K8]+`, "", "a_zK8", 0, []int{1, 5}, true},
		{`(?=.)[\_\z\K8]+`, "", "a_zK8", 0, []int{1, 5}, false},
		{`[\H]+`, "", "\t\u2000a\n\u2001", 0, []int{4, 6}, true},
		{`(?=.)[^\H]+`, "", "ab\t\u2000\u3000c", 0, []int{2, 9}, false},
		{`[\V]+`, "", "\n\u2028\ta\r", 0, []int{4, 6}, true},
		{`a\Kb`, "", "bab", 0, []int{2, 3}, false},
		{`a\K(X)(b)\2`, "", "aXbb", 0, []int{1, 4, 1, 2, 2, 3}, false},
		{`(?<x>foo\K)(?<y>bar)`, "", "xfoobar", 0, []int{4, 7, 1, 4, 4, 7}, false},
		{`(?:a\Kb)+`, "", "ababab", 0, []int{5, 6}, false},
		{`b\Ka|(a)`, "", "aba", 0, []int{0, 1, 0, 1}, false},
		{`(?=ab\K)a`, "", "ab", 0, []int{1, 1}, false},
	} {
		p, err := Compile(c.pattern, c.options)
		if err != nil {
			t.Fatalf("/%s/%s: %v", c.pattern, c.options, err)
		}
		got, err := p.Find(c.s, c.start)
		if linear, ok := p.Linear(); err != nil || !slices.Equal(got, c.want) || ok != c.linear {
			t.Errorf("/%s/%s in %q at %d: %v, %v, by %q; want %v", c.pattern, c.options, c.s, c.start, got, err, linear, c.want)
		}
	}
}

func TestWhatIsNoPattern(t *testing.T) {
	for pattern, says := range map[string]string{
		"(": "missing closing parenthesis", "*a": "quantifier does not follow a repeatable item", "(?<x>a)(?<x>b)": "two named subpatterns",
		`(a)\g{2}`: "undefined group", `(a)\g`: `\g`, `(a)\g-`: `\g`, `(a)\g{-2}`: `\g`, `(a)\g{0}`: `\g`, `(a)\g{}`: `\g`, `(a)\g{1`: `\g`,
		`(a)\k{x}`: "undefined group", "(?P=x)": "undefined group",
		"[a": "missing terminating ]", "[z-a]": "range out of order",
		"[[:x:]]": "unknown POSIX class name", "[[:^x:]]": "unknown POSIX class name", "[[::]]": "unknown POSIX class name",
		"[[.x.]]": "POSIX collating elements", "[=x=]": "POSIX collating elements", "[:alpha:]": "POSIX named classes are supported only within a class",
		"a{1,70000}": "number too big in {}", "a{65536,}": "number too big in {}", "(?=a{70000})": "number too big in {}", "a{5,1}": "numbers out of order",
		strings.Repeat("a", LongestPattern+1):                             "too large",
		strings.Repeat("(?:", deepest+1) + strings.Repeat(")", deepest+1): "too deeply nested",
		strings.Repeat("(?=", deepest+1) + strings.Repeat(")", deepest+1): "too deeply nested",
	} {
		if _, err := Compile(pattern, ""); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("/%.20s/: %v, want %q", pattern, err, says)
		}
	}
	for _, pattern := range []string{
		"a{65535}", "a{,70000}", "a{1,70000", "[a{70000}]", `a\{70000}`, strings.Repeat("(", deepest) + strings.Repeat(")", deepest), strings.Repeat("(a)", deepest+1),
	} {
		if _, err := Compile(pattern, ""); err != nil {
			t.Errorf("/%.20s/: %v", pattern, err)
		}
	}
	p, err := Compile(`(a+)+\1$`, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Match([]byte(strings.Repeat("a", 5000) + "b")); !errors.Is(err, ErrLimit) {
		t.Errorf("a pattern that explodes: %v", err)
	}
}

// FuzzCompile compiles and matches anything: nothing may panic, and a match is within the string.
func FuzzCompile(f *testing.F) {
	f.Add("a(b|c)*$", "im", "abc\n", 0)
	f.Add(`[[:alpha:]\d]\Q.\E(?#x)\x{41}`, "x", "a.A", 1)
	f.Fuzz(func(t *testing.T, pattern, options, s string, start int) {
		if len(pattern) > 60 || len(s) > 60 || !utf8.ValidString(s) || !utf8.ValidString(pattern) || start < 0 || start > len(s) || !utf8.ValidString(s[start:]) {
			return
		}
		p, err := Compile(pattern, options)
		if err != nil {
			return
		}
		if _, err := p.Match([]byte(s)); err != nil && !errors.Is(err, ErrLimit) {
			return
		}
		if got, err := p.Find(s, start); err == nil && got != nil && (got[0] < start || got[1] < got[0] || got[1] > len(s)) {
			t.Fatalf("/%s/%s in %q at %d: %v", pattern, options, s, start, got)
		}
	})
}

// TestAll: matches follow one another as MongoDB finds them: an empty one moves on by a character, and none is at the end of the text.
func TestAll(t *testing.T) {
	for _, c := range []struct {
		pattern, options, s string
		want                string
	}{
		{"a", "", "banana", "1-2 3-4 5-6"},
		{"a*", "", "baac", "0-0 1-3 3-3"},
		{"", "", "\u00e4b", "0-0 2-2"},
		{"", "", "", "0-0"},
		{"^a", "", "aa", "0-1"},
		{"^a", "m", "a\na", "0-1 2-3"},
		{"(a)|b", "", "ab", "0-1,0-1 1-2,-1--1"},
		{"a(?=b)", "", "abab", "0-1 2-3"},
		{"(?=b)", "", "abab", "1-1 3-3"},
		{"a$", "", "aa\n", "1-2"},
		{"x", "", "ab", ""},
		{`\b`, "", "ab c", "0-0 2-2 3-3"},
		{`[\_]`, "", "_a_", "0-1 2-3"},
		{`a\Kb`, "", "abab", "1-2 3-4"},
		{`a\K`, "", "aaa", "1-1 3-3"},
		{"(?P<x>.)", "", "ab", "0-1,0-1 1-2,1-2"},
		{`\p{^L}`, "", "1a2", "0-1 2-3"},
		{`[\p{^L}b]`, "", "1ab", "0-1 2-3"},
		{`\P{^L}`, "", "1ab", "1-2 2-3"},
		{"(?P<x>.)(?P=x)", "", "aabb", "0-2,0-1 2-4,2-3"},
		{`(?<x>.)\k{x}`, "", "aabb", "0-2,0-1 2-4,2-3"},
		{`(?<x>.)\k<x>`, "", "aabb", "0-2,0-1 2-4,2-3"},
		{`(?<x>.)\g{x}`, "", "aabb", "0-2,0-1 2-4,2-3"},
		{`(.)\g1`, "", "aabb", "0-2,0-1 2-4,2-3"},
		{`(.)\g{1}1`, "", "aa1b", "0-3,0-1"},
		{`(.)(.)\g{-1}`, "", "abb", "0-3,0-1,1-2"},
		{`(.)(.)\g-2`, "", "aba", "0-3,0-1,1-2"},
		{`a\K(.)\g{1}`, "", "abb", "1-3,1-2"},
	} {
		p, err := Compile(c.pattern, c.options)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = p.All(c.s, func(captures []int) error {
			var groups []string
			for i := 0; i < len(captures); i += 2 {
				groups = append(groups, fmt.Sprintf("%d-%d", captures[i], captures[i+1]))
			}
			got = append(got, strings.Join(groups, ","))
			return nil
		})
		if s := strings.Join(got, " "); err != nil || s != c.want {
			t.Errorf("/%s/%s in %q: %s, %v; want %s", c.pattern, c.options, c.s, s, err, c.want)
		}
	}
	p, err := Compile("a", "")
	if err != nil {
		t.Fatal(err)
	}
	end := errors.New("enough")
	for want := range 3 {
		n := 0
		err := p.All("aaa", func([]int) error {
			if n++; n > want {
				return end
			}
			return nil
		})
		if err != end || n != want+1 {
			t.Errorf("ended after %d matches: %v", n, err)
		}
	}
}
