// Command pandobench measures Pando beside other engines.
//
//	pandobench run [--quick] [--size medium] [--engines a,b] [--workloads x,y] [--rounds 5] [--class C] [--dir D] [--json out.json]
//	pandobench report in.json... [--out docs] [--notes notes.md] [--details]
//	pandobench list
//
// run gives every engine a fresh process and a fresh directory for each workload, takes the engines in turn within a round,
// and repeats the rounds. The exit code is 1 when a cell failed or answered wrongly, 2 for wrong usage.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pandobench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 0 {
		usage()
		os.Exit(2)
	}
	switch args[0] {
	case "run":
		return runCommand(args[1:])
	case "report":
		return reportCommand(args[1:])
	case "list":
		return listCommand()
	case "child":
		return childCommand(args[1:])
	}
	usage()
	os.Exit(2)
	return nil
}

func usage() {
	fmt.Fprintln(os.Stderr, `usage: pandobench run    [--quick | --size medium|full] [--engines a,b] [--workloads x,y] [--rounds 5]
                         [--class none|relaxed|durable] [--records N] [--large N] [--growth N] [--documents N] [--data D] [--memory MB] [--for 15m] [--dir D]
                         [--json out.json]
       pandobench report in.json... [--out docs] [--notes notes.md] [--details]
       pandobench list`)
}
