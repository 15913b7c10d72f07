// Package bucket turns measurements of a time series into the bucket documents in which MongoDB keeps them, and back, so that tools
// that copy buckets (mongodump, mongorestore) move time series.
//
// A bucket holds the measurements of one meta and of about the same time as columns:
//
//	{_id: ObjectId, control: {version: 1, min: {...}, max: {...}}, meta: ..., data: {field: {"0": v, "1": v, ...}, ...}}
//
// The columns of version 1 are documents, by the numbers of the measurements; those of version 2 and 3 are binary (subtype 7), compressed.
// Both are read, and version 1 is written.
//
// Unpacking promises never to panic, and to stay within limits of its own, whatever bytes it is given: what is no bucket fails with an
// error that says why. Nothing here knows of stores or of collections.
package bucket
