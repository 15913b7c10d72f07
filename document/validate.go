package document

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// validator is a parsed validator, for one write at a time, which its loops watch.
type validator struct {
	filter *query.Filter
	call   expression.Call
}

// parseValidator parses the validator of the settings.
func (s *settings) parseValidator() (*validator, error) {
	v := &validator{}
	var err error
	v.filter, err = query.Parse(s.schema, &query.Options{Collation: s.collation, Call: &v.call})
	return v, err
}

// checkValidator refuses a validator that is new; those that are stored were made when more was allowed.
func (s *settings) checkValidator() error {
	spec, _ := document(s.spec).Lookup("validator").DocumentOK() // also where the level is off, so that it can be turned on
	if spec == nil {
		return nil
	}
	_, err := query.Parse(spec, &query.Options{Collation: s.collation, Validator: true})
	return err
}

// validator returns a validator for a write that ctx may end. It is given back to s.validators.
func (s *settings) validator(ctx context.Context) (*validator, error) {
	v, _ := s.validators.Get().(*validator)
	if v == nil {
		var err error
		if v, err = s.parseValidator(); err != nil {
			return nil, err
		}
	}
	v.call.By(ctx)
	return v, nil
}

// validate refuses a document that the collection's validator does not match. old is the document before, nil for a new one. ctx may
// be nil.
func (c *collection) validate(ctx context.Context, doc, old document) error {
	s := c.settings.Load()
	if s.schema == nil {
		return nil
	}
	v, err := s.validator(ctx)
	if err != nil {
		return err
	}
	defer s.validators.Put(v)
	ok, err := v.filter.Match(path.Document(doc))
	if ok || err != nil {
		return err
	}
	if s.moderate && old != nil {
		if ok, err := v.filter.Match(path.Document(old)); !ok || err != nil {
			return err
		}
	}
	if s.warn {
		c.store.log.Warn("document fails validation", "collection", c.name.Load().String(), "_id", doc.Lookup("_id").String())
		return nil
	}
	why, err := query.Failure(s.schema, &query.Options{Collation: s.collation}, bsoncore.Document(doc))
	if err != nil {
		return err
	}
	info := bsoncore.NewDocumentBuilder().AppendValue("failingDocumentId", doc.Lookup("_id")).AppendDocument("details", why).Build()
	return &Error{Code: mongoerror.DocumentValidationFailure, Message: "Document failed validation", Info: info}
}

// Modify changes options of the collection, as MongoDB's collMod does: validator, validationLevel, validationAction,
// changeStreamPreAndPostImages, cappedSize and cappedMax, which the next insert heeds, viewOn and pipeline of a view; index:
// {keyPattern or name, expireAfterSeconds, hidden, prepareUnique, unique}, with dryRun to ask whether an index may become unique.
func (c *Collection) Modify(ctx context.Context, changes any) error {
	change, err := toDocument(changes)
	if err := errors.Join(err, c.alterable()); err != nil {
		return err
	}
	s := c.store
	s.schema.Lock()
	defer s.schema.Unlock()
	if v := c.view(); v != nil {
		return s.modifyView(ctx, v, change)
	}
	x, err := c.useExisting()
	if err != nil {
		return err
	}
	rest, told := bsoncore.NewDocumentBuilder(), bsoncore.NewDocumentBuilder()
	elements, err := change.Elements()
	if err != nil {
		return malformed("%v", err)
	}
	options, dry := false, truthy(change.Lookup("dryRun"))
	if _, err := change.LookupErr("index"); dry && (err != nil || len(elements) > 2) {
		return mongoerror.New(mongoerror.InvalidOptions, "dry run mode requires an valid index modification.")
	}
	for _, e := range elements {
		if e.Key() == "dryRun" {
			continue
		}
		if e.Key() == "index" {
			continue
		}
		stored, err := x.settings.Load().modification(e)
		if err != nil {
			return err
		}
		options = true
		rest.AppendValue(stored.Key(), stored.Value())
		if stored.Key() == e.Key() {
			e = stored
		}
		told.AppendValue(e.Key(), e.Value())
	}
	var after *settings
	if options || len(elements) == 0 {
		if after, err = x.modified(rest.Build()); err != nil {
			return err
		}
	}
	if v, err := change.LookupErr("index"); err == nil { // behind what else may be refused: nothing is changed then
		if done, err := x.modifyIndex(ctx, v, dry, after, told.Build()); done || err != nil {
			return err
		}
	}
	if after == nil {
		return nil
	}
	return x.modifySettings(ctx, after, told.Build())
}

