package server

import "github.com/pandodb/pando/internal/offheap"

// Beside its caches a server needs memory for the messages of its clients, for its answers, and for what queries sort and group. Each of these
// has a bound that is far below what machines have. Where there is little, as in a small container, it is a share instead: the system
// kills who takes more than there is.
const (
	besideShare  = 8        // of the memory of the machine, or of the container
	leastBeside  = 64 << 20 // a message has up to 48 MB
	mostMessages = 512 << 20
	mostQueries  = 500 << 20
)

// messageBytes is how much the messages that are being carried out may take, and as much the answers.
func messageBytes() int64 { return bound(offheap.AvailableMemory(), mostMessages) }

// queryBytes is how much all queries together may take.
func queryBytes() int64 { return bound(offheap.AvailableMemory(), mostQueries) }

// bound is most, or its share of what is available where that is less; 0: that is not known.
func bound(available, most int64) int64 {
	if available == 0 {
		return most
	}
	return min(max(available/besideShare, leastBeside), most)
}
