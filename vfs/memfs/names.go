package memfs

// An operation changes one or two entries in one step of the file system's journal: a crash has all of it or nothing,
// until a directory's sync takes a part of it out.
type operation struct {
	stamp   uint64
	effects []effect
}

// effect puts node under name into dir, or takes the name away when node is nil.
type effect struct {
	dir  *directory
	name string
	node *node
}

// change does an operation as programs see it, and leaves it pending.
func (f *FS) change(effects ...effect) {
	f.stamp++
	f.pending = append(f.pending, &operation{stamp: f.stamp, effects: effects})
	for _, e := range effects {
		if e.node != nil {
			e.node.links++
		}
	}
	for _, e := range effects {
		gone := e.dir.now[e.name]
		put(e.dir.now, e)
		if gone != nil {
			gone.links--
			f.forget(gone)
		}
	}
}

func put(entries map[string]*node, e effect) {
	if e.node == nil {
		delete(entries, e.name)
	} else {
		entries[e.name] = e.node
	}
}

// forget gives the space of a file back that neither names nor handles hold.
func (f *FS) forget(n *node) {
	if n.links == 0 && n.open == 0 && n.dir == nil {
		f.used -= blocks(n.size())
	}
}

// syncEntries makes the pending effects on dir durable. A rename that took a name away from dir is durable in its other
// directory as well then: no journal lets a file fall between two directories.
func (f *FS) syncEntries(dir *directory) {
	for i := 0; i < len(f.pending); i++ {
		op := f.pending[i]
		taken := false
		for _, e := range op.effects {
			if e.dir == dir {
				taken = taken || e.node == nil
			}
		}
		for _, e := range op.effects {
			if e.dir != dir && taken && e.node != nil {
				f.settleEntry(e.dir, e.name, op.stamp)
			}
		}
	}
	f.settle(func(op *operation, e effect) bool { return e.dir == dir })
}

// settleEntry makes what happened to one name durable, up to the operation stamp.
func (f *FS) settleEntry(dir *directory, name string, stamp uint64) {
	f.settle(func(op *operation, e effect) bool { return op.stamp <= stamp && e.dir == dir && e.name == name })
}

// settle moves the chosen effects from pending to durable, oldest first.
func (f *FS) settle(chosen func(op *operation, e effect) bool) {
	kept := f.pending[:0]
	for _, op := range f.pending {
		var rest []effect
		for _, e := range op.effects {
			if chosen(op, e) {
				put(e.dir.durable, e)
			} else {
				rest = append(rest, e)
			}
		}
		if len(rest) > 0 {
			op.effects = rest
			kept = append(kept, op)
		}
	}
	clear(f.pending[len(kept):])
	f.pending = kept
}
