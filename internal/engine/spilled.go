package engine

import (
	"errors"
	"io"
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

// Spill is a batch in a file. Its owner, or the garbage collector in his place, may come back to it when the database has been closed. The
// directory is another's by then, who may have a file of the same number there. So Close removes the files that no commit has taken over,
// and nothing is written to them or removed afterwards.
type Spill struct {
	e      *Engine
	file   *spill.Writer
	number uint64
	logged uint64 // the number by which the log knows the batch, see logBulk
	frame  int    // bytes of commands that make a frame of their own
	most   int    // that a frame holds at the most
	taken  bool   // a bulk load has taken the file over, which is the engine's from then on
}

// NewSpill makes a file for the commands of a batch.
func (e *Engine) NewSpill() (*Spill, error) {
	if err := e.usable(); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	number := e.spills.Add(1)
	w, err := spill.Create(e.o.FS, e.o.Dir, number)
	if err != nil {
		return nil, err
	}
	e.loosen(number)
	return &Spill{e: e, file: w, number: number, frame: e.SpillBytes(), most: min(2*e.SpillBytes(), spill.MaxFrame)}, nil
}

// Add appends the commands of an encoder, all of them or, when it fails, none. What a savepoint has kept in memory makes several
// frames: whoever reads one needs memory for it, and a memtable for its commands.
func (s *Spill) Add(enc *command.Encoder) error {
	if err := s.e.enter(); err != nil {
		return err
	}
	defer s.e.leave()
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
	if s.e.enter() != nil {
		return s.file.Close(false)
	}
	defer s.e.leave()
	s.e.takeOver(s.number)
	return s.file.Remove()
}

// take makes the file the engine's.
func (s *Spill) take() {
	s.taken = true
	s.e.takeOver(s.number)
}

// giveBack makes the file, which may have another number now, the batch's again.
func (s *Spill) giveBack(number uint64) {
	s.number, s.taken = number, false
	s.e.loosen(number)
}

// loosen notes a file that no commit has taken over, and takeOver that somebody else than Close sees to it from now on.

func (e *Engine) loosen(number uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loose[number] = struct{}{}
}

func (e *Engine) takeOver(number uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.loose, number)
}

// removeLoose removes the spill files that no commit has taken over. Nobody else is inside any more.
func (e *Engine) removeLoose() {
	for number := range e.loose {
		if err := e.removeSpill(number); err != nil {
			e.o.Logger.Warn("a spill file stays until the next open", "error", err)
		}
	}
}

// ReadSpill calls fn for the runs of commands in a spill file behind an offset, with how many there are.
func (e *Engine) ReadSpill(s *Spill, from int64, fn func(d command.Decoder, count int) error) error {
	return spill.ReadFrom(e.o.FS, e.o.Dir, s.number, from, func(f spill.Frame) error {
		return fn(command.NewDecoder(f.Payload), f.Count)
	})
}

// keptSpills are the files of bulk loads that the change feed may be asked for as long as the log has what refers to them.
type keptSpills struct {
	mu      sync.Mutex
	list    []keptSpill
	earlier uint64 // the last command of earlier runs, to which all of their files belong until placeSpills; then 0

	unmarked []uint64 // the numbers of loads that failed and wait for space for their marks
}

// setUnmarked notes whether a load that failed waits for its mark.
func (k *keptSpills) setUnmarked(number uint64, waits bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unmarked = slices.DeleteFunc(slices.Clone(k.unmarked), func(n uint64) bool { return n == number })
	if waits {
		k.unmarked = append(k.unmarked, number)
	}
}

// allUnmarked returns the numbers of the loads that wait for their marks.
func (k *keptSpills) allUnmarked() []uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unmarked
}

// keptSpill is one of them, to which no record of the log behind last refers.
type keptSpill struct {
	number, last uint64
	bytes        int64
}

func (e *Engine) keepSpill(number, last uint64, bytes int64) {
	e.keptSpills.mu.Lock()
	defer e.keptSpills.mu.Unlock()
	e.keptSpills.list = append(e.keptSpills.list, keptSpill{number, last, bytes})
}

// since returns what the files take to which a record of the log from oldest on may refer.
func (k *keptSpills) since(oldest uint64) []keptFor {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []keptFor
	for _, s := range k.list {
		if s.last >= oldest {
			list = append(list, keptFor{s.last, s.bytes})
		}
	}
	return list
}

// placeSpills finds out which records of the log refer to the files of earlier runs, and reports whether it did. It reads all of the log of those
// runs, so it is left until some of the files are to go before others.
func (e *Engine) placeSpills() bool {
	k := &e.keptSpills
	before := k.takeEarlier()
	if before == 0 {
		return false
	}
	places, err := e.bulksInLog(before) // which takes long: whoever commits a batch meanwhile adds its file
	if err != nil {
		return false // they stay together; whoever reads the changes will be told
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.list {
		if s := &k.list[i]; s.last == before && s.bytes > 0 { // else it is a mark, to which a root slot may refer
			s.last = places[s.number]
		}
	}
	return true
}

// takeEarlier returns the last command of earlier runs the first time that it is asked, and then 0.
func (k *keptSpills) takeEarlier() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.earlier
	k.earlier = 0
	return before
}

// bulksInLog returns the sequence numbers of the bulk loads that the log tells of up to one, by the numbers of their files.
func (e *Engine) bulksInLog(upTo uint64) (map[uint64]uint64, error) {
	reader, err := e.log.NewOldestReader()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	reader.Limit(upTo)
	places := map[uint64]uint64{}
	for {
		seq, payload, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return places, nil
		}
		if err != nil {
			return nil, err
		}
		if d := command.NewDecoder(payload); d.Next() && d.Command().Op == command.Bulk { // which is alone in its record
			c := d.Command()
			number, _ := c.Spilled()
			places[number] = seq
		}
	}
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
		e.reach.raise(k.last)
		return true
	})
}
