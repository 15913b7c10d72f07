package document

import (
	"log/slog"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/vfs"
)

// Options says how to open a store. The zero value, and a nil pointer, mean the defaults.
type Options struct {
	// Storage says how to open the database underneath. Only Open looks at it. Its ValueThreshold is 4 KiB by default.
	Storage pando.Options

	// History is how many bytes of the log are kept for change streams to resume from, as pando.Options.KeepChanges says. Default: 64 MiB
	// with Open; with New what the database was opened with, and where that is 0 change streams see only what happens while they run.
	// Negative: writes do not say what they do, which makes the log smaller, and there are no change streams.
	History int64

	// QueryMemoryBytes bounds what one sort or group of a query holds in memory; beyond that it spills. On a nearly full disk it bounds the keys
	// that an update or delete of many looks for before it begins; beyond that it begins. Default: 100 MiB.
	QueryMemoryBytes int64

	// TotalQueryMemoryBytes bounds what the sorts, groups and such keys of all queries hold together, beside 256 KiB for each: those that find nothing
	// left spill sooner, and where they must not, they fail. The partitions of $densify and the searches of $graphLookup, which cannot, take
	// up to 100 MiB of it, or QueryMemoryBytes where that is more. Default: five times QueryMemoryBytes.
	TotalQueryMemoryBytes int64

	// ScratchBytes bounds the bytes of all spilled sorts and groups together. Default: no limit.
	ScratchBytes int64

	// TTLInterval is how often expired documents are looked for. Default: one minute. Negative: never.
	TTLInterval time.Duration

	// Logger hears about index builds that were undone, and failures in the background. Default: silence.
	Logger *slog.Logger

	// FS and ScratchDir say where queries spill. Default: those of the database, with Open; with New queries do not spill.
	FS         vfs.FS
	ScratchDir string

	clock clock.Clock // of tests; nil: the system's
}

const (
	defaultHistory     = 64 << 20
	defaultQueryMemory = 100 << 20
	defaultQueries     = 5 // how many of them may hold all that one may
	defaultTTLInterval = time.Minute
	// Documents of a few kilobytes are what applications mostly store: beside their keys they cost one sync, not two, when they are
	// written, and no further read, with decompression, when they are found.
	defaultThreshold = 4 << 10
)

// Format is how a collection stores its documents.
type Format = codec.Format

const (
	// Template stores the names and types of fields once for all documents of a shape. The default.
	Template = codec.Template
	// BSON stores documents as they came.
	BSON = codec.BSON
	// AsJSON stores documents as Extended JSON, for those who read the database with other tools.
	AsJSON = codec.JSON
)

// CollectionOptions says how to create a collection. They are kept with it.
type CollectionOptions struct {
	// Format of the stored documents. Default: Template.
	Format Format

	// Compression of the stored documents. Default: Zstd; indexes are stored with S2 then, and with Zstd when they are compacted so.
	Compression pando.Compression

	// Capped makes a collection of at most SizeBytes and MaxDocuments (0: no limit) that forgets its oldest documents, and
	// gives them back in the order of their insertion.
	Capped       bool
	SizeBytes    int64
	MaxDocuments int64

	// Validator is a filter that documents have to match; see ValidationLevel and ValidationAction.
	Validator any
	// ValidationLevel is "strict" (the default), "moderate" (documents that did not match before may go on so) or "off".
	ValidationLevel string
	// ValidationAction is "error" (the default) or "warn".
	ValidationAction string

	// Collation is how strings of queries and indexes that do not say otherwise compare.
	Collation any

	// ViewOn and Pipeline make a view: a pipeline over another collection of the same database, run when it is read.
	ViewOn   string
	Pipeline any

	// PreImages keeps documents as they were before a change for change streams, as long as History reaches.
	PreImages bool
}
