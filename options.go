package pando

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
)

// Limits.
const (
	MaxKeyBytes   = engine.MaxKeyBytes   // 64 KiB
	MaxValueBytes = engine.MaxValueBytes // 1 GiB
	MaxBatchBytes = engine.MaxBatchBytes // 4 GiB, keys and values of one batch or transaction
	MaxNameBytes  = engine.MaxNameBytes  // 255 bytes of UTF-8, a keyspace's name
)

// Profile says what an acknowledged write survives.
type Profile = engine.Profile

const (
	// Durable: a write that returned survives a killed process and a power cut. One sync serves all writers that wait.
	Durable = engine.Durable
	// Relaxed: a write that returned survives a killed process. A power cut may cost the last moments, bounded by
	// Options.SyncInterval and SyncBytes; what is left is a prefix of history, never one with a gap.
	Relaxed = engine.Relaxed
	// Bench: there is no log. A killed process loses everything since the last checkpoint; nothing is ever corrupted.
	Bench = engine.Bench
)

// Compression says how settled data is stored.
type Compression uint8

const (
	DefaultCompression Compression = iota // S2
	None                                  // as it is
	S2                                    // fast, about the ratio of LZ4
	Zstd                                  // smaller, and slower to write; a value apart of less than 32 KiB, which is decompressed at each read, takes S2
)

// check refuses what is none.
func (c Compression) check() error {
	if c > Zstd {
		return fmt.Errorf("%w: Compression is %d, the last one is %d", ErrOptions, c, Zstd)
	}
	return nil
}

func (c Compression) codec() segment.Codec {
	switch c {
	case None:
		return segment.None
	case Zstd:
		return segment.Zstd
	default:
		return segment.S2
	}
}

// Options says how to open a database. The zero value, and a nil pointer, mean the defaults.
type Options struct {
	// Profile says what an acknowledged write survives. Default: Durable.
	Profile Profile

	// ReadOnly opens the database beside other readers, and without a writer: it takes a shared lock. A directory left by
	// a crash is readable; nothing is written to it.
	ReadOnly bool

	// MustExist makes Open fail with ErrNotFound instead of creating a database.
	MustExist bool

	// MemoryBytes is the budget for memtables, page cache and inner nodes together. Default: an eighth of the
	// machine's memory, or on Linux of what the control group of the process, such as a container, may have, or of half of its addresses:
	// at least 64 MiB, or a quarter where there is little, and at most 1 GiB. Lower it to run beside other things, raise it when the working set is larger.
	// The least is 1 MiB. Files of data are mapped besides, up to eight times as much: the system counts what was read of
	// them as resident memory of the process, but it is its page cache, which it takes back when it needs it. A process needs about
	// three times as many addresses: where they are fewer, as with 32 bits or a limit (ulimit -v), writes may fail.
	MemoryBytes int64

	// ValueThreshold is the length in bytes above which a value lies apart from its key: written once, and never moved
	// when its neighbours change. Default: 1024. At most 64 KiB.
	ValueThreshold int

	// Compression of settled data, for keyspaces that do not choose their own. Default: S2.
	Compression Compression

	// SyncInterval bounds, in the Relaxed profile, the time of history that a power cut may cost. Default: 100 ms.
	SyncInterval time.Duration

	// SyncBytes bounds, in the Relaxed profile, the bytes of history that a power cut may cost; in the Durable one, those of commits that
	// do not wait for a sync. Default: 8 MiB.
	SyncBytes int64

	// KeepChanges is how many bytes of log are kept, beyond what recovery needs, for those who read Changes, and as many again of what the
	// log alone refers to: long values that were replaced, and large batches. Where these are more, less of the log is. Default: 0.
	KeepChanges int64

	// Logger hears about recovery, checkpoints that fail, and damage. Default: silence.
	Logger *slog.Logger

	// FS is the file system under the database. Default: the operating system's.
	FS vfs.FS
}

// Layout says how the settled data of a keyspace lies on the disk.
type Layout = engine.Layout

const (
	// Tree is a copy-on-write B+tree: ordered, the default.
	Tree = engine.Tree
	// Flex is the flexible address space. This version cannot make one: ErrLayout.
	Flex = engine.Flex
	// Hash is a hash table, for keyspaces that are read by key and hardly otherwise, such as sessions, caches and objects under random
	// names: a Get reads one record, and a Put of a new key reads nothing. It keeps no order of keys: Iter, Range and RangeReverse
	// without bounds show every pair once, in an order that is the iterator's own and that Prev goes back through, Count counts all, and
	// DeleteRange deletes all. Bounds, a Prefix that is not empty, SeekGE, SeekLT and Nth are ErrNoOrder. Settled records are not
	// compressed, and options of leaves and of filters do not apply; values that lie apart are as anywhere else.
	Hash = engine.Hash
)

// KeyspaceOptions says how to create a keyspace. They are kept with it; opening an existing keyspace with another layout
// fails with ErrLayout, other differences are ignored.
type KeyspaceOptions struct {
	// Layout of the settled data. Default: Tree.
	Layout Layout

	// Compression of the settled data; nil: as in Options. In a keyspace with the layout Hash it is that of values that lie apart.
	Compression *Compression

	// LeafBytes is the size of a leaf of a Tree before compression; leaves that shrink by half are filled up to twice as much, and those of
	// a tree that has few of them to no more than 8 KiB, as the first read of each decompresses it for one record.
	// Default: 8 KiB. Larger leaves compress better and make scans of cold data cheaper; smaller ones make cold reads and random
	// updates cheaper. 256 bytes to 256 KiB.
	LeafBytes int

	// NoBloomFilters leaves out the Bloom filters that a Tree keeps, one a leaf, ten bits a key. With them a Get of a key that is
	// not there reads nothing from the disk, and neither does a checkpoint to learn whether a put adds a key. Set it for a
	// keyspace whose keys are short and found by walking over ranges, or are always there when they are asked for: an index, a
	// queue. There it saves up to a tenth of the space; Count may have to read leaves that changed lately.
	NoBloomFilters bool
}
