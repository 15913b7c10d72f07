package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/cmd/pando/shelltext"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/internal/clock"
)

// session is a shell at work: what it is connected to, and what it is in the middle of.
type session struct {
	store    *document.Store
	database string
	printer  documentPrinter
	page     int              // documents that are shown at a time; 0: all
	cursor   *document.Cursor // the rest of the last answer; nil: none
}

// run carries out a statement and prints what comes of it. done says that the shell is to end.
func (s *session) run(ctx context.Context, text string) (done bool, err error) {
	statement, err := shelltext.Parse(text, clock.System().Now())
	if err != nil {
		return false, err
	}
	switch {
	case len(statement.Words) > 0:
		return s.command(ctx, statement.Words)
	case len(statement.Calls) == 0:
		return false, nil
	}
	s.forget()
	s.printer.pretty = false
	first, rest := statement.Calls[0], statement.Calls[1:]
	args := arguments{first.Name, first.Args}
	if statement.Collection == "" {
		return false, s.onDatabase(ctx, args, rest)
	}
	return false, s.onCollection(ctx, s.open(statement.Collection), args, rest)
}

// command carries out a command of words.
func (s *session) command(ctx context.Context, words []string) (done bool, err error) {
	a := s.printer.a
	switch words[0] {
	case "exit", "quit":
		return true, nil
	case "help", "?":
		_, err = a.out.WriteString(shellHelp)
		return false, err
	case "db":
		return false, a.print(s.database, "%s\n", s.database)
	case "it":
		if s.cursor == nil {
			return false, errors.New("there is no answer to go on with")
		}
		return false, s.show(ctx, s.cursor)
	case "use":
		if len(words) != 2 {
			return false, errors.New("use wants the name of a database")
		}
		s.database = words[1]
		return false, nil
	case "show":
		if len(words) == 2 {
			return false, s.list(ctx, words[1])
		}
		return false, errors.New("show wants dbs or collections")
	}
	return false, fmt.Errorf("there is no %q: see help", strings.Join(words, " "))
}

// list prints names.
func (s *session) list(ctx context.Context, what string) error {
	var names []string
	var err error
	switch what {
	case "dbs", "databases":
		names, err = s.store.Databases(ctx)
	case "collections", "tables":
		names, err = s.collections(ctx)
	default:
		return fmt.Errorf("show %s: there are dbs and collections to show", what)
	}
	for _, name := range names {
		if printing := s.printer.a.print(name, "%s\n", plain(name)); printing != nil {
			return printing
		}
	}
	return err
}

// collections lists the collections and views of the current database.
func (s *session) collections(ctx context.Context) ([]string, error) {
	list, err := s.store.Database(s.database).Collections(ctx)
	names := make([]string, 0, len(list))
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names, err
}

// show prints what a cursor gives: all of it, or a page.
func (s *session) show(ctx context.Context, c *document.Cursor) error {
	s.cursor = nil
	for n := 0; c.Next(ctx); n++ {
		if err := s.printer.print(c.Current()); err != nil {
			return errors.Join(err, c.Close())
		}
		if s.page > 0 && n+1 == s.page {
			s.cursor = c
			_, err := fmt.Fprintln(s.printer.a.out, `type "it" for more`)
			return err
		}
	}
	return errors.Join(c.Err(), c.Close())
}

// onDatabase calls a method of the database.
func (s *session) onDatabase(ctx context.Context, args arguments, rest []shelltext.Call) error {
	db := s.store.Database(s.database)
	if args.name != "aggregate" && len(rest) > 0 {
		return fmt.Errorf("db.%s has no method %s", args.name, rest[0].Name)
	}
	most := map[string]int{"getName": 0, "getCollectionNames": 0, "createCollection": 2, "dropDatabase": 0, "aggregate": manyArguments}
	n, known := most[args.name]
	if !known {
		return fmt.Errorf("db has no method %s: see help", args.name)
	}
	if err := args.atMost(n); err != nil {
		return err
	}
	switch args.name {
	case "getName":
		return s.printer.a.print(s.database, "%s\n", s.database)
	case "getCollectionNames":
		return s.list(ctx, "collections")
	case "createCollection":
		name, err := args.text(0)
		if err != nil {
			return err
		}
		return db.Create(ctx, name, args.document(1))
	case "dropDatabase":
		return db.Drop(ctx)
	}
	pipeline, err := args.pipeline(0)
	if err != nil {
		return err
	}
	if err := s.modifiers(rest, "pretty", "toArray"); err != nil {
		return err
	}
	c, err := db.OpenAggregate(ctx, pipeline, nil)
	if err != nil {
		return err
	}
	return s.show(ctx, c)
}

