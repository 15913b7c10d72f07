//go:build slow

package fault

const (
	usualOtherStorms = 40 // of documents, clients and crowds, each
	usualStorms      = 100
	usualSectors     = 20
	usualWalks       = 6
	usualWords       = 8000
	usualFullings    = 5
	usualWordRounds  = 8
	usualCallStep    = 7
	usualSyncStep    = 7
	usualReadStep    = 23
)
