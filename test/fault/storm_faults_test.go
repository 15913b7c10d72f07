package fault

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
)

// stormFaults are the kinds of faults, each as often as its weight says. A kind completes a rule, or sets up its fault itself and returns
// false.
var stormFaults = []struct {
	name   string
	weight int
	begin  func(s *stormDevice, rule *faultfs.Rule) bool
}{
	{"sectors", 3, func(s *stormDevice, _ *faultfs.Rule) bool {
		s.beside.Store(true)
		spread, salt := uint64(2+s.rng.IntN(1<<s.rng.IntN(9))), s.rng.Uint64()
		s.sectors.fails(func(name string, from, to int64) bool {
			return inSegment(name) && badSector(name, from, to, spread, salt)
		})
		return false
	}},
	{"segments cannot be opened", 1, func(s *stormDevice, rule *faultfs.Rule) bool {
		s.beside.Store(true)
		rule.Ops, rule.Name, rule.Times = faultfs.Ops(faultfs.OpOpen), "*.seg", -1
		return true
	}},
	{"reads", 1, func(s *stormDevice, rule *faultfs.Rule) bool {
		s.beside.Store(true)
		rule.Ops = oneOf(s.rng, faultfs.OpReadAt, faultfs.OpSize, faultfs.OpStat, faultfs.OpList, faultfs.OpOpen)
		return true
	}},
	{"full", 1, func(s *stormDevice, _ *faultfs.Rule) bool {
		s.base.SetCapacity(s.base.Used() + s.rng.Int64N(1<<(10+s.rng.IntN(11))))
		return false
	}},
	{"no space", 1, func(s *stormDevice, rule *faultfs.Rule) bool {
		rule.Err = vfs.ErrNoSpace
		rule.Ops = oneOf(s.rng, faultfs.OpCreate, faultfs.OpLink, faultfs.OpMkdirAll, faultfs.OpWriteAt, faultfs.OpAllocate, faultfs.OpRename,
			faultfs.OpTruncate)
		return true
	}},
	{"short writes", 1, func(s *stormDevice, rule *faultfs.Rule) bool {
		rule.Fault, rule.Ops = faultfs.ShortWrite, faultfs.Ops(faultfs.OpWriteAt)
		if s.rng.IntN(2) == 0 {
			rule.Err = vfs.ErrNoSpace
		}
		return true
	}},
	{"syncs", 1, func(s *stormDevice, rule *faultfs.Rule) bool {
		if rule.Ops = oneOf(s.rng, faultfs.OpSync, faultfs.OpSyncDir); rule.Ops == faultfs.Ops(faultfs.OpSync) {
			rule.Fault = []faultfs.Fault{faultfs.Fail, faultfs.DropSync, faultfs.DropSyncOnce}[s.rng.IntN(3)]
		}
		return true
	}},
	{"calls", 3, func(s *stormDevice, rule *faultfs.Rule) bool {
		rule.Ops = oneOf(s.rng, faultfs.OpCreate, faultfs.OpRemove, faultfs.OpRemove, faultfs.OpRename, faultfs.OpLink, faultfs.OpMkdirAll,
			faultfs.OpWriteAt, faultfs.OpTruncate, faultfs.OpAllocate, faultfs.OpOpenReadWrite, faultfs.OpMap, faultfs.OpUnmap, faultfs.OpClose,
			faultfs.OpLock)
		return true
	}},
	{"none", 1, func(*stormDevice, *faultfs.Rule) bool { return false }},
}

func oneOf(rng *rand.Rand, ops ...faultfs.Op) faultfs.OpSet {
	return faultfs.Ops(ops[rng.IntN(len(ops))])
}

// begin draws a fault, which is in force until calm.
func (s *stormDevice) begin() {
	sum := 0
	for _, f := range stormFaults {
		sum += f.weight
	}
	n := s.rng.IntN(sum)
	for _, f := range stormFaults {
		if n -= f.weight; n >= 0 {
			continue
		}
		names := []string{"", "*.seg", "*.wal", "ROOT*", "0*", "[!0]*"}
		rule := faultfs.Rule{Name: names[s.rng.IntN(len(names))], Skip: s.rng.IntN(1 + 1<<s.rng.IntN(9)), Times: []int{1, 2, 10, -1}[s.rng.IntN(4)]}
		s.fault, s.since, s.troubled = f.name, time.Now(), true
		if f.begin(s, &rule) {
			s.note("%q begins: %+v", f.name, rule)
			s.fs.Set(rule)
			return
		}
		s.note("%q begins, %d bytes are in use", f.name, s.base.Used())
		return
	}
}

// calm ends the fault.
func (s *stormDevice) calm() {
	s.fs.Set()
	s.sectors.fails(nil)
	s.base.SetCapacity(0)
	s.note("%q is over after %v", s.fault, time.Since(s.since))
	s.fault = ""
}

// judge looks at an error, and reports whether there is one. It has to say what it comes from.
func (s *stormDevice) judge(what string, err error) bool {
	s.t.Helper()
	if err == nil {
		return false
	}
	s.note("%s: %v", what, err)
	switch {
	case errors.Is(err, pando.ErrFailed):
		if s.failed = true; !s.troubled {
			s.fatalf("%s: failed without a fault: %v", what, err)
		}
		return true
	case isOfFault(err):
	case errors.Is(err, vfs.ErrNoSpace):
		s.fatalf("%s: a full disk is not called that: %v", what, err)
	case errors.Is(err, pando.ErrCorrupt) && s.damages():
		return true
	default:
		s.fatalf("%s: an error that says nothing of its cause: %v", what, err)
	}
	if s.fault == "" {
		s.fatalf("%s: an error without a fault: %v", what, err)
	}
	return true
}

// isOfFault reports whether an error says that it comes from a fault.
func isOfFault(err error) bool {
	return errors.Is(err, faultfs.ErrInjected) || errors.Is(err, errDevice) || errors.Is(err, pando.ErrDiskFull)
}

// foundNoRoom reports whether a write was refused for want of room: nothing of it is there.
func foundNoRoom(err error) bool {
	return errors.Is(err, pando.ErrDiskFull) && !errors.Is(err, pando.ErrFailed)
}
