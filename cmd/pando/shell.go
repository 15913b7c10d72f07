package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/reeflective/readline"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pandodb/pando/cmd/pando/shelltext"
	"github.com/pandodb/pando/document"
)

// shellPage is how many documents the shell shows at a time on a terminal.
const shellPage = 20

// historyVariable is the environment variable that names the history file; empty is none.
const historyVariable = "PANDO_HISTORY"

// maxStatement bounds a statement, over several lines too.
const maxStatement = 32 << 20

// byteOrderMark begins files of some editors.
const byteOrderMark = "\ufeff"

func newShellCommand(a *app) *cobra.Command {
	var (
		database databaseFlag
		write    writeFlags
		readOnly bool
		evaluate []string
	)
	cmd := &cobra.Command{
		Use:   "shell DIR",
		Short: "Work on collections by hand",
		Long: `Shell reads statements such as db.flights.find({carrier: "UA"}).limit(3) and carries them out on a database, which it creates
where there is none. On a terminal it has a history and completes commands, collections, fields and operators with the Tab key. A
statement may take several lines, and goes on while a bracket is open. When the standard input or output is no terminal, or a dumb
one (TERM), or with --eval, it runs the statements and ends with the first that fails.

The history is kept in pando/history in the user's directory for configuration; PANDO_HISTORY names another file, or none when it
is empty. "help" lists what there is.`,
		Example: `  pando shell mydb
  pando shell mydb --eval 'db.flights.countDocuments({carrier: "UA"})'
  echo 'show collections' | pando shell mydb --read-only`,
		Args: exactly(1),
	}
	database.register(cmd)
	write.register(cmd)
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "open the database beside other readers; nothing can be written")
	cmd.Flags().StringArrayVar(&evaluate, "eval", nil, "run this `STATEMENT` and end; may be given several times")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		work := func(store *document.Store) error {
			s := &session{store: store, database: string(database), printer: documentPrinter{a: a}}
			defer s.forget()
			if f, ok := a.in.(*os.File); ok && len(evaluate) == 0 && term.IsTerminal(int(f.Fd())) && answersEditor() {
				return s.interactive(cmd.Context())
			}
			if len(evaluate) > 0 {
				return s.script(cmd.Context(), strings.NewReader(strings.Join(evaluate, "\n")))
			}
			in := interruptible(cmd.Context(), a.in)
			defer in.Close()
			return s.script(cmd.Context(), answered{in, a.out})
		}
		if readOnly {
			return a.readingStore(args[0], work)
		}
		return a.writingStore(args[0], write.options(false), work)
	}
	return cmd
}

// answersEditor reports whether the standard output is a terminal that tells the line editor where its cursor stands. It asks before each line,
// and waits for the answer for ever, with a keyboard on which Ctrl-C and Ctrl-D do nothing.
func answersEditor() bool {
	return term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb"
}

// answered is an input that gives nothing more before all answers to what it gave are out: a program at the other end may be waiting for them.
type answered struct {
	io.Reader
	out *bufio.Writer
}

// Read writes out what was printed, and reads on.
func (a answered) Read(p []byte) (int, error) {
	if err := a.out.Flush(); err != nil {
		return 0, err
	}
	return a.Reader.Read(p)
}

// script runs statements until one fails.
func (s *session) script(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxStatement)
	var text strings.Builder
	var extent shelltext.Extent
	number, first := 0, 0
	for lines.Scan() {
		if number++; text.Len() == 0 {
			first = number
		}
		line := lines.Text() + "\n"
		if number == 1 {
			line = strings.TrimPrefix(line, byteOrderMark)
		}
		text.WriteString(line)
		if text.Len() > maxStatement {
			return tooLong(first)
		}
		if extent.Add(line); extent.Open() {
			continue
		}
		done, err := s.run(ctx, text.String())
		if err != nil {
			return fmt.Errorf("line %d: %w", first, err)
		}
		if done {
			return nil
		}
		text.Reset()
		extent = shelltext.Extent{}
	}
	if text.Len() == 0 {
		first = number + 1
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return tooLong(first)
	case err != nil:
		return err
	}
	if strings.TrimSpace(text.String()) == "" {
		return nil
	}
	_, err := s.run(ctx, text.String())
	if err != nil {
		err = fmt.Errorf("line %d: %w", first, err)
	}
	return err
}

