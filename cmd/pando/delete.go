package main

import (
	"errors"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newDeleteCommand(a *app) *cobra.Command {
	var (
		ks    keyspaceFlag
		write writeFlags
		hex   hexFlags
		part  boundFlags
	)
	cmd := &cobra.Command{
		Use:   "delete DIR [KEY]",
		Short: "Remove a key, or a range of keys",
		Long: `Delete removes a key; that it is not there is no error. With bounds instead of a key it removes every key inside them, at
once and whatever their number.`,
		Example: `  pando delete mydb hello
  pando delete mydb --prefix 2013/12/ -k flights`,
		Args: between(1, 2),
	}
	ks.register(cmd)
	write.register(cmd)
	cmd.Flags().BoolVar(&hex.keys, "hex", false, "keys are read as hex")
	part.register(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if part.given() == (len(args) == 2) {
			return usageError{errors.New("want either a KEY or bounds")}
		}
		var key []byte
		lo, hi, err := part.bounds(hex)
		if err == nil && len(args) == 2 {
			key, err = hex.key(args[1])
		}
		if err != nil {
			return err
		}
		return a.using(args[0], write.options(true), func(db *pando.DB) error {
			k, err := ks.existing(db)
			if err != nil {
				return err
			}
			if part.given() {
				return k.DeleteRange(lo, hi)
			}
			return k.Delete(key)
		})
	}
	return cmd
}
