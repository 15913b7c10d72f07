package scratch

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"slices"
)

const (
	entryOverhead = 48      // bytes of an entry beside its record
	chunkBytes    = 1 << 20 // records are copied into chunks of this size
	leastFanIn    = 4
	mostFanIn     = 64
)

// Sorter collects records and gives them back in the order of their keys, in bounded memory. It is for one goroutine.
type Sorter struct {
	space   *Space
	share   Share
	limit   int64
	entries entries
	chunk   []byte // where the next record goes
	held    int64
	number  uint32
	records int64
	spilled int64
	runs    []*file
	cutoff  []byte // top-k: no later record with a key from here on can be among the first limit
	merge   *merger
	next    int64 // Next: how many were given out
}

// entry is a record in memory. prefix is the beginning of the key, which decides most comparisons.
type entry struct {
	prefix uint64
	data   []byte // key, value
	key    uint32 // length of the key
	number uint32 // order of arrival
}

type entries []entry

func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (e *entry) compare(o *entry) int {
	if e.prefix != o.prefix {
		return cmp.Compare(e.prefix, o.prefix)
	}
	if c := bytes.Compare(e.data[:e.key], o.data[:o.key]); c != 0 {
		return c
	}
	return cmp.Compare(e.number, o.number)
}

// The entries are a heap with the last record on top while a limit is kept.

// Len implements heap.Interface.
func (e entries) Len() int { return len(e) }

// Less implements heap.Interface.
func (e entries) Less(i, j int) bool { return e[i].compare(&e[j]) > 0 }

// Swap implements heap.Interface.
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *entries) Push(x any) { *e = append(*e, x.(entry)) }

// Pop implements heap.Interface.
func (e *entries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// NewSorter returns a sorter that holds what a allows and spills sorted runs into its Space; without one, needing more fails with
// QueryExceededMemoryLimitNoDiskUseAllowed. limit, when above 0, keeps only the first limit records (top-k).
func NewSorter(a Allowance, limit int64) *Sorter {
	return &Sorter{space: a.Space, share: a.Share(), limit: limit}
}

// Add takes a copy of a record. Keys are compared as bytes; equal keys keep their order of arrival.
func (s *Sorter) Add(key, value []byte) error {
	s.records++
	n := len(key) + len(value)
	if s.limit > 0 {
		return s.addLimited(key, value)
	}
	if err := s.room(n); err != nil {
		return err
	}
	if cap(s.chunk)-len(s.chunk) < n {
		s.chunk = make([]byte, 0, max(n, min(chunkBytes, max(4096, int(s.held)))))
	}
	start := len(s.chunk)
	s.chunk = append(append(s.chunk, key...), value...)
	s.append(s.chunk[start:len(s.chunk):len(s.chunk)], key)
	return nil
}

func (s *Sorter) append(data, key []byte) {
	s.number++
	s.held += int64(len(data)) + entryOverhead
	s.entries = append(s.entries, entry{prefixOf(key), data, uint32(len(key)), s.number})
}

// room spills when a record of n bytes would exceed the memory.
func (s *Sorter) room(n int) error {
	if need := s.held + int64(n) + entryOverhead; !s.share.Fits(need) && (len(s.entries) > 0 || s.space == nil) {
		return s.spill(need)
	}
	return nil
}

func (s *Sorter) addLimited(key, value []byte) error {
	if s.cutoff != nil && bytes.Compare(key, s.cutoff) >= 0 {
		return nil
	}
	if int64(len(s.entries)) < s.limit {
		if err := s.room(len(key) + len(value)); err != nil {
			return err
		}
		s.append(append(append(make([]byte, 0, len(key)+len(value)), key...), value...), key)
		if int64(len(s.entries)) == s.limit {
			heap.Init(&s.entries)
		}
		return nil
	}
	top := &s.entries[0]
	if bytes.Compare(key, top.data[:top.key]) >= 0 {
		return nil
	}
	s.held += int64(len(key) + len(value) - len(top.data))
	s.number++
	top.data = append(append(top.data[:0], key...), value...)
	top.prefix, top.key, top.number = prefixOf(key), uint32(len(key)), s.number
	heap.Fix(&s.entries, 0)
	if !s.share.Fits(s.held) {
		return s.spill(s.held)
	}
	return nil
}

func (s *Sorter) sortEntries() {
	slices.SortFunc(s.entries, func(a, b entry) int { return a.compare(&b) })
}

// spill writes what is held as a sorted run, since need bytes do not fit.
func (s *Sorter) spill(need int64) error {
	if s.space == nil {
		return s.share.Exceeded("Sort", need)
	}
	s.sortEntries()
	f, err := s.space.create()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, f)
	for i := range s.entries {
		e := &s.entries[i]
		if err := f.add(e.data[:e.key], e.data[e.key:]); err != nil {
			return err
		}
	}
	if n := len(s.entries); int64(n) == s.limit && n > 0 {
		last := &s.entries[n-1]
		s.cutoff = append(s.cutoff[:0], last.data[:last.key]...)
	}
	if err := f.flush(); err != nil {
		return err
	}
	f.buf = nil
	s.spilled += f.size
	clear(s.entries)
	s.entries, s.chunk, s.held, s.number = s.entries[:0], nil, 0, 0
	return s.reduce(mostFanIn)
}

