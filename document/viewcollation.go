package document

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// checkCollation refuses another collation than the default of a view: what is in a view may depend on its collation, and so no call, no
// stage that joins it, and no view upon it may bring another one.
func (v *view) checkCollation(c *collation.Collation) error {
	if v == nil || v.settings.collation.Equal(c) {
		return nil
	}
	return mongoerror.New(mongoerror.OptionNotSupportedOnView, "Cannot override default collation of view %s", v.ns)
}

// checkJoined does so for the views of a database that stages join.
func (c *catalogue) checkJoined(database string, stages []document, collation *collation.Collation) error {
	for _, name := range joined(nil, stages) {
		if err := c.views[namespace{database, name}.String()].checkCollation(collation); err != nil {
			return err
		}
	}
	return nil
}

// joined appends the names of the collections that stages read beside that of their pipeline. The stages were parsed before.
func joined(names []string, stages []document) []string {
	for _, stage := range stages {
		for _, e := range elementsOf(stage) {
			switch e.Key() {
			case "$lookup", "$graphLookup", "$unionWith":
				names = joinedBy(names, e.Value())
			case "$facet":
				spec, _ := e.Value().DocumentOK()
				for _, inner := range elementsOf(spec) {
					names = joinedIn(names, inner.Value())
				}
			}
		}
	}
	return names
}

// joinedBy appends what one stage names, and what the pipeline within it does.
func joinedBy(names []string, spec bsoncore.Value) []string {
	add := func(v bsoncore.Value) {
		if name, ok := v.StringValueOK(); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	doc, ok := spec.DocumentOK()
	if !ok {
		add(spec)
		return names
	}
	for _, e := range elementsOf(doc) {
		switch e.Key() {
		case "from", "coll":
			add(e.Value())
		case "pipeline":
			names = joinedIn(names, e.Value())
		}
	}
	return names
}

func joinedIn(names []string, pipeline bsoncore.Value) []string {
	list, ok := pipeline.ArrayOK()
	if !ok {
		return names
	}
	stages, err := arrayStages(list)
	if err != nil {
		return names
	}
	return joined(names, stages)
}
