package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// outputBuffer is how much of the output is collected before it is written.
const outputBuffer = 64 << 10

// app is what all commands share: where they read and write, and the flags that all of them take.
type app struct {
	in     io.Reader
	out    *bufio.Writer
	err    io.Writer
	json   bool
	memory sizeFlag
	chatty bool

	scratch string // directory that a command which reads documents has made for itself; empty: none
}

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{in: in, out: bufio.NewWriterSize(out, outputBuffer), err: errOut}
	root := newRoot(a)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	flushing := a.out.Flush()
	if !errors.Is(err, flushing) {
		err = errors.Join(err, flushing)
	}
	if errors.Is(flushing, syscall.EPIPE) && isNothingBut(err, flushing) {
		return exitUnread
	}
	if err != nil {
		fmt.Fprintln(errOut, message(ctx, command.CommandPath(), err))
	}
	return exitCode(err)
}

// newRoot returns the tree of commands.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "pando COMMAND DIR ...",
		Short: "Work on Pando databases",
		Long: `Pando is a database in one directory: documents with MongoDB's query language, and ordered keys and values. This program works on
such a directory by itself, or serves it to MongoDB's drivers.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 damage found, 141 nobody reads the output any more.`,
		Example: `  pando put mydb hello world
  pando get mydb hello
  pando import mydb flights.csv --collection flights
  pando serve --dir mydb
  pando demo`,
		SilenceErrors:         true,
		DisableFlagsInUseLine: true,
		SilenceUsage:          true,
		CompletionOptions:     cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(root *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no command given")}
			}
			if near := root.SuggestionsFor(args[0]); args[0] != "" && len(near) > 0 {
				return usageError{fmt.Errorf("there is no command %q; near to it is %s", args[0], strings.Join(near, ", "))}
			}
			return usageError{fmt.Errorf("there is no command %q", args[0])}
		},
		SuggestionsMinimumDistance: 2,
		Run:                        func(*cobra.Command, []string) {},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{plainFlagError(err)} })
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print JSON for machines")
	flags.Var(&a.memory, "memory", "memory `SIZE` for caches and buffers, such as 64MiB (default: an eighth of the machine's, or of the container's, 64MiB to 1GiB)")
	flags.BoolVar(&a.chatty, "verbose", false, "tell about recovery and other events on the standard error")
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(
		newPutCommand(a), newGetCommand(a), newDeleteCommand(a), newScanCommand(a), newCountCommand(a),
		newImportCommand(a), newLoadCommand(a), newExportCommand(a), newKeyspacesCommand(a), newStatsCommand(a),
		newCheckCommand(a), newSalvageCommand(a), newCompactCommand(a), newBackupCommand(a), newRestoreCommand(a),
		newChangesCommand(a), newVersionCommand(a), newDemoCommand(a), newServeCommand(a),
		newFindCommand(a), newAggregateCommand(a), newIndexCommand(a), newExplainCommand(a), newShellCommand(a),
	)
	return root
}

// newHelpCommand returns the command that shows what --help does, and refuses the names of commands that are not there.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Long:  "Help shows what a command does, as its flag --help does; without a command, which there are.",
		Example: `  pando help
  pando help index create`,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil || len(rest) == 0:
			case about.HasSubCommands():
				err = about.Args(about, rest)
			default:
				err = usageError{fmt.Errorf("there is no command %q of %s", rest[0], about.CommandPath())}
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// plainFlagError says of the value of a flag just what it should have been, and of a key or value that is taken for flags, such as -5, how
// it is passed.
func plainFlagError(err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("%w: arguments that begin with - stand behind --", err)
	}
	var flag *pflag.InvalidValueError
	if !errors.As(err, &flag) {
		return err
	}
	var parsing *strconv.NumError
	if !errors.As(err, &parsing) {
		return fmt.Errorf("--%s: %w, not %q", flag.GetFlag().Name, flag.Unwrap(), flag.GetValue())
	}
	want := "a whole number"
	switch {
	case flag.GetFlag().Value.Type() == "bool":
		want = "true or false"
	case errors.Is(parsing, strconv.ErrRange):
		want = "a smaller number"
	}
	return fmt.Errorf("--%s wants %s, not %q", flag.GetFlag().Name, want, flag.GetValue())
}

// exactly is a check of the number of arguments that speaks of usage.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{wrongNumber(cmd, args)}
		}
		return nil
	}
}

func wrongNumber(cmd *cobra.Command, args []string) error {
	return fmt.Errorf("%s given, the usage is: %s", countOf(int64(len(args)), "argument"), cmd.UseLine())
}

// between is exactly for commands with optional arguments.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usageError{wrongNumber(cmd, args)}
		}
		return nil
	}
}
