// Package wire is MongoDB's wire protocol: messages in and out of bytes.
//
// It promises that whatever bytes come, a message is either well formed as far as its own structure goes, or an error that wraps
// ErrMalformed; that no length is believed before the bytes are there; and that what a message takes in memory is bounded by
// MaxMessage, decompressed too. It does not look into the documents: their BSON is for the next door to check. The protocol is
// described in MongoDB's manual, "MongoDB Wire Protocol".
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// ErrMalformed is what errors.Is finds when bytes are not a message.
var ErrMalformed = errors.New("malformed message")

// What errors.Is finds, beside ErrMalformed, when a client speaks another protocol.
var (
	ErrTLS  = fmt.Errorf("%w: a TLS handshake, on a connection without TLS", ErrMalformed)
	ErrHTTP = fmt.Errorf("%w: an HTTP request", ErrMalformed)
)

// Limits of the protocol.
const (
	MaxMessage   = 48_000_000 // bytes of one message
	MaxDocuments = 100_000    // in the sections of one message
	HeaderBytes  = 16
	maxSequences = 100 // sections of a message beside its body: no command has as many fields that are lists of documents
)

// Opcode says what a message is.
type Opcode int32

// The opcodes that are still in use. OP_QUERY is only for the first hello.
const (
	OpReply      Opcode = 1
	OpQuery      Opcode = 2004
	OpCompressed Opcode = 2012
	OpMsg        Opcode = 2013
)

// Flags of an OP_MSG.
const (
	ChecksumPresent uint32 = 1 << 0
	MoreToCome      uint32 = 1 << 1
	ExhaustAllowed  uint32 = 1 << 16
	requiredFlags   uint32 = 0xffff // bits that a receiver must know
)

// Sequence is a section of an OP_MSG that carries the documents of one field of the command.
type Sequence struct {
	Field     string
	Documents []bsoncore.Document // in all sections together MaxDocuments at most
	More      int                 // how many there are behind them: no command takes as many
}

// Message is one message. Its slices alias the buffer that it was read into.
type Message struct {
	RequestID  int32
	ResponseTo int32
	Op         Opcode // OpMsg, OpQuery or OpReply; a compressed message has that of what is inside
	Compressor Compressor

	Flags     uint32            // of an OP_MSG
	Body      bsoncore.Document // of an OP_MSG or OP_QUERY
	Sequences []Sequence        // of an OP_MSG

	Collection string // of an OP_QUERY: "admin.$cmd"

	room   []bsoncore.Document // for the documents of the first sequence
	listed int                 // documents in the sequences
}

// Reader reads messages from a connection. It keeps one buffer, so a message is valid until the next one is read.
type Reader struct {
	r      io.Reader
	header [HeaderBytes]byte
	body   []byte
	plain  []byte // decompressed
	most   int    // bytes of a message

	message   Message
	documents []bsoncore.Document // of the last message
}

// NewReader returns a reader.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, most: MaxMessage} }

// Limit sets how many bytes a message may have, compressed or not, up to MaxMessage.
func (r *Reader) Limit(most int) { r.most = min(most, MaxMessage) }

// Trim gives up what large messages have taken, for the large messages of other connections. The message that was read last is not
// valid any more.
func (r *Reader) Trim() {
	if cap(r.body) > keptBuffer {
		largeBuffers.Put(&largeBuffer{r.body[:0]})
		r.body = nil
	}
	if cap(r.plain) > keptBuffer {
		r.plain = nil
	}
}

// Idle gives up all that the reader keeps for the next message, for a connection on which none comes. The message that was read last is not
// valid any more.
func (r *Reader) Idle() {
	r.body, r.plain, r.documents, r.message = nil, nil, nil, Message{}
}

// keptBuffer is the largest buffer that a reader keeps between messages.
const keptBuffer = 1 << 20

