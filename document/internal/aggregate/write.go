package aggregate

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// outStage is $out.
type outStage struct{ database, collection string }

func (p *parser) out(spec value) (stage, error) {
	s := &outStage{database: p.o.Database}
	switch spec.Type {
	case bsoncore.TypeString:
		s.collection = spec.StringValue()
	case bsoncore.TypeEmbeddedDocument:
		if err := s.parse(spec.Document()); err != nil {
			return nil, err
		}
	default:
		return nil, mongoerror.New(mongoerror.Code(16990), "$out only supports a string or object argument, but found %s", mongoerror.TypeName(spec.Type))
	}
	switch {
	case s.collection == "":
		return nil, mongoerror.New(mongoerror.InvalidNamespace, "Invalid $out target namespace, %s.", s.database)
	case isSystem(s.collection):
		return nil, mongoerror.New(mongoerror.Code(17385), "Can't $out to special collection: %s", s.collection)
	case isInternal(s.database):
		return nil, mongoerror.New(mongoerror.Code(31321), "Can't $out to internal database: %s", s.database)
	}
	return s, nil
}

// isSystem reports whether a collection is of the server's own, which pipelines do not write to.
func isSystem(collection string) bool { return strings.HasPrefix(collection, "system.") }

// isInternal reports whether the collections of a database are the server's own.
func isInternal(database string) bool {
	return database == "admin" || database == "local" || database == "config"
}

// parse reads {db: ..., coll: ...}.
func (s *outStage) parse(spec document) error {
	elements, err := spec.Elements()
	if err != nil {
		return err
	}
	given := 0
	for _, e := range elements {
		name, ok := e.Value().StringValueOK()
		target := &s.database
		switch e.Key() {
		case "db":
		case "coll":
			target = &s.collection
		default:
			return notTarget()
		}
		if given++; !ok {
			return mongoerror.New(mongoerror.Code(13111), "wrong type for field (%s) %s != string", e.Key(), mongoerror.TypeName(e.Value().Type))
		}
		*target = name
	}
	if given != 2 {
		return notTarget()
	}
	return nil
}

func notTarget() error {
	return mongoerror.New(mongoerror.Code(16994), "If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'")
}

func (s *outStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	return &lazyCursor{in: in, start: func(ctx context.Context) (Cursor, error) {
		if strings.Contains(s.collection, "$") { // MongoDB finds it out when it asks for the options that the target has
			return nil, mongoerror.New(mongoerror.IllegalOperation, "error with target namespace: Invalid collection name: %s", s.collection)
		}
		return new(listCursor), x.env.Replace(ctx, s.database, s.collection, in)
	}}, nil
}

// mergeStage is $merge.
type mergeStage struct {
	database, collection string
	merge                Merge
	isOnGiven            bool
	let                  []letVariable
}

// letVariable is a variable that a stage computes from each document.
type letVariable struct {
	name       string
	expression *expression.Expression
}

func (p *parser) merge(spec value) (stage, error) {
	s := &mergeStage{database: p.o.Database, merge: Merge{On: []string{"_id"}, WhenMatched: "merge", WhenNotMatched: "insert", Collation: p.o.Collation, Now: p.o.Now}}
	switch spec.Type {
	case bsoncore.TypeString:
		s.collection = spec.StringValue()
		return s, s.check()
	case bsoncore.TypeEmbeddedDocument:
	default:
		return nil, mongoerror.New(mongoerror.TypeMismatch, "$merge requires a string or object argument, but found %s", mongoerror.TypeName(spec.Type))
	}
	elements, err := spec.Document().Elements()
	if err != nil {
		return nil, err
	}
	haveLet := false
	for _, e := range elements {
		v := e.Value()
		switch e.Key() {
		case "into":
			err = s.into(v)
		case "on":
			s.isOnGiven, err = true, s.on(v)
		case "let":
			haveLet = true
			if v.Type != bsoncore.TypeEmbeddedDocument {
				return nil, wrongType("$merge.let", v, "object")
			}
			if given, _ := v.Document().LookupErr("new"); len(given.Data) > 0 && !given.Equal(text("$$ROOT")) {
				return nil, mongoerror.New(mongoerror.Code(51273), "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'")
			}
			s.let, err = p.letVariables("$merge", v)
		case "whenMatched":
			err = s.whenMatched(v)
		case "whenNotMatched":
			err = s.whenNotMatched(v)
		default:
			err = mongoerror.New(mongoerror.Code(40415), "BSON field '$merge.%s' is an unknown field.", e.Key())
		}
		if err != nil {
			return nil, err
		}
	}
	if s.collection == "" {
		return nil, mongoerror.New(mongoerror.Code(40414), "BSON field '$merge.into' is missing but a required field")
	}
	if s.merge.WhenMatched == "pipeline" {
		if !slices.ContainsFunc(s.let, func(l letVariable) bool { return l.name == "new" }) {
			root, err := expression.Parse(text("$$ROOT"), p.o.expression())
			if err != nil {
				return nil, err
			}
			s.let = append(s.let, letVariable{"new", root})
		}
	} else if haveLet && s.merge.WhenMatched != "pipeline" {
		return nil, mongoerror.New(mongoerror.Code(51199), "Cannot use 'let' variables with 'whenMatched: %s' mode", s.merge.WhenMatched)
	}
	return s, s.check()
}

