//go:build !slow

package fault

const (
	usualDocumentStorms = 2
	usualStorms         = 4
	usualSectors        = 4  // seeds of sectors that fail now and then
	usualCallStep       = 17 // each call so far apart fails
	usualReadStep       = 41
)
