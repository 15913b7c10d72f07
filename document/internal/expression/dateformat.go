package expression

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

const (
	// defaultFormat says UTC even when there is a time zone, as the server has it.
	defaultFormat = "%Y-%m-%dT%H:%M:%S.%LZ"
	// printed and read are the letters that $dateToString and $dateFromString know.
	printed = "bBdGHjLmMSuUVwYzZ%"
	read    = "bBdGHjLmMSuVYzZ%"
)

// checkFormat checks the letters behind the percent signs.
func checkFormat(format, letters string) error {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) {
			return mongoerror.New(18535, "Unmatched '%%' at end of format string")
		}
		if strings.IndexByte(letters, format[i]) < 0 {
			return mongoerror.New(18536, "Invalid format character '%%%c' in format string", format[i])
		}
	}
	return nil
}

// parseDateToString parses {date: ..., format: ..., timezone: ..., onNull: ...}.
func parseDateToString(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(18629, "%s only supports an object as its argument", name)
	}
	operands, err := p.fields(v, &fieldSpec{
		names: []string{"date", "format", "timezone", "onNull"}, required: 1,
		unknown: func(field string) error { return mongoerror.New(18534, "Unrecognized argument to %s: %s", name, field) },
		missing: func(string) error { return mongoerror.New(18628, "Missing 'date' parameter to %s", name) },
	})
	if err != nil {
		return nil, err
	}
	z := &zone{}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		return dateToString(st, z, operands)
	}})
}

func dateToString(st *state, z *zone, operands []node) (bsoncore.Value, error) {
	date, err := operands[0].eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	values, err := evalAll(st, operands[1:3])
	if err != nil {
		return bsoncore.Value{}, err
	}
	format := defaultFormat
	if operands[1] != nil && !isNullish(values[0]) {
		if !isString(values[0]) {
			return bsoncore.Value{}, mongoerror.New(18533, "$dateToString requires that 'format' be a string, found: %s with value %s", typeName(values[0]), brief(values[0]))
		}
		format = string(stringOf(values[0]))
		if err := checkFormat(format, printed); err != nil {
			return bsoncore.Value{}, err
		}
	}
	location, ok, err := z.of(values[1], operands[2] != nil)
	switch {
	case err != nil:
		return bsoncore.Value{}, err
	case isNullish(date) && operands[3] != nil:
		return operands[3].eval(st)
	case isNullish(date) || !ok || operands[1] != nil && isNullish(values[0]):
		return null(), nil
	}
	ms, err := dateOf(date)
	if err != nil {
		return bsoncore.Value{}, err
	}
	b, err := appendDate(make([]byte, 0, len(format)+16), at(ms, location), format)
	if err != nil {
		return bsoncore.Value{}, err
	}
	return text(st, b)
}

// appendDate writes a date; the format was checked.
func appendDate(b []byte, t time.Time, format string) ([]byte, error) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		i++
		year, name := 0, ""
		switch format[i] {
		case 'Y', 'G':
			name = "$year"
			if format[i] == 'G' {
				name = "$isoWeekYear"
			}
			if year = datePart(name, t); year < 0 || year > mostYear {
				return nil, yearBeyond(year)
			}
			b = fmt.Appendf(b, "%04d", year)
		case 'z', 'Z':
			b = appendOffset(b, t, format[i])
		case '%':
			b = append(b, '%')
		case 'b':
			b = append(b, t.Month().String()[:3]...)
		case 'B':
			b = append(b, t.Month().String()...)
		default:
			b = appendPart(b, t, format[i])
		}
	}
	return b, nil
}

// appendPart writes a numeric part.
func appendPart(b []byte, t time.Time, letter byte) []byte {
	width, name := 2, ""
	switch letter {
	case 'd':
		name = "$dayOfMonth"
	case 'H':
		name = "$hour"
	case 'j':
		width, name = 3, "$dayOfYear"
	case 'L':
		width, name = 3, "$millisecond"
	case 'm':
		name = "$month"
	case 'M':
		name = "$minute"
	case 'S':
		name = "$second"
	case 'u':
		width, name = 1, "$isoDayOfWeek"
	case 'U':
		name = "$week"
	case 'V':
		name = "$isoWeek"
	case 'w':
		width, name = 1, "$dayOfWeek"
	}
	return fmt.Appendf(b, "%0*d", width, datePart(name, t))
}

func appendOffset(b []byte, t time.Time, letter byte) []byte {
	_, seconds := t.Zone()
	minutes := seconds / 60
	sign := byte('+')
	if letter == 'Z' {
		return strconv.AppendInt(b, int64(minutes), 10)
	}
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	return fmt.Appendf(append(b, sign), "%02d%02d", minutes/60, minutes%60)
}

// parseDateFromString parses {dateString: ..., format: ..., timezone: ..., onError: ..., onNull: ...}.
func parseDateFromString(p *parser, name string, v bsoncore.Value) (node, error) {
	if !isObject(v) {
		return nil, mongoerror.New(40540, "%s only supports an object as an argument, found: %s", name, typeName(v))
	}
	operands, err := p.fields(v, &fieldSpec{
		names: []string{"dateString", "format", "timezone", "onError", "onNull"}, required: 1,
		unknown: func(field string) error { return mongoerror.New(40541, "Unrecognized argument to %s: %s", name, field) },
		missing: func(string) error { return mongoerror.New(40542, "Missing 'dateString' parameter to %s", name) },
	})
	if err != nil {
		return nil, err
	}
	z := &zone{}
	return p.fold(&lazy{operands, func(st *state, operands []node) (bsoncore.Value, error) {
		return dateFromString(st, z, operands)
	}})
}

func dateFromString(st *state, z *zone, operands []node) (bsoncore.Value, error) {
	values, err := evalAll(st, operands[:3])
	if err != nil {
		return bsoncore.Value{}, err
	}
	format := ""
	if operands[1] != nil && !isNullish(values[1]) {
		if !isString(values[1]) {
			return bsoncore.Value{}, mongoerror.New(40684, "$dateFromString requires that 'format' be a string, found: %s with value %s", typeName(values[1]), brief(values[1]))
		}
		format = string(stringOf(values[1]))
		if err := checkFormat(format, read); err != nil {
			return bsoncore.Value{}, err
		}
	}
	var ms int64
	location, ok, err := z.of(values[2], operands[2] != nil)
	switch {
	case err != nil:
		return bsoncore.Value{}, err
	case isNullish(values[0]) && operands[4] != nil:
		return operands[4].eval(st)
	case isNullish(values[0]):
		return null(), nil
	case !isString(values[0]):
		err = failure("$dateFromString requires that 'dateString' be a string, found: %s with value %s", typeName(values[0]), brief(values[0]))
	case !ok || operands[1] != nil && isNullish(values[1]):
		return null(), nil
	case operands[1] != nil:
		ms, err = parseDateFormat(string(stringOf(values[0])), format, location, operands[2] != nil)
	default:
		ms, err = parseDate(string(stringOf(values[0])), location, operands[2] != nil)
	}
	if mongoerror.CodeOf(err) == mongoerror.ConversionFailure && operands[3] != nil {
		return operands[3].eval(st)
	}
	if err != nil {
		return bsoncore.Value{}, err
	}
	return st.date(ms)
}

// yearBeyond is the error of a date that is to become text, and has a year that text cannot have.
func yearBeyond(year int) error {
	return mongoerror.New(18537, "Could not convert date to string: date component was outside the supported range of 0-9999: %d", year)
}