// Sort ends the adding; then Next walks.
func (s *Sorter) Sort() error {
	if len(s.runs) == 0 {
		s.sortEntries()
		return nil
	}
	if err := s.spill(s.held); err != nil {
		return err
	}
	s.entries = nil
	if err := s.reduce(s.fanIn()); err != nil {
		return err
	}
	s.share.Shrink(int64(len(s.runs)) * blockBytes)
	var err error
	s.merge, err = newMerger(s.runs)
	return err
}

// fanIn is how many runs may be merged at once.
func (s *Sorter) fanIn() int {
	return int(min(max(s.share.Most()/(2*blockBytes), leastFanIn), mostFanIn))
}

// reduce merges neighbours until no more than most runs are left, which are files that are open: always those that are the least to write
// anew. The order of the runs stays that of arrival.
func (s *Sorter) reduce(most int) error {
	for len(s.runs) > most {
		n := min(len(s.runs)-most+1, s.fanIn())
		if err := s.mergeAt(s.least(n), n); err != nil {
			return err
		}
	}
	return nil
}

// least is where those n neighbours begin that have the fewest bytes together.
func (s *Sorter) least(n int) (at int) {
	var size int64
	for _, f := range s.runs[:n] {
		size += f.size
	}
	least := size
	for i := n; i < len(s.runs); i++ {
		if size += s.runs[i].size - s.runs[i-n].size; size < least {
			least, at = size, i-n+1
		}
	}
	return at
}

// mergeAt makes one run of n of them.
func (s *Sorter) mergeAt(i, n int) error {
	old := slices.Clone(s.runs[i : i+n])
	merged, err := s.mergeRuns(old)
	if err != nil {
		if merged != nil {
			err = errors.Join(err, merged.close())
		}
		return err
	}
	s.runs = slices.Replace(s.runs, i, i+n, merged)
	for _, f := range old {
		err = errors.Join(err, f.close())
	}
	return err
}

func (s *Sorter) mergeRuns(runs []*file) (*file, error) {
	m, err := newMerger(runs)
	if err != nil {
		return nil, err
	}
	f, err := s.space.create()
	if err != nil {
		return nil, err
	}
	for n := int64(0); s.limit == 0 || n < s.limit; n++ {
		key, value, ok, err := m.next()
		if err != nil {
			return f, err
		}
		if !ok {
			break
		}
		if err := f.add(key, value); err != nil {
			return f, err
		}
	}
	err = f.flush()
	f.buf = nil
	s.spilled += f.size
	return f, err
}

// Next returns the next record, valid until the next call; ok is false at the end.
func (s *Sorter) Next() (key, value []byte, ok bool, err error) {
	if s.limit > 0 && s.next >= s.limit {
		return nil, nil, false, nil
	}
	if s.merge != nil {
		s.next++
		return s.merge.next()
	}
	if s.next >= int64(len(s.entries)) {
		return nil, nil, false, nil
	}
	e := &s.entries[s.next]
	s.next++
	return e.data[:e.key], e.data[e.key:], true, nil
}

// Close removes the files. Closing twice is no error.
func (s *Sorter) Close() error {
	var list []error
	for _, f := range s.runs {
		list = append(list, f.close())
	}
	s.runs, s.merge, s.entries, s.chunk, s.held = nil, nil, nil, nil, 0
	s.share.Shrink(0)
	return errors.Join(list...)
}

// Stats tells bytes held, bytes spilled and records.
func (s *Sorter) Stats() (memory, spilled, records int64) { return s.held, s.spilled, s.records }
