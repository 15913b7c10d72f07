// Package aggregate is MongoDB's aggregation pipelines: parsed once, run as a chain of iterators.
//
// It promises the documents, their order where a stage defines one, and the error codes of MongoDB's server. A pipeline reads
// through an Environment and has no other way to the outside. Stages stream; those that must see all of their input first
// ($sort, $group, $setWindowFields, ...) keep at most Options.MemoryBytes each and spill the rest into Options.Scratch, or fail
// with QueryExceededMemoryLimitNoDiskUseAllowed where there is none; what $densify and $graphLookup keep cannot be spilled. A
// Pipeline is immutable and safe for concurrent use; the cursors that it opens are for one goroutine each. Errors that the input
// provokes are *mongoerror.Error; those of the environment and of the scratch space pass through.
package aggregate

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/scratch"
)

// Cursor is a stream of documents.
type Cursor interface {
	// Next returns the next document, valid until the next call, and io.EOF at the end.
	Next(ctx context.Context) (bsoncore.Document, error)
	// Close gives everything back. Closing twice is no error.
	Close() error
}

// Request is what the beginning of a pipeline asks of a collection. The collection answers with exactly that.
type Request struct {
	Filter, Sort bsoncore.Document
	Skip, Limit  int64    // 0: none
	Fields       []string // dotted paths that the rest of the pipeline needs; nil: all. More may come.
	Hint         bsoncore.Value
	Collation    *collation.Collation
	Let          []expression.Variable
	Now          time.Time // what $$NOW is, in all of a pipeline

	// Grouped tells that nothing is asked of the documents but the values of Fields, by their paths: fields may come in any order.
	Grouped bool
	// Distinct is a path, where one document with each value of it is enough: with First the first one, in the order of Sort or else of
	// the collection. Empty: all documents are needed. More may come.
	Distinct string
	First    bool
	// Sample tells that so many documents are enough, drawn at random from all that there are, in any order; 0: all are needed. More
	// may come.
	Sample int64
	// Counted tells that only the number of documents is needed. Run asks Count for it.
	Counted bool
}

// Environment is a store as of one moment, as a pipeline sees it.
type Environment interface {
	// Find opens a collection or view; one that is not there is empty.
	Find(ctx context.Context, database, collection string, r *Request) (Cursor, error)
	// Count counts what Find would find; ok is false when it has no better way than Find.
	Count(ctx context.Context, database, collection string, r *Request) (n int64, ok bool, err error)
	// Special opens a first stage whose rows come from outside, such as $collStats, $indexStats, $currentOp.
	Special(ctx context.Context, stage string, spec bsoncore.Value, database, collection string) (Cursor, error)
	// Located returns the one field of the collection that has a geographical index, which $geoNear means when it names none.
	Located(ctx context.Context, database, collection string) (field string, err error)
	// Replace is $out: the collection holds these documents afterwards, or is as it was.
	Replace(ctx context.Context, database, collection string, docs Cursor) error
	// Unique reports whether an index makes sure that no two documents of the collection have the same values of fields.
	Unique(database, collection string, fields []string, by *collation.Collation) (bool, error)
	// Merge is $merge, for documents that follow each other; unless they are merged alone there may be several. What became of each is
	// reported; an error that comes back ends it, and is its own.
	Merge(ctx context.Context, database, collection string, m *Merge, docs []bsoncore.Document, report func(err error) error) error
}

// Merge says what $merge does with a document.
type Merge struct {
	On             []string
	WhenMatched    string // replace, keepExisting, merge, fail, pipeline
	Pipeline       bsoncore.Value
	Let            []expression.Variable // evaluated for the document
	WhenNotMatched string                // insert, discard, fail
	Collation      *collation.Collation  // of On
	Now            time.Time             // what $$NOW is in Pipeline
}

// Alone reports whether documents are merged one by one, since what becomes of one has to be known, or has variables of its own.
func (m *Merge) Alone() bool {
	return m.WhenMatched == "fail" || m.WhenMatched == "pipeline" || m.WhenNotMatched == "fail"
}

// Options of Parse.
type Options struct {
	Database, Collection string // Collection is empty for aggregate: 1
	Collation            *collation.Collation
	Let                  []expression.Variable
	Now                  time.Time
	Call                 *expression.Call // who waits for the next document
	Hint                 bsoncore.Value
	Scratch              *scratch.Space  // nil: stages that exceed their memory fail
	MemoryBytes          int64           // for each blocking stage; 0 = 100 MiB
	Shared               *scratch.Memory // of which all stages take theirs

	depth int // of pipelines within pipelines
}

const defaultMemory = 100 << 20

func (o *Options) memory() int64 {
	if o.MemoryBytes > 0 {
		return o.MemoryBytes
	}
	return defaultMemory
}

// allowance is what a blocking stage may use.
func (o *Options) allowance() scratch.Allowance {
	return scratch.Allowance{Space: o.Scratch, Memory: o.memory(), Shared: o.Shared}
}

// unspillable is what a stage may use that can only fail when it needs more: as much as in MongoDB, where those that spill have less, but out
// of the same memory.
func (o *Options) unspillable() scratch.Allowance {
	return scratch.Allowance{Memory: max(o.memory(), defaultMemory), Shared: o.Shared}
}

