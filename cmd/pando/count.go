package main

import (
	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newCountCommand(a *app) *cobra.Command {
	var (
		ks   keyspaceFlag
		hex  hexFlags
		part boundFlags
	)
	cmd := &cobra.Command{
		Use:   "count DIR",
		Short: "Print the number of records",
		Long:  `Count prints how many records there are, or how many lie inside bounds. It reads hardly any of them.`,
		Example: `  pando count mydb
  pando count mydb -k flights --prefix 2013/7/`,
		Args: exactly(1),
	}
	ks.register(cmd)
	cmd.Flags().BoolVar(&hex.keys, "hex", false, "keys are read as hex")
	part.register(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		lo, hi, err := part.bounds(hex)
		if err != nil {
			return err
		}
		return a.readingKeyspace(args[0], ks, func(k *pando.Keyspace) error {
			n, err := k.Count(lo, hi)
			if err != nil {
				return err
			}
			return a.print(map[string]int64{"count": n}, "%d\n", n)
		})
	}
	return cmd
}
