// Package salvage reads what is left of a damaged database and hands it to a new one.
//
// It promises: everything outside of the damage comes over as it was, what does not is listed, and nothing is ever written into
// the damaged directory. Where a part of a tree is lost it looks for older versions of its leaves, and for values, in the segment
// files, and says how many records it took from there: each may have been changed or deleted since, or be of a write that failed,
// because what said so is lost.
//
// The order of work is that of trust. The newest root that verifies is walked first, or, where the file ROOT does not help,
// the newest catalogue that can be found. Then, for the keys that this does not give, value blobs and leaves are taken in the
// order in which they were written. The log comes last. What comes later overwrites what came earlier, so that the new
// database itself keeps the newest version, and memory stays bounded: one log segment, one blob, the bounds of what is
// lost, and a few words for each value of more than a megabyte.
//
// Failures: ErrNotDatabase when nothing says which database it was, errors of a newer format, of the context and of the sink.
// Damage is no failure.
package salvage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/internal/wal"
	"github.com/pandodb/pando/vfs"
)

// LogDir is the directory of the log inside of the database directory.
const LogDir = "wal"

// Sink is the new database. Keyspaces are called by their numbers in the damaged one.
type Sink interface {
	// Keyspace makes a keyspace. options, which may be nil or damaged, are as the catalogue keeps them.
	Keyspace(id uint32, name string, options []byte) error
	Put(id uint32, key, value []byte, expiry uint64) error
	// PutReader stores a long value; nothing when r fails.
	PutReader(id uint32, key []byte, r io.Reader, expiry uint64) error
	Delete(id uint32, key []byte) error
	DeleteRange(id uint32, lo, hi []byte) error
}

// Run reads the database in dir and writes what is left of it to sink.
func Run(ctx context.Context, fsys vfs.FS, dir string, sink Sink) (report *Report, err error) {
	r := &rescue{
		ctx: ctx, fsys: fsys, dir: dir, sink: sink, report: new(Report),
		lost: map[uint32]*lostKeys{}, names: map[uint32]string{}, created: map[uint32]creation{}, dropped: map[uint32]bool{},
	}
	defer func() {
		if r.store != nil {
			err = errors.Join(err, r.store.Close())
		}
		if err != nil {
			err = fmt.Errorf("salvage %s: %w", dir, err)
		}
	}()
	return r.report, r.run()
}

// rescue is one run.
type rescue struct {
	ctx    context.Context
	fsys   vfs.FS
	dir    string
	sink   Sink
	report *Report

	database [16]byte
	segments []segment.Surveyed // of this database, in the order of their numbers
	store    *segment.Store
	env      layout.Environment

	catalogue *root.Catalogue
	place     segment.Pointer // of the catalogue
	blind     bool            // there is no catalogue at all
	behind    bool            // what was settled after the catalogue is to be looked for in the segments
	doubtful  bool            // a root may have been stored after that of the catalogue

	lost    map[uint32]*lostKeys
	names   map[uint32]string // of the keyspaces that the sink has
	created map[uint32]creation
	dropped map[uint32]bool // by a command in the log
	value   []byte
}

// creation is what the log says of a keyspace that the catalogue does not know.
type creation struct {
	name    string
	options []byte
}

func (r *rescue) run() error {
	slots, damage, err := r.survey()
	if err != nil {
		return err
	}
	if err := r.choose(slots, damage); err != nil {
		return err
	}
	if err := r.loadDictionaries(); err != nil {
		return err
	}
	r.damagedSegments()
	if err := r.readNames(); err != nil {
		return err
	}
	if err := r.walk(); err != nil {
		return err
	}
	if err := r.scan(); err != nil {
		return err
	}
	return r.replay()
}

