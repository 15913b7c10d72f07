package query

import (
	"bytes"
	"regexp/syntax"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/pcre"
)

// Codes without a name that are about regular expressions.
const (
	bothOptions    mongoerror.Code = 51075
	invalidRegex   mongoerror.Code = 51091
	invalidFlag    mongoerror.Code = 51108
	regexTakesLong mongoerror.Code = 51156
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
	r := &Regex{Path: name, Pattern: pattern, Options: options}
	return r, r.compile()
}

func (n *Regex) compile() error {
	compiled, err := pcre.Compile(n.Pattern, n.Options)
	if err != nil {
		return mongoerror.New(invalidRegex, "Regular expression is invalid: %s", err)
	}
	if linear, ok := compiled.Linear(); ok {
		n.analyse(linear)
	}
	if n.engine == nil {
		n.engine = patternEngine{compiled, n.Pattern}
	}
	return nil
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

// patternEngine has all of PCRE's language.
type patternEngine struct {
	*pcre.Pattern
	source string
}

func (e patternEngine) match(s []byte) (bool, error) {
	ok, err := e.Match(s)
	if err != nil {
		shown := notation.Brief(bsoncore.Value{Type: bsoncore.TypeRegex, Data: bsoncore.AppendRegex(nil, e.source, "")})
		return false, &mongoerror.Error{Code: regexTakesLong, Cause: err, Message: "Error occurred while executing the regular expression " +
			shown + " on a string of the document: it exceeded the limits of time or memory for patterns with lookaround or backreferences"}
	}
	return ok, nil
}