func (s *mergeStage) check() error {
	if s.collection == "" {
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid $merge target namespace: '%s.'", s.database)
	}
	if isSystem(s.collection) {
		return mongoerror.New(mongoerror.Code(31319), "Cannot $merge to special collection: %s", s.collection)
	}
	if isInternal(s.database) {
		return mongoerror.New(mongoerror.Code(31320), "Cannot $merge to internal database: %s", s.database)
	}
	if m := s.merge; (m.WhenMatched == "fail" || m.WhenMatched == "keepExisting") && m.WhenNotMatched != "insert" {
		return mongoerror.New(mongoerror.Code(51181), "Combination of {whenMatched: %s} and {whenNotMatched: %s} is not supported",
			m.WhenMatched, m.WhenNotMatched)
	}
	return nil
}

func (s *mergeStage) into(v value) error {
	switch v.Type {
	case bsoncore.TypeString:
		if s.collection = v.StringValue(); s.collection == "" {
			return mongoerror.New(mongoerror.Code(5786800), "$merge 'into' field cannot be an empty string")
		}
	case bsoncore.TypeEmbeddedDocument:
		elements, err := v.Document().Elements()
		if err != nil {
			return err
		}
		given := map[string]bool{}
		for _, e := range elements {
			name, ok := e.Value().StringValueOK()
			twice := given[e.Key()]
			switch given[e.Key()] = true; {
			case twice:
				return mongoerror.New(mongoerror.Code(40413), "BSON field 'into.%s' is a duplicate field", e.Key())
			case e.Key() != "db" && e.Key() != "coll":
				return unknownField("into." + e.Key())
			case !ok:
				return wrongType("into."+e.Key(), e.Value(), "string")
			case e.Key() == "db":
				s.database = name
			default:
				s.collection = name
			}
		}
		if s.collection == "" {
			return mongoerror.New(mongoerror.Code(5786801), "$merge 'into' field must specify a 'coll' that is not empty, null or undefined")
		}
	default:
		return mongoerror.New(mongoerror.Code(51178), "$merge 'into' field  must be either a string or an object, but found %s", mongoerror.TypeName(v.Type))
	}
	return nil
}

func (s *mergeStage) on(v value) error {
	s.merge.On = nil
	list := []value{v}
	if v.Type == bsoncore.TypeArray {
		list, _ = v.Array().Values()
		if len(list) == 0 {
			return mongoerror.New(mongoerror.Code(51187), "If explicitly specifying $merge 'on', must include at least one field")
		}
	} else if !isString(v) {
		return mongoerror.New(mongoerror.Code(51186), "$merge 'on' field  must be either a string or an array of strings, but found %s", mongoerror.TypeName(v.Type))
	}
	seen := map[string]bool{}
	for _, v := range list {
		name, ok := v.StringValueOK()
		if !ok {
			return mongoerror.New(mongoerror.Code(51134), "$merge 'on' array elements must be strings, but found %s", mongoerror.TypeName(v.Type))
		}
		if _, err := path.Split(name); err != nil {
			return err
		}
		if seen[name] {
			return mongoerror.New(mongoerror.Code(31465), "Found a duplicate field '%s'", name)
		}
		seen[name] = true
		s.merge.On = append(s.merge.On, name)
	}
	return nil
}

func (s *mergeStage) whenMatched(v value) error {
	if v.Type == bsoncore.TypeArray {
		if _, err := pipelineOf(v); err != nil {
			return err
		}
		s.merge.WhenMatched, s.merge.Pipeline = "pipeline", v
		return nil
	}
	mode, ok := v.StringValueOK()
	if !ok {
		return mongoerror.New(mongoerror.Code(51191), "$merge 'whenMatched' field  must be either a string or an array, but found %s", mongoerror.TypeName(v.Type))
	}
	switch mode {
	case "replace", "keepExisting", "merge", "fail":
		s.merge.WhenMatched = mode
		return nil
	}
	return mongoerror.New(mongoerror.BadValue, "Enumeration value '%s' for field 'whenMatched' is not a valid value.", mode)
}

