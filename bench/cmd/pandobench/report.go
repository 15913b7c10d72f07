package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/pandodb/pando/bench/engines"
	"github.com/pandodb/pando/bench/report"
	"github.com/pandodb/pando/bench/workload"
)

const aboutReport = `
pandobench report in.json... [flags]: makes a page of tables and charts out of files of numbers. Files with the same workloads at the
same sizes are joined: those of the later ones are further rounds.
`

func reportCommand(args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	out := flags.String("out", "docs", "directory for benchmarks.md and benchmarks/*.svg")
	notes := flags.String("notes", "", "file of Markdown to put below the cells that are behind")
	details := flags.Bool("details", false, "write every number of every engine into benchmarks/details.md too")
	var inputs []string
	for len(args) > 0 { // inputs may stand before and after the flags
		if err := parse(flags, args, aboutReport); err != nil {
			return err
		}
		if args = flags.Args(); len(args) > 0 {
			inputs, args = append(inputs, args[0]), args[1:]
		}
	}
	if len(inputs) == 0 {
		return misuse{errors.New("report: want a file of numbers, or several of different workloads")}
	}
	runs, err := report.LoadAll(inputs)
	if err != nil {
		return err
	}
	result, err := report.Merge(runs...)
	if err != nil {
		return err
	}
	o := report.Options{Dir: *out, Details: *details}
	if *notes != "" {
		text, err := os.ReadFile(*notes)
		if err != nil {
			return err
		}
		o.Notes = string(text)
	}
	return report.Write(result, o)
}

const aboutList = `
pandobench list: prints the engines and the workloads of this build.
`

func listCommand(args []string) error {
	flags := flag.NewFlagSet("list", flag.ContinueOnError)
	if err := parse(flags, args, aboutList); err != nil {
		return err
	}
	if err := noArguments(flags); err != nil {
		return err
	}
	fmt.Println("engines:")
	for _, d := range engines.All() {
		fmt.Printf("  %-12s %-38s %s\n", d.Name, d.Version, d.Kind)
	}
	fmt.Println("workloads:")
	for _, w := range workload.All() {
		fmt.Printf("  %-18s %-8s %s\n", w.Name, w.Class, w.About)
	}
	return nil
}
