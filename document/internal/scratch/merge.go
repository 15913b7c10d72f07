package scratch

import (
	"bytes"
	"container/heap"
)

// merger walks through several sorted files in the order of the keys; of equal keys that of the earlier file comes first.
type merger struct {
	sources sources
	started bool
}

type source struct {
	reader
	number int
}

type sources []*source

// Len implements heap.Interface.
func (s sources) Len() int { return len(s) }

// Less implements heap.Interface.
func (s sources) Less(i, j int) bool {
	if c := bytes.Compare(s[i].key, s[j].key); c != 0 {
		return c < 0
	}
	return s[i].number < s[j].number
}

// Swap implements heap.Interface.
func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

// Push implements heap.Interface.
func (s *sources) Push(x any) { *s = append(*s, x.(*source)) }

// Pop implements heap.Interface.
func (s *sources) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

func newMerger(files []*file) (*merger, error) {
	m := new(merger)
	for i, f := range files {
		s := &source{reader: reader{f: f}, number: i}
		ok, err := s.next()
		if err != nil {
			return nil, err
		}
		if ok {
			m.sources = append(m.sources, s)
		}
	}
	heap.Init(&m.sources)
	return m, nil
}

// next returns the next record, valid until the next call.
func (m *merger) next() (key, value []byte, ok bool, err error) {
	if m.started && len(m.sources) > 0 {
		ok, err := m.sources[0].next()
		switch {
		case err != nil:
			return nil, nil, false, err
		case ok:
			heap.Fix(&m.sources, 0)
		default:
			heap.Pop(&m.sources)
		}
	}
	m.started = true
	if len(m.sources) == 0 {
		return nil, nil, false, nil
	}
	return m.sources[0].key, m.sources[0].value, true, nil
}
