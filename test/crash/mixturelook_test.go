package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// judge looks at what a crash has left, and tells the version.
func (m *mixture) judge(in instant) (int, error) {
	o := m.options()
	o.ReadOnly = true
	at, err := m.look(in.image, "db", o, in.least, in.most, nil)
	fresh := in.least == 0 && unfinished(err)
	if err != nil && !fresh {
		return at, fmt.Errorf("to read: %w", err)
	}
	o.ReadOnly = false
	image, least := in.image.KillImage(), at
	switch m.rng.IntN(4) {
	case 0:
		err = m.fullDisk(image, o)
	case 1:
		image, err = m.interrupted(image, o)
		least = min(at, in.durable) // a killed process has left what a power cut may take
	case 2:
		err = m.failing(image, o)
	default:
		err = nil
	}
	if err != nil {
		return at, err
	}
	last, err := m.look(image, "db", o, least, at, func(db *pando.DB, at int) error {
		report, err := db.Check(context.Background())
		if err == nil {
			for _, d := range report.Damage {
				var where *pando.CorruptError
				if !errors.As(d.Err, &where) || where.File != "ROOT" { // the slot that was being written
					err = errors.Join(err, d.Err)
				}
			}
		}
		if o.Profile != pando.Bench {
			err = errors.Join(err, m.agree(db, at))
		}
		return errors.Join(err, db.Backup(context.Background(), "backup"))
	})
	if err != nil {
		return at, fmt.Errorf("to write: %w", err)
	}
	o.ReadOnly = true
	for _, dir := range []string{"backup", "db"} {
		if _, err := m.look(image, dir, o, last, last, nil); err != nil {
			return at, fmt.Errorf("%s afterwards: %w", dir, err)
		}
	}
	return at, nil
}

// look opens a database, finds out which version it holds, and has more done with it.
func (m *mixture) look(image *memfs.FS, dir string, o pando.Options, least, most int, more func(*pando.DB, int) error) (int, error) {
	o.FS = image
	db, err := pando.Open(dir, &o)
	if err != nil {
		return 0, err
	}
	at, err := m.find(db, least, most)
	if err == nil && more != nil {
		err = more(db, at)
	}
	return at, errors.Join(err, db.Close())
}

// find reads everything.
func (m *mixture) find(db *pando.DB, least, most int) (int, error) {
	got := map[spot]string{}
	spaces, err := handles(db)
	if err != nil {
		return 0, err
	}
	spaces[db.Default().Name()] = db.Default()
	for name, ks := range spaces {
		if name == db.Default().Name() {
			name = ""
		} else {
			got[spot{name, ""}] = ks.Layout().String()
		}
		for k, v := range ks.Range(nil, nil) {
			got[spot{name, string(k)}] = string(v)
		}
		err = errors.Join(err, ks.Err())
	}
	for at := most; err == nil && at >= least; at-- {
		if maps.Equal(got, m.history[at].pairs) {
			return at, nil
		}
	}
	for at, v := range m.history {
		if err == nil && maps.Equal(got, v.pairs) {
			err = fmt.Errorf("it holds version %d, want one of %d to %d", at, least, most)
		}
	}
	if err == nil {
		err = fmt.Errorf("it holds none of the versions %d to %d", least, most)
	}
	return 0, err
}

// fullDisk opens the database where there is next to no space.
func (m *mixture) fullDisk(image *memfs.FS, o pando.Options) error {
	image.SetCapacity(image.Used() + m.rng.Int64N(1<<(1+m.rng.IntN(18))))
	defer image.SetCapacity(0)
	if err := settle(image, o); err != nil && !errors.Is(err, pando.ErrDiskFull) {
		return fmt.Errorf("on a full disk: %w", err)
	}
	return nil
}

