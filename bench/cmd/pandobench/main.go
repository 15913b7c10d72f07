// Command pandobench measures Pando beside other engines.
//
//	pandobench run     every engine in a fresh process and directory for each workload, in turns, round after round
//	pandobench report  turns files of numbers into docs/benchmarks.md and its charts
//	pandobench wire    the same with servers that speak MongoDB's protocol
//	pandobench list    the engines and the workloads of this build
//
// The exit code is 1 when a cell failed or answered wrongly, 2 for wrong usage, 130 when it was interrupted.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	var misused misuse
	switch err := command(os.Args[1:]); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case errors.As(err, &misused):
		fmt.Fprintf(os.Stderr, "pandobench: %v (see pandobench --help)\n", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "pandobench:", err)
		if errors.Is(err, errInterrupted) {
			os.Exit(130)
		}
		os.Exit(1)
	}
}

// errUsage is a command line that was not understood; what is wrong with it has been printed already.
var errUsage = errors.New("wrong usage")

// misuse is a command line that was understood and makes no sense.
type misuse struct{ error }

// noArguments refuses what stands behind the flags of a command that takes flags only, and numbers below 0.
func noArguments(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return misuse{fmt.Errorf("%s: %q is no flag", flags.Name(), flags.Arg(0))}
	}
	var err error
	flags.Visit(func(f *flag.Flag) {
		negative := false
		switch v := f.Value.(flag.Getter).Get().(type) {
		case int:
			negative = v < 0
		case time.Duration:
			negative = v < 0
		}
		if negative {
			err = misuse{fmt.Errorf("%s: --%s %s: want 0 or more", flags.Name(), f.Name, f.Value)}
		}
	})
	return err
}

func command(args []string) error {
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, usage)
		return errUsage
	}
	switch args[0] {
	case "run":
		return runCommand(args[1:])
	case "report":
		return reportCommand(args[1:])
	case "wire":
		return wireCommand(args[1:])
	case "list":
		return listCommand(args[1:])
	case "child": // how run starts a process for an engine
		return childCommand(args[1:])
	case "help", "-h", "-help", "--help":
		fmt.Println(usage)
		return nil
	}
	fmt.Fprintf(os.Stderr, "pandobench: %q is no command\n%s\n", args[0], usage)
	return errUsage
}

const usage = `pandobench measures Pando beside other engines, each in a process and a directory of its own, in turns.

usage: pandobench run    [--quick | --size medium|full] [--engines a,b] [--workloads x,y*] [--rounds 5] [--append out.json] ...
       pandobench report in.json... [--out docs] [--notes notes.md] [--details]
       pandobench wire   [--quick] [--rounds 3] [--servers a,b] [--json out.json] ...
       pandobench wire   --report page.md [--notes notes.md] in.json...
       pandobench list

Everything at small scale, in minutes, to see that it works:
       pandobench run --quick
Numbers in pieces: what is interrupted (Ctrl-C) goes on where it was, with the same line again; then the report of them:
       pandobench run --size medium --rounds 5 --append numbers.json
       pandobench report numbers.json --out report

"pandobench run --help" and so on explain the flags.`

// parse reads the flags of a command. Help begins with what the command is for.
func parse(flags *flag.FlagSet, args []string, about string) error {
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "%s\n\n", strings.TrimSpace(about))
		flags.PrintDefaults()
	}
	err := flags.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return errUsage // the package has printed it
	}
	return err
}