// tooLong is the error of a statement that would take too much memory.
func tooLong(line int) error {
	return fmt.Errorf("line %d: the statement is longer than %d bytes", line, maxStatement)
}

// interactive reads statements from a terminal. An error is printed; Ctrl-C ends the statement that runs, Ctrl-D the shell.
func (s *session) interactive(ctx context.Context) error {
	a := s.printer.a
	ctx = context.WithoutCancel(ctx) // Ctrl-C is for the statement, not for the shell
	s.page = shellPage
	w, err := s.watchSignals()
	if err != nil {
		return err
	}
	defer w.stop()
	rl := s.lineEditor(ctx)
	if err := openHistory(rl); err != nil {
		fmt.Fprintf(a.err, "pando: the history is not kept: %v\n", err)
	}
	fmt.Fprintf(a.out, "Pando shell. \"help\" lists what there is, Tab completes, Ctrl-D ends.\n")
	for {
		if err := a.out.Flush(); err != nil {
			return err
		}
		line, err := rl.Readline()
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		running, end := w.begin(ctx)
		done, err := s.run(running, line)
		if err != nil {
			fmt.Fprintln(a.err, message(running, "pando shell", err))
		}
		if end() || done {
			return nil
		}
	}
}

// lineEditor returns what reads lines from the terminal.
func (s *session) lineEditor(ctx context.Context) *readline.Shell {
	rl := readline.NewShell()
	rl.Prompt.Primary(func() string { return s.database + "> " })
	rl.Prompt.Secondary(func() string { return "... " })
	rl.AcceptMultiline = func(line []rune) bool { return !shelltext.Open(string(line)) }
	rl.Completer = func(line []rune, cursor int) readline.Completions { return s.offer(ctx, string(line[:cursor])) }
	return rl
}

// offer returns the completions of what stands before the cursor. The line editor takes all of it up to the last space for what
// is completed.
func (s *session) offer(ctx context.Context, before string) readline.Completions {
	word, list := s.complete(ctx, before)
	begun := before[strings.LastIndexAny(before, " \t\n")+1:]
	c := readline.CompleteValues(list...).Prefix(strings.TrimSuffix(begun, word))
	c.PREFIX = begun
	return c
}

// openHistory gives the line editor the history file.
func openHistory(rl *readline.Shell) error {
	name, set := os.LookupEnv(historyVariable)
	if !set {
		dir, err := os.UserConfigDir()
		if err != nil {
			return err
		}
		name = filepath.Join(dir, "pando", "history")
	}
	if name == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o600) // what is typed may be private
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	source, err := readline.NewHistoryFromFile(name)
	if err != nil {
		return err
	}
	rl.History.Add("pando", source)
	return nil
}

// shellHelp is what "help" prints.
const shellHelp = `show dbs | show collections        databases | collections of this one
use NAME                           work on another database
db.C.find(FILTER, FIELDS)          then .sort() .skip() .limit() .hint() .collation() .count() .explain() .pretty()
db.C.findOne(FILTER, FIELDS)       the first one, over several lines
db.C.aggregate([STAGES])           then .explain() .pretty()
db.C.countDocuments(FILTER)        also .estimatedDocumentCount() .distinct(FIELD, FILTER)
db.C.insertOne(DOC)                also .insertMany([DOCS])
db.C.updateOne(FILTER, UPDATE, OPTIONS)    also .updateMany() .replaceOne(); {upsert: true, arrayFilters: [...], ...}
db.C.deleteOne(FILTER)             also .deleteMany()
db.C.findOneAndUpdate(FILTER, UPDATE, OPTIONS)    also .findOneAndReplace() .findOneAndDelete()
db.C.createIndex(KEYS, OPTIONS)    also .getIndexes() .dropIndex(NAME)
db.C.drop()                        also .renameCollection(NAME) .stats()
db.createCollection(NAME, OPTIONS) also db.getCollectionNames() db.aggregate([STAGES]) db.dropDatabase()
it                                 more of the last answer
exit                               also quit, Ctrl-D
Values are written as in JavaScript: {a: 'x', when: ISODate("2013-07-04"), _id: ObjectId("...")}, or as Extended JSON.
`

// open returns a collection of the current database.
func (s *session) open(name string) *document.Collection {
	return s.store.Database(s.database).Lookup(name)
}

// forget closes the cursor whose answer has not been shown to its end.
func (s *session) forget() {
	if s.cursor != nil {
		s.cursor.Close()
		s.cursor = nil
	}
}
