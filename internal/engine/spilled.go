package engine

import (
	"errors"
	"slices"
	"sync"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/internal/wal"
)

// SpillBytes is how many bytes of commands a batch may hold in memory.
func (e *Engine) SpillBytes() int { return int(e.sizes.bulk) }

// CommitBytes is how many bytes of commands a batch may have that is committed from memory: a record of the log takes them.
func (e *Engine) CommitBytes() int { return min(2*e.SpillBytes(), wal.MaxPayload) }

// Spill is a batch in a file.
type Spill struct {
	file   *spill.Writer
	number uint64
	frame  int  // bytes of commands that make a frame of their own
	most   int  // that a frame holds at the most
	taken  bool // a bulk load has taken the file over, which is the engine's from then on
}

// NewSpill makes a file for the commands of a batch.
func (e *Engine) NewSpill() (*Spill, error) {
	if err := e.usable(); err != nil {
		return nil, err
	}
	number := e.spills.Add(1)
	w, err := spill.Create(e.o.FS, e.o.Dir, number)
	if err != nil {
		return nil, err
	}
	return &Spill{file: w, number: number, frame: e.SpillBytes(), most: min(2*e.SpillBytes(), spill.MaxFrame)}, nil
}

// Add appends the commands of an encoder, all of them or, when it fails, none. What a savepoint has kept in memory makes several
// frames: whoever reads one needs memory for it, and a memtable for its commands.
func (s *Spill) Add(enc *command.Encoder) error {
	if len(enc.Payload()) <= s.most {
		return s.add(enc)
	}
	size, count := s.file.Size(), s.file.Count()
	err := s.addInFrames(command.NewDecoder(enc.Payload()))
	if err != nil {
		return errors.Join(err, s.file.Rewind(size, count))
	}
	return nil
}

func (s *Spill) addInFrames(d command.Decoder) error {
	var part command.Encoder
	for d.Next() {
		part.Add(d.Command()) // each frame says its keyspace anew
		if len(part.Payload()) < s.frame {
			continue
		}
		if err := s.add(&part); err != nil {
			return err
		}
		part.Reset()
	}
	if err := d.Err(); err != nil || part.Count() == 0 {
		return err
	}
	return s.add(&part)
}

// add appends one frame.
func (s *Spill) add(enc *command.Encoder) error {
	return s.file.Add(spill.Frame{Payload: enc.Payload(), Count: enc.Count(), Data: enc.Data()})
}

// Size is the length of the file in bytes.
func (s *Spill) Size() int64 { return s.file.Size() }

// Remove gives the file up, unless it is the engine's.
func (s *Spill) Remove() error {
	if s.taken {
		return nil
	}
	return s.file.Remove()
}

// ReadSpill calls fn for the runs of commands in a spill file behind an offset, with how many there are.
func (e *Engine) ReadSpill(s *Spill, from int64, fn func(d command.Decoder, count int) error) error {
	return spill.ReadFrom(e.o.FS, e.o.Dir, s.number, from, func(f spill.Frame) error {
		return fn(command.NewDecoder(f.Payload), f.Count)
	})
}

// keptSpills are the files of bulk loads that the change feed may be asked for as long as the log has what refers to them.
type keptSpills struct {
	mu   sync.Mutex
	list []keptSpill
}

// keptSpill is one of them, to which no record of the log behind last refers.
type keptSpill struct{ number, last uint64 }

func (e *Engine) keepSpill(number, last uint64) {
	e.keptSpills.mu.Lock()
	defer e.keptSpills.mu.Unlock()
	e.keptSpills.list = append(e.keptSpills.list, keptSpill{number, last})
}

// dropSpills removes the files to which nothing in the log refers any more.
func (e *Engine) dropSpills() {
	e.keptSpills.mu.Lock()
	defer e.keptSpills.mu.Unlock()
	oldest := e.oldestChange()
	e.keptSpills.list = slices.DeleteFunc(e.keptSpills.list, func(k keptSpill) bool {
		if k.last >= oldest {
			return false
		}
		if err := e.removeSpill(k.number); err != nil {
			e.o.Logger.Warn("a spill file stays until the next open", "error", err)
		}
		return true
	})
}
