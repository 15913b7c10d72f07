// Package mongoerror is the one error type of the document layer: MongoDB's error codes and names, with what drivers look at
// beside them. It promises that every error that a caller of package document can provoke has the code that MongoDB gives it.
// Errors of the storage underneath are not of this type: they pass through as they are.
package mongoerror

import (
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Error is an error with a code of MongoDB's.
type Error struct {
	Code       Code
	Message    string
	Labels     []string          // error labels, such as TransientTransactionError
	KeyPattern bsoncore.Document // DuplicateKey: the index's key pattern
	KeyValue   bsoncore.Document // DuplicateKey: the values that are there already
	Collation  bsoncore.Document // DuplicateKey: the index's collation, if any
	Info       bsoncore.Document // errInfo, as a failed validation has it
	Cause      error             // what errors.Is and errors.As find behind it; may be nil
}

// New returns an error; the message is formatted as by fmt.Sprintf.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// StageNotAnObject is the error of a pipeline with something that is no document.
func StageNotAnObject() *Error {
	return New(TypeMismatch, "Each element of the 'pipeline' array must be an object")
}

// StageOfManyFields is the error of a pipeline with a document of no field, or of several.
func StageOfManyFields() *Error {
	return New(40323, "A pipeline stage specification object must contain exactly one field.")
}

// Error returns the message and the code's name.
func (e *Error) Error() string { return fmt.Sprintf("%s (%s, %d)", e.Message, e.Code, int32(e.Code)) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, Code) true for an error of that code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Prefix puts text before the message of err, if it is an *Error; others stay as they are.
func Prefix(err error, text string) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	prefixed := *e
	prefixed.Message = text + e.Message
	return &prefixed
}

// CodeOf returns the code of err, and 0 when it has none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
