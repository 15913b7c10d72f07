package execute

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/plan"
)

// verdict is where an entry lies.
type verdict uint8

const (
	within verdict = iota // in the bounds
	before                // outside; the next one that may be in them is at target
	past                  // behind them all
)

// checker tells of entries whether they are in bounds, and where to look next when they are not.
type checker struct {
	bounds   *plan.Bounds
	backward bool
	ends     []int  // of the encoded values of the entry looked at last
	target   []byte // where to seek
}

func newChecker(s *plan.IndexScan) *checker {
	return &checker{bounds: s.Bounds, backward: s.Backward, ends: make([]int, len(s.Bounds.Ranges))}
}

// look looks at an entry.
func (c *checker) look(key []byte) (verdict, error) {
	rest := key
	for i, ranges := range c.bounds.Ranges {
		begin := len(key) - len(rest)
		var err error
		if rest, err = keyenc.Skip(rest, c.bounds.Descending[i]); err != nil {
			return past, err
		}
		c.ends[i] = len(key) - len(rest)
		if len(ranges) == 1 && ranges[0].Lo == nil && ranges[0].Hi == nil {
			continue
		}
		part := key[begin:c.ends[i]]
		var v verdict
		if c.backward {
			v = c.down(key[:begin], part, ranges)
		} else {
			v = c.up(key[:begin], part, ranges)
		}
		if v != within {
			return v, nil
		}
	}
	return within, nil
}

// up looks at one part of an entry on the way forward.
func (c *checker) up(prefix, part []byte, ranges []plan.Range) verdict {
	i, j := 0, len(ranges) // the first range that does not end before part
	for i < j {
		if m := int(uint(i+j) >> 1); ranges[m].Hi != nil && bytes.Compare(part, ranges[m].Hi) >= 0 {
			i = m + 1
		} else {
			j = m
		}
	}
	switch {
	case i == len(ranges):
		_, next := index.PrefixRange(prefix)
		if next == nil {
			return past
		}
		c.target = append(c.target[:0], next...)
		return before
	case bytes.Compare(part, ranges[i].Lo) >= 0:
		return within
	}
	c.target = append(append(c.target[:0], prefix...), ranges[i].Lo...)
	return before
}

// down looks at one part of an entry on the way backward.
func (c *checker) down(prefix, part []byte, ranges []plan.Range) verdict {
	i, j := 0, len(ranges) // the first range that begins behind part
	for i < j {
		if m := int(uint(i+j) >> 1); bytes.Compare(ranges[m].Lo, part) <= 0 {
			i = m + 1
		} else {
			j = m
		}
	}
	switch {
	case i == 0:
		if len(prefix) == 0 {
			return past
		}
		c.target = append(c.target[:0], prefix...)
		return before
	case ranges[i-1].Hi == nil || bytes.Compare(part, ranges[i-1].Hi) < 0:
		return within
	}
	c.target = append(append(c.target[:0], prefix...), ranges[i-1].Hi...)
	return before
}

func isNull(t bsoncore.Type) bool { return t == bsoncore.TypeNull || t == bsoncore.TypeUndefined }
