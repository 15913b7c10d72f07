package wire

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pandodb/pando/bench/engine"
)

func TestRanges(t *testing.T) {
	sizes := Quick()
	list := byEmail(sizes)
	if n := userCount(sizes); len(list) != n {
		t.Fatalf("%d users of %d", len(list), n)
	}
	for i := range list[1:] {
		if list[i].Email >= list[i+1].Email {
			t.Fatalf("%s comes before %s", list[i].Email, list[i+1].Email)
		}
	}
	th := &thread{rng: rand.New(rand.NewPCG(1, 2))}
	for range 100 {
		if in := th.anyRange(list, listed); len(in) != listed {
			t.Fatalf("%d users of %d", len(in), listed)
		}
	}
	if in := th.anyRange(list[:listed], grouped); len(in) != listed {
		t.Errorf("a range of all users has %d of %d", len(in), listed)
	}
}

func TestSharesAreDisjoint(t *testing.T) {
	list := byEmail(Quick())
	for _, threads := range []int{1, 3, 16} {
		var all []engine.User
		for n := range threads {
			all = append(all, share(list, threads, n+5*threads)...)
		}
		if !slices.EqualFunc(all, list, func(a, b engine.User) bool { return a.ID == b.ID }) {
			t.Errorf("the shares of %d threads have %d users of %d, or not in their order", threads, len(all), len(list))
		}
	}
}

func TestUpdatesAreVerified(t *testing.T) {
	if err := checkUpdated(listed, listed, listed); err != nil {
		t.Error(err)
	}
	if checkUpdated(listed-1, listed-1, listed) == nil || checkUpdated(listed, listed-1, listed) == nil || checkUpdated(listed+1, listed+1, listed) == nil {
		t.Error("a wrong count passes")
	}
}

func TestGroupsAreVerified(t *testing.T) {
	users := []engine.User{{Age: 20, Score: 1}, {Age: 30, Score: 5}, {Age: 20, Score: 2}}
	right := []group{{Age: 30, Users: 1, Score: 5}, {Age: 20, Users: 2, Score: 1.5}}
	if err := checkGroups(right, users); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string][]group{
		"none":           {},
		"one is missing": right[:1],
		"one twice":      {right[0], right[0]},
		"another age":    {right[0], {Age: 21, Users: 2, Score: 1.5}},
		"a wrong count":  {right[0], {Age: 20, Users: 3, Score: 1.5}},
		"a wrong score":  {right[0], {Age: 20, Users: 2, Score: 1.6}},
		"one too many":   append(slices.Clone(right), group{Age: 40}),
	} {
		if checkGroups(wrong, users) == nil {
			t.Errorf("%s: the groups pass", name)
		}
	}
}
