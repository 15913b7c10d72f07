package tree

import "bytes"

// A stretch that is written anew begins with the leaf in which its From lies and ends with a leaf. Nodes that only a part of the stretch
// lies under take their other children as they are.

// renews reports whether anything below hi, which is where the leaf or node at hand ends, is to be written anew.
func (a *applier) renews(hi []byte) bool {
	return a.renew && (hi == nil || bytes.Compare(hi, a.o.Rewrite.From) > 0)
}

// renewed takes note that leaf i of b, whose keys lie below hi, was written anew, and ends the stretch there if it is long enough. The new
// leaf that is not full yet goes out as it is, and is where the next stretch begins: so all leaves are full in the end. One at least is
// left behind, or there would be no end.
func (a *applier) renewed(b *body, i int, hi []byte) error {
	s := a.o.Rewrite
	if s.Enough == nil || !s.Enough(int64(b.slots[i].ptr.Length)+lengths(b.deltasOf(i))) || hi == nil {
		return nil
	}
	next := hi
	if a.leaf.b.Count() > 0 {
		next = a.leaf.sep
	}
	if bytes.Compare(next, s.From) <= 0 {
		return nil
	}
	s.Next, a.renew = bytes.Clone(next), false
	return a.leaf.flush()
}
