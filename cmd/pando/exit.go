package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server"
)

// Exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitDamage   = 4
	exitUnread   = 128 + 13 // who read the output has seen enough: there is nothing to say, and shells know the code as that of SIGPIPE
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

// isUsage reports whether err is about the command line, or the configuration file: what the database and the server refuse of it
// is as much wrong usage as what the parser refuses.
func isUsage(err error) bool {
	var usage usageError
	return errors.As(err, &usage) || errors.Is(err, pando.ErrOptions) || errors.Is(err, server.ErrConfig)
}

// errDamage is the outcome of a check that found damage and has printed it.
var errDamage = errors.New("damage was found")

// exitCode returns the code that tells a script what err is.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case isUsage(err):
		return exitUsage
	case errors.Is(err, errDamage), errors.Is(err, pando.ErrCorrupt):
		return exitDamage
	case errors.Is(err, pando.ErrNotFound), errors.Is(err, document.NamespaceNotFound), errors.Is(err, document.IndexNotFound):
		return exitNotFound
	}
	return exitFailed
}

// isNothingBut reports whether all that err consists of is the cause.
func isNothingBut(err, cause error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			return !slices.ContainsFunc(many.Unwrap(), func(part error) bool { return !isNothingBut(part, cause) })
		}
		if err == cause {
			return true
		}
	}
	return false
}

// message returns err, with which command has ended, as one line.
func message(ctx context.Context, command string, err error) string {
	text := plain(strings.ReplaceAll(err.Error(), "\n", "; "))
	switch {
	case isUsage(err):
		text += fmt.Sprintf(" (see %s --help)", strings.TrimSuffix(command, " help"))
	case exitCode(err) == exitDamage && command != "pando salvage":
		text += " (see pando salvage --help)"
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	return fmt.Sprintf("pando: %s", text)
}
