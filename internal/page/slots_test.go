package page_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// Many readers that are the first to ask a page for its keys get right answers, whoever of them fills the hash slots.
func TestFirstGets(t *testing.T) {
	var b page.Builder
	var pairs []pair
	for i := range 300 {
		pairs = append(pairs, pair{fmt.Appendf(nil, "prefix/%06d", 3*i), record.Record{Kind: record.Inline, Value: []byte{byte(i)}}})
	}
	raw := build(t, &b, pairs)
	for round := range 20 {
		p := load(t, raw)
		var group sync.WaitGroup
		for g := range 4 {
			group.Go(func() {
				for i := range pairs {
					want := pairs[(i+97*g+round)%len(pairs)]
					hash := record.Hash(keyspace, want.Key)
					p.Touch(hash)
					p.TouchEntry(hash)
					if r, ok := p.Get(hash, want.Key); !ok || !sameRecord(r, want.Record) {
						t.Errorf("Get(%s) = %v %v, want %v", want.Key, r, ok, want.Record)
					}
					absent := append(want.Key[:len(want.Key):len(want.Key)], 'x')
					if _, ok := p.Get(record.Hash(keyspace, absent), absent); ok {
						t.Errorf("found %s", absent)
					}
				}
			})
		}
		group.Wait()
	}
}