// largeBuffers is the buffers of large messages that have been answered. A connection that sends one seldom sends only one, and to
// read into memory that is new costs as much as all that is done with a message of documents.
var largeBuffers = sync.Pool{New: func() any { return new(largeBuffer) }}

// largeBuffer is a buffer in the pool.
type largeBuffer struct{ bytes []byte }

// notAMessage is the error for a header that cannot be one: the one given, unless it is known what protocol the bytes are of.
func notAMessage(header [HeaderBytes]byte, err error) error {
	const handshake, version = 22, 3 // of a record of TLS
	if header[0] == handshake && header[1] == version {
		return ErrTLS
	}
	for _, method := range []string{"GET ", "HEAD ", "POST ", "PUT ", "OPTIONS "} {
		if string(header[:len(method)]) == method {
			return ErrHTTP
		}
	}
	return err
}

// Read reads one message. io.EOF means that the connection ended between two messages.
func (r *Reader) Read() (*Message, error) {
	if _, err := io.ReadFull(r.r, r.header[:]); err != nil {
		return nil, err
	}
	length := int32(binary.LittleEndian.Uint32(r.header[:]))
	if length < HeaderBytes || int(length) > r.most {
		return nil, notAMessage(r.header, fmt.Errorf("%w: it says it has %d bytes", ErrMalformed, length))
	}
	m := &r.message
	*m = Message{
		RequestID: int32(binary.LittleEndian.Uint32(r.header[4:])), ResponseTo: int32(binary.LittleEndian.Uint32(r.header[8:])),
		Op: Opcode(binary.LittleEndian.Uint32(r.header[12:])), Sequences: m.Sequences[:0], room: r.documents[:0],
	}
	switch m.Op {
	case OpMsg, OpQuery, OpCompressed, OpReply:
	default: // another protocol, most likely: there is no point in waiting for its bytes
		return nil, notAMessage(r.header, fmt.Errorf("%w: opcode %d", ErrMalformed, m.Op))
	}
	body, err := r.fill(int(length) - HeaderBytes)
	if err != nil {
		return nil, err
	}
	if err := r.parse(m, body); err != nil {
		return nil, err
	}
	if len(m.Sequences) > 0 && cap(m.Sequences[0].Documents) <= keptDocuments {
		r.documents = m.Sequences[0].Documents
	}
	return m, nil
}

// keptDocuments is for how many documents of a message a reader keeps room.
const keptDocuments = 1 << 12

// fill reads n bytes. The buffer grows as they come, so that a length without bytes behind it costs nothing.
func (r *Reader) fill(n int) ([]byte, error) {
	const step = 64 << 10
	r.Trim()
	if n > keptBuffer {
		r.body = largeBuffers.Get().(*largeBuffer).bytes
	}
	r.body = r.body[:0]
	for len(r.body) < n {
		want := min(n-len(r.body), max(step, 3*len(r.body)))
		if free := cap(r.body) - len(r.body); free > 0 {
			want = min(want, free)
		} else {
			r.body = append(r.body, make([]byte, want)...)[:len(r.body)]
		}
		part := r.body[len(r.body) : len(r.body)+want]
		if _, err := io.ReadFull(r.r, part); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		r.body = r.body[:len(r.body)+want]
	}
	return r.body, nil
}

// parse reads what is behind the header.
func (r *Reader) parse(m *Message, body []byte) error {
	if m.Op == OpCompressed {
		if len(body) < 9 {
			return fmt.Errorf("%w: a compressed message of %d bytes", ErrMalformed, len(body))
		}
		m.Op = Opcode(binary.LittleEndian.Uint32(body))
		size := int32(binary.LittleEndian.Uint32(body[4:]))
		m.Compressor = Compressor(body[8])
		if m.Op == OpCompressed || size < 0 || int(size) > r.most-HeaderBytes {
			return fmt.Errorf("%w: a compressed message with %d bytes inside", ErrMalformed, size)
		}
		var err error
		if r.plain, err = m.Compressor.decompress(r.plain[:0], body[9:], int(size)); err != nil {
			return err
		}
		body = r.plain
	}
	switch m.Op {
	case OpMsg:
		return m.parseMsg(body, r.header[:])
	case OpQuery:
		return m.parseQuery(body)
	case OpReply:
		return m.parseReply(body)
	}
	return fmt.Errorf("%w: opcode %d", ErrMalformed, m.Op)
}

