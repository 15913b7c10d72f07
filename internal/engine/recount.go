package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// Values apart count as live until the record that refers to them goes. Where that record was lost to damage nobody knows of them any
// more, and they would take their room for ever. So who compacts counts what the roots refer to.

// lostValues counts, by segment, the bytes of values that no root refers to. With damage in a root that cannot be told, and nothing is lost.
// What is lost once stays so, so that it can be given up any time later.
func (e *Engine) lostValues(ctx context.Context, p picture) (map[uint32]int64, error) {
	lost := map[uint32]int64{}
	for _, i := range p.segments {
		if i.Class == segment.Values && i.Live > 0 {
			lost[i.ID] = i.Live
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	count := func(p segment.Pointer, _ segment.Kind) error {
		if n, ok := lost[p.Segment]; ok {
			lost[p.Segment] = n - int64(p.Length)
		}
		return nil
	}
	for id, r := range p.view.Roots.All() {
		err := e.layoutOf(id).Walk(ctx, r, count)
		if errors.Is(err, corrupt.Err) || errors.Is(err, segment.ErrUnreadable) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("count values: %w", err)
		}
	}
	return lost, nil
}

// giveUpLost accounts those bytes of values dead that a compaction has found to be lost, and notes that in infos.
func (s *settlement) giveUpLost(infos []segment.Info) {
	if s.work.compaction == nil {
		return
	}
	for i := range infos {
		n := s.work.compaction.lost[infos[i].ID]
		if n <= 0 {
			continue
		}
		s.e.o.Logger.Info("values whose records were lost to damage are given up", "segment", infos[i].ID, "bytes", n)
		s.writer.Free(segment.Pointer{Segment: infos[i].ID, Length: uint32(n)})
		infos[i].Live -= n
		delete(s.e.stuck, infos[i].ID) // what could not be found in it was this
	}
}
