package document

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/aggregate"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// view is a pipeline over another collection of the same database. It is immutable.
type view struct {
	ns       namespace
	settings *settings
	stages   []document
	broken   error // why a stored definition cannot be carried out; nil: it can
}

// maxViewDepth is how many views may stand on each other.
const maxViewDepth = 20

func onView(ns namespace) error {
	return mongoerror.New(mongoerror.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
}

// storedView makes the view of an entry. One that cannot be carried out does not keep the store from being opened: whoever reads it gets
// the error, and it can be dropped.
func (s *Store) storedView(ns namespace, options document) *view {
	parsed, err := parseSettings(options)
	if err == nil {
		var v *view
		if v, err = parseView(ns, parsed); err == nil {
			return v
		}
	}
	s.log.Warn("a stored view cannot be carried out", "view", ns.String(), "error", err)
	return &view{ns: ns, settings: &settings{spec: options}, broken: err}
}

func parseView(ns namespace, settings *settings) (*view, error) {
	var stages []document
	if settings.pipeline != nil { // none is as good as an empty one
		var err error
		if stages, err = arrayStages(settings.pipeline); err != nil {
			return nil, err
		}
	}
	for _, stage := range stages {
		if e, err := stage.IndexErr(0); err == nil && (e.Key() == "$out" || e.Key() == "$merge" || e.Key() == "$changeStream") {
			return nil, mongoerror.New(mongoerror.OptionNotSupportedOnView, "The aggregation stage %s in the pipeline of the view %s is not supported", e.Key(), ns)
		}
	}
	o := &aggregate.Options{Database: ns.database, Collection: settings.viewOn, Collation: settings.collation}
	o.Now = time.Unix(0, 0) // any will do: it is parsed again for each call
	if _, err := aggregate.Parse(stages, o); err != nil {
		return nil, err
	}
	return &view{ns: ns, settings: settings, stages: stages}, nil
}

// createView makes a view. The caller holds schema.
func (s *Store) createView(ctx context.Context, ns namespace, settings *settings) error {
	if err := (namespace{ns.database, settings.viewOn}).checkSpelling(); err != nil {
		return err
	}
	v, err := parseView(ns, settings)
	if err != nil {
		return err
	}
	return s.storeView(ctx, v, bsoncore.NewDocumentBuilder().AppendString("create", ns.collection).AppendString("db", ns.database).
		AppendDocument("options", settings.spec).Build())
}

// storeView puts a view into the catalogue. The caller holds schema.
func (s *Store) storeView(ctx context.Context, v *view, command document) error {
	cat := s.current.Load().with()
	cat.views[v.ns.String()] = v
	if err := cat.checkGraph(v); err != nil {
		return err
	}
	if err := cat.views[namespace{v.ns.database, v.settings.viewOn}.String()].checkCollation(v.settings.collation); err != nil {
		return err
	}
	if err := cat.checkJoined(v.ns.database, v.stages, v.settings.collation); err != nil {
		return err
	}
	value, err := marshal(&entry{View: true, Options: bson.Raw(v.settings.spec)})
	if err != nil {
		return err
	}
	err = s.write(ctx, func(w *writer) error {
		return errors.Join(w.noteCommand(command, aboutView()), w.tx.In(s.meta).Put(nameKey(v.ns.database, v.ns.collection), value))
	})
	if err != nil {
		return fmt.Errorf("store the view %s: %w", v.ns, err)
	}
	s.current.Store(cat)
	return nil
}

// modifyView changes the definition of a view. The caller holds schema.
func (s *Store) modifyView(ctx context.Context, v *view, change document) error {
	for _, e := range elementsOf(change) {
		if e.Key() != "viewOn" && e.Key() != "pipeline" {
			return mongoerror.New(mongoerror.InvalidOptions, "option not supported on a view: %s", e.Key())
		}
	}
	merged, err := mergeOptions(v.settings.spec, change)
	if err != nil {
		return err
	}
	settings, err := parseSettings(merged)
	if err != nil {
		return err
	}
	after, err := parseView(v.ns, settings)
	if err != nil {
		return err
	}
	return s.storeView(ctx, after, bsoncore.NewDocumentBuilder().AppendString("collMod", v.ns.String()).AppendDocument("options", change).Build())
}

// resolve follows views down to a collection, and returns the stages to run over it.
func (c *catalogue) resolve(ns namespace) (namespace, []document, error) {
	var stages []document
	for depth := 0; ; depth++ {
		v := c.views[ns.String()]
		if v == nil {
			return ns, stages, nil
		}
		if depth == maxViewDepth {
			return ns, nil, tooDeep()
		}
		if v.broken != nil {
			return ns, nil, v.broken
		}
		stages = append(append([]document{}, v.stages...), stages...)
		ns = namespace{ns.database, v.settings.viewOn}
	}
}
