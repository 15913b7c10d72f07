//go:build slow

package fault

const (
	usualDocumentStorms = 40
	usualStorms         = 100
	usualSectors        = 20
	usualCallStep       = 7
	usualReadStep       = 23
)