func (m *Message) parseMsg(body, header []byte) error {
	if len(body) < 5 {
		return fmt.Errorf("%w: an OP_MSG of %d bytes", ErrMalformed, len(body))
	}
	m.Flags = binary.LittleEndian.Uint32(body)
	if unknown := m.Flags & requiredFlags &^ (ChecksumPresent | MoreToCome); unknown != 0 {
		return fmt.Errorf("%w: unknown flags %#x", ErrMalformed, unknown)
	}
	sections := body[4:]
	if m.Flags&ChecksumPresent != 0 {
		if len(sections) < 4 {
			return fmt.Errorf("%w: no room for a checksum", ErrMalformed)
		}
		sections = sections[:len(sections)-4]
		if m.Compressor == 0 {
			table := crc32.MakeTable(crc32.Castagnoli)
			sum := crc32.Update(crc32.Checksum(header, table), table, body[:len(body)-4])
			if want := binary.LittleEndian.Uint32(body[len(body)-4:]); sum != want {
				return fmt.Errorf("%w: checksum %08x, want %08x", ErrMalformed, sum, want)
			}
		}
	}
	for len(sections) > 0 {
		var err error
		switch kind := sections[0]; kind {
		case 0:
			sections, err = m.takeBody(sections[1:])
		case 1:
			sections, err = m.takeSequence(sections[1:])
		default:
			err = fmt.Errorf("%w: a section of kind %d", ErrMalformed, kind)
		}
		if err != nil {
			return err
		}
	}
	if m.Body == nil {
		return fmt.Errorf("%w: an OP_MSG without a body", ErrMalformed)
	}
	return nil
}

func (m *Message) takeBody(src []byte) ([]byte, error) {
	if m.Body != nil {
		return nil, fmt.Errorf("%w: two bodies", ErrMalformed)
	}
	var err error
	m.Body, src, err = cutDocument(src)
	return src, err
}

func (m *Message) takeSequence(src []byte) ([]byte, error) {
	if len(src) < 5 {
		return nil, fmt.Errorf("%w: a section of %d bytes", ErrMalformed, len(src))
	}
	if len(m.Sequences) == maxSequences {
		return nil, fmt.Errorf("%w: more than %d sections", ErrMalformed, maxSequences)
	}
	size := int32(binary.LittleEndian.Uint32(src))
	if size < 5 || int(size) > len(src) {
		return nil, fmt.Errorf("%w: a section that says it has %d bytes, of %d", ErrMalformed, size, len(src))
	}
	rest := src[size:]
	src = src[4:size]
	field, src, err := cutName(src)
	if err != nil {
		return nil, err
	}
	s := Sequence{Field: field, Documents: m.room}
	m.room = nil
	for len(src) > 0 {
		var doc bsoncore.Document
		if doc, src, err = cutDocument(src); err != nil {
			return nil, err
		}
		if m.listed == MaxDocuments { // a list of more could be many times as large as they are
			s.More++
			continue
		}
		m.listed++
		s.Documents = append(s.Documents, doc)
	}
	m.Sequences = append(m.Sequences, s)
	return rest, nil
}

// cutDocument returns the document that begins src. Only its length is looked at.
func cutDocument(src []byte) (doc bsoncore.Document, rest []byte, err error) {
	if len(src) < 5 {
		return nil, nil, fmt.Errorf("%w: a document of %d bytes", ErrMalformed, len(src))
	}
	size := int32(binary.LittleEndian.Uint32(src))
	if size < 5 || int(size) > len(src) || src[size-1] != 0 {
		return nil, nil, fmt.Errorf("%w: a document that says it has %d bytes, of %d", ErrMalformed, size, len(src))
	}
	return bsoncore.Document(src[:size:size]), src[size:], nil
}

