package shelltext

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// word reads a literal or a constructor, with or without "new" in front.
func (p *parser) word(depth int) error {
	start := p.at
	name := p.name(isNamePart)
	if name == "new" {
		p.space()
		name = p.name(isNamePart)
	}
	p.space()
	if p.peek() != '(' {
		return p.literal(start, name)
	}
	args, err := p.arguments(depth)
	if err != nil {
		return err
	}
	return p.construct(name, args)
}

// literal writes a value that is a word.
func (p *parser) literal(start int, name string) error {
	switch name {
	case "true", "false", "null":
		p.out.WriteString(name)
	case "undefined":
		p.out.WriteString(`{"$undefined":true}`)
	case "NaN", "Infinity":
		p.wrap("$numberDouble", name)
	case "MinKey":
		p.out.WriteString(`{"$minKey":1}`)
	case "MaxKey":
		p.out.WriteString(`{"$maxKey":1}`)
	case "":
		return p.unexpected("a value")
	default:
		p.at = start
		return p.errorf("%s is no value: strings have quotes", name)
	}
	return nil
}

// arguments reads values in parentheses, each as Extended JSON.
func (p *parser) arguments(depth int) ([]string, error) {
	before := p.out
	p.out = bytes.Buffer{}
	var args []string
	err := p.list(')', func() error {
		p.out.Reset()
		if err := p.value(depth + 1); err != nil {
			return err
		}
		args = append(args, p.out.String())
		return nil
	})
	p.out = before
	return args, err
}

// construct writes the value of a constructor.
func (p *parser) construct(name string, args []string) error {
	texts := make([]string, len(args))
	for i, a := range args {
		if texts[i] = plain(a); name == "RegExp" && a[0] != '"' {
			return p.errorf("RegExp takes strings") // the Extended JSON of another one, as a pattern, would double at each level
		}
	}
	one := strings.Join(texts, ",")
	if len(args) > 1 && name != "Timestamp" && name != "BinData" && name != "RegExp" {
		return p.errorf("%s takes one value", name)
	}
	switch name {
	case "ObjectId":
		return p.objectID(one, len(args))
	case "ISODate", "Date":
		return p.date(name, one, len(args))
	case "NumberLong", "Long":
		return p.integer(name, "$numberLong", one, 64)
	case "NumberInt", "Int32":
		return p.integer(name, "$numberInt", one, 32)
	case "NumberDecimal", "Decimal128":
		if _, err := bson.ParseDecimal128(one); err != nil {
			return p.errorf("%s(%q): %v", name, one, err)
		}
		p.wrap("$numberDecimal", one)
	case "Double":
		v, err := strconv.ParseFloat(one, 64)
		if err != nil {
			return p.errorf("Double(%q) is no number", one)
		}
		p.out.WriteString(double(v))
	case "MinKey", "MaxKey":
		return p.literal(p.at, name)
	case "UUID":
		return p.uuid(one, len(args))
	default:
		return p.several(name, texts)
	}
	return nil
}

// uuid writes a UUID: a random one, of version 4, when none is given.
func (p *parser) uuid(text string, given int) error {
	b := make([]byte, 16)
	if given == 0 {
		_, _ = rand.Read(b) // it never fails
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		p.binary(4, b)
		return nil
	}
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != 16 {
		return p.errorf("UUID(%q): 32 hexadecimal digits are expected", text)
	}
	p.binary(4, b)
	return nil
}

// several writes the value of a constructor with more than one argument.
func (p *parser) several(name string, args []string) error {
	switch {
	case name == "RegExp" && (len(args) == 1 || len(args) == 2):
		return p.writePattern(args[0], strings.Join(args[1:], ""))
	case name == "BinData" && len(args) == 2:
		kind, err := strconv.ParseUint(args[0], 10, 8)
		if err != nil {
			return p.errorf("BinData: %q is no subtype", args[0])
		}
		b, err := base64.StdEncoding.DecodeString(args[1])
		if err != nil {
			return p.errorf("BinData: %q is not base64", args[1])
		}
		p.binary(byte(kind), b)
	case name == "Timestamp" && len(args) == 2:
		t, err := strconv.ParseUint(args[0], 10, 32)
		if err != nil {
			return p.errorf("Timestamp: %q is no number of seconds", args[0])
		}
		i, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return p.errorf("Timestamp: %q is no number", args[1])
		}
		fmt.Fprintf(&p.out, `{"$timestamp":{"t":%d,"i":%d}}`, t, i)
	case name == "RegExp" || name == "BinData" || name == "Timestamp":
		return p.errorf("%s takes two values", name)
	default:
		return p.errorf("there is no %q to make a value with", name)
	}
	return nil
}

func (p *parser) objectID(text string, given int) error {
	if given == 0 {
		p.wrap("$oid", bson.NewObjectIDFromTimestamp(p.now).Hex())
		return nil
	}
	if b, err := hex.DecodeString(text); err != nil || len(b) != len(bson.ObjectID{}) {
		return p.errorf("ObjectId(%q): 24 hexadecimal digits are expected", text)
	}
	p.wrap("$oid", text)
	return nil
}

func (p *parser) integer(name, wrapper, text string, bits int) error {
	v, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return p.errorf("%s(%q) is no integer of %d bits", name, text, bits)
	}
	p.wrap(wrapper, strconv.FormatInt(v, 10))
	return nil
}

func (p *parser) binary(kind byte, b []byte) {
	fmt.Fprintf(&p.out, `{"$binary":{"base64":"%s","subType":"%02x"}}`, base64.StdEncoding.EncodeToString(b), kind)
}

// date writes a moment: that of a text, of a number of milliseconds, or now.
func (p *parser) date(name, text string, given int) error {
	when := p.now
	if given > 0 {
		if ms, err := strconv.ParseInt(text, 10, 64); err == nil && name == "Date" {
			p.out.WriteString(millis(ms))
			return nil
		}
		found := false
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02"} {
			if t, err := time.Parse(layout, strings.Replace(text, " ", "T", 1)); err == nil {
				when, found = t, true
				break
			}
		}
		if !found {
			return p.errorf("%s(%q) is no date such as 2013-07-04T12:00:00Z", name, text)
		}
	}
	p.out.WriteString(millis(when.UnixMilli()))
	return nil
}

// millis is a date as Extended JSON.
func millis(ms int64) string { return fmt.Sprintf(`{"$date":{"$numberLong":"%d"}}`, ms) }

// double is a double as Extended JSON.
func double(v float64) string {
	return `{"$numberDouble":"` + strconv.FormatFloat(v, 'g', -1, 64) + `"}`
}

// plain returns the text of a string, and of anything else its Extended JSON.
func plain(arg string) string {
	var s string
	if json.Unmarshal([]byte(arg), &s) == nil {
		return s
	}
	return arg
}
