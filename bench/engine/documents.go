package engine

import (
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// User is the made up document of the documents workloads, as a Go program has it before it stores it.
type User struct {
	ID      int64
	Name    string
	Email   string // unique
	Age     int32
	City    string
	Created int64 // milliseconds since 1970
	Score   float64
	Active  bool
	Tags    []string
}

// AppendBSON appends the user as the document that is stored of it.
func (u *User) AppendBSON(dst []byte) []byte {
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = bsoncore.AppendInt64Element(dst, "_id", u.ID)
	dst = bsoncore.AppendStringElement(dst, "name", u.Name)
	dst = bsoncore.AppendStringElement(dst, "email", u.Email)
	dst = bsoncore.AppendInt32Element(dst, "age", u.Age)
	dst = bsoncore.AppendStringElement(dst, "city", u.City)
	dst = bsoncore.AppendDateTimeElement(dst, "created", u.Created)
	dst = bsoncore.AppendDoubleElement(dst, "score", u.Score)
	dst = bsoncore.AppendBooleanElement(dst, "active", u.Active)
	tags, dst := bsoncore.AppendArrayElementStart(dst, "tags")
	for i, t := range u.Tags {
		dst = bsoncore.AppendStringElement(dst, strconv.Itoa(i), t)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, tags) // which fails for wrong offsets only
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// Table is rows of real data: a value is nil (not known), int32, string or time.Time.
type Table struct {
	Columns []string
	Rows    [][]any
}

// Documents is what the benchmark asks of an engine that stores documents or rows with secondary indexes. Numbered collections
// of users have a unique index of the email and another one of the city. It is safe for concurrent use.
type Documents interface {
	// Create makes collection n.
	Create(n int) error
	// Insert stores users as one commit.
	Insert(n int, users []User) error
	// ByID and ByEmail fetch one whole document and tell of it what has been asked for by the other.
	ByID(n int, id int64) (email string, err error)
	ByEmail(n int, email string) (id int64, err error)
	// ByCity fetches whole documents, limit at most, and counts them.
	ByCity(n int, city string, limit int) (int, error)
	// LoadFlights stores a table with an index of its column tailnum.
	LoadFlights(t *Table) error
	// LateFlights counts, without an index, those with an arr_delay above a number from an origin.
	LateFlights(origin string, delay int) (int, error)
	// Settle returns when background work is done.
	Settle() error
	// Compact makes the files as small as the engine can.
	Compact() error
	// Close closes the engine. What was acknowledged stays.
	Close() error
}
