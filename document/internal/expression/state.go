package expression

import (
	"cmp"
	"encoding/binary"
	"math"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

const (
	maxBuilt        = 100 << 20       // bytes that are alive at once in one evaluation
	maxResult       = 16<<20 + 16<<10 // a result: the largest document and what commands put around it
	maxResultDepth  = 200             // nesting of a result
	keptBuffer      = 64 << 10        // a larger buffer does not go back into the pool
	firstBuffer     = 512             // what the first allocation takes
	settleThreshold = 64 << 10        // garbage that a loop lets lie
	keptStack       = keptBuffer / 32 // a larger stack does not go back into the pool
	elementCost     = 32              // what a value on the stack counts against maxBuilt
	maxStack        = maxBuilt / elementCost
	maxSteps        = 1 << 24 // of loops in one evaluation: some seconds
	callSteps       = 1 << 12 // of loops between two looks at whether anybody waits still: a millisecond
	callWork        = 1 << 15 // of values that operators are given, and of 32 bytes of them, between two such looks
	maxFoldedSteps  = 1 << 16 // of loops over constants, while parsing: beyond, they are evaluated when the time comes
)

// state is one evaluation: the document, the variables, the arguments of functions under evaluation, and the memory for values
// that are built. Values live until the evaluation ends; what loops leave behind is reclaimed by settle.
type state struct {
	root      bsoncore.Value
	variables []bsoncore.Value
	stack     []bsoncore.Value
	buf       []byte // values are carved off its end; a buffer that is full is left to those who refer to it
	used      int    // bytes carved since the beginning
	steps     int    // of loops that are left
	credit    int    // of work before the next look at whether anybody waits still
	most      int    // bytes of the result
	truth     [2]byte
	meta      func(kind string) bsoncore.Value
	call      *Call
}

var states = sync.Pool{New: func() any { return &state{truth: [2]byte{0, 1}} }}

func newState(root bsoncore.Document, e *Expression) *state {
	st := states.Get().(*state)
	st.root = bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: root}
	if cap(st.variables) < e.slots {
		st.variables = make([]bsoncore.Value, e.slots)
	}
	st.variables = st.variables[:e.slots]
	st.meta, st.call, st.steps, st.credit, st.most = e.meta, e.call, maxSteps, callWork, cmp.Or(e.most, maxResult)
	return st
}

// release gives the state back. Nothing may refer to its buffer afterwards.
func (st *state) release() {
	clear(st.variables)
	st.root, st.meta, st.call, st.used, st.stack = bsoncore.Value{}, nil, nil, 0, st.stack[:0]
	if cap(st.buf) > keptBuffer {
		st.buf = nil
	}
	if cap(st.stack) > keptStack {
		st.stack = nil
	}
	st.buf = st.buf[:0]
	states.Put(st)
}

// result evaluates n and detaches the value from the state: it is copied if anything at all was built.
func (st *state) result(n node) (bsoncore.Value, error) {
	v, err := n.eval(st)
	if err != nil {
		return bsoncore.Value{}, shorten(err)
	}
	if len(v.Data) > st.most {
		return bsoncore.Value{}, mongoerror.New(mongoerror.BSONObjectTooLarge,
			"BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d(16MB)", len(v.Data), len(v.Data), st.most)
	}
	if st.used > 0 && len(v.Data) > 0 {
		v.Data = append([]byte(nil), v.Data...)
	}
	return v, nil
}

// alloc returns n bytes.
func (st *state) alloc(n int) ([]byte, error) {
	if st.used += n; st.used > maxBuilt {
		return nil, errMemory(st.used)
	}
	if err := st.charge(n); err != nil {
		return nil, err
	}
	start := len(st.buf)
	if cap(st.buf)-start < n {
		st.buf = make([]byte, 0, max(2*cap(st.buf), n, firstBuffer))
		start = 0
	}
	st.buf = st.buf[:start+n]
	return st.buf[start : start+n : start+n], nil
}

func errMemory[T int | int64](used T) error {
	return mongoerror.New(mongoerror.ExceededMemoryLimit, "expression used too much memory: %d bytes, and may use %d", used, maxBuilt)
}

// step counts a step of a loop.
func (st *state) step() error {
	if st.steps--; st.steps < 0 {
		return mongoerror.New(mongoerror.ExceededTimeLimit, "the loops of an expression took more than %d steps", maxSteps)
	}
	if st.steps%callSteps == 0 {
		return st.call.err()
	}
	return nil
}

// charge counts work: that of an operator which is given, or makes, so many bytes. A loop of few steps may be a lot of it.
func (st *state) charge(bytes int) error {
	if st.credit -= 1 + bytes/32; st.credit >= 0 {
		return nil
	}
	st.credit = callWork
	return st.call.err()
}

// decimal is a function of decimals, of which all 34 digits are computed: that may take milliseconds.
func (st *state) decimal(compute func() number.Decimal) (bsoncore.Value, error) {
	const work = callWork / 16
	if err := st.charge(32 * work); err != nil {
		return bsoncore.Value{}, err
	}
	return st.number(number.FromDecimal(compute()))
}

// push puts an argument on the stack.
func (st *state) push(v bsoncore.Value) error {
	if len(st.stack) >= maxStack {
		return errMemory(len(st.stack) * elementCost)
	}
	st.stack = append(st.stack, v)
	return nil
}

