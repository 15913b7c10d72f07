// Package kill kills real processes while they write, and finds everything again that they had reported.
package kill

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pandodb/pando"
)

var (
	rounds = flag.Int("rounds", usualRounds, "how many processes to kill")
	slow   = flag.Bool("slow", false, "the slow tests too, as with the build tag of that name")
)

const writers = 4

func TestMain(m *testing.M) {
	if dir := os.Getenv("PANDO_KILL_DIR"); dir != "" {
		os.Exit(child(dir, os.Getenv("PANDO_KILL_PROFILE")))
	}
	for name, run := range children {
		if dir := os.Getenv(name); dir != "" {
			os.Exit(run(dir))
		}
	}
	os.Exit(m.Run())
}

// children are what a process of this program does instead of testing, by the variable of the environment that names its directory.
var children = map[string]func(dir string) int{"PANDO_MEMORY_DIR": loader}

func options(profile string) *pando.Options {
	o := &pando.Options{MemoryBytes: 1 << 20, ValueThreshold: 200}
	if profile == "relaxed" {
		o.Profile = pando.Relaxed
	}
	return o
}

func val(writer, n int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%d:%d,", writer, n), 1+n%100)
}

// child writes until it is killed, and reports each commit behind it.
func child(dir, profile string) int {
	db, err := pando.Open(dir, options(profile))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var mu sync.Mutex
	report := func(writer, n int) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("%d %d\n", writer, n)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			next := 0
			for k := range db.RangeReverse(fmt.Appendf(nil, "%d/", w), fmt.Appendf(nil, "%d0", w)) {
				next, _ = strconv.Atoi(string(k[2:]))
				next++
				break
			}
			for n := next; ; n++ {
				b := db.NewBatch()
				err := errors.Join(b.Put(fmt.Appendf(nil, "%d/%08d", w, n), val(w, n)), b.Put(fmt.Appendf(nil, "x%d/%08d", w, n), val(w, n)), db.Write(b))
				b.Reset()
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				report(w, n)
			}
		})
	}
	go func() {
		for i := 0; ; i++ {
			var err error
			switch i % 3 {
			case 0:
				err = db.Checkpoint(context.Background())
			case 1:
				err = db.Backup(context.Background(), dir+".backup")
			case 2:
				err = db.Compact(context.Background(), pando.CompactOptions{})
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}()
	wg.Wait()
	return 0
}

func TestKill(t *testing.T) {
	if testing.Short() {
		*rounds = min(*rounds, 4)
	}
	for _, profile := range []string{"durable", "relaxed"} {
		t.Run(profile, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "db")
			var last [writers]int
			for w := range last {
				last[w] = -1
			}
			for round := range (*rounds + 1) / 2 {
				killOnce(t, dir, profile, round%4 == 3, &last)
				lookAtBackup(t, dir, round)
				db, err := pando.Open(dir, options(profile))
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				verify(t, db, round, &last)
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("last commits: %v", last)
		})
	}
}

// killOnce starts a process, kills it some time after it has reported a commit, or early, and notes what it reported.
func killOnce(t *testing.T, dir, profile string, early bool, last *[writers]int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PANDO_KILL_DIR="+dir, "PANDO_KILL_PROFILE="+profile)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { cmd.Process.Kill() }
	if early { // while it recovers what the one before has left
		defer time.AfterFunc(time.Duration(rand.IntN(60))*time.Millisecond, kill).Stop()
	}
	reported := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !reported {
			reported = true
			defer time.AfterFunc(time.Duration(20+rand.IntN(400))*time.Millisecond, kill).Stop()
		}
		var w, n int
		if c, _ := fmt.Sscanf(lines.Text(), "%d %d", &w, &n); c == 2 {
			last[w] = max(last[w], n)
		}
	}
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Fatalf("the process said: %s", stderr.String())
	}
	if !reported && !early {
		t.Fatal("the process ended before it had reported anything")
	}
}

// lookAtBackup opens the backup that the process was at work on: it is whole, or says that it is not.
func lookAtBackup(t *testing.T, dir string, round int) {
	db, err := pando.Open(dir+".backup", &pando.Options{ReadOnly: true})
	if errors.Is(err, pando.ErrUnfinished) || errors.Is(err, pando.ErrNotFound) {
		return
	}
	if err != nil {
		t.Fatalf("round %d: backup: %v", round, err)
	}
	verify(t, db, round, &[writers]int{-1, -1, -1, -1})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, db *pando.DB, round int, last *[writers]int) {
	for w := range writers {
		for _, prefix := range []string{"", "x"} {
			n := 0
			for k, v := range db.Prefix(fmt.Appendf(nil, "%s%d/", prefix, w)) {
				if want := fmt.Sprintf("%s%d/%08d", prefix, w, n); string(k) != want || !bytes.Equal(v, val(w, n)) {
					t.Fatalf("round %d: %q with %d bytes where %s belongs", round, k, len(v), want)
				}
				n++
			}
			if db.Err() != nil || n <= last[w] {
				t.Fatalf("round %d, writer %d: %d commits, %v; %d were reported", round, w, n, db.Err(), last[w]+1)
			}
			if prefix == "" {
				last[w] = n - 1
			} else if n-1 != last[w] {
				t.Fatalf("round %d, writer %d: half of a batch", round, w)
			}
		}
	}
	r, err := db.Check(context.Background())
	if err = errors.Join(err, r.Err()); err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
}

