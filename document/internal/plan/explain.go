package plan

import (
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/query"
)

// What explain says that has no counterpart here.
const (
	explainVersion = "1"
	plannerVersion = 1
	indexVersion   = 2
)

// Explain describes a plan, and a run of it, in MongoDB's shape: {explainVersion, queryPlanner, executionStats}. r may be nil for
// QueryPlanner.
func Explain(p *Plan, v Verbosity, r *Run) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder().AppendString("explainVersion", explainVersion).
		AppendDocument("queryPlanner", p.planner())
	if v != QueryPlanner && r != nil {
		b.AppendDocument("executionStats", p.execution(v, r))
	}
	return b.Build()
}

// planner describes the choice.
func (p *Plan) planner() bsoncore.Document {
	parsed := describe(p.Query().Filter)
	hash := fmt.Sprintf("%08X", crc32.ChecksumIEEE(p.shape()))
	rejected := bsoncore.NewArrayBuilder()
	for _, s := range p.Rejected {
		rejected.AppendDocument(p.stage(s, nil))
	}
	return bsoncore.NewDocumentBuilder().
		AppendInt32("plannerVersion", plannerVersion).
		AppendString("namespace", p.namespace()).
		AppendBoolean("indexFilterSet", false).
		AppendDocument("parsedQuery", parsed).
		AppendString("queryHash", hash).
		AppendString("planCacheKey", hash).
		AppendBoolean("maxIndexedOrSolutionsReached", false).
		AppendBoolean("maxIndexedAndSolutionsReached", false).
		AppendBoolean("maxScansToExplodeReached", false).
		AppendDocument("winningPlan", p.stage(p.Root, nil)).
		AppendArray("rejectedPlans", rejected.Build()).
		Build()
}

// shape returns the query without its values.
func (p *Plan) shape() []byte {
	var out []byte
	if p.Query().Filter != nil {
		out = appendShape(out, p.Query().Filter.Root)
	}
	return append(append(append(out, 0), p.Query().Sort...), p.Query().Project...)
}

// appendShape appends the kinds and paths of the nodes of a filter.
func appendShape(out []byte, n query.Node) []byte {
	path, _ := pathOf(n)
	out = fmt.Appendf(out, "%T(%s", n, path)
	for _, child := range children(n) {
		out = appendShape(out, child)
	}
	return append(out, ')')
}

// children returns the nodes below one.
func children(n query.Node) []query.Node {
	switch n := n.(type) {
	case *query.And:
		return n.Children
	case *query.Or:
		return n.Children
	case *query.Nor:
		return n.Children
	case *query.Not:
		return []query.Node{n.Child}
	case *query.ElemMatch:
		return []query.Node{n.Child}
	case *query.ElemMatchValue:
		return n.Children
	}
	return nil
}

// execution describes a run.
func (p *Plan) execution(v Verbosity, r *Run) bsoncore.Document {
	keys, docs := r.Root.Examined()
	b := bsoncore.NewDocumentBuilder().AppendBoolean("executionSuccess", r.Err == nil)
	if r.Err != nil {
		message, code := r.Err.Error(), mongoerror.Code(8)
		var e *mongoerror.Error
		if errors.As(r.Err, &e) {
			message, code = e.Message, e.Code
		}
		b.AppendString("errorMessage", message).AppendInt32("errorCode", int32(code))
	}
	b.AppendValue("nReturned", count(r.Returned)).
		AppendValue("executionTimeMillis", count(r.Duration.Milliseconds())).
		AppendValue("totalKeysExamined", count(keys)).
		AppendValue("totalDocsExamined", count(docs)).
		AppendDocument("executionStages", p.stage(p.Root, r.Root))
	if v == AllPlansExecution {
		b.AppendArray("allPlansExecution", p.trials(r.Trials))
	}
	return b.Build()
}

