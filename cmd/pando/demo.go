package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pandodb/pando/examples/data"
	"github.com/spf13/cobra"
)

func newDemoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Show what this program does, on real data",
		Long: `Demo runs the commands of a small tour on data that it carries along, and prints each with its output. It works in a temporary
directory, which it removes; with DIR, absent or empty, it works there and leaves everything for a look.`,
		Example: `  pando demo
  pando demo tour && pando scan tour/db -k flights --limit 3`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.json {
				return usageError{errors.New("demo shows what commands print to people: it does not go with --json")}
			}
			if len(args) == 1 {
				vacant, err := isVacant(args[0])
				if err != nil {
					return err
				}
				if !vacant {
					return fmt.Errorf("%s is not empty: the tour begins in a new directory", args[0])
				}
				return a.tour(cmd, args[0])
			}
			dir, err := os.MkdirTemp("", "pando-demo-")
			if err != nil {
				return err
			}
			return errors.Join(a.tour(cmd, dir), os.RemoveAll(dir))
		},
	}
}

// tourSteps are the commands of the tour, run in its directory: for a shell, with quotes only around what has no white space.
var tourSteps = [...]string{
	"import db debian-packages.jsonl -k packages --key _id",
	"import db flights.csv -k flights --key year,month,day,carrier,flight",
	"keyspaces db",
	"get db coreutils -k packages",
	"scan db -k packages --prefix lib --keys --limit 5",
	"scan db -k flights --prefix 2013/7/ --reverse --limit 2",
	"count db -k flights --prefix 2013/7/",
	"import db flights.csv --collection flights",
	"find db flights '{month:7,carrier:\"UA\"}' --projection '{_id:0,day:1,dest:1,dep_delay:1}' --sort '{dep_delay:-1}' --limit 2",
	"index create db flights '{carrier:1}'",
	"aggregate db flights '[{$group:{_id:\"$carrier\",flights:{$sum:1}}},{$sort:{flights:-1}},{$limit:3}]'",
	"put db greeting hello",
	"backup db backup",
	"delete db greeting",
	"restore backup restored",
	"get restored greeting",
	"export db flights.jsonl.zst -k flights",
	"compact db --zstd",
	"check db",
	"stats db",
}

// tour runs the steps in dir and prints each like a terminal would show it.
func (a *app) tour(cmd *cobra.Command, dir string) (err error) {
	if err := os.CopyFS(dir, data.Files()); err != nil {
		return err
	}
	here, err := os.Getwd()
	if err == nil {
		err = os.Chdir(dir)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Chdir(here)) }()
	fmt.Fprintf(a.out, "$ cd %s\n", dir)
	for _, step := range tourSteps {
		fmt.Fprintf(a.out, "\n$ pando %s\n", step)
		root := newRoot(a)
		root.SetArgs(strings.Fields(strings.ReplaceAll(step, "'", "")))
		if err := errors.Join(root.ExecuteContext(cmd.Context()), a.out.Flush()); err != nil {
			return err
		}
	}
	return nil
}
