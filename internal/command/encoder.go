package command

import "encoding/binary"

// Encoder builds a payload. The zero value is ready for use. It does not check limits: its caller has refused keys and
// values that are too long before they come here.
type Encoder struct {
	buf      []byte
	count    int
	data     int
	keyspace uint32
}

// Reset forgets the commands and keeps the buffer.
func (e *Encoder) Reset() { e.buf, e.count, e.data, e.keyspace = e.buf[:0], 0, 0, 0 }

// Release forgets the commands and gives the buffer up when it has grown beyond max bytes.
func (e *Encoder) Release(max int) {
	e.Reset()
	if cap(e.buf) > max {
		e.buf = nil
	}
}

// Room makes room for one more command with n bytes of key and value. A buffer that has to grow becomes twice as large. One that
// has outgrown firstBuffer becomes an eighth larger than likely, if that is more, but no more than eight times as large at once: so one whose
// commands are about as many as likely grows two or three times, and one that ends early has not taken much too much.
func (e *Encoder) Room(n, likely int) {
	need := len(e.buf) + n + commandOverhead
	if need <= cap(e.buf) {
		return
	}
	size := max(need, 2*cap(e.buf), leastBuffer)
	if size > firstBuffer {
		size = max(size, min(likely+likely/8+commandOverhead, 8*cap(e.buf)))
	}
	e.buf = append(make([]byte, 0, size), e.buf...)
}

const (
	leastBuffer = 64
	firstBuffer = 4 << 10
	// commandOverhead is the most that start and pair add to key and value.
	commandOverhead = 1 + 4*binary.MaxVarintLen64
)

// Payload is what was encoded since Reset. It is valid until the next call that adds or resets.
func (e *Encoder) Payload() []byte { return e.buf }

// Count is the number of commands since Reset.
func (e *Encoder) Count() int { return e.count }

// Data is the number of bytes of keys and values since Reset, which is what they will take in the memtable.
func (e *Encoder) Data() int { return e.data }

// Put adds the storing of value under key; expiry 0 means never.
func (e *Encoder) Put(keyspace uint32, key, value []byte, expiry uint64) {
	e.start(Put, keyspace, expiry)
	e.pair(key, value)
}

// PutApart adds the storing of an encoded reference under key; expiry 0 means never.
func (e *Encoder) PutApart(keyspace uint32, key, reference []byte, expiry uint64) {
	e.start(PutApart, keyspace, expiry)
	e.pair(key, reference)
}

// Delete adds the removal of key.
func (e *Encoder) Delete(keyspace uint32, key []byte) {
	e.start(Delete, keyspace, 0)
	e.buf = binary.AppendUvarint(e.buf, uint64(len(key)))
	e.buf = append(e.buf, key...)
	e.data += len(key)
}

// DeleteRange adds the removal of all keys in [low, high); a nil high means to the end of the keyspace.
func (e *Encoder) DeleteRange(keyspace uint32, low, high []byte) {
	at := len(e.buf)
	e.start(DeleteRange, keyspace, 0)
	if high == nil {
		e.buf[at] |= flagOpen
	}
	e.pair(low, high)
}

// CreateKeyspace adds the making of a keyspace.
func (e *Encoder) CreateKeyspace(keyspace uint32, name, options []byte) {
	e.start(CreateKeyspace, keyspace, 0)
	e.pair(name, options)
}

// DropKeyspace adds the removal of a keyspace.
func (e *Encoder) DropKeyspace(keyspace uint32) { e.start(DropKeyspace, keyspace, 0) }

// Clock adds the raising of the clock's high-water mark (Unix milliseconds).
func (e *Encoder) Clock(now uint64) { e.start(Clock, e.keyspace, now) }

// Bulk adds what stands for the commands in a file.
func (e *Encoder) Bulk(number, commands uint64) {
	e.start(Bulk, e.keyspace, 0)
	e.pair(binary.BigEndian.AppendUint64(nil, number), binary.BigEndian.AppendUint64(nil, commands))
}

// Note adds what the writer tells those who read the log.
func (e *Encoder) Note(keyspace uint32, note []byte) {
	e.start(Note, keyspace, 0)
	e.buf = binary.AppendUvarint(e.buf, uint64(len(note)))
	e.buf = append(e.buf, note...)
}

// Add adds a decoded command.
func (e *Encoder) Add(c Command) {
	switch c.Op {
	case Put:
		e.Put(c.Keyspace, c.Key, c.Value, c.Expiry)
	case PutApart:
		e.PutApart(c.Keyspace, c.Key, c.Value, c.Expiry)
	case Delete:
		e.Delete(c.Keyspace, c.Key)
	case DeleteRange:
		e.DeleteRange(c.Keyspace, c.Key, c.Value)
	case CreateKeyspace:
		e.CreateKeyspace(c.Keyspace, c.Key, c.Value)
	case DropKeyspace:
		e.DropKeyspace(c.Keyspace)
	case Clock:
		e.Clock(c.Expiry)
	case Bulk:
		e.Bulk(c.Spilled())
	case Note:
		e.Note(c.Keyspace, c.Key)
	}
}

// start adds the first byte, the keyspace when it is another one than before, and the expiry when there is one.
func (e *Encoder) start(op Op, keyspace uint32, expiry uint64) {
	first := byte(op)
	changed := e.count == 0 || keyspace != e.keyspace
	if changed {
		first |= flagKeyspace
	}
	if expiry != 0 {
		first |= flagExpiry
	}
	e.buf = append(e.buf, first)
	if changed {
		e.buf = binary.AppendUvarint(e.buf, uint64(keyspace))
		e.keyspace = keyspace
	}
	if expiry != 0 {
		e.buf = binary.AppendUvarint(e.buf, expiry)
	}
	e.count++
}

// pair adds both lengths before both contents, so that a decoder finds them with one look.
func (e *Encoder) pair(key, value []byte) {
	e.buf = binary.AppendUvarint(e.buf, uint64(len(key)))
	e.buf = binary.AppendUvarint(e.buf, uint64(len(value)))
	e.buf = append(e.buf, key...)
	e.buf = append(e.buf, value...)
	e.data += len(key) + len(value)
}

// Mark is a place in what an Encoder holds.
type Mark struct {
	length, count, data int
	keyspace            uint32
}

// Count is the number of commands before m.
func (m Mark) Count() int { return m.count }

// After reports whether m lies behind n.
func (m Mark) After(n Mark) bool { return m.length > n.length }

// Mark returns the place behind the last command.
func (e *Encoder) Mark() Mark { return Mark{len(e.buf), e.count, e.data, e.keyspace} }

// Rewind forgets the commands behind a place.
func (e *Encoder) Rewind(m Mark) {
	e.buf, e.count, e.data, e.keyspace = e.buf[:m.length], m.count, m.data, m.keyspace
}

// Since returns a decoder of the commands behind a place, valid until the next call that adds, rewinds or resets.
func (e *Encoder) Since(m Mark) Decoder {
	return Decoder{rest: e.buf[m.length:], length: len(e.buf), started: m.count > 0, keyspace: m.keyspace}
}