func (o *Options) expression() *expression.Options {
	return &expression.Options{Collation: o.Collation, Let: o.Let, Now: o.Now, Call: o.Call, Long: true, Unsorted: true, Unscored: true}
}

// inCollection returns the options of a pipeline inside of the pipeline.
func (o *Options) inCollection(name string) *Options {
	inner := *o
	inner.Collection, inner.Hint = name, bsoncore.Value{}
	inner.depth++
	return &inner
}

// Pipeline is a parsed pipeline: immutable, safe for concurrent use.
type Pipeline struct {
	o       *Options
	steps   []step
	leading *Request
	first   int // the first step that the collection does not answer
}

// Parse parses a pipeline. It keeps referring to the bytes of the stages.
func Parse(pipeline []bsoncore.Document, o *Options) (*Pipeline, error) {
	return parsePipeline(pipeline, o, "")
}

func parsePipeline(pipeline []document, o *Options, inside string) (*Pipeline, error) {
	if o.depth > maxNesting {
		return nil, mongoerror.New(mongoerror.MaxSubPipelineDepthExceeded, "Maximum number of nested sub-pipelines exceeded. Limit is %d", maxNesting)
	}
	steps, err := (&parser{o: o, inside: inside}).steps(pipeline)
	if err != nil {
		return nil, err
	}
	if err := checkPositions(steps, o, inside); err != nil {
		return nil, err
	}
	p := &Pipeline{o: o, steps: optimise(steps)}
	p.leading, p.first = lead(p.steps, o)
	return p, nil
}

// Leading returns what the pipeline pushes down to its collection.
func (p *Pipeline) Leading() *Request { return p.leading }

// Run opens the pipeline.
func (p *Pipeline) Run(ctx context.Context, env Environment) (Cursor, error) {
	x := &run{env: env, o: p.o}
	rest := p.steps[p.first:]
	if p.o.depth == 0 {
		rest = sized(rest)
	}
	if len(p.steps) > 0 && p.steps[0].isSource() {
		return openSteps(ctx, x, rest, nil)
	}
	if p.o.Collection == "" {
		return nil, p.needsCollection()
	}
	if c, err := p.count(ctx, env, rest); c != nil || err != nil {
		return c, err
	}
	in, err := env.Find(ctx, p.o.Database, p.o.Collection, p.leading)
	if err != nil {
		return nil, err
	}
	return openSteps(ctx, x, rest, in)
}

func (p *Pipeline) needsCollection() error {
	if len(p.steps) == 0 {
		return mongoerror.New(mongoerror.InvalidNamespace, "{aggregate: 1} is not valid for an empty pipeline.")
	}
	return mongoerror.New(mongoerror.InvalidNamespace, "{aggregate: 1} is not valid for '%s'; a collection is required.", p.steps[0].name)
}

// run is a pipeline that is carried out.
type run struct {
	env Environment
	o   *Options
}

// openSteps chains the cursors of steps. It closes what it has opened when it fails.
func openSteps(ctx context.Context, x *run, steps []step, in Cursor) (Cursor, error) {
	for i := range steps {
		next, err := steps[i].stage.open(ctx, x, in)
		if err != nil {
			if in != nil {
				err = joinClose(err, in)
			}
			return nil, err
		}
		in = next
	}
	return in, nil
}

// count answers a pipeline that only counts from the environment's knowledge. It returns nil when that is not possible.
func (p *Pipeline) count(ctx context.Context, env Environment, rest []step) (Cursor, error) {
	if !p.leading.Counted {
		return nil, nil
	}
	g, _ := rest[0].stage.(*groupStage)
	each, _ := g.countsOnly()
	n, ok, err := env.Count(ctx, p.o.Database, p.o.Collection, p.leading)
	if err != nil || !ok {
		return nil, err
	}
	var docs []document
	if n > 0 {
		docs = append(docs, g.countDocument(n, each))
	}
	return openSteps(ctx, &run{env: env, o: p.o}, rest[1:], &listCursor{docs: docs})
}

// Explain returns the stages behind the collection's cursor, as explain shows them. distinct tells that the collection gives one
// document for each value of the leading request's Distinct.
func (p *Pipeline) Explain(distinct bool) bsoncore.Document {
	b, start := begin(nil)
	for i, s := range p.steps[p.first:] {
		if g, ok := s.stage.(*groupStage); ok && i == 0 && distinct {
			b = appendField(b, "$groupByDistinctScan", object("newRoot", g.newRoot(s.spec)))
			continue
		}
		b = appendField(b, s.name, s.spec)
	}
	return end(b, start)
}

// Writes returns the target of $out or $merge.
func (p *Pipeline) Writes() (database, collection string, ok bool) {
	if len(p.steps) == 0 {
		return "", "", false
	}
	switch s := p.steps[len(p.steps)-1].stage.(type) {
	case *outStage:
		return s.database, s.collection, true
	case *mergeStage:
		return s.database, s.collection, true
	}
	return "", "", false
}
