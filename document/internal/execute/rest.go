package execute

// smallRecord is how large a buffer of a stage may stay while nobody moves, in bytes: to make it again costs more than it takes.
const smallRecord = 16 << 10

// Rest gives back the memory that large records have taken: for a cursor that waits for somebody who may never come back. The row at hand
// is gone; Next goes on with the one after it.
func (c *Cursor) Rest() {
	c.row = row{}
	c.x.view.Release()
	releaseLarge(&c.x.buf)
	releaseLarge(&c.x.whole)
	rest(c.root)
}

// rest lets go of what a stage and those below it hold of large records. A row that one of them keeps for later stays as it is: the
// memory is forgotten, not written to.
func rest(n node) {
	switch n := n.(type) {
	case *collectionScan:
		if n.it != nil {
			n.it.ReleaseValue()
		}
	case *idLookup:
		releaseLarge(&n.record)
	case *entries:
		releaseLarge(&n.record)
	case *near:
		releaseLarge(&n.record)
		releaseLarge(&n.packed)
	case *fetch:
		releaseLarge(&n.record)
		rest(n.in)
	case *skip:
		rest(n.in)
	case *limit:
		rest(n.in)
	case *through:
		rest(n.in)
	case *sorter:
		releaseLarge(&n.packed)
		rest(n.in)
	case *or:
		n.given.rest(n.in)
	case *merge:
		n.given.rest(n.in)
	case *andHash:
		n.given.rest(n.in)
	case *andSorted:
		restAll(n.in)
	}
}

func (g *given) rest(in []node) {
	releaseLarge(&g.record)
	restAll(in)
}

func restAll(list []node) {
	for _, n := range list {
		rest(n)
	}
}

func releaseLarge(buf *[]byte) {
	if cap(*buf) > smallRecord {
		*buf = nil
	}
}
