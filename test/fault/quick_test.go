//go:build !slow

package fault

const (
	usualOtherStorms = 1 // of documents, clients and crowds, each
	usualStorms      = 4
	usualSectors     = 4  // seeds of sectors that fail now and then
	usualCallStep    = 17 // each call so far apart fails
	usualReadStep    = 41
)
