package measure

import (
	"os"
	"strconv"
	"strings"
)

// flushField is the place of "flush requests completed" in a block device's stat file (Documentation/block/stat.rst of Linux).
const flushField = 15

// Flushes is how many times the device under dir was asked so far to make its cache durable. It is the device's own count:
// whatever else runs on the machine is in it, and requests that the system could merge count once. Where the system does not
// tell, ok is false.
func Flushes(dir string) (n int64, ok bool) {
	device, ok := deviceOf(dir)
	if !ok {
		return 0, false
	}
	// Flushes are counted for the whole device: the stat file of a partition shows none.
	stat := "/sys/dev/block/" + device + "/stat"
	if _, err := os.Stat("/sys/dev/block/" + device + "/partition"); err == nil {
		stat = "/sys/dev/block/" + device + "/../stat"
	}
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0, false
	}
	all := strings.Fields(string(text))
	if len(all) <= flushField {
		return 0, false
	}
	n, err = strconv.ParseInt(all[flushField], 10, 64)
	return n, err == nil
}
