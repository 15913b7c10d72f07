package expression

import (
	"bytes"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// spaces is what $trim removes when it is not told: the zero byte and Unicode's spaces, as the manual of the operator lists them.
const spaces = "\x00\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

// parseTrim parses {input: ..., chars: ...}.
func parseTrim(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(50696, "%s only supports an object as an argument, found %s", name, typeName(v))
	}
	operands, err := p.fields(v, &fieldSpec{
		names: []string{"input", "chars"}, required: 1,
		unknown: func(field string) error {
			return mongoerror.New(50694, "%s found an unknown argument: %s", name, field)
		},
		missing: func(string) error { return mongoerror.New(50695, "%s requires an 'input' field", name) },
	})
	if err != nil {
		return nil, err
	}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		input, err := operands[0].eval(st)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if isNullish(input) {
			return null(), nil
		}
		if !isString(input) {
			return bsoncore.Value{}, mongoerror.New(50699, "%s requires its input to be a string, got %s (of type %s) instead.", name, brief(input), typeName(input))
		}
		chars := []byte(spaces)
		if operands[1] != nil {
			set, err := operands[1].eval(st)
			switch {
			case err != nil:
				return bsoncore.Value{}, err
			case isNullish(set):
				return null(), nil
			case !isString(set):
				return bsoncore.Value{}, mongoerror.New(50700, "%s requires 'chars' to be a string, got %s (of type %s) instead.", name, brief(set), typeName(set))
			}
			chars = stringOf(set)
		}
		return text(st, trim(name, stringOf(input), chars))
	}})
}

func trim(name string, s, chars []byte) []byte {
	has := func(char []byte) bool { return bytes.Contains(chars, char) }
	if len(chars) > 2*len(spaces) {
		set := map[string]bool{}
		for rest := chars; len(rest) > 0; {
			_, n := utf8.DecodeRune(rest)
			set[string(rest[:n])] = true
			rest = rest[n:]
		}
		has = func(char []byte) bool { return set[string(char)] }
	}
	for name != "$rtrim" && len(s) > 0 {
		_, n := utf8.DecodeRune(s)
		if !has(s[:n]) {
			break
		}
		s = s[n:]
	}
	for name != "$ltrim" && len(s) > 0 {
		_, n := utf8.DecodeLastRune(s)
		if !has(s[len(s)-n:]) {
			break
		}
		s = s[:len(s)-n]
	}
	return s
}

// parseReplace parses {input: ..., find: ..., replacement: ...}.
func parseReplace(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(51751, "%s requires an object as an argument, found: %s", name, typeName(v))
	}
	names := []string{"input", "find", "replacement"}
	operands, err := p.fields(v, argumentSpec(name, 51750, names, 51749, 51748, 51747))
	if err != nil {
		return nil, err
	}
	return p.fold(&nary{operands, func(st *state, values []bsoncore.Value) (bsoncore.Value, error) {
		codes := []mongoerror.Code{51746, 51745, 51744}
		hasNull := false
		for i, v := range values {
			if !isString(v) && !isNullish(v) {
				return bsoncore.Value{}, mongoerror.New(codes[i], "%s requires that '%s' be a string, found: %s", name, names[i], brief(v))
			}
			hasNull = hasNull || isNullish(v)
		}
		if hasNull {
			return null(), nil
		}
		times := 1
		if name == "$replaceAll" {
			times = -1
		}
		s, find, replacement := stringOf(values[0]), stringOf(values[1]), stringOf(values[2])
		if n := int64(bytes.Count(s, find)) * int64(len(replacement)); times < 0 && n > maxBuilt {
			return bsoncore.Value{}, errMemory(n)
		}
		return text(st, bytes.Replace(s, find, replacement, times))
	}})
}
