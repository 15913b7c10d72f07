// Command pando works on Pando databases from a terminal or a script: it puts and gets, scans, imports and exports, queries
// documents, checks, backs up and restores; and it serves a database to MongoDB's drivers.
//
// It promises that a command that ends, in whatever way, leaves a database that opens: what it had committed is there, a batch
// wholly or not at all. Results go to the standard output, everything else to the standard error; the exit code tells what
// happened (0 done, 1 failed, 2 wrong usage, 3 not found, 4 damage found, 141 nobody reads the output any more). Commands that
// only read take a shared lock, write nothing, and work on what a crash left. None takes memory that grows with the data.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // the names of time zones, for systems that have none: most containers, and Windows

	"github.com/pandodb/pando/internal/clock"
)

func main() {
	os.Exit(process())
}

// together is how long signals count as one. Who ends a program once often sends several: timeout sends them to the process and to its group,
// a terminal that closes and its shell each send one, and npm passes on what the terminal has sent to all.
const together = 250 * time.Millisecond

// process runs the command line of the process and returns its exit code.
func process() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// A reader that has gone is an error like any other: a command that prints for it ends in order, and removes what it has made
	// for itself; a server whose log it read goes on.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endings()...)
	go func() {
		<-signals
		cancel()
		_ = clock.System().Sleep(context.Background(), together)
		signal.Stop(signals) // a second Ctrl-C ends a command that does not heed the first
	}()
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// endings lists the signals that tell a process to end. That its terminal is closed is one, unless it was started to outlive it, as with nohup.
func endings() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}