// trials describes the runs for a while of all plans.
func (p *Plan) trials(list []*Run) bsoncore.Array {
	out := bsoncore.NewArrayBuilder()
	for _, r := range list {
		keys, docs := r.Root.Examined()
		out.AppendDocument(bsoncore.NewDocumentBuilder().
			AppendValue("nReturned", count(r.Returned)).
			AppendValue("executionTimeMillisEstimate", count(r.Duration.Milliseconds())).
			AppendValue("totalKeysExamined", count(keys)).
			AppendValue("totalDocsExamined", count(docs)).
			AppendDouble("score", score(r.Root)).
			AppendDocument("executionStages", p.stage(r.Root.Stage, r.Root)).
			Build())
	}
	return out.Build()
}

// score rates a trial as MongoDB does: 1, the part of the steps that gave a row, 1 for having come to the end, and next to nothing for
// each of the costly stages that are not there. The planner itself goes by estimates.
func score(s *Stats) float64 {
	works := float64(max(1, s.Works))
	tie := min(1/(10*works), 1e-4)
	out := 1 + float64(s.Advanced)/works
	if s.Done {
		out++
	}
	for _, costly := range [][]string{{"FETCH"}, {"SORT"}, {"AND_HASH", "AND_SORTED"}} {
		if !s.has(costly) {
			out += tie
		}
	}
	return out
}

// has reports whether there is a stage of one of these names.
func (s *Stats) has(names []string) bool {
	return slices.Contains(names, s.Stage.Name()) || slices.ContainsFunc(s.Inputs, func(in *Stats) bool { return in.has(names) })
}

// stage describes a stage and those below it, with what they have counted where st is given.
func (p *Plan) stage(s Stage, st *Stats) bsoncore.Document {
	b := bsoncore.NewDocumentBuilder().AppendString("stage", s.Name())
	if f := filterOf(s); f != nil {
		b.AppendDocument("filter", describe(f))
	}
	if st != nil {
		counted(b, st)
	}
	p.properties(b, s, st)
	inputs := s.Inputs()
	below := func(i int) *Stats {
		if st == nil || i >= len(st.Inputs) {
			return nil
		}
		return st.Inputs[i]
	}
	switch s.(type) {
	case *Or, *And, *SortMerge:
		list := bsoncore.NewArrayBuilder()
		for i, in := range inputs {
			list.AppendDocument(p.stage(in, below(i)))
		}
		b.AppendArray("inputStages", list.Build())
	default:
		for i, in := range inputs {
			b.AppendDocument("inputStage", p.stage(in, below(i)))
		}
	}
	return b.Build()
}

func filterOf(s Stage) *query.Filter {
	switch s := s.(type) {
	case *CollectionScan:
		return s.Filter
	case *Fetch:
		return s.Filter
	case *IndexScan:
		return s.Filter
	case *Near:
		return s.Filter
	}
	return nil
}

// counted describes what every stage counts.
func counted(b *bsoncore.DocumentBuilder, st *Stats) {
	end := int32(0)
	if st.Done {
		end = 1
	}
	b.AppendValue("nReturned", count(st.Advanced)).
		AppendValue("executionTimeMillisEstimate", count(0)).
		AppendValue("works", count(st.Works)).
		AppendValue("advanced", count(st.Advanced)).
		AppendValue("needTime", count(max(0, st.Works-st.Advanced-int64(end)))).
		AppendValue("needYield", count(0)).
		AppendValue("saveState", count(0)).
		AppendValue("restoreState", count(0)).
		AppendInt32("isEOF", end)
}

