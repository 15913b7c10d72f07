package aggregate

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// lookupStage is $lookup, and the $unwind of its result behind it.
type lookupStage struct {
	o        *Options
	from     string
	as       []string
	local    []string // nil: no equality
	foreign  string
	let      []letVariable
	pipeline []document // nil: equality only
	prefix   int        // how many stages of the pipeline do not depend on let; see cacheable
	fixed    *Pipeline  // the pipeline when it is the same for all documents
	unwind   *unwindStage
}

func (p *parser) lookup(spec value) (stage, error) {
	if spec.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.FailedToParse, "the $lookup stage specification must be an object, but found %s", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	s := &lookupStage{}
	given := map[string]bool{}
	for _, e := range elements {
		if s, ok := e.Value().StringValueOK(); ok && s == "" {
			continue // counts as not given
		}
		given[e.Key()] = true
		if err := s.option(p, e.Key(), e.Value()); err != nil {
			return nil, err
		}
	}
	switch {
	case s.as == nil:
		return nil, mongoerror.New(mongoerror.FailedToParse, "must specify 'as' field for a $lookup")
	case given["localField"] != given["foreignField"]:
		return nil, mongoerror.New(mongoerror.FailedToParse, "$lookup requires both or neither of 'localField' and 'foreignField' to be specified")
	case !given["pipeline"] && !given["localField"]:
		return nil, mongoerror.New(mongoerror.FailedToParse, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	case given["let"] && !given["pipeline"]:
		return nil, mongoerror.New(mongoerror.FailedToParse, "$lookup with a 'let' argument must also specify 'pipeline'")
	case !given["from"] && !startsWithDocuments(s.pipeline):
		if _, err := spec.Document().LookupErr("from"); err == nil {
			return nil, mongoerror.New(mongoerror.InvalidNamespace, "invalid $lookup namespace: the name of the collection is empty")
		}
		return nil, mongoerror.New(mongoerror.FailedToParse, "must specify 'from' field for a $lookup")
	}
	if startsWithDocuments(s.pipeline) {
		s.from = "" // may be given all the same, and is not read
	}
	s.o = p.o.inCollection(s.from)
	if s.pipeline != nil {
		return s, s.preparePipeline()
	}
	return s, nil
}

func (s *lookupStage) option(p *parser, name string, v value) (err error) {
	switch name {
	case "let":
		s.let, err = p.letVariables("$lookup", v)
		return err
	case "pipeline":
		if s.pipeline, err = pipelineOf(v); err == nil && s.pipeline == nil {
			s.pipeline = []document{}
		}
		return err
	case "from", "as", "localField", "foreignField":
	default:
		return mongoerror.New(mongoerror.FailedToParse, "unknown argument to $lookup: %s", name)
	}
	text, ok := v.StringValueOK()
	if !ok {
		return mongoerror.New(mongoerror.FailedToParse, "$lookup argument '%s: %s' must be a string, found type %s", name, v, mongoerror.TypeName(v.Type))
	}
	switch name {
	case "from":
		s.from = text
	case "as":
		s.as, err = path.Split(text)
	case "localField":
		s.local, err = path.Split(text)
	case "foreignField":
		s.foreign = text
		_, err = path.Split(text)
	}
	return err
}

// preparePipeline checks the pipeline, and finds out how much of it is the same for all documents.
func (s *lookupStage) preparePipeline() error {
	declared := *s.o
	declared.Let = slices.Clone(declared.Let)
	for _, l := range s.let {
		declared.Let = append(declared.Let, expression.Variable{Name: l.name})
	}
	inner, err := parsePipeline(s.pipeline, &declared, "$lookup")
	if err != nil {
		return err
	}
	names := make(map[string]bool, len(s.let))
	for _, l := range s.let {
		names[l.name] = true
	}
	for s.prefix < len(s.pipeline) && !mentions(s.pipeline[s.prefix], names) {
		s.prefix++
	}
	if s.local == nil && s.prefix == len(s.pipeline) {
		s.fixed = inner
	} else if s.local != nil || !cacheable(s.pipeline[:s.prefix]) {
		s.prefix = 0
	}
	return nil
}

// mentions reports whether a stage may use one of the variables: CURRENT is used by every path.
func mentions(stage document, names map[string]bool) bool {
	if names["CURRENT"] {
		return true
	}
	for rest := []byte(stage); len(names) > 0; {
		_, behind, found := bytes.Cut(rest, []byte("$$"))
		if !found {
			return false
		}
		n := 0
		for n < len(behind) && isOfName(behind[n]) {
			n++
		}
		if names[string(behind[:n])] {
			return true
		}
		rest = behind[n:]
	}
	return false
}

// isOfName reports whether a byte may be in the name of a variable.
func isOfName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

// cacheable reports whether it pays to keep what these stages give: filters alone are better left to indexes, together with the
// filters that follow.
func cacheable(prefix []document) bool {
	for _, stage := range prefix {
		e, err := stage.IndexErr(0)
		if err != nil {
			return false
		}
		switch e.Key() {
		case "$match", "$project", "$addFields", "$set", "$unset":
		case "$sample":
			return false
		default:
			return true
		}
	}
	return false
}

func (s *lookupStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	out := lookupOutput{s: s}
	if s.pipeline == nil {
		return &joinCursor{lookupOutput: out, x: x, in: in, foreign: path.Parse(s.foreign)}, nil
	}
	return &subPipelineCursor{lookupOutput: out, x: x, in: in, parsed: s.o.Call.Mark()}, nil
}

// lookupOutput makes the documents of a $lookup out of matches.
type lookupOutput struct {
	s     *lookupStage
	buf   []byte
	other []byte
	list  []byte
	n     int
}

// rest forgets the document that was made last.
func (o *lookupOutput) rest() { o.buf, o.other, o.list = nil, nil, nil }

// start begins the array of matches.
func (o *lookupOutput) start() { o.list, _ = begin(o.list[:0]); o.n = 0 }

func (o *lookupOutput) add(doc document) error {
	if o.list = appendItem(o.list, o.n, documentValue(doc)); len(o.list) > maxBetween {
		return mongoerror.New(mongoerror.Code(4568), "Total size of documents in %s matching pipeline's $lookup stage exceeds %d bytes", o.s.from, maxBetween)
	}
	o.n++
	return nil
}

// finish returns the document with the array.
func (o *lookupOutput) finish(doc document) (document, error) {
	o.list = end(o.list, 0)
	o.buf = appendSet(o.buf[:0], doc, o.s.as, value{Type: bsoncore.TypeArray, Data: o.list})
	if len(o.buf) > maxBetween {
		return nil, tooLarge(len(o.buf))
	}
	return o.buf, nil
}

// unwound returns the document with one match; a missing one stands for no match at all.
func (o *lookupOutput) unwound(doc document, match value, i int64) document {
	o.buf = appendSet(o.buf[:0], doc, o.s.as, match)
	if o.s.unwind.index == nil {
		return o.buf
	}
	index := int64Value(i)
	if match.Type == 0 {
		index = null()
	}
	o.other = appendSet(o.other[:0], o.buf, o.s.unwind.index, index)
	return o.other
}

// visitAll calls visit with all values at a path: of arrays with their elements.
func visitAll(v value, segments []string, visit func(v value)) {
	if len(segments) == 0 {
		if v.Type != bsoncore.TypeArray {
			if v.Type != 0 {
				visit(v)
			}
			return
		}
		it := path.ElementsOf(v.Data)
		for _, item, ok := it.Next(); ok; _, item, ok = it.Next() {
			visit(item)
		}
		return
	}
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		inner, _ := path.Lookup(v.Data, segments[0])
		visitAll(inner, segments[1:], visit)
	case bsoncore.TypeArray:
		if isIndex(segments[0]) {
			if item, ok := path.Lookup(v.Data, segments[0]); ok {
				visitAll(item, segments[1:], visit)
			}
			return
		}
		it := path.ElementsOf(v.Data)
		for _, item, ok := it.Next(); ok; _, item, ok = it.Next() {
			if item.Type == bsoncore.TypeEmbeddedDocument {
				visitAll(item, segments, visit)
			}
		}
	}
}

func isIndex(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && (len(s) == 1 || s[0] != '0')
}

// localValues returns the values that a document is joined by.
func (s *lookupStage) localValues(doc document) []value {
	var list []value
	visitAll(documentValue(doc), s.local, func(v value) { list = append(list, v) })
	if len(list) == 0 {
		list = append(list, null())
	}
	return list
}

// equals is a filter for the documents whose field equals one of the values.
func equals(field string, values []value) document {
	var plain, regexes []value
	for _, v := range values {
		if v.Type == bsoncore.TypeRegex { // $in would match it as a pattern
			regexes = append(regexes, object(field, object("$eq", v)))
		} else {
			plain = append(plain, v)
		}
	}
	switch {
	case len(regexes) == 0 && len(plain) == 1:
		return fields(field, object("$eq", plain[0]))
	case len(regexes) == 0:
		return fields(field, object("$in", array(plain...)))
	}
	if len(plain) > 0 {
		regexes = append(regexes, object(field, object("$in", array(plain...))))
	}
	return fields("$or", array(regexes...))
}
