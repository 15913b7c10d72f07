//go:build linux

// Package device tries what the simulated file system says of full disks and devices that die on the file systems of Linux. It makes them in
// files, and mounts them, for which it needs root, loop devices and mkfs; so it runs only where it is asked to:
//
//	go test ./test/device -filesystems ext4,xfs,btrfs -rounds 20
package device

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pandodb/pando"
)

var (
	filesystems = flag.String("filesystems", "", "comma-separated names of file systems to try, as mkfs has them")
	rounds      = flag.Int("rounds", 5, "how often a device dies, or is full")
)

// Each is tried with a database that checkpoints often, and has values apart.
func options(profile pando.Profile) *pando.Options {
	return &pando.Options{Profile: profile, MemoryBytes: 1 << 20, ValueThreshold: 200}
}

// volume is a mounted file system in a file.
type volume struct {
	image, dir string
}

// each runs a test on each file system that was asked for, but for those that cannot do what it needs.
func each(t *testing.T, without []string, test func(t *testing.T, v *volume)) {
	if *filesystems == "" {
		t.Skip("it mounts file systems, and is to be asked for: see -filesystems")
	}
	for _, name := range strings.Split(*filesystems, ",") {
		if slices.Contains(without, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			v := &volume{filepath.Join(root, "image"), filepath.Join(root, "mounted")}
			image, err := os.Create(v.image)
			must(t, err)
			must(t, image.Truncate(320<<20)) // the least that XFS takes
			must(t, image.Close())
			must(t, os.Mkdir(v.dir, 0o755))
			run(t, "mkfs."+name, "-q", v.image)
			v.mount(t)
			t.Cleanup(func() { v.unmount(t) })
			test(t, v)
		})
	}
}

func (v *volume) mount(t *testing.T)   { run(t, "mount", "-o", "loop", v.image, v.dir) }
func (v *volume) unmount(t *testing.T) { run(t, "umount", v.dir) }
func (v *volume) database() string     { return filepath.Join(v.dir, "db") }

// die takes the device away: nothing that was not synced is written any more, and each call is an error, until the next mount. Before that
// all that can be read again is forgotten, so that reads have to ask the device.
func (v *volume) die(t *testing.T) {
	t.Helper()
	must(t, os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
	dir, err := os.Open(v.dir)
	must(t, err)
	defer dir.Close()
	const (
		shutdown   = 0x8004587d // FS_IOC_SHUTDOWN
		noLogFlush = 2
	)
	must(t, unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, noLogFlush))
}

func run(t *testing.T, command string, arguments ...string) {
	t.Helper()
	if said, err := exec.Command(command, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", command, arguments, err, said)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// whole checks that all of a database verifies.
func whole(t *testing.T, db *pando.DB) {
	t.Helper()
	report, err := db.Check(t.Context())
	must(t, err)
	for _, d := range report.Damage {
		t.Error(d.Err)
	}
}