// properties describes what is particular to a kind of stage.
func (p *Plan) properties(b *bsoncore.DocumentBuilder, s Stage, st *Stats) {
	switch s := s.(type) {
	case *CollectionScan:
		b.AppendString("direction", direction(s.Backward))
	case *IndexScan:
		scanned(b, s)
		b.AppendDocument("indexBounds", s.describe())
	case *Near:
		indexed(b, s.Scan)
	case *DistinctScan:
		scanned(b, s.Scan)
		b.AppendDocument("indexBounds", s.Scan.describe())
	case *CountScan:
		indexed(b, s.Scan)
		b.AppendDocument("indexBounds", s.Scan.ends())
	case *Sort:
		b.AppendDocument("sortPattern", s.Pattern).AppendValue("memLimit", count(sortMemory))
		if s.Limit > 0 {
			b.AppendValue("limitAmount", count(s.Limit))
		}
		b.AppendString("type", "simple")
	case *SortMerge:
		b.AppendDocument("sortPattern", s.Pattern)
	case *Skip:
		b.AppendValue("skipAmount", count(s.N))
	case *Limit:
		b.AppendValue("limitAmount", count(s.N))
	case *Project:
		b.AppendDocument("transformBy", p.Query().transform())
	case *Count:
		if st != nil {
			n := st.Works - 1
			b.AppendValue("nCounted", count(limited(n, s))).AppendValue("nSkipped", count(min(n, s.Skip)))
		}
	}
	if st != nil {
		examined(b, s, st)
	}
}

// sortMemory is the number of bytes that a sort may hold, unless it is told otherwise.
const sortMemory = 100 << 20

func limited(n int64, s *Count) int64 {
	n = max(0, n-s.Skip)
	if s.Limit > 0 {
		n = min(n, s.Limit)
	}
	return n
}

// transform returns the projection, or that which a list of paths stands for.
func (q *Query) transform() bsoncore.Document {
	if q.Project != nil {
		return q.Project
	}
	b, id := bsoncore.NewDocumentBuilder(), false
	for _, path := range q.Fields {
		b.AppendInt32(path, 1)
		id = id || path == "_id"
	}
	if len(q.Fields) > 0 && !id {
		b.AppendInt32("_id", 0)
	}
	return b.Build()
}

// examined describes what stages that touch data count beside.
func examined(b *bsoncore.DocumentBuilder, s Stage, st *Stats) {
	switch s := s.(type) {
	case *CollectionScan:
		b.AppendValue("docsExamined", count(st.Docs))
	case *IDLookup:
		b.AppendValue("keysExamined", count(st.Keys)).AppendValue("docsExamined", count(st.Docs))
	case *Near:
		b.AppendValue("keysExamined", count(st.Keys)).AppendValue("docsExamined", count(st.Docs))
	case *Fetch:
		b.AppendValue("docsExamined", count(st.Docs)).AppendValue("alreadyHasObj", count(0))
	case *IndexScan:
		b.AppendValue("keysExamined", count(st.Keys)).AppendValue("seeks", count(st.Seeks)).
			AppendValue("dupsTested", count(st.tested(s.Dedup))).AppendValue("dupsDropped", count(st.Dropped))
	case *DistinctScan, *CountScan:
		b.AppendValue("keysExamined", count(st.Keys))
	case *Or:
		b.AppendValue("dupsTested", count(st.tested(true))).AppendValue("dupsDropped", count(st.Dropped))
	case *SortMerge:
		b.AppendValue("dupsTested", count(st.tested(s.Dedup))).AppendValue("dupsDropped", count(st.Dropped))
	case *And:
		b.AppendValue("memUsage", count(st.Memory))
	case *Sort:
		b.AppendValue("totalDataSizeSorted", count(st.Memory+st.Spilled)).AppendBoolean("usedDisk", st.Spilled > 0)
	}
}

// tested returns how many rows were held against those seen before.
func (s *Stats) tested(yes bool) int64 {
	if !yes {
		return 0
	}
	return s.Advanced + s.Dropped
}

func direction(backward bool) string {
	if backward {
		return "backward"
	}
	return "forward"
}

// scanned describes an index and the way through it.
func scanned(b *bsoncore.DocumentBuilder, s *IndexScan) {
	indexed(b, s)
	b.AppendString("direction", direction(s.Backward))
}

