package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/pandodb/pando"
	"github.com/spf13/cobra"
)

// reading opens a database beside other readers, for the time that fn takes. It works on what a crash left.
func (a *app) reading(dir string, fn func(db *pando.DB) error) error {
	return a.using(dir, pando.Options{ReadOnly: true}, fn)
}

// readingKeyspace is reading for those who need one keyspace.
func (a *app) readingKeyspace(dir string, ks keyspaceFlag, fn func(k *pando.Keyspace) error) error {
	return a.reading(dir, func(db *pando.DB) error {
		k, err := ks.existing(db)
		if err != nil {
			return err
		}
		return fn(k)
	})
}

// using opens a database for the time that fn takes. When it returns without an error, everything is on stable storage.
func (a *app) using(dir string, o pando.Options, fn func(db *pando.DB) error) (err error) {
	a.complete(&o)
	db, err := pando.Open(dir, &o)
	if err != nil {
		return err
	}
	defer func() {
		if closing := db.Close(); closing != nil {
			err = errors.Join(err, fmt.Errorf("close %s: %w", dir, closing))
		}
	}()
	return fn(db)
}

// keepingChanges are the options of commands that open a database for writing, and are not those of a writer: nothing is forgotten of what the
// log holds for the changes command, and for change streams.
func keepingChanges() pando.Options {
	return pando.Options{MustExist: true, KeepChanges: math.MaxInt64}
}

// complete fills in the options that belong to every command.
func (a *app) complete(o *pando.Options) {
	o.MemoryBytes = int64(a.memory)
	if a.chatty {
		o.Logger = slog.New(slog.NewTextHandler(a.err, nil))
	}
}

// writeFlags are the flags of commands that write.
type writeFlags struct {
	profile profileFlag
	keep    sizeFlag
}

func (w *writeFlags) register(cmd *cobra.Command) {
	cmd.Flags().Var(&w.profile, "profile", "what a committed batch survives: durable (power cuts) or relaxed (killed processes)")
	cmd.Flags().Var(&w.keep, "keep-changes", "keep `SIZE` bytes of log for the changes command")
}

// options returns the flags as options; mustExist says that no database is to be made.
func (w *writeFlags) options(mustExist bool) pando.Options {
	return pando.Options{Profile: pando.Profile(w.profile), KeepChanges: int64(w.keep), MustExist: mustExist}
}

// profileFlag is a profile on the command line.
type profileFlag pando.Profile

// String is the default in help texts.
func (p *profileFlag) String() string { return pando.Profile(*p).String() }

// Type is the placeholder in help texts.
func (p *profileFlag) Type() string { return "PROFILE" }

// Set parses a profile.
func (p *profileFlag) Set(text string) error {
	for _, known := range []pando.Profile{pando.Durable, pando.Relaxed} {
		if known.String() == text {
			*p = profileFlag(known)
			return nil
		}
	}
	return fmt.Errorf("want durable or relaxed")
}

// keyspaceFlag picks a keyspace; empty is the default one.
type keyspaceFlag string

func (k *keyspaceFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP((*string)(k), "keyspace", "k", "", "`NAME` of the keyspace (default: the default one)")
}

// existing returns the keyspace, or pando.ErrNotFound.
func (k keyspaceFlag) existing(db *pando.DB) (*pando.Keyspace, error) {
	if k == "" {
		return db.Default(), nil
	}
	list, err := db.Keyspaces()
	if err != nil {
		return nil, err
	}
	for _, info := range list {
		if info.Name == string(k) {
			return db.Keyspace(string(k), nil)
		}
	}
	return nil, fmt.Errorf("keyspace %q: %w", string(k), pando.ErrNotFound)
}

// made returns the keyspace, and creates it where there is none. One that is there with another layout is refused.
func (k keyspaceFlag) made(db *pando.DB, layout layoutFlag) (*pando.Keyspace, error) {
	if k == "" {
		k = keyspaceFlag(db.Default().Name())
	}
	return db.Keyspace(string(k), layout.options)
}

// layoutFlag is the layout of a keyspace, if it is made.
type layoutFlag struct{ options *pando.KeyspaceOptions }

func (l *layoutFlag) register(cmd *cobra.Command) {
	cmd.Flags().Var(l, "layout", "of a keyspace that is made: tree, or hash, which is for access by key and keeps no order (default: tree)")
}

// String is the default in help texts.
func (l *layoutFlag) String() string {
	if l.options == nil {
		return ""
	}
	return l.options.Layout.String()
}

// Type is the placeholder in help texts.
func (l *layoutFlag) Type() string { return "LAYOUT" }

// Set parses a layout.
func (l *layoutFlag) Set(text string) error {
	for _, known := range []pando.Layout{pando.Tree, pando.Hash} {
		if known.String() == text {
			l.options = &pando.KeyspaceOptions{Layout: known}
			return nil
		}
	}
	return errors.New("want tree or hash")
}
