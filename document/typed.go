package document

import (
	"context"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TypedCollection is a collection of Go structs: T with bson tags. Everything that a Collection can do and this cannot is in
// Collection.
type TypedCollection[T any] struct{ *Collection }

// Typed returns a collection as one of Go structs.
func Typed[T any](c *Collection) TypedCollection[T] { return TypedCollection[T]{c} }

// In returns the collection as a transaction sees it.
func (t TypedCollection[T]) In(tx *Tx) TypedCollection[T] {
	return TypedCollection[T]{tx.In(t.Collection)}
}

// Insert stores a value and returns its _id.
func (t TypedCollection[T]) Insert(ctx context.Context, v *T) (bson.RawValue, error) {
	return t.Collection.Insert(ctx, v)
}

// InsertMany stores values with one commit: all or none.
func (t TypedCollection[T]) InsertMany(ctx context.Context, values []T) (int, error) {
	return t.Collection.InsertMany(ctx, values, nil)
}

// Get returns the value with this _id, or ErrNotFound.
func (t TypedCollection[T]) Get(ctx context.Context, id any) (*T, error) {
	raw, err := t.Collection.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return decode[T](raw)
}

// Find returns the values that match a filter, for a range loop.
func (t TypedCollection[T]) Find(ctx context.Context, filter any, o *FindOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for raw, err := range t.Collection.Find(ctx, filter, o) {
			var v *T
			if err == nil {
				v, err = decode[T](raw)
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// FindOne returns the first value that matches, or ErrNotFound.
func (t TypedCollection[T]) FindOne(ctx context.Context, filter any, o *FindOptions) (*T, error) {
	raw, err := t.Collection.FindOne(ctx, filter, o)
	if err != nil {
		return nil, err
	}
	return decode[T](raw)
}

// Replace puts v in the place of the first document that matches.
func (t TypedCollection[T]) Replace(ctx context.Context, filter any, v *T, o *UpdateOptions) (*UpdateResult, error) {
	return t.Collection.Replace(ctx, filter, v, o)
}

func decode[T any](raw bson.Raw) (*T, error) {
	v := new(T)
	if err := bson.Unmarshal(raw, v); err != nil {
		return nil, NewError(BadValue, "a document does not fit into a %T: %v", *v, err)
	}
	return v, nil
}