// survey finds out what there is, and which database it was.
func (r *rescue) survey() ([]root.Slot, []error, error) {
	slots, damage, err := root.Slots(r.fsys, r.dir)
	if version := (*root.VersionError)(nil); errors.As(err, &version) {
		return nil, nil, err
	}
	if err != nil {
		r.report.lose(Loss{File: root.Name}, err)
	}
	for _, err := range damage {
		r.report.lose(Loss{}, err)
	}
	all, err := segment.Survey(r.fsys, r.dir)
	if err != nil {
		return nil, nil, err
	}
	votes, err := wal.Databases(r.fsys, filepath.Join(r.dir, LogDir))
	if err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		if s.Damage == nil {
			votes[s.Database]++
		}
	}
	for _, s := range slots {
		votes[s.Database] += 2
	}
	best := 0
	for id, n := range votes {
		if n > best {
			r.database, best = id, n
		}
	}
	if best == 0 {
		if _, err := r.fsys.List(r.dir); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		return nil, nil, fmt.Errorf("neither %s nor a segment or log file says which database it was: %w", root.Name, root.ErrNotDatabase)
	}
	var table []segment.Info
	for _, s := range all {
		if s.Damage == nil && s.Database != r.database {
			r.report.lose(Loss{File: segment.FilePath(s.ID)}, errors.New("the file belongs to another database"))
			continue
		}
		r.segments = append(r.segments, s)
		table = append(table, s.Info)
	}
	r.store, err = segment.Open(segment.Options{FS: r.fsys, Dir: r.dir, Database: r.database, ReadOnly: true}, table, 0)
	r.env.Store = r.store
	own := slots[:0]
	for _, s := range slots {
		if s.Database == r.database {
			own = append(own, s)
		}
	}
	return own, damage, err
}

func (r *rescue) logOptions(seq uint64) wal.Options {
	return wal.Options{FS: r.fsys, Dir: filepath.Join(r.dir, LogDir), Database: r.database, Seq: seq}
}

// followed reports whether the log goes on, undamaged, where a root ends.
func (r *rescue) followed(seq uint64, from root.Position) bool {
	ok, _ := r.follow(seq, from)
	return ok
}

// follow is followed, which also reports whether the log tells of a bulk load behind the root that may have been carried out.
func (r *rescue) follow(seq uint64, from root.Position) (ok, loaded bool) {
	_, err := wal.Replay(r.logOptions(seq), wal.Position(from), func(_ uint64, payload []byte, _ bool) error {
		for d := command.NewDecoder(payload); d.Next(); {
			loaded = loaded || r.mayBeLoaded(d.Command())
		}
		return r.ctx.Err()
	})
	return err == nil, loaded
}

// mayBeLoaded reports whether a command stands for a bulk load that is not known to have failed.
func (r *rescue) mayBeLoaded(c command.Command) bool {
	if c.Op != command.Bulk {
		return false
	}
	number, _ := c.Spilled()
	failed, err := spill.Failed(r.fsys, r.dir, number)
	return err != nil || !failed
}

// keyspace makes sure that the sink has a keyspace, and reports whether it is one that still exists.
func (r *rescue) keyspace(id uint32) (bool, error) {
	if _, ok := r.names[id]; ok {
		return true, nil
	}
	if r.gone(id) {
		return false, nil
	}
	c, ok := r.created[id]
	if !ok {
		c.name = fmt.Sprintf("keyspace-%d", id)
		if id == 1 {
			c.name = "default"
		}
	}
	return true, r.makeKeyspace(id, c)
}

func (r *rescue) makeKeyspace(id uint32, c creation) error {
	for taken := true; taken; {
		taken = false
		for other, name := range r.names {
			if name == c.name && other != id {
				c.name, taken = fmt.Sprintf("%s-%d", c.name, id), true
				break
			}
		}
	}
	r.names[id] = c.name
	return r.sink.Keyspace(id, c.name, c.options)
}

// gone reports whether a keyspace is known to have been dropped.
func (r *rescue) gone(id uint32) bool {
	if r.dropped[id] {
		return true
	}
	if _, ok := r.names[id]; ok {
		return false
	}
	return !r.blind && id < r.catalogue.NextKeyspace
}

// lostIn returns the keys of a keyspace that the tree did not give.
func (r *rescue) lostIn(id uint32) *lostKeys {
	if k := r.lost[id]; k != nil {
		return k
	}
	if r.blind {
		k := &lostKeys{all: true}
		r.lost[id] = k
		return k
	}
	return nil
}
