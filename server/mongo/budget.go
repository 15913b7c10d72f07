package mongo

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/pandodb/pando/server/wire"
)

// A message may have 48 MB, and as many again when it was compressed: a thousand clients that send one at the same time would fill the
// memory. So large messages take the room that they need, before they are read, from one budget, and give it back when they have been
// answered. Who finds too little waits, in the order of arrival, while the system's own buffers hold the client back: nothing fails. A
// client that takes room and sends no message loses both after MessageTimeout.

// freeMessage is how many bytes a message may need without asking: most are far below.
const freeMessage = 64 << 10

// budget is bytes that may be in use at the same time.
type budget struct {
	mu      sync.Mutex
	total   int64
	free    int64
	waiting []*waiter // in the order in which they came
}

// waiter waits for n bytes. ready is closed when they are its own.
type waiter struct {
	n     int64
	ready chan struct{}
}

func (b *budget) init(total int64) { b.total, b.free = total, total }

// take waits until n bytes are free, takes them, and returns how many it took: for what is larger than all of it, all. It fails when
// ctx is done.
func (b *budget) take(ctx context.Context, n int64) (int64, error) {
	n = min(n, b.total)
	b.mu.Lock()
	if len(b.waiting) == 0 && n <= b.free {
		b.free -= n
		b.mu.Unlock()
		return n, nil
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	select {
	case <-w.ready:
		return n, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	i := slices.Index(b.waiting, w)
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
		b.serve() // there may be enough for who was behind
	}
	b.mu.Unlock()
	if i < 0 { // it was given them meanwhile
		b.give(n)
	}
	return 0, ctx.Err()
}

// tryTake takes n bytes if they are free now and nobody waits, and reports whether they were.
func (b *budget) tryTake(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) > 0 || n > b.free {
		return false
	}
	b.free -= n
	return true
}

// give gives back what was taken.
func (b *budget) give(n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.serve()
}

// serve gives what is free to those who wait, in their order. The caller holds mu.
func (b *budget) serve() {
	for len(b.waiting) > 0 && b.waiting[0].n <= b.free {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.free -= w.n
		close(w.ready)
	}
}

// reserve takes the room for the message that has begun to arrive, which it holds until it gives it back.
func (c *conn) reserve() error {
	n, err := c.announced()
	if err != nil || n <= freeMessage {
		return err
	}
	if c.held, err = c.server.messages.take(c.work, n); err != nil {
		return err
	}
	return c.net.SetReadDeadline(c.server.clock.Now().Add(c.server.o.MessageTimeout)) // which has run while it waited
}

// release gives back what the message has taken.
func (c *conn) release() {
	c.server.messages.give(c.held)
	c.held = 0
}

// An answer with a batch may have 16 MiB, and stays in memory until its client has taken it: clients that do not read would fill the
// memory. So a batch that grows takes room from a budget of its own, and ends early where there is none: its client asks for the rest. What
// is made of many documents and cannot end early waits for room. A single document goes out in any case.
const (
	freeAnswer = 256 << 10 // bytes of an answer that need no room
	answerStep = 1 << 20   // how much room an answer takes at a time
)

// claim waits until an answer that cannot end early may grow to n bytes. It holds nothing while it waits, so that no two wait for each other;
// who has room gives it back when the client has taken the answer, or after WriteTimeout.
func (c *conn) claim(ctx context.Context, n int) (err error) {
	if int64(n) <= freeAnswer+c.answered || c.answered == c.server.answers.total {
		return nil
	}
	c.releaseAnswer()
	c.answered, err = c.server.answers.take(ctx, int64(n))
	return err
}

// keepRoom gives back what an answer of n bytes does not need.
func (c *conn) keepRoom(n int) {
	if spare := c.answered - max(int64(n)-freeAnswer, 0); spare >= answerStep {
		c.answered -= spare
		c.server.answers.give(spare)
	}
}

// fits reports whether an answer may grow to n bytes.
func (c *conn) fits(n int) bool {
	for int64(n) > freeAnswer+c.answered {
		if !c.server.answers.tryTake(answerStep) {
			return false
		}
		c.answered += answerStep
	}
	return true
}

// releaseAnswer gives back what the answer has taken.
func (c *conn) releaseAnswer() {
	c.server.answers.give(c.answered)
	c.answered = 0
}

// announced returns how many bytes the message that has begun to arrive says it needs, its decompressed form included; 0 when it
// cannot be true, which whoever reads it finds out.
func (c *conn) announced() (int64, error) {
	head, err := c.in.Peek(wire.HeaderBytes)
	if err != nil {
		return 0, err
	}
	length := int64(binary.LittleEndian.Uint32(head))
	if length > int64(c.messageLimit()) {
		return 0, nil
	}
	if wire.Opcode(binary.LittleEndian.Uint32(head[12:])) != wire.OpCompressed {
		return length, nil
	}
	const sizeAt = wire.HeaderBytes + 4 // behind the opcode of what is inside
	if length < sizeAt+4 {
		return 0, nil
	}
	if head, err = c.in.Peek(sizeAt + 4); err != nil {
		return 0, err
	}
	plain := int64(binary.LittleEndian.Uint32(head[sizeAt:]))
	if plain > int64(c.messageLimit()) {
		return 0, nil
	}
	return length + plain, nil
}
