package engine

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/offheap"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
)

// Limits of what can be stored, in bytes.
const (
	MaxKeyBytes   = record.MaxKey
	MaxValueBytes = 1 << 30
	MaxBatchBytes = 4 << 30
	MaxNameBytes  = 255
)

// Profile says what an acknowledged write survives.
type Profile uint8

const (
	Durable Profile = iota // power cuts
	Relaxed                // killed processes
	Bench                  // nothing since the last checkpoint
)

// String returns the name of the profile, for messages.
func (p Profile) String() string {
	switch p {
	case Durable:
		return "durable"
	case Relaxed:
		return "relaxed"
	case Bench:
		return "bench"
	}
	return fmt.Sprintf("profile %d", uint8(p))
}

// Layout says how the settled data of a keyspace lies on the disk.
type Layout = layout.Number

const (
	Tree = layout.Tree
	Flex = layout.Flex
	Hash = layout.Hash
)

// Options says how to open a database.
type Options struct {
	FS             vfs.FS
	Dir            string
	Clock          clock.Clock
	Logger         *slog.Logger
	Profile        Profile
	ReadOnly       bool
	MustExist      bool
	MemoryBytes    int64
	ValueThreshold int
	Codec          segment.Codec
	SyncInterval   time.Duration
	SyncBytes      int64
	KeepChanges    int64
}

// Bounds of the memory budget.
const (
	leastMemory   = 1 << 20
	defaultLeast  = 64 << 20
	defaultMost   = 1 << 30
	defaultShare  = 8 // of the memory of the machine, or of the container
	smallShare    = 4 // of it where the least would be more
	mostMemtable  = 128 << 20
	leastMemtable = 256 << 10
	// orderedMemtable is how many bytes of records whose keys came in order wait to be settled together. They have nothing to gain from
	// more: each leaf is written once however many there are. The next ones get by with the memory, and the log, of those before, where
	// fresh memory would cost more than to write them. It is not much less than a segment, since each such memtable makes one.
	orderedMemtable = 32 << 20
)

// defaultMemory is the budget in a process that may have so much memory; 0: that is not known.
func defaultMemory(available int64) int64 {
	least := int64(defaultLeast)
	if available > 0 {
		least = min(least, available/smallShare)
	}
	return min(max(available/defaultShare, least), defaultMost)
}

// withDefaults fills in what the caller left open and checks the rest.
func (o Options) withDefaults() (Options, error) {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultMemory(offheap.AvailableMemory())
	}
	if o.ValueThreshold == 0 {
		o.ValueThreshold = 1024
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = 100 * time.Millisecond
	}
	if o.SyncBytes == 0 {
		o.SyncBytes = 8 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	switch {
	case o.MemoryBytes < leastMemory:
		return o, fmt.Errorf("%w: MemoryBytes is %d, the least is %d", ErrOptions, o.MemoryBytes, leastMemory)
	case o.ValueThreshold < 0 || o.ValueThreshold > record.MaxInline:
		return o, fmt.Errorf("%w: ValueThreshold is %d, want 1 to %d", ErrOptions, o.ValueThreshold, record.MaxInline)
	case o.SyncInterval < 0 || o.SyncBytes < 0 || o.KeepChanges < 0:
		return o, fmt.Errorf("%w: SyncInterval, SyncBytes and KeepChanges must not be negative", ErrOptions)
	case o.Profile > Bench:
		return o, fmt.Errorf("%w: %v is not a profile", ErrOptions, o.Profile)
	}
	return o, nil
}

const (
	// logBlock is what the size of a log segment is a multiple of.
	logBlock = 4 << 10
	// mostLogSegment bounds a log segment: of one that is filled, one that is ready and two that wait to be used again most may be empty.
	mostLogSegment  = 8 << 20
	leastLogSegment = 64 << 10
	// leastSegment is the smallest size of a segment file.
	leastSegment = 256 << 10
)

// sizes are the thresholds that follow from the memory budget, so that a small budget reaches every one of them soon.
type sizes struct {
	memtable   int   // bytes of one memtable; two are alive while one settles, a third for moments
	ordered    int   // bytes of records whose keys came in order that settle, if nothing else is settling
	cache      int64 // bytes of the page cache and the inner nodes together, beside all memtables
	most       int64 // the same beside one memtable that next to nothing has been written to
	inner      int64 // the most that inner nodes may take, which every read goes through; the cache gets the rest
	segment    int64 // bytes of a segment file
	mapped     int64 // bytes of segment files that are mapped for reading: the system's page cache, not memory of ours
	logSegment int64 // bytes of a log segment, of which two are mapped at a time
	bulk       int64 // a batch larger than this is carried out as a bulk load
	split      int64 // as many bytes of changes are worth a segment more: see segment.Writer.Split
	round      int64 // bytes that a compaction replaces before what has been frozen meanwhile settles
	haste      int64 // the same while writers may be waiting
}

// mostRound is how much a compaction replaces at a time where a memtable is not more: enough for the checkpoint that each round is to cost
// little beside it, and for the nodes that the next round writes once more to take little room.
const mostRound = 64 << 20

// mostHaste is the same for one whose end somebody waits for: zstd takes some tenths of a second for it.
const mostHaste = 4 << 20

// mappedShare is how much of the segment files may be mapped, in budgets.
const mappedShare = 8

// largestBudget is more than there is memory, and so little that its shares are numbers: who wants no bound gives a budget of MaxInt64.
const largestBudget = 1 << 56

func sizesFor(memory int64) sizes {
	memory = min(memory, largestBudget)
	table := min(max(memory/5, leastMemtable), mostMemtable)
	logSegment := min(max(memory/16, leastLogSegment), mostLogSegment) &^ (logBlock - 1)
	rest := max(memory-2*table-table/2-2*logSegment, 256<<10)
	most := max(memory-table/frontSteps-2*logSegment, rest)
	return sizes{
		memtable:   int(table),
		ordered:    int(min(table, orderedMemtable)),
		cache:      rest,
		most:       most,
		inner:      rest * 7 / 8,
		segment:    min(max(memory/4, leastSegment), 64<<20),
		mapped:     mappedShare * memory,
		logSegment: logSegment,
		bulk:       table / 4,
		split:      table / 16,
		round:      max(table, min(4*memory, mostRound)),
		haste:      min(table/2, mostHaste),
	}
}