// mark remembers how much is built.
type mark struct {
	buf  []byte
	used int
}

func (st *state) mark() mark { return mark{st.buf, st.used} }

// settle gives up what was built since the mark, except v, when that is a lot. v is returned, moved if need be. Variables and
// the stack must not refer to what was built since the mark.
func (st *state) settle(m mark, v bsoncore.Value) bsoncore.Value {
	if st.used-m.used < settleThreshold || st.used-m.used < 2*len(v.Data) {
		return v
	}
	v.Data = append([]byte(nil), v.Data...)
	st.used = m.used + len(v.Data)
	if sameBuffer(st.buf, m.buf) {
		st.buf = st.buf[:len(m.buf)]
	} else {
		st.buf = st.buf[:0]
	}
	return v
}

// compact is settle for a value that others will lie beside: all but v is given up, however little it is, as there may be many of them. v
// is moved to where what was built since the mark begins.
func (st *state) compact(m mark, v bsoncore.Value) bsoncore.Value {
	if st.used-m.used <= 2*len(v.Data) {
		return v
	}
	st.used = m.used + len(v.Data)
	start := len(m.buf)
	end := start + len(v.Data)
	switch {
	case !sameBuffer(st.buf, m.buf):
		v.Data = append([]byte(nil), v.Data...)
		st.buf = st.buf[:0]
	case end > cap(st.buf):
		v.Data = append([]byte(nil), v.Data...)
		st.buf = st.buf[:start]
	default:
		st.buf = st.buf[:end]
		copy(st.buf[start:], v.Data)
		v.Data = st.buf[start:end:end]
	}
	return v
}

// sameBuffer reports whether two slices begin at the same memory.
func sameBuffer(a, b []byte) bool {
	return cap(a) > 0 && cap(a) == cap(b) && &a[:1][0] == &b[:1][0]
}

func null() bsoncore.Value { return bsoncore.Value{Type: bsoncore.TypeNull} }

func (st *state) boolean(b bool) bsoncore.Value {
	if b {
		return bsoncore.Value{Type: bsoncore.TypeBoolean, Data: st.truth[1:2:2]}
	}
	return bsoncore.Value{Type: bsoncore.TypeBoolean, Data: st.truth[0:1:1]}
}

func (st *state) number(n number.Number) (bsoncore.Value, error) {
	size := 8
	switch n.Type() {
	case bsoncore.TypeInt32:
		size = 4
	case bsoncore.TypeDecimal128:
		size = 16
	}
	b, err := st.alloc(size)
	return bsoncore.Value{Type: n.Type(), Data: n.Append(b[:0])}, err
}

func (st *state) int32(i int) (bsoncore.Value, error) { return st.number(number.Int32(int32(i))) }

func (st *state) double(f float64) (bsoncore.Value, error) { return st.number(number.Double(f)) }

// date makes a date of milliseconds since 1970.
func (st *state) date(ms int64) (bsoncore.Value, error) {
	v, err := st.number(number.Int64(ms))
	v.Type = bsoncore.TypeDateTime
	return v, err
}

// text makes a string.
func (st *state) text(s string) (bsoncore.Value, error) { return text(st, s) }

func text[T string | []byte](st *state, s T) (bsoncore.Value, error) {
	b, err := st.alloc(len(s) + 5)
	if err != nil {
		return bsoncore.Value{}, err
	}
	binary.LittleEndian.PutUint32(b, uint32(len(s)+1))
	copy(b[4:], s)
	b[len(b)-1] = 0
	return bsoncore.Value{Type: bsoncore.TypeString, Data: b}, nil
}

// array makes an array of the values; missing ones become null. They may lie on the stack.
func (st *state) array(values []bsoncore.Value) (bsoncore.Value, error) {
	size := 5
	for i, v := range values {
		size += ElementBytes(i, v)
		if size > maxBuilt {
			return bsoncore.Value{}, errMemory(size)
		}
	}
	b, err := st.alloc(size)
	if err != nil {
		return bsoncore.Value{}, err
	}
	return bsoncore.Value{Type: bsoncore.TypeArray, Data: appendArray(b[:0], values)}, nil
}

// document makes a document of the fields that are not missing.
func (st *state) document(names []string, values []bsoncore.Value) (bsoncore.Value, error) {
	size := 5
	for i, v := range values {
		if v.Type != 0 {
			size += 2 + len(names[i]) + len(v.Data)
		}
		if size > maxBuilt {
			return bsoncore.Value{}, errMemory(size)
		}
	}
	b, err := st.alloc(size)
	if err != nil {
		return bsoncore.Value{}, err
	}
	b = append(b[:0], 0, 0, 0, 0)
	for i, v := range values {
		if v.Type != 0 {
			b = append(append(append(append(b, byte(v.Type)), names[i]...), 0), v.Data...)
		}
	}
	return finish(bsoncore.TypeEmbeddedDocument, append(b, 0)), nil
}

// finish writes the length of a document or array into its first four bytes.
func finish(t bsoncore.Type, b []byte) bsoncore.Value {
	if len(b) <= math.MaxInt32 {
		binary.LittleEndian.PutUint32(b, uint32(len(b)))
	}
	return bsoncore.Value{Type: t, Data: b}
}
