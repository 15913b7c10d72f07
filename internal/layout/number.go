package layout

import "fmt"

// Number says in the catalogue, and in the options of a keyspace, which layout it has. The numbers are on disk: never change them.
type Number uint8

const (
	Tree Number = iota
	Flex        // which nobody makes yet
	Hash
)

// String returns the name of the layout, as the command line takes it.
func (n Number) String() string {
	switch n {
	case Tree:
		return "tree"
	case Flex:
		return "flex"
	case Hash:
		return "hash"
	}
	return fmt.Sprintf("layout %d", uint8(n))
}
