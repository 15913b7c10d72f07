package memtable

import "slices"

// order is the ordered index of a keyspace: immutable runs, the oldest and largest first, of the first keys keys that
// came. No key is in two runs.
type order struct {
	keys uint32
	runs []*run
}

const (
	// A run is merged with the one after it unless it is this many times as large. So there are at most
	// log4(keys/smallRun)+1 runs, and a key is merged O(log keys) times.
	runRatio = 4
	// Runs which have no more keys than this together are always merged, so that the rule above does not leave many tiny
	// ones.
	smallRun = 256
)

// ordered brings the ordered index of a keyspace up to all keys published before the call, and returns it.
func (t *Table) ordered(k *keyspace) *order {
	o := k.order.Load()
	if o.keys == k.keys.Load() {
		return o
	}
	k.ordering.Lock()
	defer k.ordering.Unlock()
	o = k.order.Load()
	n := k.keys.Load()
	if o.keys == n {
		return o
	}
	fresh, bytes := k.pending.Load().runs(&t.arena, o.keys, n)
	t.beside.Add(bytes)
	runs := slices.Clone(o.runs)
	for _, r := range fresh {
		runs = t.append(runs, r)
	}
	k.order.Store(&order{keys: n, runs: runs})
	return k.order.Load()
}

// append adds a run to some, and merges what is of similar size.
func (t *Table) append(runs []*run, newest *run) []*run {
	for len(runs) > 0 {
		last := runs[len(runs)-1]
		x, y := len(last.entries), len(newest.entries)
		if x >= runRatio*y && x+y > smallRun {
			break
		}
		newest = t.merge(last, newest)
		runs = runs[:len(runs)-1]
	}
	return append(runs, newest)
}

// merge merges two runs. Those in lists still take their memory, besides the one in their place.
func (t *Table) merge(x, y *run) *run {
	for _, r := range []*run{x, y} {
		if r.outside {
			t.beside.Add(int64(len(r.entries)) * entryBytes)
		}
	}
	return merged(&t.arena, x, y)
}