// budget is what the loader may use, unless it is told less; it writes many times as much.
const budget = 64 << 20

// loader fills a database, reads it in every way, and prints the most memory that the process ever had.
func loader(dir string) int {
	if err := join(os.Getenv("PANDO_MEMORY_GROUP")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	most := watchMemory()
	budget, err := strconv.Atoi(os.Getenv("PANDO_MEMORY_BUDGET"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := &pando.Options{Profile: pando.Relaxed, MemoryBytes: int64(budget)}
	if os.Getenv("PANDO_MEMORY_UNASKED") != "" {
		o.MemoryBytes = 0
	}
	db, err := pando.Open(dir, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	rng := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, 400)
	var held []*pando.Snapshot
	records := budget / 80
	for i := range records {
		for j := range 50 {
			buf[j*8] = byte(rng.Uint32())
		}
		if err := db.Put(fmt.Appendf(nil, "%016x", rng.Uint64()), buf); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if i%(records/8) == 0 && os.Getenv("PANDO_MEMORY_HELD") != "" {
			held = append(held, db.Snapshot())
		}
	}
	n := 0
	for range db.Range(nil, nil) {
		n++
	}
	for range 50_000 {
		_, _ = db.Get(fmt.Appendf(nil, "%016x", rng.Uint64()))
		it := db.Iter(nil)
		if rng.IntN(50) == 0 {
			it.SeekGE(fmt.Appendf(nil, "%016x", rng.Uint64()))
		}
		it.Close()
	}
	for _, s := range held {
		s.Close()
	}
	if err := db.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(most(), n)
	return 0
}

// watchMemory returns what tells the most anonymous memory in KiB so far. Mapped files belong to the system's page cache.
func watchMemory() (most func() int) {
	var peak atomic.Int64
	go func() {
		for ; ; time.Sleep(time.Millisecond) {
			status, err := os.ReadFile("/proc/self/status")
			if err != nil {
				return // most is 0 then, which fails the test
			}
			_, rest, _ := strings.Cut(string(status), "RssAnon:")
			var kib int64
			if _, err := fmt.Sscan(rest, &kib); err == nil {
				peak.Store(max(peak.Load(), kib))
			}
		}
	}()
	return func() int { return int(peak.Load()) }
}

// TestMemory loads about six times the budget and looks at the anonymous memory, without and with snapshots that are held.
func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" || testing.Short() {
		t.Skip("reads /proc, and takes seconds")
	}
	t.Run("plain", func(t *testing.T) { measure(t, usualBudget, 2*usualBudget) })
	t.Run("held", func(t *testing.T) {
		if !*slow {
			t.Skip("-slow")
		}
		measure(t, budget, budget+96<<20, "PANDO_MEMORY_HELD=yes") // eight snapshots, each moved once: a good part of it is the Go heap's
	})
	// Where the system kills who takes more, page cache included, that is taken back in time.
	t.Run("limited", func(t *testing.T) {
		if !*slow {
			t.Skip("-slow")
		}
		measure(t, budget, budget+64<<20, "PANDO_MEMORY_GROUP="+memoryGroup(t, budget+80<<20))
	})
	// Who is told no budget finds out what there is, which in a container is less than the machine has.
	t.Run("unasked", func(t *testing.T) {
		if !*slow {
			t.Skip("-slow")
		}
		const container = 192 << 20
		measure(t, budget, container, "PANDO_MEMORY_UNASKED=yes", "PANDO_MEMORY_GROUP="+memoryGroup(t, container))
	})
}

// measure has a loader use at most so many bytes of anonymous memory.
func measure(t *testing.T, budget, most int, more ...string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "PANDO_MEMORY_DIR="+filepath.Join(t.TempDir(), "db"), fmt.Sprint("PANDO_MEMORY_BUDGET=", budget)), more...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var kib, n int
	if _, err := fmt.Sscan(string(out), &kib, &n); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	t.Logf("anonymous memory: %d MiB, %d records", kib>>10, n)
	if kib == 0 || kib<<10 > most {
		t.Errorf("anonymous memory: %d MiB, want no more than %d", kib>>10, most>>20)
	}
}
