// Package pcre is regular expressions in PCRE's language, as MongoDB has them, on engines of ours.
//
// A pattern that Go's engine understands as PCRE does runs on it, in linear time; others, with lookaround or backreferences, run on one
// that backtracks, within limits of time and memory: beyond them a match fails with ErrLimit. Compile refuses what PCRE would, mostly
// in PCRE's words. It knows nothing of documents.
package pcre

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// LongestPattern is how many bytes a pattern may have, as PCRE is built for MongoDB.
const LongestPattern = 32764

const (
	matchTimeout     = 500 * time.Millisecond
	backtrackingSize = 1 << 20 // slots of the stack that a match may use
)

// ErrLimit is of a match that takes too long, or too much memory.
var ErrLimit = errors.New("the limits of time or memory for patterns with lookaround or backreferences are exceeded")

// deepest is how many groups may lie in one another.
const deepest = 249

// Why PCRE does not take patterns that engines of ours would.
var (
	errTwice           = errors.New("two named subpatterns have the same name")
	errNesting         = errors.New("parentheses are too deeply nested")
	errRepetition      = errors.New("number too big in {} quantifier")
	errRepetitionOrder = errors.New("numbers out of order in {} quantifier")
)

// Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	source, flags string // flags of i, m and s
	extended      bool

	linear *regexp.Regexp // nil: the pattern needs the other engine
	ends   bool           // linear takes a newline at the end into the match
	full   func() (*regexp2.Regexp, error)
	reset  int // the group of full in which the match begins, 0: none
}

// Compile compiles a pattern. Of the options it looks at i, m, s and x.
func Compile(pattern, options string) (*Pattern, error) {
	if len(pattern) > LongestPattern {
		return nil, errors.New("regular expression is too large")
	}
	p := &Pattern{source: pattern, extended: strings.Contains(options, "x")}
	for _, c := range []byte("ims") {
		if strings.IndexByte(options, c) >= 0 {
			p.flags += string(c)
		}
	}
	p.full = sync.OnceValues(p.compileFull)
	t := p.translator()
	if linear, ok := t.translate(); ok {
		if p.flags != "" {
			linear = "(?" + p.flags + ")" + linear
		}
		if re, err := regexp.Compile(linear); err == nil && t.refused == nil && (!t.multiline || !t.begins || !re.MatchString("")) {
			p.linear, p.ends = re, t.ends
			return p, nil
		}
	}
	_, err := p.full()
	return p, err
}

func (p *Pattern) translator() *translator {
	return &translator{src: p.source, extended: p.extended, multiline: strings.Contains(p.flags, "m")}
}

// compileFull compiles the pattern for the engine that backtracks.
func (p *Pattern) compileFull() (*regexp2.Regexp, error) {
	t := p.translator()
	t.backtracking = true
	pattern, _ := t.translate()
	if t.refused != nil {
		return nil, t.refused
	}
	options := regexp2.None
	for _, c := range p.flags {
		switch c {
		case 'i':
			options |= regexp2.IgnoreCase
		case 'm':
			options |= regexp2.Multiline
		case 's':
			options |= regexp2.Singleline
		}
	}
	re, err := regexp2.Compile(pattern, options, regexp2.OptionMaintainCaptureOrder(), regexp2.OptionMaxBacktrackingStackSize(backtrackingSize))
	if err != nil {
		return nil, problem(err)
	}
	re.MatchTimeout = matchTimeout
	p.reset = t.reset
	return re, nil
}

// problem says what is wrong with a pattern, in PCRE's words where they are well known.
func problem(err error) error {
	s := err.Error()
	switch {
	case strings.Contains(s, "missing closing )"), strings.Contains(s, "not enough )"):
		return errors.New("missing closing parenthesis")
	case strings.Contains(s, "missing argument to repetition"), strings.Contains(s, "quantifier"):
		return errors.New("quantifier does not follow a repeatable item")
	case strings.Contains(s, "unterminated [] set"):
		return errors.New("missing terminating ] for character class")
	case strings.Contains(s, "range in reverse order"):
		return errors.New("range out of order in character class")
	}
	return err
}

// Linear returns the pattern in the language of Go's engine; ok is false if that cannot have it.
func (p *Pattern) Linear() (pattern string, ok bool) {
	if p.linear == nil {
		return "", false
	}
	return p.linear.String(), true
}

// Match reports whether the pattern matches anywhere.
func (p *Pattern) Match(s []byte) (bool, error) {
	if p.linear != nil {
		return p.linear.Match(s), nil
	}
	re, err := p.full()
	if err != nil {
		return false, err
	}
	ok, err := re.MatchString(string(s))
	return ok, limited(err)
}

// Find returns the first match at or behind a byte, and its groups: pairs of where they begin and end, -1 for those that took no part.
// It is nil when there is none.
func (p *Pattern) Find(s string, start int) ([]int, error) {
	if p.linear != nil && start == 0 && !(p.ends && strings.HasSuffix(s, "\n")) {
		return p.linear.FindStringSubmatchIndex(s), nil
	}
	re, err := p.full()
	if err != nil {
		return nil, err
	}
	m, err := re.FindStringMatchStartingAt(s, start)
	if m == nil || err != nil {
		return nil, limited(err)
	}
	return p.capturesOf(m), nil
}

// All gives visit every match, as Find has it, in the way of MongoDB: each is looked for behind the one before it, a character further where
// that was empty, and none at the end of a text that is not empty. An error of visit ends it, and is its own.
func (p *Pattern) All(s string, visit func(captures []int) error) error {
	captures, err := p.Find(s, 0)
	if captures == nil || err != nil {
		return err
	}
	if err := visit(captures); err != nil {
		return err
	}
	start := behind(s, captures)
	if start >= len(s) {
		return nil
	}
	re, err := p.full() // which goes on where it was, with the text taken apart once
	if err != nil {
		return err
	}
	m, err := re.FindStringMatchStartingAt(s, start)
	for m != nil && err == nil {
		if begin, _ := m.ByteRange(); begin >= start { // not so only where \K has left nothing of the match before
			captures := p.capturesOf(m)
			if err := visit(captures); err != nil {
				return err
			}
			if start = behind(s, captures); start >= len(s) {
				return nil
			}
		}
		m, err = re.FindNextMatch(m)
	}
	return limited(err)
}

// behind returns where the next match is looked for.
func behind(s string, captures []int) int {
	end := captures[1]
	if captures[0] < end {
		return end
	}
	_, n := utf8.DecodeRuneInString(s[end:])
	return end + max(n, 1)
}

// capturesOf returns where a match and its groups lie.
func (p *Pattern) capturesOf(m *regexp2.Match) []int {
	var captures []int
	for i := range m.GroupCount() {
		g := m.GroupByNumber(i)
		begin, end := -1, -1
		if len(g.Captures) > 0 {
			var length int
			begin, length = g.ByteRange()
			end = begin + length
		}
		switch {
		case i == 0 || i != p.reset:
			captures = append(captures, begin, end)
		case begin >= 0:
			captures[0] = min(begin, captures[1]) // a lookahead may be further on
		}
	}
	return captures
}

// limited is the error of a match; nil stays nil.
func limited(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrLimit, err)
}
