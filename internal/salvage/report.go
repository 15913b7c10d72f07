package salvage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pandodb/pando/internal/corrupt"
)

// MaxLosses is how many losses a Report lists at most.
const MaxLosses = 10_000

// Loss is one thing that could not be recovered.
type Loss struct {
	Keyspace string // empty: not known, or it concerns the whole database
	Keys     bool   // Lo and Hi say which keys are concerned
	Lo, Hi   []byte // the keys in [Lo, Hi); a nil bound is open
	File     string // where the damage lies, inside the database directory; empty: not known
	Offset   int64  // in bytes
	Length   int64  // in bytes; 0: not known
	Reason   string
}

// String tells the loss in one line.
func (l Loss) String() string {
	var b strings.Builder
	if l.Keyspace != "" {
		fmt.Fprintf(&b, "keyspace %q: ", l.Keyspace)
	}
	if l.Keys {
		b.WriteString("keys " + bounds(l.Lo, l.Hi) + ": ")
	}
	b.WriteString(l.Reason)
	return b.String()
}

func bounds(lo, hi []byte) string {
	if hi != nil && len(hi) == len(lo)+1 && hi[len(lo)] == 0 && string(hi[:len(lo)]) == string(lo) {
		return fmt.Sprintf("%.64q", lo)
	}
	from, to := "the first", "the last"
	if lo != nil {
		from = fmt.Sprintf("%.64q", lo)
	}
	if hi != nil {
		to = fmt.Sprintf("those below %.64q", hi)
	}
	return "from " + from + " to " + to
}

// Report says what was recovered and what was not.
type Report struct {
	Keyspaces int64 // in the new database
	Records   int64 // pairs in the new database
	Bytes     int64 // of keys and values that were written to it
	Older     int64 // records that were taken from older versions of what is lost, and may be outdated, deleted since, or of a write that failed
	Lost      []Loss
	Truncated bool // there are more losses than MaxLosses
}

// Err returns nil when nothing was lost, else an error that says how much.
func (r *Report) Err() error {
	if len(r.Lost) == 0 {
		return nil
	}
	return fmt.Errorf("%s, the first one: %s: %w", number(int64(len(r.Lost)), "loss", "losses"), r.Lost[0], corrupt.Err)
}

// number tells how many there are of what has a singular and a plural.
func number(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// String tells the whole report, a line for each loss.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "recovered %s in %s (%s of keys and values)\n", number(r.Records, "record", "records"),
		number(r.Keyspaces, "keyspace", "keyspaces"), number(r.Bytes, "byte", "bytes"))
	if r.Older > 0 {
		fmt.Fprintf(&b, "%d of the records written were found in older versions of what is lost: each may have been changed or deleted since, or be of a write that failed\n", r.Older)
	}
	if len(r.Lost) == 0 {
		b.WriteString("nothing was lost\n")
	}
	for _, l := range r.Lost {
		fmt.Fprintf(&b, "lost: %s\n", l)
	}
	if r.Truncated {
		fmt.Fprintf(&b, "and more: only the first %d losses are listed\n", MaxLosses)
	}
	return b.String()
}

// lose adds a loss; err says why, and where the damage lies if it knows.
func (r *Report) lose(l Loss, err error) {
	if len(r.Lost) == MaxLosses {
		r.Truncated = true
		return
	}
	var c *corrupt.Error
	if errors.As(err, &c) {
		l.File, l.Offset, l.Length = c.File, c.Offset, c.Length
	}
	l.Reason = err.Error()
	r.Lost = append(r.Lost, l)
}
