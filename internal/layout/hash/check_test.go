package hash

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/segment"
)

// everything is a table of several pages in two groups, with what roots and slots tell of: values apart, records that expire, and a slot
// that is open, as one of its records was damaged when it was written again.
func everything(t *testing.T) *layouttest.World {
	t.Helper()
	c := config()
	c.New = func() layout.Layout { return &Hash{most: 4, least: 1} }
	w := layouttest.NewWorld(t, c, 1, 0, 0)
	changes := put("old", names(0, 2000)...)
	changes[58].Record = w.Apart([]byte("far"))
	changes[59].Record.Expiry = 5000
	w.Apply(nil, changes, layout.ApplyOptions{})
	w.Env.Damaged = func(error) {}
	undo := spoil(t, w, recordOf(t, w, "name000007"))
	w.Apply(nil, append(put("new", "name000007"), remove("name000008")...), layout.ApplyOptions{})
	undo()
	w.Root = w.Reload()
	w.Check(w.Root)
	if r := w.Root.(*root); len(r.groups) != 2 || !r.open || !r.apart || r.expiry != 5000 {
		t.Fatalf("%d groups, %+v", len(r.groups), r)
	}
	return w
}

// reports is what Check finds under a root.
func reports(t *testing.T, w *layouttest.World, r layout.Root) (found []string) {
	t.Helper()
	err := w.Layout.Check(context.Background(), r, func(err error) {
		if found = append(found, err.Error()); !errors.Is(err, corrupt.Err) {
			t.Errorf("not a corruption: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCheckFindsLiesOfTheRoot: a root that says less than there is would make wrong answers of it. What may be later or more than it is, a
// root may say.
func TestCheckFindsLiesOfTheRoot(t *testing.T) {
	w := everything(t)
	for name, c := range map[string]struct {
		lie  func(r *root)
		want []string
	}{
		"nothing":           {func(*root) {}, nil},
		"an entry more":     {func(r *root) { r.count++ }, []string{"2000 entries, the root says 2001"}},
		"an entry less":     {func(r *root) { r.count-- }, []string{"2000 entries, the root says 1999"}},
		"not open":          {func(r *root) { r.open = false }, []string{"fewer records than entries"}},
		"nothing apart":     {func(r *root) { r.apart = false }, []string{"lie apart"}},
		"nothing expires":   {func(r *root) { r.expiry = 0 }, []string{"expire at 5000, the root says 0"}},
		"expires later":     {func(r *root) { r.expiry = 5001 }, []string{"expire at 5000, the root says 5001"}},
		"expires earlier":   {func(r *root) { r.expiry = 4999 }, nil},
		"everything":        {func(r *root) { r.count, r.open, r.apart, r.expiry = 1, false, false, 0 }, []string{"1", "fewer", "apart", "5000"}},
		"a group twice":     {func(r *root) { r.groups[1] = r.groups[0] }, []string{"no index page"}},
		"groups exchanged":  {func(r *root) { slices.Reverse(r.groups) }, []string{"no index page"}},
		"of another depth":  {func(r *root) { r.depth, r.groups = 8, r.groups[:1] }, []string{"no index page"}},
		"of fewer slots":    {func(r *root) { r.depth, r.groups = 7, r.groups[:1] }, []string{"256 slots, want 128"}},
		"a page as a group": {func(r *root) { r.groups[0].ptr = blobs(t, w, segment.KindIndex)[0] }, []string{"a blob of kind 10"}},
	} {
		t.Run(name, func(t *testing.T) {
			liar := w.Reload().(*root)
			c.lie(liar)
			expectReports(t, reports(t, w, load(t, w, liar)), c.want)
		})
	}
}

// TestCheckComparesTheRootBesideDamage: what the slots say is known though a page cannot be read, and so is that the root says otherwise.
func TestCheckComparesTheRootBesideDamage(t *testing.T) {
	w := everything(t)
	liar := w.Reload().(*root)
	liar.count++
	pages := blobs(t, w, segment.KindIndex)
	spoil(t, w, pages[0])
	expectReports(t, reports(t, w, load(t, w, liar)), []string{"checksum mismatch", "2000 entries, the root says 2001"})
	if found := reports(t, w, w.Reload()); len(found) != 1 {
		t.Errorf("one page is damaged: %q", found)
	}
}

// load loads a root as it is stored.
func load(t *testing.T, w *layouttest.World, r *root) layout.Root {
	t.Helper()
	loaded, err := w.Layout.Load(w.Env, layouttest.Keyspace, r.Encode(nil))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// expectReports expects each of some texts in a report, and no report at all where there are none.
func expectReports(t *testing.T, found, want []string) {
	t.Helper()
	if len(want) == 0 && len(found) > 0 {
		t.Errorf("reported without reason: %q", found)
	}
	for _, text := range want {
		if !slices.ContainsFunc(found, func(r string) bool { return strings.Contains(r, text) }) {
			t.Errorf("nothing of %q in %q", text, found)
		}
	}
}

// TestCheckFindsLiesOfSlots: groups whose checksums are right and whose content is not.
func TestCheckFindsLiesOfSlots(t *testing.T) {
	w := everything(t)
	slotOf := func(b *body, has func(t *slot) bool) *slot {
		return &b.slots[slices.IndexFunc(b.slots, func(t slot) bool { return has(&t) })]
	}
	plain := func(t *slot) bool { return t.count > 0 && !t.open }
	open := func(t *slot) bool { return t.open }
	apart := func(t *slot) bool { return t.apart }
	expires := func(t *slot) bool { return t.expiry != 0 }
	deltas := func(t *slot) bool { return len(t.deltas) > 0 }
	for name, c := range map[string]struct {
		has  func(t *slot) bool
		lie  func(t *slot)
		want []string
	}{
		"nothing":           {plain, func(*slot) {}, nil},
		"an entry more":     {plain, func(t *slot) { t.count++ }, []string{"its slot says", "2001 entries, the root says 2000"}},
		"no page, entries":  {plain, func(t *slot) { t.base, t.deltas = segment.Pointer{}, nil }, []string{"neither page nor deltas"}},
		"not open":          {open, func(t *slot) { t.open = false }, []string{"has two records"}},
		"nothing apart":     {apart, func(t *slot) { t.apart = false }, []string{"its slot false"}},
		"nothing expires":   {expires, func(t *slot) { t.expiry = 0 }, []string{"expires at 5000, its slot says 0"}},
		"expires later":     {expires, func(t *slot) { t.expiry++ }, []string{"expires at 5000, its slot says 5001"}},
		"expires earlier":   {expires, func(t *slot) { t.expiry-- }, []string{"expire at 4999, the root says 5000"}},
		"open all the same": {plain, func(t *slot) { t.open = true }, nil}, // the root says so as well
		"lost":              {plain, func(t *slot) { t.lost, t.count = true, 1 }, []string{"lost with its group"}},
		"a delta less":      {deltas, func(t *slot) { t.deltas = nil }, []string{"its slot says"}},
	} {
		t.Run(name, func(t *testing.T) {
			liar := w.Reload().(*root)
			for g := range liar.groups {
				b, err := liar.load(new(segment.Buffer), g)
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(b.slots, func(t slot) bool { return c.has(&t) }) {
					c.lie(slotOf(b, c.has))
					liar.groups[g].ptr = w.Forge(segment.KindInner, appendGroup(nil, b.slots))
					break
				}
			}
			expectReports(t, reports(t, w, load(t, w, liar)), c.want)
		})
	}
}
