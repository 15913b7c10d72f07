package expression

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Redact is the $redact stage: the expression says for the document, and for each document in it that it descends to, whether
// it is kept ($$KEEP), removed ($$PRUNE) or kept with its embedded documents looked at ($$DESCEND). The expression must have been
// parsed with Options.Redact. keep is false when the whole document is removed. The result may be root itself.
func (e *Expression) Redact(root bsoncore.Document, variables []Variable) (result bsoncore.Document, keep bool, err error) {
	if e.current < 0 {
		return nil, false, mongoerror.New(mongoerror.InternalError, "an expression that was not parsed for $redact")
	}
	st := newState(root, e)
	defer st.release()
	e.bind(st, variables)
	v, err := e.redact(st, st.root)
	if err != nil || v.Type == 0 {
		return nil, false, shorten(err)
	}
	if st.used > 0 {
		v.Data = append([]byte(nil), v.Data...)
	}
	return v.Data, true, nil
}

// redact returns what is left of a document; missing when nothing is.
func (e *Expression) redact(st *state, v bsoncore.Value) (bsoncore.Value, error) {
	st.variables[e.current] = v
	m := st.mark()
	decision, err := e.root.eval(st)
	if err != nil {
		return bsoncore.Value{}, err
	}
	is := func(what string) bool { return isString(decision) && string(stringOf(decision)) == what }
	keep, prune := is("keep"), is("prune")
	if !keep && !prune && !is("descend") {
		return bsoncore.Value{}, mongoerror.New(17053,
			"$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned %s", brief(decision))
	}
	st.compact(m, bsoncore.Value{}) // or many small documents would use up what an evaluation may build
	switch {
	case keep:
		return v, nil
	case prune:
		return bsoncore.Value{}, nil
	}
	var names []string
	var values []bsoncore.Value
	it := elementsOf(v.Data)
	for {
		key, element, ok := it.next()
		if !ok {
			return st.document(names, values)
		}
		if element, err = e.descend(st, element); err != nil {
			return bsoncore.Value{}, err
		}
		names, values = append(names, string(key)), append(values, element)
	}
}

// descend redacts the documents in a value.
func (e *Expression) descend(st *state, v bsoncore.Value) (bsoncore.Value, error) {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		return e.redact(st, v)
	case bsoncore.TypeArray:
		var kept []bsoncore.Value
		it := elementsOf(v.Data)
		for {
			_, element, ok := it.next()
			if !ok {
				return st.array(kept)
			}
			element, err := e.descend(st, element)
			if err != nil {
				return bsoncore.Value{}, err
			}
			if element.Type != 0 {
				kept = append(kept, element)
			}
		}
	}
	return v, nil
}
