package measure

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// tick is the unit in which Linux tells the processor time of a process: USER_HZ is 100 everywhere.
const tick = 10 * time.Millisecond

// CPUOf is the processor time of all threads of a running process, user and system.
func CPUOf(pid int) (user, system time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The second field is the program's name in parentheses, and may contain anything.
	_, rest, ok := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const utime, stime = 11, 12
	if !ok || len(fields) <= stime {
		return 0, 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	var u, s int64
	if _, err := fmt.Sscan(fields[utime]+" "+fields[stime], &u, &s); err != nil {
		return 0, 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return time.Duration(u) * tick, time.Duration(s) * tick, nil
}

// PeakOf is the peak resident memory of a running process, in bytes.
func PeakOf(pid int) int64 { return fields(fmt.Sprintf("/proc/%d/status", pid))["VmHWM"] << 10 }
