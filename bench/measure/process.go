// Package measure takes the numbers of one cell: wall time, processor time, latencies, bytes through the block layer, peak
// memory, bytes on disk. All of it concerns this process, so that an engine is measured in a process of its own.
//
// What the system does not tell (other systems than Linux) reads as zero.
package measure

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is what the process has used so far.
type Usage struct {
	Wall         time.Time
	User, System time.Duration
	Read         int64 // bytes that the process caused to be read from the storage layer
	Dirtied      int64 // bytes of file pages that it made dirty: stores into mappings count, a page that is dirty already does not
	WriteCalls   int64 // bytes handed over by write calls; stores into mappings are not among them
}

// Now reads the counters.
func Now() Usage {
	var ru syscall.Rusage
	u := Usage{Wall: time.Now()}
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) == nil {
		u.User = time.Duration(ru.Utime.Nano())
		u.System = time.Duration(ru.Stime.Nano())
	}
	for name, n := range fields("/proc/self/io") {
		switch name {
		case "read_bytes":
			u.Read = n
		case "write_bytes":
			u.Dirtied = n
		case "wchar":
			u.WriteCalls = n
		}
	}
	return u
}

// Skip moves the beginning of a measurement on by what was used between two moments that are not to be counted.
func (u Usage) Skip(from, to Usage) Usage {
	u.Wall = u.Wall.Add(to.Wall.Sub(from.Wall))
	u.User += to.User - from.User
	u.System += to.System - from.System
	u.Read += to.Read - from.Read
	u.Dirtied += to.Dirtied - from.Dirtied
	u.WriteCalls += to.WriteCalls - from.WriteCalls
	return u
}

// CPU is the processor time of all threads.
func (u Usage) CPU() time.Duration { return u.User + u.System }

// WrittenSince is how many bytes were written: by calls or by stores into mappings, whichever is more, since neither counter
// knows of everything.
func (u Usage) WrittenSince(before Usage) int64 {
	return max(u.Dirtied-before.Dirtied, u.WriteCalls-before.WriteCalls)
}

// fields reads a file of "name: number" lines, as the kernel writes them.
func fields(name string) map[string]int64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	m := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		key, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			m[key] = n
		}
	}
	return m
}

// Memory is resident memory in bytes: the peak so far, and what is anonymous (neither a file's pages nor shared) now.
func Memory() (peak, anonymous int64) {
	m := fields("/proc/self/status")
	return m["VmHWM"] << 10, m["RssAnon"] << 10
}

// ResetPeak begins a new peak.
func ResetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) } // best effort

// DiskBytes is the space that the files under dir take: allocated blocks, not lengths.
func DiskBytes(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file that was just removed takes nothing
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			total += st.Blocks * 512
		} else {
			total += info.Size()
		}
		return nil
	})
	return total
}

// WaitIdle returns when the process has used less than a tenth of a processor over `quiet`, or when limit has passed.
func WaitIdle(quiet, limit time.Duration) {
	end := time.Now().Add(limit)
	for time.Now().Before(end) {
		before := Now()
		time.Sleep(quiet)
		if Now().CPU()-before.CPU() < quiet/10 {
			return
		}
	}
}
