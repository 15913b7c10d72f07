package expression

import (
	"errors"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/pcre"
)

const regexFlags = "imsxu"

// pattern is a compiled regular expression, and what it was compiled of.
type pattern struct {
	*pcre.Pattern
	source, flags string
}

func compileRegex(name, source, flags string) (*pattern, error) {
	if strings.IndexByte(source, 0) >= 0 {
		return nil, mongoerror.New(51109, "%s: regular expression cannot contain an embedded null byte", name)
	}
	if strings.IndexByte(flags, 0) >= 0 {
		return nil, mongoerror.New(51110, "%s: regular expression options cannot contain an embedded null byte", name)
	}
	compiled, err := pcre.Compile(source, flags)
	if err != nil {
		return nil, mongoerror.New(51111, "Invalid Regex in %s: %s", name, err)
	}
	return &pattern{compiled, source, flags}, nil
}

// failedMatch is the error of a match that the limits of patterns ended. Others stay as they are.
func failedMatch(name string, err error) error {
	if errors.Is(err, pcre.ErrLimit) {
		return mongoerror.New(51156, "Error occurred while executing the regular expression in %s. Result code: -8", name)
	}
	return err
}

// parseRegex parses {input: ..., regex: ..., options: ...}.
func parseRegex(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(51103, "%s expects an object of named arguments but found: %s", name, typeName(v))
	}
	operands, err := p.fields(v, &fieldSpec{
		names: []string{"input", "regex", "options"}, required: 2,
		unknown: func(field string) error {
			return mongoerror.New(31024, "%s found an unknown argument: %s", name, field)
		},
		missing: func(field string) error {
			code := map[string]mongoerror.Code{"input": 31022, "regex": 31023}[field]
			return mongoerror.New(code, "%s requires '%s' parameter", name, field)
		},
	})
	if err != nil {
		return nil, err
	}
	last := &atomic.Pointer[pattern]{} // patterns hardly ever differ from document to document
	if regex, ok := isConstant(operands[1]); ok {
		options := bsoncore.Value{}
		constantOptions := true
		if operands[2] != nil {
			options, constantOptions = isConstant(operands[2])
		}
		if constantOptions {
			if _, err := regexOf(name, regex, options, last); err != nil {
				p.later(err)
			}
		}
	}
	// MongoDB compiles constant patterns ahead, and matches no constants with them: what would fail then fails only on a document.
	return &volatile{lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		values, err := evalAll(st, operands)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if !isNullish(values[0]) && !isString(values[0]) {
			return bsoncore.Value{}, mongoerror.New(51104, "%s needs 'input' to be of type string", name)
		}
		r, err := regexOf(name, values[1], values[2], last)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if r == nil || isNullish(values[0]) {
			return noMatch(st, name)
		}
		return matchRegex(st, name, r, string(stringOf(values[0])))
	}}}, nil
}

func noMatch(st *state, name string) (bsoncore.Value, error) {
	switch name {
	case "$regexMatch":
		return st.boolean(false), nil
	case "$regexFindAll":
		return st.array(nil)
	}
	return null(), nil
}

// regexOf compiles the pattern of an operand; nil when that is null.
func regexOf(name string, regex, options bsoncore.Value, last *atomic.Pointer[pattern]) (*pattern, error) {
	var source, flags string
	switch {
	case isNullish(regex):
	case isString(regex):
		source = string(stringOf(regex))
	case regex.Type == bsoncore.TypeRegex:
		source, flags, _ = regex.RegexOK()
	default:
		return nil, mongoerror.New(51105, "%s needs 'regex' to be of type string or regex", name)
	}
	if !isNullish(options) {
		if !isString(options) {
			return nil, mongoerror.New(51106, "%s needs 'options' to be of type string", name)
		}
		if flags != "" {
			return nil, mongoerror.New(51107, "%s: found regex option(s) specified in both 'regex' and 'option' fields", name)
		}
		flags = string(stringOf(options))
	}
	if i := strings.IndexFunc(flags, func(c rune) bool { return !strings.ContainsRune(regexFlags, c) }); i >= 0 {
		return nil, mongoerror.New(51108, "%s invalid flag in regex options: %c", name, flags[i])
	}
	if isNullish(regex) {
		return nil, nil
	}
	if r := last.Load(); r != nil && r.source == source && r.flags == flags {
		return r, nil
	}
	r, err := compileRegex(name, source, flags)
	if err != nil {
		return nil, err
	}
	last.Store(r)
	return r, nil
}

func matchRegex(st *state, name string, r *pattern, s string) (bsoncore.Value, error) {
	work := len(s)
	if _, linear := r.Linear(); !linear {
		work = 32 * callWork // it may go on for half a second
	}
	if err := st.charge(work); err != nil {
		return bsoncore.Value{}, err
	}
	if name != "$regexFindAll" {
		f, err := r.Find(s, 0)
		switch {
		case err != nil:
			return bsoncore.Value{}, failedMatch(name, err)
		case name == "$regexMatch":
			return st.boolean(f != nil), nil
		case f == nil:
			return null(), nil
		}
		return matchDocument(st, f, s, utf8.RuneCountInString(s[:f[0]]))
	}
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	at, characters := 0, 0 // in front of the last match
	err := r.All(s, func(f []int) error {
		if f[0] < at {
			at, characters = 0, 0
		}
		at, characters = f[0], characters+utf8.RuneCountInString(s[at:f[0]])
		v, err := matchDocument(st, f, s, characters)
		if err != nil {
			return err
		}
		return st.push(v)
	})
	if err != nil {
		return bsoncore.Value{}, failedMatch(name, err)
	}
	return st.array(st.stack[base:])
}

// matchDocument is {match: ..., idx: ..., captures: [...]}.
func matchDocument(st *state, f []int, s string, index int) (bsoncore.Value, error) {
	match, err := st.text(s[f[0]:f[1]])
	if err != nil {
		return bsoncore.Value{}, err
	}
	idx, err := st.int32(index)
	if err != nil {
		return bsoncore.Value{}, err
	}
	captures := make([]bsoncore.Value, 0, len(f)/2)
	for i := 2; i < len(f); i += 2 {
		v := null()
		if f[i] >= 0 {
			if v, err = st.text(s[f[i]:f[i+1]]); err != nil {
				return bsoncore.Value{}, err
			}
		}
		captures = append(captures, v)
	}
	list, err := st.array(captures)
	if err != nil {
		return bsoncore.Value{}, err
	}
	return st.document([]string{"match", "idx", "captures"}, []bsoncore.Value{match, idx, list})
}
