package query

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

type schema struct{}

func parseSchema(doc bsoncore.Document) (*schema, error) {
	return nil, badValue("$jsonSchema is not there yet")
}
func (s *schema) fields(add func(string)) bool { return true }

type schemaMatcher struct{ *schema }

func (s *schemaMatcher) match(o object, _ *int) (bool, error) { return false, nil }
