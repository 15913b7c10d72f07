package page

import (
	"encoding/binary"
	"unsafe"

	"github.com/pandodb/pando/internal/pageformat"
)

// KeysMost is how many keys Without looks at, a power of two.
const KeysMost = 16

// turns is how a walk goes over entries and keys together: which entries it takes, and where it comes to each of those and of the keys.
type turns struct {
	wants  [KeysMost]uint32  // the heads of the keys
	chosen [BatchMost]uint32 // the offsets of the entries that are taken
	taken  [BatchMost]turn
	passed [KeysMost]turn // the first entry that is not below each key
}

// turn is a place in such a walk: the number of the entry and that of the key which come next, and how many entries have been taken. In
// one word, since it is noted at every step.
type turn uint64

func turnAt(entry, key, added int) turn { return turn(entry<<16 | key<<8 | added) }

func (t turn) entry() int { return int(t >> 16) }
func (t turn) key() int   { return int(t >> 8 & 0xff) }
func (t turn) added() int { return int(t & 0xff) }

// Without is Add for up to most pairs of the entries from number from on, before number to, whose keys are none of some that ascend. It
// returns how many pairs it has added, and the entry and the key at which it has stopped: there is no more room or no further key, or the
// entry is not for a batch, or only a closer look tells which of the two comes first.
func (b *Batch) Without(n, most int, p Page, from, to int, keys [][]byte) (added, entry, key int) {
	prefix := p.Prefix()
	if len(keys) == 0 || len(keys) > KeysMost || !begins(keys[0], prefix) || !begins(keys[len(keys)-1], prefix) {
		return 0, from, 0
	}
	var t turns
	for i, k := range keys { // all that lie between two that begin with the prefix do so, too
		t.wants[i&(KeysMost-1)] = pageformat.FirstFour(k[len(prefix):])
	}
	heads, offsets, entries := p.heads()[:to], p.offsets()[:to], p.entries()
	end := t.walk(heads, offsets, from, len(keys), min(most, BatchMost-n))
	for i, k := range keys[:end.key()] {
		at := t.passed[i&(KeysMost-1)]
		e := at.entry()
		if heads[e] == t.wants[i&(KeysMost-1)] && !endsWith(unsafe.Add(entries, offsets[e]), k[len(prefix):]) {
			end = at
			break
		}
	}
	if added := b.add(n, p, t.chosen[:end.added()], 0); added < end.added() {
		end = t.taken[added&(BatchMost-1)]
	}
	return end.added(), end.entry(), end.key()
}

// endsWith reports whether the suffix of the entry at e is this one.
func endsWith(e unsafe.Pointer, suffix []byte) bool {
	data, n, meta := decodeCommon(e)
	if n >= 0x80 || meta&pageformat.FlagExpiry != 0 || n < word || n > 2*word || int(n) != len(suffix) {
		return string(suffixAt(e)) == string(suffix)
	}
	first, last := (*[word]byte)(data), (*[word]byte)(unsafe.Add(data, n-word))
	return binary.LittleEndian.Uint64(first[:]) == binary.LittleEndian.Uint64(suffix) &&
		binary.LittleEndian.Uint64(last[:]) == binary.LittleEndian.Uint64(suffix[n-word:])
}

func begins(key, prefix []byte) bool {
	return len(key) >= len(prefix) && string(key[:len(prefix)]) == string(prefix)
}

// walk goes over the entries from number from on and so many keys, and takes at most so many entries. It takes equal heads for equal keys.
//
// Where entries and keys follow each other by chance, a branch for each turn costs more than all the rest. So there is none: what is not
// taken is overwritten by what comes next.
func (t *turns) walk(heads, offsets []uint32, entry, keys, most int) turn {
	key, added := 0, 0
	for entry < len(heads) && entry < len(offsets) && key < keys && added < most {
		head, want := uint64(heads[entry]), uint64(t.wants[key&(KeysMost-1)])
		now := turnAt(entry, key, added)
		t.chosen[added&(BatchMost-1)], t.taken[added&(BatchMost-1)], t.passed[key&(KeysMost-1)] = offsets[entry], now, now
		below, above := (head-want)>>63, (want-head)>>63
		added += int(below)
		entry += int(1 - above)
		key += int(1 - below)
	}
	return turnAt(entry, key, added)
}