// settle opens the database and settles what there is. What cannot be settled is no error of Close.
func settle(fsys vfs.FS, o pando.Options) error {
	o.FS = fsys
	db, err := pando.Open("db", &o)
	if err != nil {
		return err
	}
	return errors.Join(db.Checkpoint(context.Background()), db.Close())
}

// interrupted opens the database, and returns what a power cut leaves of that.
func (m *mixture) interrupted(image *memfs.FS, o pando.Options) (*memfs.FS, error) {
	ffs, left := faultfs.New(image), image
	all := images(m.rng.Uint64())
	policy, stop := all[m.rng.IntN(len(all))], int64(1+m.rng.IntN(80))
	var calls atomic.Int64
	ffs.OnCall(func(faultfs.Op, string) error {
		if calls.Add(1) == stop {
			left = image.CrashImage(policy)
		}
		return nil
	})
	return left, settle(ffs, o)
}

// failing opens the database while a call fails that changes what is stored.
func (m *mixture) failing(image *memfs.FS, o pando.Options) error {
	ffs := faultfs.New(image)
	ways := []faultfs.Fault{faultfs.Fail, faultfs.ShortWrite, faultfs.DropSync, faultfs.DropSyncOnce}
	ffs.Set(faultfs.Rule{Skip: m.rng.IntN(1 << m.rng.IntN(8)), Fault: ways[m.rng.IntN(len(ways))], Times: 1 + m.rng.IntN(3)})
	if err := settle(ffs, o); err != nil && !errors.Is(err, faultfs.ErrInjected) && !errors.Is(err, pando.ErrFailed) {
		return fmt.Errorf("a call failed: %w", err)
	}
	if leaks := ffs.Leaks(); len(leaks) > 0 {
		return fmt.Errorf("left open: %v", leaks)
	}
	return nil
}

// agree takes the changes that are kept to the version that was there before them, which has to lead to version at.
func (m *mixture) agree(db *pando.DB, at int) error {
	oldest, from := db.OldestChange(), m.first
	if at < from {
		return nil
	}
	for from < at && m.history[from].seq+1 < oldest { // it may be in the middle of a commit
		from++
	}
	got := map[spot]string{}
	maps.Copy(got, m.history[from].pairs)
	for c, err := range db.Changes(context.Background(), pando.ChangesOptions{From: oldest}) {
		if errors.Is(err, pando.ErrChangesGone) {
			return nil // maintenance goes on beside
		}
		if err != nil {
			return fmt.Errorf("changes from %d: %w", oldest, err)
		}
		if c.Seq > m.history[from].seq {
			follow(got, c, db.Default().Name())
		}
	}
	want := m.history[at].pairs
	maps.DeleteFunc(got, func(at spot, _ string) bool { // what was dropped before the database was opened has changes without a name
		_, there := want[spot{at.space, ""}]
		return at.space != "" && !there
	})
	for at := range want {
		if at.key == "" {
			got[at] = want[at]
		}
	}
	for at, v := range want {
		if g, there := got[at]; !there || g != v {
			return fmt.Errorf("changes from %d, behind version %d, lead to %d bytes of %q, want %d", oldest, from, len(g), at, len(v))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("changes from %d, behind version %d, lead to %d pairs, want %d", oldest, from, len(got), len(want))
	}
	return nil
}

// follow carries out one change.
func follow(pairs map[spot]string, c pando.Change, first string) {
	space, key := c.Keyspace, string(c.Key)
	if space == first {
		space = ""
	} else if space == "" {
		return
	}
	switch c.Kind {
	case pando.ChangePut:
		pairs[spot{space, key}] = string(c.Value)
	case pando.ChangeDelete:
		delete(pairs, spot{space, key})
	case pando.ChangeDeleteRange: // there are none but of everything
		maps.DeleteFunc(pairs, func(at spot, _ string) bool { return at.space == space && at.key != "" })
	case pando.ChangeCreate, pando.ChangeDrop:
		maps.DeleteFunc(pairs, func(at spot, _ string) bool { return at.space == space })
	}
}
