package query

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// Geo is {Path: {$geoWithin: ...}} or {Path: {$geoIntersects: ...}}.
type Geo struct{ Path string }

// Near is {Path: {$near: ...}}.
type Near struct{ Path string }

func (*Geo) node()  {}
func (*Near) node() {}

func parseGeo(name, op string, v bsoncore.Value) (Node, error) {
	return nil, badValue("%s is not there yet", op)
}
func isNear(doc []byte) bool                                            { return false }
func (p *parser) near(name string, doc bsoncore.Document) (Node, error) { return nil, nil }
func errNearInside() error                                              { return badValue("geo $near must be top-level expr") }
func checkNear(n Node) error                                            { return nil }