func (s *mergeStage) whenNotMatched(v value) error {
	mode, ok := v.StringValueOK()
	if !ok {
		return mongoerror.New(mongoerror.TypeMismatch, "BSON field '$merge.whenNotMatched' is the wrong type '%s', expected type 'string'", mongoerror.TypeName(v.Type))
	}
	switch mode {
	case "insert", "discard", "fail":
		s.merge.WhenNotMatched = mode
		return nil
	}
	return mongoerror.New(mongoerror.BadValue, "Enumeration value '%s' for field '$merge.whenNotMatched' is not a valid value.", mode)
}

func (s *mergeStage) open(_ context.Context, x *run, in Cursor) (Cursor, error) {
	if s.isOnGiven {
		switch unique, err := x.env.Unique(s.database, s.collection, s.merge.On, s.merge.Collation); {
		case err != nil:
			return nil, err
		case !unique:
			return nil, mongoerror.New(mongoerror.Code(51183), "Cannot find index to verify that join fields will be unique")
		}
	}
	return &mergeCursor{s: s, x: x, in: in}, nil
}

type mergeCursor struct {
	s  *mergeStage
	x  *run
	in Cursor
}

// Bounds of what is merged although a document before could not be.
const (
	mergeBatch      = 100_000
	mergeBatchBytes = 16 << 20
)

// What is merged together at most.
const (
	mergeGroup      = 256
	mergeGroupBytes = 1 << 20
)

// Next implements Cursor: it merges everything, and has no documents. One that cannot be written does not keep out those that follow
// closely: MongoDB writes batches without an order.
func (c *mergeCursor) Next(ctx context.Context) (document, error) {
	var failed error
	m := c.s.merge
	var group []document
	grouped, limit := 0, mergeGroup
	if m.Alone() {
		limit = 1
	}
	flush := func() error {
		if len(group) == 0 {
			return nil
		}
		err := c.x.env.Merge(ctx, c.s.database, c.s.collection, &m, group, func(err error) error {
			switch mongoerror.CodeOf(err) {
			case mongoerror.DuplicateKey, mongoerror.DocumentValidationFailure, mongoerror.MergeStageNoMatchingDocument:
				failed, err = cmp.Or(failed, err), nil
			}
			return err
		})
		clear(group)
		group, grouped = group[:0], 0
		return err
	}
	count, size := 0, 0
	err := drain(ctx, c.in, func(doc document) (err error) {
		if count, size = count+1, size+len(doc); count > mergeBatch || size > mergeBatchBytes {
			if err := cmp.Or(flush(), failed); err != nil {
				return err
			}
			count, size = 1, len(doc)
		}
		if m.Let, err = evalLet(c.s.let, doc); err != nil {
			return err
		}
		group, grouped = append(group, bytes.Clone(doc)), grouped+len(doc)
		if len(group) < limit && grouped < mergeGroupBytes {
			return nil
		}
		return flush()
	})
	if err := cmp.Or(err, flush(), failed); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

// Close implements Cursor.
func (c *mergeCursor) Close() error { return c.in.Close() }

// letVariables parses the variables that a stage defines.
func (p *parser) letVariables(stage string, v value) ([]letVariable, error) {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return nil, mongoerror.New(mongoerror.FailedToParse, "%s argument 'let: %s' must be an object, is type %s", stage, v, mongoerror.TypeName(v.Type))
	}
	elements, err := v.Document().Elements()
	if err != nil {
		return nil, err
	}
	var list []letVariable
	for _, e := range elements {
		if err := checkVariable(e.Key()); err != nil {
			return nil, err
		}
		x, err := expression.Parse(e.Value(), p.o.expression())
		if err != nil {
			return nil, err
		}
		list = append(list, letVariable{e.Key(), x})
	}
	return list, nil
}

func checkVariable(name string) error {
	if name == "" {
		return mongoerror.New(mongoerror.FailedToParse, "empty variable names are not allowed")
	}
	for i := range len(name) {
		c := name[i]
		lower, other := c >= 'a' && c <= 'z' || c >= 0x80, c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		switch {
		case i == 0 && !lower && name != "CURRENT":
			return mongoerror.New(mongoerror.FailedToParse, "'%s' starts with an invalid character for a user variable name", name)
		case !lower && !other:
			return mongoerror.New(mongoerror.FailedToParse, "'%s' contains an invalid character for a variable name: '%c'", name, c)
		}
	}
	return nil
}

// evalLet computes variables for a document.
func evalLet(let []letVariable, doc document) ([]expression.Variable, error) {
	var list []expression.Variable
	for _, l := range let {
		v, err := l.expression.Eval(doc)
		if err != nil {
			return nil, err
		}
		list = append(list, expression.Variable{Name: l.name, Value: v})
	}
	return list, nil
}
