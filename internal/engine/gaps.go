package engine

import (
	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/gap"
)

// mostNewer is how many commands may have come since a walk began for its gap to be compared with them: that takes ten nanoseconds for
// each, in which nobody can commit.
const mostNewer = 16 << 10

// NoteGap takes note of a gap that a walk has come to, unless somebody commits just now or what has been put since then may lie in it: then
// another walk will come to it. leads tells that the caller leads commits.
func (e *Engine) NoteGap(keyspace uint32, g gap.Gap, leads bool) {
	if !leads {
		if !e.pipeline.TryAcquire() {
			return
		}
		defer e.pipeline.Release()
	}
	defer e.epoch.Enter().Exit()
	if !e.closed.Load() && !e.putSince(keyspace, g) {
		e.gaps.Add(keyspace, g)
	}
}

// putSince reports whether a key of a gap may have been put since its sequence number. The caller leads, and is inside an epoch section.
func (e *Engine) putSince(keyspace uint32, g gap.Gap) bool {
	if e.lastSeq == g.Seq {
		return false
	}
	tables := e.current.Load().Tables
	// All that came after the first record of the oldest table is in them; what came before that cannot be looked at any more.
	if oldest := tables[len(tables)-1]; e.lastSeq-g.Seq > mostNewer || oldest.Len() == 0 || oldest.Newer(g.Seq+1) {
		return true
	}
	for _, t := range tables {
		if t.NewestIn(keyspace, g.Low, g.High, g.Seq) {
			return true
		}
	}
	return false
}

// closeGaps tells the gaps of what is about to be put. The caller leads.
func (e *Engine) closeGaps(commands []command.Command) {
	for i := range commands {
		switch c := &commands[i]; c.Op {
		case command.Put, command.PutApart:
			e.gaps.Put(c.Keyspace, c.Key)
		case command.DropKeyspace:
			e.gaps.Drop(c.Keyspace)
		}
	}
}
