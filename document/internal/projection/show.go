package projection

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// Messages show what the user wrote, cut at some length.

func showElement(name string, v bsoncore.Value) string { return name + ": " + shortened(v.String()) }

func showDocument(doc bsoncore.Document) string { return shortened(doc.String()) }

func shortened(s string) string {
	const limit = 300
	if len(s) > limit {
		return s[:limit] + "..."
	}
	return s
}
