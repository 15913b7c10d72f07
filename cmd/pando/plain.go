package main

import (
	"bytes"
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
	marshal := bson.MarshalExtJSON
	if pretty {
		marshal = func(doc any, canonical, escapeHTML bool) ([]byte, error) {
			return bson.MarshalExtJSONIndent(doc, canonical, escapeHTML, "", "  ")
		}
	}
	text, err := marshal(doc, canonical, false)
	return plainJSON(text), err
}
