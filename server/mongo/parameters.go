package mongo

import (
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// parameters is what getParameter and setParameter know.
type parameters struct {
	mu     sync.Mutex
	values map[string]any
}

func (p *parameters) init() {
	p.values = map[string]any{
		"featureCompatibilityVersion":       bson.D{{Key: "version", Value: "7.0"}},
		"authenticationMechanisms":          bson.A{"SCRAM-SHA-256", "SCRAM-SHA-1", "MONGODB-X509"},
		"enableTestCommands":                false,
		"requireApiVersion":                 false,
		"authSchemaVersion":                 int32(5),
		"logLevel":                          int32(0),
		"quiet":                             false,
		"transactionLifetimeLimitSeconds":   int32(60),
		"cursorTimeoutMillis":               int64(defaultCursorTimeout.Milliseconds()),
		"ttlMonitorEnabled":                 true,
		"ttlMonitorSleepSecs":               int32(60),
		"notablescan":                       false,
		"localLogicalSessionTimeoutMinutes": int32(sessionTimeout.Minutes()),
	}
}

// settable are the parameters that setParameter takes; they have no effect but to be read again.
func settable(name string) bool {
	switch name {
	case "logLevel", "quiet", "requireApiVersion", "notablescan", "ttlMonitorSleepSecs", "ttlMonitorEnabled", "transactionLifetimeLimitSeconds", "cursorTimeoutMillis":
		return true
	}
	return false
}

func (r *request) getParameter() (bsoncore.Document, error) {
	p := &r.server.params
	p.mu.Lock()
	defer p.mu.Unlock()
	out := bson.D{}
	all := false
	if text, ok := r.target.StringValueOK(); ok && text == "*" {
		all = true
	} else if doc, ok := r.target.DocumentOK(); ok {
		all = truthy(doc, "allParameters")
	}
	for _, name := range sortedNames(p.values) {
		if _, asked := r.args[name]; asked || all {
			out = append(out, bson.E{Key: name, Value: r.parameter(name, p.values[name])})
		}
	}
	if len(out) == 0 {
		return nil, document.NewError(codeInvalidOptions, "no option found to get")
	}
	return encode(append(out, bson.E{Key: "ok", Value: 1.0}))
}

// parameter returns a parameter's value, for those that are options of the server.
func (r *request) parameter(name string, v any) any {
	if name == "enableTestCommands" {
		return r.server.o.TestCommands
	}
	return v
}

func truthy(doc bsoncore.Document, name string) bool {
	b, ok := doc.Lookup(name).BooleanOK()
	return ok && b
}

func (r *request) setParameter() (bsoncore.Document, error) {
	p := &r.server.params
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range elementsOf(r.body)[1:] {
		if generic(e.Key()) {
			continue
		}
		was, known := p.values[e.Key()]
		if !known {
			return nil, document.NewError(codeInvalidOptions, "no option found to set, use help:true to see options: %s", e.Key())
		}
		if !settable(e.Key()) {
			return nil, document.NewError(codeIllegalOperation, "not allowed to change [%s] at runtime", e.Key())
		}
		v := e.Value()
		if level, isNumber := asInt64(v); e.Key() == "logLevel" && (!isNumber || level < 0 || level > 5) {
			return nil, document.NewError(document.BadValue, "Invalid value for logLevel: %s", v)
		}
		p.values[e.Key()] = bson.RawValue{Type: bson.Type(v.Type), Value: append([]byte(nil), v.Data...)}
		return encode(bson.D{{Key: "was", Value: was}, {Key: "ok", Value: 1.0}})
	}
	return nil, document.NewError(codeInvalidOptions, "no option found to set, use help:true to see options")
}
