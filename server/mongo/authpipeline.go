package mongo

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// maxPipelines bounds how deep pipelines may lie in pipelines, as the language of pipelines does.
const maxPipelines = 20

func ruleAggregate(r *request, g *grants) bool {
	stages, isArray := r.args["pipeline"].ArrayOK()
	if !isArray {
		return true // it will be refused
	}
	return r.bypasses(g) && r.pipelineAllowed(g, r.db, r.targetName(), stages, 0)
}

// pipelineAllowed reports whether a pipeline on a collection, or on a database when that is "", may be run: whether all that it reads
// may be read, and all that it writes written.
func (r *request) pipelineAllowed(g *grants, db, collection string, pipeline bsoncore.Array, depth int) bool {
	if depth > maxPipelines {
		return false
	}
	var values []bsoncore.Value
	if len(pipeline) > 0 {
		var err error
		if values, err = pipeline.Values(); err != nil {
			return true // it will be refused
		}
	}
	for i, v := range values {
		name, spec, isStage := stageOf(v)
		if !isStage {
			return true // it will be refused
		}
		source, allowed := r.sourceAllowed(g, db, collection, name, spec)
		if i == 0 && !source {
			allowed = collection != "" && g.allows(db, collection, "find")
		}
		if !allowed || !r.stageAllowed(g, db, name, spec, depth) {
			return false
		}
	}
	return len(values) > 0 || g.allows(db, collection, "find")
}

// stageOf takes a stage apart.
func stageOf(v bsoncore.Value) (name string, spec bsoncore.Value, ok bool) {
	doc, isDoc := v.DocumentOK()
	if !isDoc {
		return "", spec, false
	}
	e, err := doc.IndexErr(0)
	if err != nil {
		return "", spec, false
	}
	return e.Key(), e.Value(), true
}

// sourceAllowed reports whether a stage makes its documents itself, rather than read those of the collection, and whether it may.
func (r *request) sourceAllowed(g *grants, db, collection, name string, spec bsoncore.Value) (source, allowed bool) {
	options, _ := spec.DocumentOK()
	switch name {
	case "$documents":
		return true, true
	case "$collStats":
		return true, g.allows(db, collection, "collStats")
	case "$indexStats":
		return true, g.allows(db, collection, "indexStats")
	case "$planCacheStats":
		return true, g.allows(db, collection, "planCacheRead")
	case "$listSearchIndexes":
		return true, g.allows(db, collection, "listSearchIndexes")
	case "$currentOp": // everybody sees their own commands, and their own sessions
		all, isBool := options.Lookup("allUsers").BooleanOK()
		return true, g.allowsCluster("inprog") || !(isBool && all)
	case "$listSessions", "$listLocalSessions":
		return true, g.allowsCluster("listSessions") || r.onlyOwnSessions(name, options)
	case "$changeStream":
		if v, err := options.LookupErr("allChangesForCluster"); err == nil && truth(v) {
			db, collection = "", ""
		}
		return true, g.allowAll(db, collection, "find", "changeStream")
	}
	return false, true
}

// stageAllowed reports whether the other collections of a stage may be read and written.
func (r *request) stageAllowed(g *grants, db, name string, spec bsoncore.Value, depth int) bool {
	options, _ := spec.DocumentOK()
	if options != nil && !unambiguous(options) {
		return false
	}
	switch name {
	case "$lookup", "$graphLookup":
		fromDB, from := namespaceOf(options.Lookup("from"), db)
		return r.innerAllowed(g, fromDB, from, options, depth)
	case "$unionWith":
		if from, isText := spec.StringValueOK(); isText {
			return g.allows(db, from, "find")
		}
		fromDB, from := namespaceOf(spec, db)
		return r.innerAllowed(g, fromDB, from, options, depth)
	case "$facet":
		return r.facetsAllowed(g, db, options, depth)
	case "$out":
		toDB, to := namespaceOf(spec, db)
		return g.allowAll(toDB, to, "insert", "remove")
	case "$merge":
		into := spec
		if options != nil {
			into = options.Lookup("into")
		}
		if doc, isDoc := into.DocumentOK(); isDoc && !unambiguous(doc) {
			return false
		}
		toDB, to := namespaceOf(into, db)
		return g.allowAll(toDB, to, mergeActions(options)...)
	}
	return true
}

// unambiguous reports whether a document has each field once: of one that is there twice it could be the other that counts.
func unambiguous(doc bsoncore.Document) bool {
	elements, err := doc.Elements()
	if err != nil {
		return false
	}
	return len(argsOf(doc)) == len(elements)
}

// writesOut reports whether a pipeline ends in a stage that writes.
func (r *request) writesOut() bool {
	stages, isArray := r.args["pipeline"].ArrayOK()
	if !isArray {
		return false
	}
	values, err := stages.Values()
	if err != nil || len(values) == 0 {
		return false
	}
	name, _, _ := stageOf(values[len(values)-1])
	return name == "$out" || name == "$merge"
}

// innerAllowed reports whether the pipeline in a stage, or what it reads if it has none, is allowed.
func (r *request) innerAllowed(g *grants, db, from string, options bsoncore.Document, depth int) bool {
	stages, _ := options.Lookup("pipeline").ArrayOK()
	return r.pipelineAllowed(g, db, from, stages, depth+1)
}

func (r *request) facetsAllowed(g *grants, db string, facets bsoncore.Document, depth int) bool {
	elements, err := facets.Elements()
	if err != nil || depth > maxPipelines {
		return false
	}
	for _, e := range elements {
		array, _ := e.Value().ArrayOK()
		values, err := array.Values()
		if err != nil {
			return true // it will be refused
		}
		for _, v := range values {
			if name, spec, isStage := stageOf(v); isStage && !r.stageAllowed(g, db, name, spec, depth+1) {
				return false
			}
		}
	}
	return true
}

// namespaceOf reads where a stage reads from or writes to: a name, or a document of a database and a name.
func namespaceOf(v bsoncore.Value, db string) (database, collection string) {
	if name, isText := v.StringValueOK(); isText {
		return db, name
	}
	doc, _ := v.DocumentOK()
	if other, isText := doc.Lookup("db").StringValueOK(); isText {
		db = other
	}
	name, _ := doc.Lookup("coll").StringValueOK()
	return db, name
}

// mergeActions returns what $merge does to where it writes.
func mergeActions(options bsoncore.Document) []string {
	var actions []string
	if when, _ := options.Lookup("whenNotMatched").StringValueOK(); when == "" || when == "insert" {
		actions = append(actions, "insert")
	}
	when, isText := options.Lookup("whenMatched").StringValueOK()
	if !isText || when != "fail" && when != "keepExisting" {
		actions = append(actions, "update")
	}
	if actions == nil {
		actions = []string{"find"}
	}
	return actions
}