// modification checks a change of an option, and returns it as it is stored.
func (s *settings) modification(e bsoncore.Element) (bsoncore.Element, error) {
	switch name := e.Key(); {
	case name == "expireAfterSeconds":
		return s.modifiedExpiry(e)
	case name == "timeseries" && s.series != nil:
		return s.series.modification(e)
	case s.series != nil:
		return nil, mongoerror.New(mongoerror.InvalidOptions, "option not supported on a time-series collection: %s", name)
	case name == "validator", name == "validationLevel", name == "validationAction", name == "changeStreamPreAndPostImages":
		return e, nil
	case name == "cappedSize":
		return s.modifiedBound(e, "size")
	case name == "cappedMax":
		return s.modifiedBound(e, "max")
	case name == "timeseries":
		return nil, mongoerror.New(mongoerror.InvalidOptions, "option only supported on a time-series collection: %s", name)
	}
	return nil, mongoerror.New(mongoerror.InvalidOptions, "collMod does not know the option '%s'", e.Key())
}

// modifiedBound checks a change of what a capped collection may hold, and returns it as the option that is stored.
func (s *settings) modifiedBound(e bsoncore.Element, option string) (bsoncore.Element, error) {
	v := e.Value()
	if !v.IsNumber() {
		return nil, wrongType("collMod."+e.Key(), v, "types '[long, int, decimal, double']")
	}
	if !s.capped {
		return nil, mongoerror.New(mongoerror.InvalidOptions, "Collection must be capped.")
	}
	b := bsoncore.NewDocumentBuilder()
	if err := appendBound(b, option, e.Key(), v); err != nil {
		return nil, err
	}
	return b.Build().IndexErr(0)
}

// modified returns the options with some of them replaced.
func (c *collection) modified(change document) (*settings, error) {
	merged, err := mergeOptions(c.settings.Load().spec, change)
	if err != nil {
		return nil, err
	}
	if merged, err = asCreated(merged); err != nil {
		return nil, err
	}
	after, err := parseSettings(merged)
	if err != nil {
		return nil, err
	}
	if _, err := change.LookupErr("validator"); err == nil {
		if err := after.checkValidator(); err != nil {
			return nil, err
		}
	}
	return after, nil
}

// modifySettings replaces the options; told is how the log tells of it. The caller holds Store.schema.
func (c *collection) modifySettings(ctx context.Context, after *settings, told document) error {
	c.schema.Lock() // no commit writes the new options into the catalogue unless this one has
	defer c.schema.Unlock()
	before := c.settings.Load()
	err := c.trySettings(after, func() error {
		return c.store.write(ctx, func(w *writer) error {
			command := bsoncore.NewDocumentBuilder().AppendString("collMod", c.name.Load().String()).AppendDocument("options", told).Build()
			return errors.Join(w.noteCommand(command, c.aboutModify(before.spec, nil)), w.putEntry(c))
		})
	})
	if err != nil {
		return fmt.Errorf("change the options of %s: %w", c.name.Load(), err)
	}
	return nil
}

// trySettings replaces the options for a commit that puts them into the catalogue. When it fails, they are as before. The caller holds c.schema.
func (c *collection) trySettings(after *settings, commit func() error) error {
	before := c.settings.Swap(after)
	err := commit()
	if err != nil {
		c.settings.Store(before)
		c.undone.Add(1)
	}
	return err
}

// mergeOptions returns the options with those in change replaced.
func mergeOptions(spec, change document) (document, error) {
	var all, some bson.D
	if err := errors.Join(bson.Unmarshal(spec, &all), bson.Unmarshal(change, &some)); err != nil {
		return nil, malformed("%v", err)
	}
	for _, e := range some {
		found := false
		for i := range all {
			if all[i].Key == e.Key {
				all[i].Value, found = e.Value, true
			}
		}
		if !found {
			all = append(all, e)
		}
	}
	return toDocument(all)
}
