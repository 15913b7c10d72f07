package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/cmd/pando/shelltext"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/internal/clock"
)

// noTTL keeps commands from deleting expired documents on the side: that is for programs that run.
const noTTL = -1

// noPlaceToSpill is MongoDB's code, QueryExceededMemoryLimitNoDiskUseAllowed, of a query that would have to spill and must not.
const noPlaceToSpill document.Code = 292

// readingStore opens the documents of a database beside other readers. What a query spills goes to the system's directory for
// temporary files; where nothing can be made there, only a query that spills fails.
func (a *app) readingStore(dir string, fn func(s *document.Store) error) (err error) {
	scratch, unmade := os.MkdirTemp("", "pando-query-")
	a.scratch = scratch // empty if it is not made: there is no space then
	defer func() { err = errors.Join(err, a.discardScratch()) }()
	err = a.usingStore(dir, document.Options{Storage: pando.Options{ReadOnly: true, MustExist: true}, ScratchDir: scratch}, fn)
	if unmade != nil && document.CodeOf(err) == noPlaceToSpill {
		err = fmt.Errorf("%w; there is no place for what it would spill: %w", err, unmade)
	}
	return err
}

// discardScratch removes what readingStore has made.
func (a *app) discardScratch() error {
	if a.scratch == "" {
		return nil
	}
	return os.RemoveAll(a.scratch)
}

// writingStore opens the documents of a database for itself.
func (a *app) writingStore(dir string, storage pando.Options, fn func(s *document.Store) error) error {
	return a.usingStore(dir, document.Options{Storage: storage, History: storage.KeepChanges}, fn)
}

func (a *app) usingStore(dir string, o document.Options, fn func(s *document.Store) error) (err error) {
	a.complete(&o.Storage)
	o.Logger, o.TTLInterval = o.Storage.Logger, noTTL
	s, err := document.Open(dir, &o)
	if err != nil {
		return err
	}
	defer func() {
		if closing := s.Close(); closing != nil {
			err = errors.Join(err, fmt.Errorf("close %s: %w", dir, closing))
		}
	}()
	return fn(s)
}

// databaseFlag picks a database of collections.
type databaseFlag string

func (d *databaseFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "database", document.DefaultDatabase, "`NAME` of the database in which the collection is")
}

// existing returns a collection or view that is there, or pando.ErrNotFound.
func (d databaseFlag) existing(ctx context.Context, s *document.Store, name string) (*document.Collection, error) {
	db := s.Database(string(d))
	list, err := db.Collections(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if c.Name == name {
			return db.Lookup(name), nil
		}
	}
	return nil, fmt.Errorf("collection %s.%s: %w", string(d), name, pando.ErrNotFound)
}

// reading opens a collection or view that is there, beside other readers.
func (d databaseFlag) reading(ctx context.Context, a *app, dir, name string, fn func(c *document.Collection) error) error {
	return a.readingStore(dir, d.finding(ctx, name, fn))
}

// writing is reading for those who write, into it or beside it. Where it is not there nothing is written, though the store of a writer
// begins with a catalogue: so a reader looks first.
func (d databaseFlag) writing(ctx context.Context, a *app, dir, name string, storage pando.Options, fn func(c *document.Collection) error) error {
	err := d.reading(ctx, a, dir, name, func(*document.Collection) error { return nil })
	if err != nil {
		return err
	}
	return a.writingStore(dir, storage, d.finding(ctx, name, fn))
}

// finding returns what calls fn with a collection or view of a store.
func (d databaseFlag) finding(ctx context.Context, name string, fn func(c *document.Collection) error) func(s *document.Store) error {
	return func(s *document.Store) error {
		c, err := d.existing(ctx, s, name)
		if err != nil {
			return err
		}
		return fn(c)
	}
}

// jsonArgument reads a document or an array of the command line, which may be written as in the shell; empty is nil.
func jsonArgument(what, text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	extended, err := shelltext.Value(text, clock.System().Now())
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", what, err)}
	}
	if c := extended[0]; c != '{' && c != '[' {
		return nil, usageError{fmt.Errorf("%s: %s is no document", what, extended)}
	}
	return document.JSON(extended), nil
}

// documentArgument is jsonArgument for what cannot be an array.
func documentArgument(what, text string) (any, error) {
	doc, err := jsonArgument(what, text)
	if isArray(doc) {
		return nil, usageError{fmt.Errorf("%s: an array is no document", what)}
	}
	return doc, err
}

// isArray reports whether an argument is an array, not a document.
func isArray(arg any) bool {
	text, _ := arg.(document.JSON)
	return strings.HasPrefix(string(text), "[")
}

// hintArgument reads what names an index: its name, or its keys as a document.
func hintArgument(text string) (any, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return documentArgument("--hint", text)
	}
	if text == "" {
		return nil, nil
	}
	return text, nil
}

// documentPrinter prints documents as Extended JSON, each on its line.
type documentPrinter struct {
	a         *app
	canonical bool
	pretty    bool
}

func (p *documentPrinter) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.canonical, "canonical", false, "print canonical Extended JSON, which keeps the type of every number")
	cmd.Flags().BoolVar(&p.pretty, "pretty", false, "print documents over several lines")
}

// print prints a document.
func (p *documentPrinter) print(doc any) error {
	text, err := extended(doc, p.canonical, p.pretty && !p.a.json)
	if err != nil {
		return fmt.Errorf("print a document: %w", err)
	}
	_, err = p.a.out.Write(append(text, '\n'))
	return err
}

// printAll prints what a cursor gives, and closes it.
func (p *documentPrinter) printAll(ctx context.Context, c *document.Cursor) error {
	defer c.Close()
	for c.Next(ctx) {
		if err := p.print(c.Current()); err != nil {
			return err
		}
	}
	return c.Err()
}
