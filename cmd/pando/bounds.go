package main

import (
	"bytes"
	"strconv"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

// boundFlags say which part of a keyspace a command works on.
type boundFlags struct {
	cmd              *cobra.Command
	from, to, prefix string
}

func (b *boundFlags) register(cmd *cobra.Command) {
	b.cmd = cmd
	cmd.Flags().StringVar(&b.from, "from", "", "the first `KEY`")
	cmd.Flags().StringVar(&b.to, "to", "", "the `KEY` before which to end")
	cmd.Flags().StringVar(&b.prefix, "prefix", "", "only keys that begin with `P`")
}

// given reports whether any bound is set.
func (b *boundFlags) given() bool {
	return b.cmd.Flags().Changed("from") || b.cmd.Flags().Changed("to") || b.cmd.Flags().Changed("prefix")
}

// bounds returns the range that all bounds allow together; nil is open.
func (b *boundFlags) bounds(h hexFlags) (lo, hi []byte, err error) {
	flags := b.cmd.Flags()
	if flags.Changed("from") {
		if lo, err = h.key(b.from); err != nil {
			return nil, nil, err
		}
	}
	if flags.Changed("to") {
		if hi, err = h.key(b.to); err != nil {
			return nil, nil, err
		}
	}
	if !flags.Changed("prefix") {
		return lo, hi, nil
	}
	prefix, err := h.key(b.prefix)
	if err != nil {
		return nil, nil, err
	}
	if bytes.Compare(prefix, lo) > 0 {
		lo = prefix
	}
	if end := prefixEnd(prefix); end != nil && (hi == nil || bytes.Compare(end, hi) < 0) {
		hi = end
	}
	return lo, hi, nil
}

// prefixEnd returns the key before which the keys that begin with p end; nil: there is none.
func prefixEnd(p []byte) []byte {
	end := bytes.Clone(p)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// limitFlag says how many records to print at the most.
type limitFlag int64

// unlimited is a limit that nobody has set.
const unlimited = limitFlag(-1)

// String is the default in help texts: none, for no limit.
func (l *limitFlag) String() string {
	if *l == unlimited {
		return ""
	}
	return strconv.FormatInt(int64(*l), 10)
}

// Type is the placeholder in help texts.
func (l *limitFlag) Type() string { return "N" }

// Set parses a limit, which is not negative.
func (l *limitFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 63)
	*l = limitFlag(n)
	return err
}

// iterOptions returns the bounds for an iterator.
func (b *boundFlags) iterOptions(h hexFlags, keysOnly bool) (*pando.IterOptions, error) {
	lo, hi, err := b.bounds(h)
	return &pando.IterOptions{Lower: lo, Upper: hi, KeysOnly: keysOnly}, err
}
