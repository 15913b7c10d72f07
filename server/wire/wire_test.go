package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

func body(text string) bsoncore.Document {
	return bsoncore.NewDocumentBuilder().AppendString("hello", text).Build()
}

func TestEveryFormOfAMessageComesBack(t *testing.T) {
	want := body(strings.Repeat("world ", 100))
	plain := AppendMsg(nil, 7, 3, ExhaustAllowed, want)
	messages := map[string][]byte{
		"plain": plain, "checked": AppendChecked(nil, 7, 3, ExhaustAllowed, want), "reply": AppendReply(nil, 7, 3, want),
	}
	for c := Uncompressed; c <= Zstd; c++ {
		m, err := AppendCompressed(nil, plain, c)
		if err != nil {
			t.Fatal(err)
		}
		messages[c.String()] = m
	}
	for name, bytes_ := range messages {
		m, err := NewReader(bytes.NewReader(bytes_)).Read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.RequestID != 7 || m.ResponseTo != 3 || !bytes.Equal(m.Body, want) {
			t.Errorf("%s came back as %+v", name, m)
		}
	}
}

// A body that is in its place already becomes the same message as one that is appended.
func TestAMessageIsMadeWhereItsBodyIs(t *testing.T) {
	want := AppendMsg(nil, 7, 3, MoreToCome, body("x"))
	got := append(make([]byte, MsgBytes), body("x")...)
	BeginMsg(got, 7, 3, MoreToCome)
	if !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestSequencesBelongToTheBody(t *testing.T) {
	docs := append(append([]byte{}, body("a")...), body("b")...)
	section := append([]byte("documents\x00"), docs...)
	msg := binary.LittleEndian.AppendUint32(nil, 0)
	msg = append(append(msg, 0), body("insert")...)
	msg = append(msg, 1)
	msg = binary.LittleEndian.AppendUint32(msg, uint32(len(section)+4))
	msg = append(msg, section...)
	whole := append(appendHeader(nil, HeaderBytes+len(msg), 1, 0, OpMsg), msg...)
	m, err := NewReader(bytes.NewReader(whole)).Read()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Sequences) != 1 || m.Sequences[0].Field != "documents" || len(m.Sequences[0].Documents) != 2 {
		t.Errorf("sequences are %+v", m.Sequences)
	}
}

func TestBytesThatAreNoMessage(t *testing.T) {
	good := AppendChecked(nil, 1, 0, 0, body("x"))
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	bomb, err := AppendCompressed(nil, AppendMsg(nil, 1, 0, 0, body(strings.Repeat("a", 1<<20))), Zstd)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(bomb[20:], 100)
	deflated := func(claim uint32, without int) []byte {
		b, err := AppendCompressed(nil, AppendMsg(nil, 1, 0, 0, body(strings.Repeat("a", 1<<20))), Zlib)
		if err != nil {
			t.Fatal(err)
		}
		if b = b[:len(b)-without]; claim > 0 {
			binary.LittleEndian.PutUint32(b[20:], claim)
		}
		binary.LittleEndian.PutUint32(b, uint32(len(b)))
		return b
	}
	tests := map[string][]byte{
		"a wrong checksum":                  flip(len(good) - 10),
		"a required flag that is not known": flip(17 + 0)[:len(good)],
		"a length below the header's":       appendHeader(nil, 15, 1, 0, OpMsg),
		"a length above the limit":          appendHeader(nil, MaxMessage+1, 1, 0, OpMsg),
		"an unknown opcode":                 append(appendHeader(nil, 20, 1, 0, 2002), 0, 0, 0, 0),
		"no sections":                       append(appendHeader(nil, 20, 1, 0, OpMsg), 0, 0, 0, 0),
		"more inside than it says":          bomb,
		"more deflated than it says":        deflated(100, 0),
		"less deflated than it says":        deflated(1<<20+100, 0),
		"deflated without its checksum":     deflated(0, 4),
	}
	for name, b := range tests {
		if _, err := NewReader(bytes.NewReader(b)).Read(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string]error{
		"GET / HTTP/1.1\r\n\r\n": ErrHTTP, "POST /query HTTP/1.1": ErrHTTP, "HEAD / HTTP/1.0\r\n": ErrHTTP,
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 some random": ErrTLS,
	} {
		if _, err := NewReader(strings.NewReader(text)).Read(); !errors.Is(err, want) || !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := NewReader(bytes.NewReader(good[:30])).Read(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a message that is cut short: %v", err)
	}
	if _, err := NewReader(bytes.NewReader(nil)).Read(); !errors.Is(err, io.EOF) {
		t.Errorf("the end between two messages: %v", err)
	}
	// Nor must a length that cannot be behind so few bytes.
	small := NewReader(bytes.NewReader(deflated(40<<20, 0)))
	if _, err := small.Read(); !errors.Is(err, ErrMalformed) || cap(small.plain) > 0 {
		t.Errorf("a length that cannot be: %v, buffer of %d bytes", err, cap(small.plain))
	}
	// A length without bytes behind it must not take memory.
	lie := appendHeader(nil, MaxMessage, 1, 0, OpMsg)
	r := NewReader(bytes.NewReader(append(lie, 1, 2, 3)))
	if _, err := r.Read(); !errors.Is(err, io.ErrUnexpectedEOF) || cap(r.body) > 1<<17 {
		t.Errorf("a lying length: %v, buffer of %d bytes", err, cap(r.body))
	}
}

// A section is a list for a field: millions of empty ones would take many times the bytes that they came in, and no command has as many fields.
func TestMessagesHaveFewSections(t *testing.T) {
	message := func(sections int) []byte {
		body := append([]byte{0, 0, 0, 0}, 0, 5, 0, 0, 0, 0)
		for range sections {
			body = append(body, 1, 6, 0, 0, 0, 'f', 0)
		}
		return append(appendHeader(nil, HeaderBytes+len(body), 1, 0, OpMsg), body...)
	}
	if _, err := NewReader(bytes.NewReader(message(maxSequences))).Read(); err != nil {
		t.Errorf("%d sections: %v", maxSequences, err)
	}
	if _, err := NewReader(bytes.NewReader(message(maxSequences + 1))).Read(); !errors.Is(err, ErrMalformed) {
		t.Errorf("%d sections: %v", maxSequences+1, err)
	}
}
