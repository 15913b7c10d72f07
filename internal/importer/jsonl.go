package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// jsonReader reads JSON lines: the value is the line without its white space.
type jsonReader struct {
	*lines
	key     *keyBuilder
	compact bytes.Buffer
}

// Next returns the next line without its white space. It is that of Reader.
func (j *jsonReader) Next() (key, value []byte, err error) {
	line, err := j.nextJSON()
	if err != nil {
		return nil, nil, err
	}
	j.compact.Reset()
	if err := json.Compact(&j.compact, line); err != nil {
		return nil, nil, at(j.number, fmt.Errorf("%w: %w", ErrSyntax, err))
	}
	value = j.compact.Bytes()
	if key, err = j.key.fromJSON(value); err != nil {
		return nil, nil, at(j.number, err)
	}
	return key, value, nil
}

// eachMember calls fn with the name, in its quotes, and the value of each member of an object: valid JSON without white space.
func eachMember(object []byte, fn func(name, value []byte)) {
	for rest := object[1:]; rest[0] != '}'; {
		n := stringLength(rest)
		name := rest[:n]
		rest = rest[n+len(":"):]
		n = valueLength(rest)
		fn(name, rest[:n])
		rest = rest[n:]
		if rest[0] == ',' {
			rest = rest[1:]
		}
	}
}

// stringLength returns the length of the string with which b begins, quotes included.
func stringLength(b []byte) int {
	for i := 1; ; i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}

// valueLength returns the length of the value with which b, the rest of an object, begins.
func valueLength(b []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch b[i] {
		case '"':
			i += stringLength(b[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
}
