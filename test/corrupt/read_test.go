package corrupt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
)

// named are the errors with which a damaged database may answer.
var named = []error{pando.ErrCorrupt, pando.ErrNotDatabase, pando.ErrVersion}

func isNamed(err error) bool {
	return slices.ContainsFunc(named, func(target error) bool { return errors.Is(err, target) })
}

// answers is what a database said about all that it holds, in every way of asking.
type answers struct {
	opened  error
	content content // what the iteration of each keyspace gave
	partial map[string]bool
	damage  int // errors met, those of Check included
}

// readAll asks a database for everything. It returns an error when answers contradict each other or are no named errors.
// possible tells whether a key may have a value, ok being false for its absence.
func readAll(fsys vfs.FS, keyspaces map[string]bool, possible func(ks, key, value string, ok bool) bool, keys map[string][]string) (*answers, error) {
	a := &answers{content: content{}, partial: map[string]bool{}}
	db, err := pando.Open(dir, options(fsys))
	if err != nil {
		a.opened = err
		if !isNamed(err) {
			return a, fmt.Errorf("open: unnamed error: %w", err)
		}
		return a, nil
	}
	defer db.Close()
	infos, err := db.Keyspaces()
	if err != nil {
		return a, err
	}
	for _, info := range infos {
		if !keyspaces[info.Name] {
			return a, fmt.Errorf("a keyspace %q that never was", info.Name)
		}
		if err := a.keyspace(db, info.Name, possible, keys[info.Name]); err != nil {
			return a, fmt.Errorf("keyspace %q: %w", info.Name, err)
		}
	}
	report, err := db.Check(context.Background())
	if err != nil {
		return a, fmt.Errorf("check: %w", err)
	}
	if a.damage > 0 && len(report.Damage) == 0 {
		return a, fmt.Errorf("%d reads failed, Check found nothing", a.damage)
	}
	a.damage += len(report.Damage)
	for _, d := range report.Damage {
		if !isNamed(d.Err) {
			return a, fmt.Errorf("check: unnamed damage: %w", d.Err)
		}
	}
	return a, nil
}

// failed counts an error, which must be a named one.
func (a *answers) failed(what string, err error) error {
	if !isNamed(err) {
		return fmt.Errorf("%s: unnamed error: %w", what, err)
	}
	a.damage++
	return nil
}

func (a *answers) keyspace(db *pando.DB, name string, possible func(ks, key, value string, ok bool) bool, keys []string) error {
	k, err := db.Keyspace(name, nil)
	if err != nil {
		return a.failed("open", err)
	}
	pairs := map[string]string{}
	a.content[name] = pairs
	last, first := "", true
	for key, value := range k.Range(nil, nil) {
		if !first && string(key) <= last && k.Layout() != pando.Hash {
			return fmt.Errorf("key %q after %q", key, last)
		}
		last, first = string(key), false
		pairs[last] = string(value)
		if !possible(name, last, string(value), true) {
			return fmt.Errorf("iteration gives key %q a value that it does not have", key)
		}
	}
	if err := k.Err(); err != nil {
		a.partial[name] = true
		if err := a.failed("iterate", err); err != nil {
			return err
		}
	}
	backwards := 0
	if k, err = db.Keyspace(name, nil); err != nil { // a handle that has seen no error
		return err
	}
	for key := range k.RangeReverse(nil, nil) {
		if _, ok := pairs[string(key)]; !ok && !a.partial[name] {
			return fmt.Errorf("only the backward iteration has key %q", key)
		}
		backwards++
	}
	if err := k.Err(); err != nil {
		if err := a.failed("iterate backwards", err); err != nil {
			return err
		}
	} else if !a.partial[name] && backwards != len(pairs) {
		return fmt.Errorf("%d pairs backwards, %d forwards", backwards, len(pairs))
	}
	n, err := k.Count(nil, nil)
	if err != nil {
		err = a.failed("count", err)
	} else if !a.partial[name] && n != int64(len(pairs)) {
		err = fmt.Errorf("counted %d pairs of %d", n, len(pairs))
	}
	if err != nil {
		return err
	}
	return a.gets(k, name, possible, keys)
}

// gets reads every key that ever was.
func (a *answers) gets(k *pando.Keyspace, name string, possible func(ks, key, value string, ok bool) bool, keys []string) error {
	for _, key := range keys {
		value, err := k.Get([]byte(key))
		found := err == nil
		if err != nil && !errors.Is(err, pando.ErrNotFound) {
			if err := a.failed("get", err); err != nil {
				return err
			}
			continue
		}
		if !possible(name, key, string(value), found) {
			return fmt.Errorf("get of %q says %v, a value of %d bytes", key, found, len(value))
		}
		have, there := a.content[name][key]
		if !a.partial[name] && (there != found || have != string(value)) {
			return fmt.Errorf("get of %q and the iteration disagree", key)
		}
	}
	return nil
}
