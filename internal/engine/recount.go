package engine

import (
	"errors"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// Values apart count as live until the record that refers to them goes. Where that record was lost to damage nobody knows of them any
// more, and they would take their room for ever. So who compacts counts what the roots refer to.

// recount accounts the bytes of values dead that no root refers to, and notes that in infos. With damage in a root that cannot be told, and
// nothing is changed.
func (s *settlement) recount(infos []segment.Info) error {
	lost := map[uint32]int64{}
	for _, i := range infos {
		if i.Class == segment.Values && i.Live > 0 {
			lost[i.ID] = i.Live
		}
	}
	if len(lost) == 0 {
		return nil
	}
	count := func(p segment.Pointer, _ segment.Kind) error {
		if n, ok := lost[p.Segment]; ok {
			lost[p.Segment] = n - int64(p.Length)
		}
		return nil
	}
	for id, r := range s.roots {
		if r == nil {
			continue
		}
		err := s.e.layoutOf(uint32(id)).Walk(s.ctx, r, count)
		if errors.Is(err, corrupt.Err) || errors.Is(err, segment.ErrUnreadable) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	for i := range infos {
		n := lost[infos[i].ID]
		if n <= 0 {
			continue
		}
		s.e.o.Logger.Info("values whose records were lost to damage are given up", "segment", infos[i].ID, "bytes", n)
		s.writer.Free(segment.Pointer{Segment: infos[i].ID, Length: uint32(n)})
		infos[i].Live -= n
		delete(s.e.stuck, infos[i].ID) // what could not be found in it was this
	}
	return nil
}
