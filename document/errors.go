package document

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Error is an error with one of MongoDB's codes; errors.Is finds the code in it. Its fields are what a driver looks at:
//
//	Code       Code
//	Message    string
//	Labels     []string          // such as TransientTransactionError
//	KeyPattern bsoncore.Document // with DuplicateKey: the index's keys
//	KeyValue   bsoncore.Document // with DuplicateKey: the values that are there already
//	Collation  bsoncore.Document // with DuplicateKey: the index's collation, if any
//	Info       bsoncore.Document // why a validator refused a document
//	Cause      error             // what errors.Is and errors.As find behind it; may be nil
type Error = mongoerror.Error

// Code is one of MongoDB's error codes; it is an error, for errors.Is.
type Code = mongoerror.Code

// The codes that programs look for most. Error.Code may be any other.
const (
	BadValue                  = mongoerror.BadValue
	FailedToParse             = mongoerror.FailedToParse
	TypeMismatch              = mongoerror.TypeMismatch
	NamespaceNotFound         = mongoerror.NamespaceNotFound
	NamespaceExists           = mongoerror.NamespaceExists
	IndexNotFound             = mongoerror.IndexNotFound
	ImmutableField            = mongoerror.ImmutableField
	WriteConflict             = mongoerror.WriteConflict
	DocumentValidationFailure = mongoerror.DocumentValidationFailure
	BSONObjectTooLarge        = mongoerror.BSONObjectTooLarge
	DuplicateKey              = mongoerror.DuplicateKey
)

// ErrNotFound means that there is no such document.
var ErrNotFound = pando.ErrNotFound

// ErrClosed means that the store or the cursor was closed.
var ErrClosed = pando.ErrClosed

// CodeOf returns the code of an error, and 0 when it has none.
func CodeOf(err error) Code { return mongoerror.CodeOf(err) }

// NewError returns an error with a code, for those who build on this package.
func NewError(code Code, format string, args ...any) *Error {
	return mongoerror.New(code, format, args...)
}

// TypeName returns the name that a type has in MongoDB's messages, and for $type.
func TypeName(t bson.Type) string { return mongoerror.TypeName(bsoncore.Type(t)) }

// conflict is what a transaction gets that somebody else's commit has overtaken.
func conflict(cause error) error {
	return &Error{
		Code: mongoerror.WriteConflict, Message: "another commit changed what this one had read or written; run it again",
		Labels: []string{TransientTransactionError}, Cause: cause,
	}
}

// TransientTransactionError is the label of errors after which the whole transaction may be run again.
const TransientTransactionError = "TransientTransactionError"

// isConflict reports whether err says that a commit was overtaken.
func isConflict(err error) bool {
	return errors.Is(err, pando.ErrConflict) || errors.Is(err, errSchemaChanged)
}

// errSchemaChanged means that indexes were made or dropped, or a collection dropped, while a write was on its way.
var errSchemaChanged = errors.New("the collection changed meanwhile")

// errDropped means that the collection was dropped while a write was on its way.
var errDropped = errors.New("the collection was dropped meanwhile")
