//go:build !slow

package fault

const (
	usualOtherStorms = 1 // of documents, clients and crowds, each
	usualStorms      = 2
	usualSectors     = 2    // seeds of sectors that fail now and then
	usualWalks       = 3    // seeds of walks where reads fail
	usualWords       = 6000 // records of keyspaces that have dictionaries
	usualFullings    = 3    // times that a disk gets full
	usualWordRounds  = 5    // compactions with dictionaries
	usualCallStep    = 41   // each call so far apart fails
	usualSyncStep    = 11
	usualReadStep    = 97
)
