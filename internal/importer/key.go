package importer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// keySeparator stands between the texts of a key of several fields.
const keySeparator = '/'

// keyBuilder makes keys of fields.
type keyBuilder struct {
	fields []string
	quoted [][]byte // the fields as JSON, without escapes
	found  [][]byte // the value of each, as JSON
	key    []byte
}

func newKeyBuilder(fields []string) *keyBuilder {
	k := &keyBuilder{fields: fields, found: make([][]byte, len(fields)), key: []byte{}} // not nil: a key of no bytes is one
	for _, f := range fields {
		k.quoted = append(k.quoted, []byte(`"`+f+`"`))
	}
	return k
}

// fromJSON returns the key of a document: valid JSON without white space. It is nil when the key has no fields.
func (k *keyBuilder) fromJSON(doc []byte) ([]byte, error) {
	if len(k.fields) == 0 {
		return nil, nil
	}
	if doc[0] != '{' {
		return nil, fmt.Errorf("%w: it is not an object", ErrNoKey)
	}
	clear(k.found)
	eachMember(doc, k.collect)
	k.key = k.key[:0]
	for i, value := range k.found {
		if i > 0 {
			k.key = append(k.key, keySeparator)
		}
		var err error
		if k.key, err = appendText(k.key, value); err != nil {
			return nil, fmt.Errorf("%w: field %q %w", ErrNoKey, k.fields[i], err)
		}
	}
	return k.key, nil
}

// collect notes the value of a member when it is a part of the key. As everywhere in Go, the last of two members of one name
// counts.
func (k *keyBuilder) collect(name, value []byte) {
	for i, q := range k.quoted {
		if bytes.Equal(name, q) || (bytes.IndexByte(name, '\\') >= 0 && unescaped(name) == k.fields[i]) {
			k.found[i] = value
		}
	}
}

func unescaped(name []byte) string {
	var s string
	if json.Unmarshal(name, &s) != nil {
		return ""
	}
	return s
}

// appendText appends the text of a scalar: a string as it is, a number in decimal.
func appendText(dst, value []byte) ([]byte, error) {
	if len(value) == 0 {
		return dst, fmt.Errorf("is missing")
	}
	switch value[0] {
	case '"':
		if err := WellFormed(value); err != nil {
			return dst, err
		}
		if bytes.IndexByte(value, '\\') < 0 {
			return append(dst, value[1:len(value)-1]...), nil
		}
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return dst, err
		}
		return append(dst, s...), nil
	case '{', '[', 'n':
		return dst, fmt.Errorf("is %.20s, want text or a number", value)
	case 't', 'f':
		return append(dst, value...), nil
	}
	if bytes.ContainsAny(value, "eE") {
		return appendDecimal(dst, value)
	}
	return append(dst, value...), nil
}

// Sequence numbers records that have no key of their own. The keys are 8 bytes, big-endian, so that they sort as the numbers.
type Sequence struct {
	next uint64
	key  [8]byte
}

// NewSequence returns a sequence that continues behind the highest key of a keyspace, nil where there is none.
func NewSequence(highest []byte) (*Sequence, error) {
	if highest == nil {
		return &Sequence{next: 1}, nil
	}
	if len(highest) != len(Sequence{}.key) {
		return nil, fmt.Errorf("the keyspace holds keys that are not numbers: name the fields of the key with --key")
	}
	last := binary.BigEndian.Uint64(highest)
	if last == 1<<64-1 {
		return nil, fmt.Errorf("the keyspace has used up its numbers: name the fields of the key with --key")
	}
	return &Sequence{next: last + 1}, nil
}

// Next returns the next key, valid until the next call. A sequence of 2^64 keys has no end in practice.
func (s *Sequence) Next() []byte {
	binary.BigEndian.PutUint64(s.key[:], s.next)
	s.next++
	return s.key[:]
}
