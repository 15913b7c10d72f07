// Package root keeps the one thing in a database that is overwritten: the file ROOT, whose two slots say by turns where the
// newest catalogue lies and from where on the log counts.
//
// It promises that after a crash at any moment, and after damage to either slot, Open finds the newest slot that was stored
// completely; that no flipped bit goes unnoticed; and that a file of something else, or of a newer version, is told apart from a
// damaged one. It never writes to the slot in force.
//
// Failures: ErrNotDatabase, *VersionError, *corrupt.Error when neither slot verifies, ErrFailed for every Store after a sync has
// failed, else errors of the file system.
//
// Cost: Open is one read of 8 KiB; Store is one write of 4 KiB and one sync. Nothing here is on the path of reads or writes.
//
// The package also encodes the catalogue, the blob to which a slot points. Both formats are written down in
// docs/format/root.md.
package root