func cutName(src []byte) (name string, rest []byte, err error) {
	for i, b := range src {
		if b == 0 {
			return string(src[:i]), src[i+1:], nil
		}
	}
	return "", nil, fmt.Errorf("%w: a name that does not end", ErrMalformed)
}

// parseQuery reads an OP_QUERY: flags, collection, skip, return, query, and fields that nobody needs.
func (m *Message) parseQuery(body []byte) error {
	if len(body) < 4 {
		return fmt.Errorf("%w: an OP_QUERY of %d bytes", ErrMalformed, len(body))
	}
	var err error
	if m.Collection, body, err = cutName(body[4:]); err != nil {
		return err
	}
	if len(body) < 8 {
		return fmt.Errorf("%w: an OP_QUERY that is cut short", ErrMalformed)
	}
	m.Body, _, err = cutDocument(body[8:])
	return err
}

// parseReply reads an OP_REPLY, of which only the first document is of use.
func (m *Message) parseReply(body []byte) error {
	if len(body) < 20 {
		return fmt.Errorf("%w: an OP_REPLY of %d bytes", ErrMalformed, len(body))
	}
	var err error
	m.Body, _, err = cutDocument(body[20:])
	return err
}

// AppendMsg appends an OP_MSG with one body.
func AppendMsg(dst []byte, requestID, responseTo int32, flags uint32, body bsoncore.Document) []byte {
	flags &^= ChecksumPresent
	dst = appendHeader(dst, MsgBytes+len(body), requestID, responseTo, OpMsg)
	dst = binary.LittleEndian.AppendUint32(dst, flags)
	dst = append(dst, 0)
	return append(dst, body...)
}

// MsgBytes is how many bytes an OP_MSG has in front of its body.
const MsgBytes = HeaderBytes + 5

// BeginMsg fills in what is in front of the body, which ends msg: AppendMsg for a body that is in its place already.
func BeginMsg(msg []byte, requestID, responseTo int32, flags uint32) {
	out := appendHeader(msg[:0], len(msg), requestID, responseTo, OpMsg)
	out = binary.LittleEndian.AppendUint32(out, flags&^ChecksumPresent)
	_ = append(out, 0)
}

// AppendChecked is AppendMsg with a checksum behind.
func AppendChecked(dst []byte, requestID, responseTo int32, flags uint32, body bsoncore.Document) []byte {
	from := len(dst)
	dst = appendHeader(dst, HeaderBytes+9+len(body), requestID, responseTo, OpMsg)
	dst = binary.LittleEndian.AppendUint32(dst, flags|ChecksumPresent)
	dst = append(append(dst, 0), body...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], crc32.MakeTable(crc32.Castagnoli)))
}

// AppendReply appends an OP_REPLY with one document: the answer to an OP_QUERY.
func AppendReply(dst []byte, requestID, responseTo int32, body bsoncore.Document) []byte {
	const awaitCapable = 8
	dst = appendHeader(dst, HeaderBytes+20+len(body), requestID, responseTo, OpReply)
	dst = binary.LittleEndian.AppendUint32(dst, awaitCapable)
	dst = binary.LittleEndian.AppendUint64(dst, 0) // no cursor
	dst = binary.LittleEndian.AppendUint32(dst, 0) // starting from
	dst = binary.LittleEndian.AppendUint32(dst, 1) // document
	return append(dst, body...)
}

func appendHeader(dst []byte, length int, requestID, responseTo int32, op Opcode) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(length))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(requestID))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(responseTo))
	return binary.LittleEndian.AppendUint32(dst, uint32(op))
}
