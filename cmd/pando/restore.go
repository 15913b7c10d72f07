package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/engine"
	"github.com/spf13/cobra"
)

func newRestoreCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restore TARGET DIR",
		Short: "Make a database of a backup",
		Long: `Restore copies the backup in TARGET to DIR, which must be absent or empty, and checks the copy. The backup stays as it is and
can be restored again.`,
		Example: `  pando restore /backups/mydb mydb`,
		Args:    exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.restore(cmd.Context(), args[0], args[1])
		},
	}
}

func (a *app) restore(ctx context.Context, source, dir string) error {
	vacant, err := isVacant(dir)
	if err != nil {
		return err
	}
	if !vacant {
		return fmt.Errorf("%s is not empty: a backup is restored into a new directory", dir)
	}
	_, err = os.Lstat(dir)
	there := err == nil // also where it is a link that leads nowhere, which is somebody's
	if err := a.backup(ctx, source, dir); err != nil {
		if errors.Is(err, pando.ErrLocked) {
			return err // somebody writes to the backup, or restores to the same place
		}
		return errors.Join(err, discard(dir, there)) // what is in it now is our own, and unfinished
	}
	return a.checkRestored(ctx, dir)
}

// checkRestored checks a copy that is complete, and prints what it holds.
func (a *app) checkRestored(ctx context.Context, dir string) error {
	return a.reading(dir, func(db *pando.DB) error {
		r, err := a.verify(ctx, db)
		if err != nil {
			return fmt.Errorf("%s is restored, but was not checked to its end: %w", dir, err)
		}
		if err := r.Err(); err != nil {
			return fmt.Errorf("the backup is damaged: %w", err)
		}
		return a.describeCopy(db, dir)
	})
}

// discard removes a directory that a restore has not finished, or what is in it where it was there before. What somebody else has made in
// its place meanwhile stays: only what is unfinished can be our own.
func discard(dir string, there bool) error {
	db, err := pando.Open(dir, &pando.Options{ReadOnly: true})
	if err == nil {
		return db.Close()
	}
	if !errors.Is(err, pando.ErrUnfinished) && !errors.Is(err, pando.ErrNotFound) {
		return nil
	}
	marked := errors.Is(err, pando.ErrUnfinished)
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !marked && slices.ContainsFunc(entries, comesBehindTheMark):
		return nil
	case !there:
		return os.RemoveAll(dir)
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// comesBehindTheMark reports whether a restore cannot have made a file before it marks the directory as unfinished.
func comesBehindTheMark(e os.DirEntry) bool {
	return e.Name() != engine.LockName && e.Name() != engine.UnfinishedName+".tmp"
}
