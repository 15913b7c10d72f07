package expression

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// buildConcat makes $concat. Constants that are neighbours are joined, for the error that they may be.
func buildConcat(p *parser, name string, operands []node) (node, error) {
	join := func(operands []node) *lazy {
		return &lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) { return evalConcat(st, name, operands) }}
	}
	var joined []node
	for i := 0; i < len(operands); {
		end := i
		for end < len(operands) && allConstant(operands[end:end+1]) {
			end++
		}
		if end-i < 2 || end-i == len(operands) {
			end = max(end, i+1)
			joined = append(joined, operands[i:end]...)
			i = end
			continue
		}
		v, err := p.evalConstant(join(operands[i:end]))
		if err != nil {
			p.later(err)
			joined = append(joined, operands[i:]...)
			break
		}
		joined = append(joined, &constant{v})
		i = end
	}
	return join(joined), nil
}

func evalConcat(st *state, name string, operands []node) (bsoncore.Value, error) {
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	var length int64
	for _, n := range operands {
		v, err := n.eval(st)
		switch {
		case err != nil:
			return bsoncore.Value{}, err
		case isNullish(v):
			return null(), nil
		case !isString(v):
			return bsoncore.Value{}, mongoerror.New(16702, "%s only supports strings, not %s", name, typeName(v))
		}
		length += int64(len(v.Data))
		if err := st.push(v); err != nil {
			return bsoncore.Value{}, err
		}
	}
	if length > maxBuilt {
		return bsoncore.Value{}, errMemory(length)
	}
	joined := make([]byte, 0, length)
	for _, v := range st.stack[base:] {
		joined = append(joined, stringOf(v)...)
	}
	return text(st, joined)
}

// coerce returns the string that the older operators make of a value: numbers, dates and timestamps are written out, null and
// missing are empty.
func coerce(v bsoncore.Value) ([]byte, error) {
	switch v.Type {
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		return stringOf(v), nil
	case 0, bsoncore.TypeNull, bsoncore.TypeUndefined:
		return nil, nil
	case bsoncore.TypeDateTime:
		s, err := isoDate(millis(v))
		return []byte(s), err
	case bsoncore.TypeTimestamp:
		seconds, increment, _ := v.TimestampOK()
		return fmt.Appendf(time.Unix(int64(seconds), 0).UTC().AppendFormat(nil, "Jan _2 15:04:05"), ":%d", increment), nil
	}
	if n, ok := number.Of(v); ok {
		return []byte(n.String()), nil
	}
	return nil, mongoerror.New(16007, "can't convert from BSON type %s to String", typeName(v))
}

// numberText writes a number as $toString does.
func numberText(n number.Number) string {
	if n.Type() != bsoncore.TypeDouble {
		return n.String()
	}
	switch f := n.Float64(); {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	default:
		return strconv.FormatFloat(f, 'g', 6, 64)
	}
}

// isoDate writes a date as $toString does, which has no more than four digits for a year.
func isoDate(ms int64) (string, error) {
	t := time.UnixMilli(ms).UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return "", yearBeyond(t.Year())
	}
	return t.Format("2006-01-02T15:04:05.000Z"), nil
}

// evalCase is $toLower and $toUpper: of ASCII letters only.
func evalCase(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	s, err := coerce(v)
	if err != nil {
		return bsoncore.Value{}, err
	}
	result, err := text(st, s)
	if err != nil {
		return bsoncore.Value{}, err
	}
	first := byte('A')
	if name == "$toUpper" {
		first = 'a'
	}
	for i, c := range stringOf(result) {
		if c-first < 26 {
			result.Data[4+i] = c ^ 0x20
		}
	}
	return result, nil
}

func evalStrcasecmp(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	x, err := coerce(a)
	if err != nil {
		return bsoncore.Value{}, err
	}
	y, err := coerce(b)
	if err != nil {
		return bsoncore.Value{}, err
	}
	return st.int32(bytes.Compare(upperASCII(x), upperASCII(y)))
}