// indexed describes an index.
func indexed(b *bsoncore.DocumentBuilder, s *IndexScan) {
	d := s.Definition
	b.AppendDocument("keyPattern", d.Keys).AppendString("indexName", d.Name)
	if d.Collation != nil {
		b.AppendDocument("collation", d.Collation.Document())
	}
	paths := bsoncore.NewDocumentBuilder()
	for i, c := range d.Components {
		list := bsoncore.NewArrayBuilder()
		if s.Multikey>>i&1 != 0 {
			list.AppendString(c.Path)
		}
		paths.AppendArray(fieldName(c), list.Build())
	}
	b.AppendBoolean("isMultiKey", s.Multikey != 0)
	if hasOrder(d) {
		b.AppendDocument("multiKeyPaths", paths.Build())
	}
	b.AppendBoolean("isUnique", d.Unique).
		AppendBoolean("isSparse", d.Sparse).
		AppendBoolean("isPartial", d.Partial != nil).
		AppendInt32("indexVersion", indexVersion)
}

// hasOrder reports whether all components are of values in their order.
func hasOrder(d *index.Definition) bool {
	for _, c := range d.Components {
		if !plain(c.Kind) {
			return false
		}
	}
	return true
}

// fieldName returns a component's name in the key pattern.
func fieldName(c index.Component) string {
	switch {
	case !c.Wildcard:
		return c.Path
	case c.Path == "":
		return "$**"
	}
	return c.Path + ".$**"
}

// describe returns the bounds as explain shows them: for each field its intervals, in the direction of the scan.
func (s *IndexScan) describe() bsoncore.Document {
	b := bsoncore.NewDocumentBuilder()
	if s.Bounds.Lower != nil || s.Bounds.Upper != nil {
		return b.Build()
	}
	for i, c := range s.Definition.Components {
		name := c.Path
		if c.Wildcard {
			b.AppendArray("$_path", texts(s.Bounds.Paths, s.Backward))
			name = s.Path
		}
		b.AppendArray(name, texts(s.Bounds.Fields[i], (c.Kind == index.Descending) != s.Backward))
	}
	return b.Build()
}

// texts returns intervals as text, from the highest to the lowest when they are walked through backward.
func texts(list []index.Interval, backward bool) bsoncore.Array {
	b := bsoncore.NewArrayBuilder()
	for i := range list {
		iv := list[i]
		if backward {
			iv = list[len(list)-1-i]
			iv.Low, iv.High, iv.LowInclusive, iv.HighInclusive = iv.High, iv.Low, iv.HighInclusive, iv.LowInclusive
		}
		b.AppendString(iv.String())
	}
	return b.Build()
}

// ends returns the bounds of a count: its first and its last key.
func (s *IndexScan) ends() bsoncore.Document {
	start, end := bsoncore.NewDocumentBuilder(), bsoncore.NewDocumentBuilder()
	startIn, endIn := true, true
	for i, c := range s.Definition.Components {
		list := s.Bounds.Fields[i]
		if len(list) == 0 {
			continue
		}
		first, last := list[0], list[len(list)-1]
		lo, hi, loIn, hiIn := first.Low, last.High, first.LowInclusive, last.HighInclusive
		if c.Kind == index.Descending {
			lo, hi, loIn, hiIn = hi, lo, hiIn, loIn
		}
		start.AppendValue(c.Path, lo)
		end.AppendValue(c.Path, hi)
		startIn, endIn = startIn && loIn, endIn && hiIn
	}
	return bsoncore.NewDocumentBuilder().
		AppendDocument("startKey", start.Build()).AppendBoolean("startKeyInclusive", startIn).
		AppendDocument("endKey", end.Build()).AppendBoolean("endKeyInclusive", endIn).Build()
}

// describe returns a filter as explain shows it.
func describe(f *query.Filter) bsoncore.Document {
	if f == nil || f.Root == nil {
		return bsoncore.NewDocumentBuilder().Build()
	}
	return f.Document()
}

// count returns a number as MongoDB's explain has it: an int32 if it fits.
func count(n int64) bsoncore.Value {
	if n == int64(int32(n)) {
		return bsoncore.Value{Type: bsoncore.TypeInt32, Data: bsoncore.AppendInt32(nil, int32(n))}
	}
	return bsoncore.Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, n)}
}
