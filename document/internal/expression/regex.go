package expression

import (
	"regexp"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

const (
	// matchTimeout bounds patterns that backtrack without end.
	matchTimeout  = 500 * time.Millisecond
	longestRegex  = 32764
	regexFlags    = "imsxu"
	maxBacktracks = 1 << 20 // slots of the stack of one match
)

// pattern is a compiled regular expression: by Go's engine, whose time is linear, where it understands the pattern as PCRE
// does, and by one that backtracks.
type pattern struct {
	source, flags string
	linear        *regexp.Regexp
	dollar        bool // "$" also matches before a newline at the end, which the linear engine does not know
	full          *regexp2.Regexp
}

// found is a match in bytes; captures are pairs, -1 for groups that took no part.
type found struct{ captures []int }

func compileRegex(name, source, flags string) (*pattern, error) {
	if strings.IndexByte(source, 0) >= 0 {
		return nil, mongoerror.New(51109, "%s: regular expression cannot contain an embedded null byte", name)
	}
	if strings.IndexByte(flags, 0) >= 0 {
		return nil, mongoerror.New(51110, "%s: regular expression options cannot contain an embedded null byte", name)
	}
	r := &pattern{source: source, flags: flags}
	prefix, options := "", regexp2.RE2
	for _, c := range flags {
		switch c {
		case 'i':
			options |= regexp2.IgnoreCase
		case 'm':
			options |= regexp2.Multiline
		case 's':
			options |= regexp2.Singleline
		case 'x':
			options |= regexp2.IgnorePatternWhitespace
		case 'u':
			continue
		}
		prefix += string(c)
	}
	if len(source) > longestRegex {
		return nil, mongoerror.New(51111, "Invalid Regex in %s: regular expression is too large", name)
	}
	translated := source
	if !strings.Contains(flags, "m") {
		translated, r.dollar = translateDollar(source)
	}
	var err error
	if r.full, err = regexp2.Compile(translated, options, regexp2.OptionMaintainCaptureOrder(), regexp2.OptionMaxBacktrackingStackSize(maxBacktracks)); err != nil {
		return nil, mongoerror.New(51111, "Invalid Regex in %s: %s", name, err)
	}
	r.full.MatchTimeout = matchTimeout
	if strings.Contains(flags, "x") || strings.Contains(source, `\Z`) || strings.Contains(source, `[[:`) {
		return r, nil
	}
	if prefix != "" {
		source = "(?" + prefix + ")" + source
	}
	if linear, err := regexp.Compile(source); err == nil {
		r.linear = linear
	}
	return r, nil
}

// translateDollar writes "$" as PCRE means it: at the end, or before a newline there.
func translateDollar(source string) (translated string, has bool) {
	var b strings.Builder
	class := false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\' && i+1 < len(source):
			b.WriteByte(c)
			i++
			b.WriteByte(source[i])
			continue
		case c == '[' && !class:
			class = true
			if i+1 < len(source) && source[i+1] == ']' { // a bracket that is the first of its class
				b.WriteString("[]")
				i++
				continue
			}
		case c == ']':
			class = false
		case c == '$' && !class:
			has = true
			b.WriteString(`(?=\n?\z)`)
			continue
		}
		b.WriteByte(source[i])
	}
	return b.String(), has
}

// find returns the first match at or after a byte; nil when there is none.
func (r *pattern) find(name string, s string, start int) (*found, error) {
	if r.linear != nil && start == 0 && !(r.dollar && strings.HasSuffix(s, "\n")) {
		captures := r.linear.FindStringSubmatchIndex(s)
		if captures == nil {
			return nil, nil
		}
		return &found{captures}, nil
	}
	m, err := r.full.FindStringMatchStartingAt(s, start)
	if err != nil {
		return nil, mongoerror.New(51156, "Error occurred while executing the regular expression in %s. Result code: -8", name)
	}
	if m == nil {
		return nil, nil
	}
	f := &found{}
	for i := range m.GroupCount() {
		g := m.GroupByNumber(i)
		if len(g.Captures) == 0 {
			f.captures = append(f.captures, -1, -1)
			continue
		}
		begin, length := g.ByteRange()
		f.captures = append(f.captures, begin, begin+length)
	}
	return f, nil
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
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
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
	}})
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
	if name != "$regexFindAll" {
		f, err := r.find(name, s, 0)
		switch {
		case err != nil:
			return bsoncore.Value{}, err
		case name == "$regexMatch":
			return st.boolean(f != nil), nil
		case f == nil:
			return null(), nil
		}
		return matchDocument(st, f, s)
	}
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	for start := 0; start == 0 || start < len(s); {
		f, err := r.find(name, s, start)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if f == nil {
			break
		}
		v, err := matchDocument(st, f, s)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.push(v); err != nil {
			return bsoncore.Value{}, err
		}
		if start = f.captures[1]; f.captures[0] == start { // an empty match: go on behind the next character
			_, n := utf8.DecodeRuneInString(s[start:])
			start += max(n, 1)
		}
	}
	return st.array(st.stack[base:])
}

// matchDocument is {match: ..., idx: ..., captures: [...]}.
func matchDocument(st *state, f *found, s string) (bsoncore.Value, error) {
	match, err := st.text(s[f.captures[0]:f.captures[1]])
	if err != nil {
		return bsoncore.Value{}, err
	}
	idx, err := st.int32(utf8.RuneCountInString(s[:f.captures[0]]))
	if err != nil {
		return bsoncore.Value{}, err
	}
	captures := make([]bsoncore.Value, 0, len(f.captures)/2)
	for i := 2; i < len(f.captures); i += 2 {
		v := null()
		if f.captures[i] >= 0 {
			if v, err = st.text(s[f.captures[i]:f.captures[i+1]]); err != nil {
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