func upperASCII(s []byte) []byte {
	upper := bytes.Clone(s)
	for i, c := range upper {
		if c-'a' < 26 {
			upper[i] = c ^ 0x20
		}
	}
	return upper
}

// evalStrLen is $strLenBytes and $strLenCP.
func evalStrLen(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	if !isString(v) {
		code := mongoerror.Code(34473)
		if name == "$strLenCP" {
			code = 34471
		}
		return bsoncore.Value{}, mongoerror.New(code, "%s requires a string argument, found: %s", name, typeName(v))
	}
	if name == "$strLenCP" {
		return st.int32(utf8.RuneCount(stringOf(v)))
	}
	return st.int32(len(stringOf(v)))
}

func evalBinarySize(st *state, name string, v bsoncore.Value) (bsoncore.Value, error) {
	switch {
	case isNullish(v):
		return null(), nil
	case isString(v):
		return st.int32(len(stringOf(v)))
	case v.Type == bsoncore.TypeBinary:
		_, data, _ := v.BinaryOK()
		return st.int32(len(data))
	}
	return bsoncore.Value{}, mongoerror.New(51276, "%s requires a string or BinData argument, found: %s", name, typeName(v))
}

func evalSplit(st *state, name string, a, b bsoncore.Value) (bsoncore.Value, error) {
	switch {
	case isNullish(a) || isNullish(b):
		return null(), nil
	case !isString(a):
		return bsoncore.Value{}, mongoerror.New(40085, "%s requires an expression that evaluates to a string as a first argument, found: %s", name, typeName(a))
	case !isString(b):
		return bsoncore.Value{}, mongoerror.New(40086, "%s requires an expression that evaluates to a string as a second argument, found: %s", name, typeName(b))
	case len(stringOf(b)) == 0:
		return bsoncore.Value{}, mongoerror.New(40087, "%s requires a non-empty separator", name)
	}
	base := len(st.stack)
	defer func() { st.stack = st.stack[:base] }()
	rest, separator := stringOf(a), stringOf(b)
	for {
		i := bytes.Index(rest, separator)
		part := rest
		if i >= 0 {
			part = rest[:i]
		}
		v, err := text(st, part)
		if err != nil {
			return bsoncore.Value{}, err
		}
		if err := st.push(v); err != nil {
			return bsoncore.Value{}, err
		}
		if i < 0 {
			return st.array(st.stack[base:])
		}
		rest = rest[i+len(separator):]
	}
}

// integral returns an integer that another number may stand for.
func integral(v bsoncore.Value) (i int64, ok bool) {
	n, ok := number.Of(v)
	if !ok {
		return 0, false
	}
	i, exact := n.Int64()
	return i, exact && i == int64(int32(i))
}

// evalIndexOf is $indexOfBytes and $indexOfCP.
func evalIndexOf(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	inCP := name == "$indexOfCP"
	codes := [2]mongoerror.Code{40091, 40092}
	if inCP {
		codes = [2]mongoerror.Code{40093, 40094}
	}
	switch {
	case isNullish(values[0]):
		return null(), nil
	case !isString(values[0]):
		return bsoncore.Value{}, mongoerror.New(codes[0], "%s requires a string as the first argument, found: %s", name, typeName(values[0]))
	case !isString(values[1]):
		return bsoncore.Value{}, mongoerror.New(codes[1], "%s requires a string as the second argument, found: %s", name, typeName(values[1]))
	}
	s, token := stringOf(values[0]), stringOf(values[1])
	length := len(s)
	if inCP {
		length = utf8.RuneCount(s)
	}
	start, end, err := indexRange(name, values[2:], length)
	if err != nil {
		return bsoncore.Value{}, err
	}
	if start > length || end < start || inCP && start >= end && length > 0 {
		return st.int32(-1)
	}
	if !inCP {
		if i := bytes.Index(s[start:end], token); i >= 0 {
			return st.int32(start + i)
		}
		return st.int32(-1)
	}
	first := runeOffset(s, start)
	last := first + runeOffset(s[first:], end-start)
	if i := bytes.Index(s[first:last], token); i >= 0 {
		return st.int32(start + utf8.RuneCount(s[first:first+i]))
	}
	return st.int32(-1)
}

