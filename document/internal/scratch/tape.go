package scratch

import (
	"fmt"
	"sort"
)

// cachedBlocks is how many blocks of a spilled tape are kept for At: a window looks at its ends and at its middle.
const cachedBlocks = 4

// Tape keeps values in the order in which they are appended, and gives back any of them by its number. Up to its memory it keeps
// them there, then in a file. It is for one goroutine. All Append must come before the first At.
type Tape struct {
	space  *Space
	share  Share
	what   string
	held   int64
	values [][]byte
	chunk  []byte
	count  int64

	file   *file
	blocks []tapeBlock
	cache  []*cachedBlock
	clock  int64
}

// tapeBlock is where a block begins, in the file and in the numbering.
type tapeBlock struct{ off, first int64 }

type cachedBlock struct {
	number  int
	buf     []byte
	values  [][]byte
	lastUse int64
}

// NewTape returns an empty tape. what names it in the error when it may not spill and needs more than a allows.
func NewTape(a Allowance, what string) *Tape {
	return &Tape{space: a.Space, share: a.Share(), what: what}
}

// Len returns how many values were appended.
func (t *Tape) Len() int64 { return t.count }

// Append takes a copy of a value.
func (t *Tape) Append(value []byte) error {
	t.count++
	if t.file != nil {
		return t.write(value)
	}
	if t.held += int64(len(value)) + entryOverhead/2; !t.share.Fits(t.held) {
		if err := t.spill(); err != nil {
			return err
		}
		return t.write(value)
	}
	if cap(t.chunk)-len(t.chunk) < len(value) {
		t.chunk = make([]byte, 0, max(len(value), min(chunkBytes, max(4096, int(t.held)))))
	}
	start := len(t.chunk)
	t.chunk = append(t.chunk, value...)
	t.values = append(t.values, t.chunk[start:len(t.chunk):len(t.chunk)])
	return nil
}

// spill moves what is held into a file.
func (t *Tape) spill() error {
	if t.space == nil {
		return t.share.Exceeded(t.what, t.held)
	}
	var err error
	if t.file, err = t.space.create(); err != nil {
		return err
	}
	t.count -= int64(len(t.values)) + 1
	for _, v := range t.values {
		t.count++
		if err := t.write(v); err != nil {
			return err
		}
	}
	t.count++
	t.values, t.chunk, t.held = nil, nil, 0
	t.share.Shrink(0)
	return nil
}

// write appends a value to the file; it is counted already.
func (t *Tape) write(value []byte) error {
	if n := len(t.blocks); n == 0 || t.blocks[n-1].off != t.file.size {
		t.blocks = append(t.blocks, tapeBlock{off: t.file.size, first: t.count - 1})
	}
	return t.file.add(nil, value)
}

// At returns the value with a number below Len, valid until cachedBlocks-1 further calls at least.
func (t *Tape) At(i int64) ([]byte, error) {
	if t.file == nil {
		return t.values[i], nil
	}
	if err := t.file.flush(); err != nil {
		return nil, err
	}
	n := sort.Search(len(t.blocks), func(n int) bool { return t.blocks[n].first > i }) - 1
	b, err := t.block(n)
	if err != nil {
		return nil, err
	}
	if i -= t.blocks[n].first; i >= int64(len(b.values)) {
		return nil, fmt.Errorf("%s: %w", t.file.name, ErrDamaged)
	}
	return b.values[i], nil
}

// block reads a block, or finds it in the cache.
func (t *Tape) block(n int) (*cachedBlock, error) {
	t.clock++
	var victim *cachedBlock
	for _, b := range t.cache {
		if b.number == n {
			b.lastUse = t.clock
			return b, nil
		}
		if victim == nil || b.lastUse < victim.lastUse {
			victim = b
		}
	}
	if len(t.cache) < cachedBlocks {
		victim = new(cachedBlock)
		t.cache = append(t.cache, victim)
	}
	victim.number, victim.lastUse, victim.values = -1, t.clock, victim.values[:0]
	var err error
	if victim.buf, _, err = t.file.readBlock(t.blocks[n].off, victim.buf); err != nil {
		return nil, err
	}
	for rest := victim.buf; len(rest) > 0; {
		var v []byte
		if _, v, rest, err = parseRecord(rest); err != nil {
			return nil, err
		}
		victim.values = append(victim.values, v)
	}
	victim.number = n
	return victim, nil
}

// Close removes the file. Closing twice is no error.
func (t *Tape) Close() error {
	f := t.file
	t.file, t.values, t.chunk, t.cache, t.blocks, t.count, t.held = nil, nil, nil, nil, nil, 0, 0
	t.share.Shrink(0)
	if f == nil {
		return nil
	}
	return f.close()
}
