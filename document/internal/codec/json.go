package codec

import (
	"bytes"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// appendJSON appends a record that holds doc as canonical Extended JSON, or as BSON when that would not come back with the
// same bytes: a NaN with a payload, for example, or text that is not UTF-8.
func appendJSON(dst []byte, doc bsoncore.Document) []byte {
	text, err := bson.MarshalExtJSON(bson.Raw(doc), true, false)
	if err != nil || len(text) == 0 || text[0] != tagJSON {
		return appendPlain(dst, doc)
	}
	back, err := parseJSON(nil, text)
	if err != nil || !bytes.Equal(back, doc) {
		return appendPlain(dst, doc)
	}
	return append(dst, text...)
}

// parseJSON appends the document that text is.
func parseJSON(dst, text []byte) ([]byte, error) {
	var d bson.D
	if err := bson.UnmarshalExtJSON(text, true, &d); err != nil {
		return dst, fmt.Errorf("codec: a record of %d bytes of JSON: %w: %w", len(text), err, ErrCorrupt)
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		return dst, fmt.Errorf("codec: a record of %d bytes of JSON: %w: %w", len(text), err, ErrCorrupt)
	}
	return append(dst, raw...), nil
}