// indexRange reads the optional start and end of $indexOfBytes, $indexOfCP and $indexOfArray.
func indexRange(name string, values []bsoncore.Value, length int) (start, end int, err error) {
	end = length
	for i, what := range []string{"starting", "ending"} {
		if i >= len(values) {
			break
		}
		n, ok := integral(values[i])
		switch {
		case !ok:
			return 0, 0, mongoerror.New(40096, "%s requires an integral %s index, found a value of type: %s, with value: %s",
				name, what, typeName(values[i]), brief(values[i]))
		case n < 0:
			return 0, 0, mongoerror.New(40097, "%s requires a nonnegative %s index, found: %d", name, what, n)
		case i == 0:
			start = int(n)
		default:
			end = min(int(n), length)
		}
	}
	return start, end, nil
}

// runeOffset returns where the n-th code point of s begins, its length when there are less.
func runeOffset(s []byte, n int) int {
	offset := 0
	for ; n > 0 && offset < len(s); n-- {
		_, size := utf8.DecodeRune(s[offset:])
		offset += size
	}
	return offset
}

// evalSubstrBytes is $substr and $substrBytes.
func evalSubstrBytes(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	s, err := coerce(values[0])
	if err != nil {
		return bsoncore.Value{}, err
	}
	start, ok := number.Of(values[1])
	if !ok {
		return bsoncore.Value{}, mongoerror.New(16034, "%s:  starting index must be a numeric type (is BSON type %s)", name, typeName(values[1]))
	}
	length, ok := number.Of(values[2])
	if !ok {
		return bsoncore.Value{}, mongoerror.New(16035, "%s:  length must be a numeric type (is BSON type %s)", name, typeName(values[2]))
	}
	from, _ := start.Int64()
	n, _ := length.Int64()
	if from < 0 {
		return bsoncore.Value{}, mongoerror.New(50752, "%s:  starting index must be non-negative (got: %d)", "$substrBytes", from)
	}
	if from >= int64(len(s)) {
		return st.text("")
	}
	if continuation(s[from]) {
		return bsoncore.Value{}, mongoerror.New(28656, "%s:  Invalid range, starting index is a UTF-8 continuation byte.", "$substrBytes")
	}
	rest := s[from:]
	if n < 0 || n >= int64(len(rest)) {
		return text(st, rest)
	}
	if continuation(rest[n]) {
		return bsoncore.Value{}, mongoerror.New(28657, "%s:  Invalid range, ending index is in the middle of a UTF-8 character.", "$substrBytes")
	}
	return text(st, rest[:n])
}

func continuation(c byte) bool { return c&0xc0 == 0x80 }

func evalSubstrCP(st *state, name string, values []bsoncore.Value) (bsoncore.Value, error) {
	s, err := coerce(values[0])
	if err != nil {
		return bsoncore.Value{}, err
	}
	for i, codes := range [][2]mongoerror.Code{{34450, 34451}, {34452, 34453}} {
		what := []string{"starting index", "length"}[i]
		if _, ok := number.Of(values[i+1]); !ok {
			return bsoncore.Value{}, mongoerror.New(codes[0], "%s: %s must be a numeric type (is BSON type %s)", name, what, typeName(values[i+1]))
		}
		if _, ok := integral(values[i+1]); !ok {
			return bsoncore.Value{}, mongoerror.New(codes[1], "%s: %s cannot be represented as a 32-bit integral value: %s", name, what, brief(values[i+1]))
		}
	}
	start, _ := integral(values[1])
	length, _ := integral(values[2])
	if length < 0 {
		return bsoncore.Value{}, mongoerror.New(34454, "%s: length must be a nonnegative integer.", name)
	}
	if start < 0 {
		return bsoncore.Value{}, mongoerror.New(34455, "%s: the starting index must be nonnegative integer.", name)
	}
	rest := s[runeOffset(s, int(start)):]
	return text(st, rest[:runeOffset(rest, int(length))])
}
