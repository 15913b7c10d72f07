package race

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// device is a file system whose calls fail now and then, or take their time.
type device struct {
	rng  *rand.Rand
	base *memfs.FS
	fs   *faultfs.FS

	mu    sync.Mutex
	trace []string
}

func newDevice(seed uint64) *device {
	d := &device{rng: rand.New(rand.NewPCG(seed, 21))}
	d.plug(memfs.New())
	return d
}

// plug puts another file system under the faults.
func (d *device) plug(base *memfs.FS) {
	d.base, d.fs = base, faultfs.New(base)
	if d.rng.IntN(2) == 0 { // else it is full without a warning
		base.TellSpace()
	}
}

func (d *device) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trace = append(d.trace, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// last returns the newest notes.
func (d *device) last(n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.trace[max(0, len(d.trace)-n):], "\n")
}

// strike lets faults come and go until it is told to stop.
func (d *device) strike(stop <-chan struct{}) {
	for {
		d.begin()
		if d.pause(stop, 40) {
			return
		}
		d.calm()
		if d.pause(stop, 20) {
			return
		}
	}
}

// pause waits some milliseconds. It reports whether there is an end meanwhile.
func (d *device) pause(stop <-chan struct{}, most int) bool {
	select {
	case <-stop:
		return true
	case <-time.After(time.Duration(d.rng.IntN(most)) * time.Millisecond):
		return false
	}
}

// begin draws a fault, which is in force until calm.
func (d *device) begin() {
	names := []string{"", "", "*.seg", "*.wal", "ROOT*", "0*", "[!0]*"}
	rule := faultfs.Rule{Name: names[d.rng.IntN(len(names))], Skip: d.rng.IntN(1 << d.rng.IntN(8)), Times: []int{1, 2, 10, -1}[d.rng.IntN(4)]}
	one := func(ops ...faultfs.Op) { rule.Ops = faultfs.Ops(ops[d.rng.IntN(len(ops))]) }
	switch d.rng.IntN(9) {
	case 0:
		rule.Name = "*.seg"
		one(faultfs.OpReadAt, faultfs.OpOpen, faultfs.OpSize)
	case 1:
		one(faultfs.OpReadAt, faultfs.OpSize, faultfs.OpStat, faultfs.OpList, faultfs.OpOpen)
	case 2:
		room := d.base.Used() + d.rng.Int64N(1<<(10+d.rng.IntN(11)))
		d.note("full at %d", room)
		d.base.SetCapacity(room)
		return
	case 3:
		rule.Err = vfs.ErrNoSpace
		one(faultfs.OpCreate, faultfs.OpLink, faultfs.OpMkdirAll, faultfs.OpWriteAt, faultfs.OpAllocate, faultfs.OpRename, faultfs.OpTruncate)
	case 4:
		rule.Fault, rule.Ops = faultfs.ShortWrite, faultfs.Ops(faultfs.OpWriteAt)
		if d.rng.IntN(2) == 0 {
			rule.Err = vfs.ErrNoSpace
		}
	case 5:
		if one(faultfs.OpSync, faultfs.OpSyncDir); rule.Ops == faultfs.Ops(faultfs.OpSync) {
			rule.Fault = []faultfs.Fault{faultfs.Fail, faultfs.DropSync, faultfs.DropSyncOnce}[d.rng.IntN(3)]
		}
	case 6:
		least := time.Duration(d.rng.IntN(4)) * time.Millisecond
		d.note("slow: %v", least)
		d.fs.OnCall(func(faultfs.Op, string) error { time.Sleep(least); return nil })
		return
	default:
		one(faultfs.OpCreate, faultfs.OpRemove, faultfs.OpRemove, faultfs.OpRename, faultfs.OpLink, faultfs.OpMkdirAll, faultfs.OpWriteAt,
			faultfs.OpTruncate, faultfs.OpAllocate, faultfs.OpOpenReadWrite, faultfs.OpMap, faultfs.OpUnmap, faultfs.OpClose, faultfs.OpLock)
	}
	d.note("%+v", rule)
	d.fs.Set(rule)
}

// calm ends the fault.
func (d *device) calm() {
	d.fs.Set()
	d.fs.OnCall(nil)
	d.base.SetCapacity(0)
	d.note("calm")
}

// isOfDevice reports whether an error says that the device is its reason.
func isOfDevice(err error) bool {
	return errors.Is(err, faultfs.ErrInjected) || errors.Is(err, pando.ErrDiskFull) || errors.Is(err, pando.ErrFailed)
}

// saysDevice reports whether the text of an error says that the device is its reason.
func saysDevice(text string) bool {
	for _, err := range []error{faultfs.ErrInjected, pando.ErrDiskFull, pando.ErrFailed} {
		if strings.Contains(text, err.Error()) {
			return true
		}
	}
	return false
}