// modifiers takes in calls that only say how to print.
func (s *session) modifiers(calls []shelltext.Call, known ...string) error {
	for _, c := range calls {
		found := false
		for _, name := range known {
			found = found || c.Name == name
		}
		if !found {
			return fmt.Errorf("there is no method %s here: see help", c.Name)
		}
		s.printer.pretty = s.printer.pretty || c.Name == "pretty"
	}
	return nil
}

// arguments are those of one call, as Extended JSON.
type arguments struct {
	name   string
	values []string
}

// wrong is the error of an argument.
func (a arguments) wrong(i int, want string) error {
	return fmt.Errorf("%s: argument %d is to be %s", a.name, i+1, want)
}

// atMost refuses more arguments than a method takes.
func (a arguments) atMost(n int) error {
	if len(a.values) > n {
		return fmt.Errorf("%s takes %s at most, not %d", a.name, countOf(int64(n), "argument"), len(a.values))
	}
	return nil
}

// hint returns an argument that names an index.
func (a arguments) hint(i int) (any, error) {
	v, err := a.value(i)
	if err != nil {
		return nil, err
	}
	if h := hintOf(v); h != nil {
		return h, nil
	}
	return nil, a.wrong(i, "the name of an index, or its keys")
}

// document returns an argument for where a document is asked for; nil when it is not given or null.
func (a arguments) document(i int) any {
	if i >= len(a.values) || a.values[i] == "null" || a.values[i] == `{"$undefined":true}` {
		return nil
	}
	return document.JSON(a.values[i])
}

// required is document for one that has to be given.
func (a arguments) required(i int) (any, error) {
	doc := a.document(i)
	if doc == nil || !strings.HasPrefix(a.values[i], "{") {
		return nil, a.wrong(i, "a document")
	}
	return doc, nil
}

// value returns an argument as BSON.
func (a arguments) value(i int) (bson.RawValue, error) {
	if i >= len(a.values) {
		return bson.RawValue{}, a.wrong(i, "given")
	}
	var holder struct {
		V bson.RawValue `bson:"v"`
	}
	if err := bson.UnmarshalExtJSON([]byte(`{"v":`+a.values[i]+`}`), false, &holder); err != nil {
		return bson.RawValue{}, fmt.Errorf("%s: argument %d: %w", a.name, i+1, err)
	}
	return holder.V, nil
}

// text returns an argument that is a string.
func (a arguments) text(i int) (string, error) {
	v, err := a.value(i)
	if err != nil {
		return "", err
	}
	text, ok := v.StringValueOK()
	if !ok {
		return "", a.wrong(i, "a string")
	}
	return text, nil
}

// number returns an argument that is an integer.
func (a arguments) number(i int) (int64, error) {
	if i < len(a.values) {
		if n, err := strconv.ParseInt(a.values[i], 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, a.wrong(i, "a whole number")
}

// documents returns an argument that is an array of documents.
func (a arguments) documents(i int) ([]bson.Raw, error) {
	v, err := a.value(i)
	if err != nil {
		return nil, err
	}
	array, ok := v.ArrayOK()
	if !ok {
		return nil, a.wrong(i, "an array of documents")
	}
	values, err := array.Values()
	docs := make([]bson.Raw, 0, len(values))
	for _, v := range values {
		doc, ok := v.DocumentOK()
		if !ok {
			return nil, a.wrong(i, "an array of documents")
		}
		docs = append(docs, doc)
	}
	return docs, err
}

// pipeline returns an argument that is an array of stages, or several that are stages. A document is an update or one stage.
func (a arguments) pipeline(i int) (any, error) {
	if i >= len(a.values) {
		return []bson.Raw{}, nil
	}
	if !strings.HasPrefix(a.values[i], "{") {
		if err := a.atMost(i + 1); err != nil {
			return nil, err
		}
	} else {
		a.values = append(append([]string(nil), a.values[:i]...), "["+strings.Join(a.values[i:], ",")+"]")
	}
	return a.documents(i)
}
