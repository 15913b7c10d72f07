package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Control characters are commands to the terminal that shows them. In a database they come from whoever could write to it, and what is printed
// for people, errors included, has them as they are written in programs. get and scan, which print the bytes of keys and values, are another
// matter.

// plain returns a text on one line, without control characters.
func plain(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsControl(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// plainJSON returns JSON without the control characters that may stand in its strings as they are: those of DEL and C1.
func plainJSON(text []byte) []byte {
	const (
		del    = 0x7f
		lead   = 0xc2 // of the two bytes of a control character of C1
		lastC1 = 0x9f
	)
	if bytes.IndexByte(text, del) < 0 && bytes.IndexByte(text, lead) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == del:
			out = fmt.Appendf(out, `\u%04x`, text[i])
		case text[i] == lead && i+1 < len(text) && text[i+1] <= lastC1:
			i++
			out = fmt.Appendf(out, `\u%04x`, text[i])
		default:
			out = append(out, text[i])
		}
	}
	return out
}

// jsonWriter writes whole values of JSON as plainJSON has them.
type jsonWriter struct{ io.Writer }

// Write implements io.Writer.
func (w jsonWriter) Write(p []byte) (int, error) {
	if _, err := w.Writer.Write(plainJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// extended returns a document as Extended JSON.
func extended(doc any, canonical, pretty bool) ([]byte, error) {
	text, err := bson.MarshalExtJSON(doc, canonical, false)
	if err == nil && bytes.Contains(text, []byte(`{"$dbPointer":{"$ref":"`)) {
		text, err = extendedPointers(doc, canonical)
	}
	if err != nil {
		return nil, err
	}
	if text = plainJSON(text); !pretty {
		return text, nil
	}
	var lines bytes.Buffer
	err = json.Indent(&lines, text, "", "  ")
	return lines.Bytes(), err
}

// extendedPointers is extended for documents with the pointers of old databases: the driver writes their names as they are, without what a
// string of JSON needs.
func extendedPointers(doc any, canonical bool) ([]byte, error) {
	raw, err := bson.Marshal(doc)
	if err != nil {
		return nil, err
	}
	var members bson.D
	if err := bson.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	if _, err := quotePointers(members); err != nil {
		return nil, err
	}
	return bson.MarshalExtJSON(members, canonical, false)
}

// quotePointers returns a value in which the names in pointers are written as in JSON.
func quotePointers(value any) (_ any, err error) {
	switch v := value.(type) {
	case bson.D:
		for i := 0; i < len(v) && err == nil; i++ {
			v[i].Value, err = quotePointers(v[i].Value)
		}
	case bson.A:
		for i := 0; i < len(v) && err == nil; i++ {
			v[i], err = quotePointers(v[i])
		}
	case bson.CodeWithScope:
		v.Scope, err = quotePointers(v.Scope)
		return v, err
	case bson.DBPointer:
		name, err := json.Marshal(v.DB)
		if err != nil {
			return nil, err
		}
		v.DB = string(name[1 : len(name)-1])
		return v, nil
	}
	return value, err
}
