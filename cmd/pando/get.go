package main

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

func newGetCommand(a *app) *cobra.Command {
	var (
		ks    keyspaceFlag
		hexes hexFlags
		raw   bool
	)
	cmd := &cobra.Command{
		Use:   "get DIR KEY",
		Short: "Print the value of a key",
		Long:  `Get prints the value of a key and a newline. The exit code is 3 when there is no such key.`,
		Example: `  pando get mydb hello
  pando get mydb logo -k images --raw > logo.png`,
		Args: exactly(2),
	}
	ks.register(cmd)
	hexes.register(cmd)
	cmd.Flags().BoolVar(&raw, "raw", false, "print the bytes of the value and nothing else")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		key, err := hexes.key(args[1])
		if err != nil {
			return err
		}
		return a.readingKeyspace(args[0], ks, func(k *pando.Keyspace) error {
			var err error
			if !a.json {
				err = a.printValue(k, key, hexes.values, raw)
			} else {
				err = a.printPair(k, key, hexes)
			}
			if err != nil {
				return fmt.Errorf("key %q: %w", args[1], err)
			}
			return nil
		})
	}
	return cmd
}

func (a *app) printPair(k *pando.Keyspace, key []byte, hexes hexFlags) error {
	value, err := k.Get(key)
	if err != nil {
		return err
	}
	return a.pairs(hexes).print(key, value)
}

// printValue prints a value piece by piece: it may be long.
func (a *app) printValue(k *pando.Keyspace, key []byte, asHex, raw bool) error {
	value, err := k.OpenValue(key)
	if err != nil {
		return err
	}
	defer value.Close()
	var w io.Writer = a.out
	if asHex {
		w = hex.NewEncoder(a.out)
	}
	if _, err := io.Copy(w, value); err != nil || raw {
		return err
	}
	return a.out.WriteByte('\n')
}
