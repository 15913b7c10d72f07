package query

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Codes without a name that are about regular expressions.
const (
	bothOptions      mongoerror.Code = 51075
	invalidRegex     mongoerror.Code = 51091
	invalidFlag      mongoerror.Code = 51108
	regexTakesLong   mongoerror.Code = 51156
	longestPattern                   = 32764 // bytes, as PCRE is built for MongoDB
	regexTimeout                     = 500 * time.Millisecond
	backtrackingSize                 = 1 << 20 // slots of the stack that a match may use
)

// engine matches strings.
type engine interface {
	match(s []byte) (bool, error)
}

// newRegex compiles a regular expression.
func newRegex(name, pattern, options string) (*Regex, error) {
	if strings.IndexByte(pattern, 0) >= 0 || strings.IndexByte(options, 0) >= 0 {
		return nil, badValue("Regular expression cannot contain an embedded null byte")
	}
	for _, c := range options {
		if !strings.ContainsRune("imsxu", c) {
			return nil, mongoerror.New(invalidFlag, " invalid flag in regex options: %c", c)
		}
	}
	if len(pattern) > longestPattern {
		return nil, mongoerror.New(invalidRegex, "Regular expression is invalid: regular expression is too large")
	}
	r := &Regex{Path: name, Pattern: pattern, Options: options}
	return r, r.compile()
}

func (n *Regex) compile() error {
	flags := ""
	for _, c := range []byte("ims") {
		if strings.IndexByte(n.Options, c) >= 0 {
			flags += string(c)
		}
	}
	t := translator{src: n.Pattern, extended: strings.Contains(n.Options, "x"), multiline: strings.Contains(n.Options, "m")}
	if linear, ok := t.translate(); ok {
		if flags != "" {
			linear = "(?" + flags + ")" + linear
		}
		if re, err := regexp.Compile(linear); err == nil && !t.twice && (!t.multiline || !t.begins || !re.MatchString("")) {
			n.analyse(linear)
			if n.engine == nil {
				n.engine = linearEngine{re}
			}
			return nil
		}
	}
	t.backtracking = true
	pattern, _ := t.translate()
	if t.twice {
		return mongoerror.New(invalidRegex, "Regular expression is invalid: two named subpatterns have the same name")
	}
	options := regexp2.None
	for _, c := range flags {
		switch c {
		case 'i':
			options |= regexp2.IgnoreCase
		case 'm':
			options |= regexp2.Multiline
		case 's':
			options |= regexp2.Singleline
		}
	}
	re, err := regexp2.Compile(pattern, options, regexp2.OptionMaintainCaptureOrder(),
		regexp2.OptionMaxBacktrackingStackSize(backtrackingSize))
	if err != nil {
		return mongoerror.New(invalidRegex, "Regular expression is invalid: %s", regexProblem(err))
	}
	re.MatchTimeout = regexTimeout
	n.engine = &backtrackingEngine{re, n.Pattern}
	return nil
}

// regexProblem returns what is wrong with a pattern, in PCRE's words where they are well known.
func regexProblem(err error) string {
	s := err.Error()
	switch {
	case strings.Contains(s, "missing closing )"), strings.Contains(s, "not enough )"):
		return "missing closing parenthesis"
	case strings.Contains(s, "missing argument to repetition"), strings.Contains(s, "quantifier"):
		return "quantifier does not follow a repeatable item"
	}
	return s
}

// analyse finds the literal with which all matches start, and whether comparing bytes does.
func (n *Regex) analyse(pattern string) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return
	}
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	anchored := parts[0].Op == syntax.OpBeginText
	if anchored {
		parts = parts[1:]
	}
	var literal string
	for len(parts) > 0 && parts[0].Op == syntax.OpLiteral && parts[0].Flags&syntax.FoldCase == 0 {
		literal += string(parts[0].Rune)
		parts = parts[1:]
	}
	if literal == "" {
		return
	}
	whole := len(parts) == 0 || len(parts) == 1 && isAnything(parts[0])
	if anchored {
		n.Prefix, n.Exact = literal, whole
	}
	if whole {
		n.engine = literalEngine{[]byte(literal), anchored}
	}
}

// isAnything reports whether a part is .*, which the empty string matches.
func isAnything(part *syntax.Regexp) bool {
	return part.Op == syntax.OpStar && (part.Sub[0].Op == syntax.OpAnyChar || part.Sub[0].Op == syntax.OpAnyCharNotNL)
}

// test matches strings, and a regular expression that is the very same.
func (n *Regex) test(v bsoncore.Value, _ *int) (bool, error) {
	switch v.Type {
	case bsoncore.TypeString, bsoncore.TypeSymbol:
		return n.engine.match(v.Data[4 : len(v.Data)-1])
	case bsoncore.TypeRegex:
		pattern, options := v.Regex()
		return pattern == n.Pattern && options == n.Options, nil
	}
	return false, nil
}

// linearEngine is the standard library's: its time is linear.
type linearEngine struct{ re *regexp.Regexp }

func (e linearEngine) match(s []byte) (bool, error) { return e.re.Match(s), nil }

// literalEngine looks for a string, at the beginning or anywhere.
type literalEngine struct {
	literal  []byte
	anchored bool
}

func (e literalEngine) match(s []byte) (bool, error) {
	if e.anchored {
		return bytes.HasPrefix(s, e.literal), nil
	}
	return bytes.Contains(s, e.literal), nil
}

// backtrackingEngine has lookaround and backreferences, and limits of time and memory.
type backtrackingEngine struct {
	re      *regexp2.Regexp
	pattern string
}

func (e *backtrackingEngine) match(s []byte) (bool, error) {
	ok, err := e.re.MatchString(string(s))
	if err != nil {
		shown := e.pattern
		if len(shown) > longestShown {
			shown = shown[:longestShown] + "..."
		}
		return false, &mongoerror.Error{Code: regexTakesLong, Cause: err, Message: "Error occurred while executing the regular expression /" +
			shown + "/ on a string of the document: it exceeded the limits of time or memory for patterns with lookaround or backreferences"}
	}
	return ok, nil
}
