package importer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Pair is one record as the export command writes it. Base64 names those of its members, separated by commas, that hold
// base64 because the bytes are not UTF-8, or very many.
type Pair struct {
	Key    *string `json:"key"`
	Value  *string `json:"value,omitempty"`
	Base64 string  `json:"base64,omitempty"`
}

// NewPair makes a pair; a nil value is left out.
func NewPair(key, value []byte) Pair {
	var p Pair
	p.Key = Text("key", key, &p.Base64)
	if value != nil {
		p.Value = Text("value", value, &p.Base64)
	}
	return p
}

// longestText is the length from which on bytes are written as base64 even where they are text: that is a third longer, and as JSON
// text may be six times as long. So no line is longer than MaxPairBytes.
const longestText = 128 << 20

// Text returns bytes as the text of a member, and adds its name to list when that is base64.
func Text(member string, b []byte, list *string) *string {
	if len(b) < longestText && utf8.Valid(b) {
		text := string(b)
		return &text
	}
	text := base64.StdEncoding.EncodeToString(b)
	if *list != "" {
		*list += ","
	}
	*list += member
	return &text
}

// pairReader reads exported pairs.
type pairReader struct{ *lines }

// Next decodes the next line. It is that of Reader.
func (p *pairReader) Next() (key, value []byte, err error) {
	line, err := p.nextJSON()
	if err != nil {
		return nil, nil, err
	}
	if key, value, err = decodePair(line); err != nil {
		return nil, nil, at(p.number, err)
	}
	return key, value, nil
}

func decodePair(line []byte) (key, value []byte, err error) {
	if err := WellFormed(line); err != nil {
		return nil, nil, fmt.Errorf("%w: it %w", ErrSyntax, err)
	}
	var pair Pair
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&pair); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	if d.InputOffset() != int64(len(bytes.TrimRight(line, " \t"))) {
		return nil, nil, fmt.Errorf("%w: something follows the object", ErrSyntax)
	}
	switch {
	case pair.Key == nil:
		return nil, nil, ErrNoKey
	case pair.Value == nil:
		return nil, nil, fmt.Errorf("%w: there is no value", ErrSyntax)
	}
	key, value = []byte(*pair.Key), []byte(*pair.Value)
	for what := range strings.SplitSeq(pair.Base64, ",") {
		switch what {
		case "":
		case "key":
			key, err = base64.StdEncoding.DecodeString(*pair.Key)
		case "value":
			value, err = base64.StdEncoding.DecodeString(*pair.Value)
		default:
			err = fmt.Errorf("there is no member %q", what)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: base64: %w", ErrSyntax, err)
		}
	}
	return key, value, nil
}
