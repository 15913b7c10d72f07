package mongo

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// parameters is what getParameter and setParameter know.
type parameters struct {
	mu     sync.Mutex
	values map[string]any

	cursorTimeout      atomic.Int64 // as time.Duration
	transactionTimeout atomic.Int64
}

func (p *parameters) init(o *Options) {
	p.cursorTimeout.Store(int64(o.CursorTimeout))
	p.transactionTimeout.Store(int64(o.TransactionTimeout))
	p.values = map[string]any{
		"featureCompatibilityVersion":       bson.D{{Key: "version", Value: "7.0"}},
		"authenticationMechanisms":          bson.A{"SCRAM-SHA-256", "SCRAM-SHA-1", "MONGODB-X509"},
		"enableTestCommands":                o.TestCommands,
		"requireApiVersion":                 false,
		"authSchemaVersion":                 int32(5),
		"logLevel":                          int32(0),
		"quiet":                             false,
		"transactionLifetimeLimitSeconds":   int32(min(o.TransactionTimeout/time.Second, math.MaxInt32)),
		"cursorTimeoutMillis":               o.CursorTimeout.Milliseconds(),
		"ttlMonitorEnabled":                 true,
		"ttlMonitorSleepSecs":               int32(60),
		"notablescan":                       false,
		"localLogicalSessionTimeoutMinutes": int32(sessionTimeout.Minutes()),
	}
}

// readParameter returns what setParameter makes of a value, if it may set the parameter. The log has its level from the start, and says
// what it does; the two that would keep something from clients which is not kept from them here are refused.
func readParameter(name string, v bsoncore.Value) (any, error) {
	switch name {
	case "quiet", "ttlMonitorEnabled":
		return switchOf(name, v)
	case "requireApiVersion", "notablescan":
		on, err := switchOf(name, v)
		if on {
			err = document.NewError(codeNotSupported, "%s is not supported by this server", name)
		}
		return on, err
	case "logLevel":
		if n, isNumber := asInt64(v); isNumber && n >= 0 && n <= 5 {
			return int32(n), nil
		}
		return nil, document.NewError(document.BadValue, "Invalid value for logLevel: %s", v)
	case "transactionLifetimeLimitSeconds", "ttlMonitorSleepSecs":
		n, err := countOf(name, v, 1, math.MaxInt32)
		return int32(n), err
	case "cursorTimeoutMillis":
		return countOf(name, v, 0, math.MaxInt64/int64(time.Millisecond))
	}
	return nil, document.NewError(codeIllegalOperation, "not allowed to change [%s] at runtime", name)
}

// switchOf reads a parameter that is on or off.
func switchOf(name string, v bsoncore.Value) (bool, error) {
	on, err := asFlag(name, v)
	if err != nil {
		err = document.NewError(document.BadValue, "Failed validating %s: Unable to coerce value to boolean type", name)
	}
	return on, err
}

// countOf reads a parameter that is a whole number within bounds.
func countOf(name string, v bsoncore.Value, least, most int64) (int64, error) {
	n, isNumber := asInt64(v)
	if on, isBool := v.BooleanOK(); isBool {
		isNumber = true
		if on {
			n = 1
		}
	}
	switch {
	case !isNumber:
		return 0, document.NewError(document.BadValue, "Failed validating %s: Unable to coerce value to integral type", name)
	case n > most:
		return 0, document.NewError(document.BadValue, "Failed validating %s: Out of bounds coercing to integral value", name)
	case n < least:
		return 0, document.NewError(document.BadValue, "Invalid value for parameter %s: %d is not greater than or equal to %d", name, n, least)
	}
	return n, nil
}

// put sets a parameter, with what it has an effect on. The parameters are locked.
func (p *parameters) put(s *Server, name string, v any) {
	p.values[name] = v
	switch name {
	case "transactionLifetimeLimitSeconds":
		p.transactionTimeout.Store(int64(v.(int32)) * int64(time.Second))
	case "cursorTimeoutMillis":
		p.cursorTimeout.Store(v.(int64) * int64(time.Millisecond))
	case "ttlMonitorEnabled", "ttlMonitorSleepSecs":
		s.store.SetTTL(time.Duration(p.values["ttlMonitorSleepSecs"].(int32))*time.Second, !p.values["ttlMonitorEnabled"].(bool))
	}
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
			out = append(out, bson.E{Key: name, Value: p.values[name]})
		}
	}
	if len(out) == 0 {
		return nil, document.NewError(codeInvalidOptions, "no option found to get")
	}
	return encode(append(out, bson.E{Key: "ok", Value: 1.0}))
}

func truthy(doc bsoncore.Document, name string) bool {
	b, ok := doc.Lookup(name).BooleanOK()
	return ok && b
}

// setParameter sets all that it is told, or nothing, and answers with what the last one was.
func (r *request) setParameter() (bsoncore.Document, error) {
	p := &r.server.params
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	values := map[string]any{}
	for _, e := range elementsOf(r.body)[1:] {
		name := e.Key()
		if generic(name) {
			continue
		}
		if _, known := p.values[name]; !known {
			return nil, document.NewError(codeInvalidOptions, "no option found to set, use help:true to see options: %s", name)
		}
		v, err := readParameter(name, e.Value())
		if err != nil {
			return nil, err
		}
		names, values[name] = append(names, name), v
	}
	if len(names) == 0 {
		return nil, document.NewError(codeInvalidOptions, "no option found to set, use help:true to see options")
	}
	var was any
	for _, name := range names {
		was = p.values[name]
		p.put(r.server, name, values[name])
	}
	return encode(bson.D{{Key: "was", Value: was}, {Key: "ok", Value: 1.0}})
}
