package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/pflag"
)

// applyConfig sets the flags that a configuration file names and the command line does not. The file is TOML: the names are those of the
// flags, and the values are written as on the command line. except are flags that a file may not set. Errors name the line.
func applyConfig(flags *pflag.FlagSet, text []byte, except ...string) error {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	var whole map[string]any
	if err := toml.Unmarshal(text, &whole); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			return fmt.Errorf("line %d: %w", line, err)
		}
		return err
	}
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		keys := e.Key()
		if !keys.Next() {
			continue
		}
		key := keys.Node()
		name, line := string(key.Data), p.Shape(key.Raw).Start.Line
		f := flags.Lookup(name)
		if f == nil || slices.Contains(except, name) || !keys.IsLast() || e.Kind != unstable.KeyValue {
			return fmt.Errorf("line %d: there is no setting %q", line, name)
		}
		if err := wantKind(f, e.Value()); err != nil {
			return fmt.Errorf("line %d: %s: %w", line, name, err)
		}
		if f.Changed {
			continue
		}
		if err := flags.Set(name, string(e.Value().Data)); err != nil {
			return fmt.Errorf("line %d: %w", line, plainFlagError(err))
		}
	}
	return p.Error()
}

// wantKind checks that the value is of the kind that a flag takes.
func wantKind(f *pflag.Flag, value *unstable.Node) error {
	want, kinds := "a string", []unstable.Kind{unstable.String}
	switch f.Value.Type() {
	case "bool":
		want, kinds = "true or false", []unstable.Kind{unstable.Bool}
	case "int":
		want, kinds = "a whole number", []unstable.Kind{unstable.Integer}
	case "SIZE":
		want, kinds = `a size such as "64MiB", or bytes`, []unstable.Kind{unstable.String, unstable.Integer}
	}
	if slices.Contains(kinds, value.Kind) {
		return nil
	}
	return fmt.Errorf("want %s", want)
}
