package salvage

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/wal"
)

// readNames goes through the log for what it says of keyspaces, so that their names are known when data of theirs is met.
func (r *rescue) readNames() error { return wal.Salvage(r.ctx, r.logOptions(0), &nameReader{r}) }

// nameReader takes in which keyspaces were created and dropped.
type nameReader struct{ r *rescue }

// Record implements wal.Salvaged.
func (n *nameReader) Record(_, _ uint64, payload []byte, _ bool) error {
	d := command.NewDecoder(payload)
	for d.Next() {
		switch c := d.Command(); c.Op {
		case command.CreateKeyspace:
			n.r.created[c.Keyspace] = creation{name: string(c.Key), options: bytes.Clone(c.Value)}
		case command.DropKeyspace:
			n.r.dropped[c.Keyspace] = true
		}
	}
	return nil
}

// Lost implements wal.Salvaged: what is lost names nothing.
func (n *nameReader) Lost(uint64, uint64, error) error { return nil }

// replay carries out what the log tells, over what was found elsewhere.
func (r *rescue) replay() error {
	p := &player{r: r, last: r.catalogue.Seq}
	if err := wal.Salvage(r.ctx, r.logOptions(0), p); err != nil {
		return err
	}
	if p.told || r.followed(r.catalogue.Seq, r.catalogue.Log) { // the log of a backup is there, and empty
		return nil
	}
	switch {
	case !p.any:
		r.report.lose(Loss{File: LogDir}, fmt.Errorf("there is no log: what was committed after command %d, if anything, is lost", r.catalogue.Seq))
	case !r.blind: // older files of the log say nothing of what came behind the catalogue
		r.report.lose(Loss{File: LogDir}, fmt.Errorf("the log does not go on where the catalogue ends: what was committed after command %d, if anything, is lost", p.last))
	}
	return nil
}

// player carries out records of the log.
type player struct {
	r    *rescue
	any  bool   // there is something to read
	told bool   // a loss behind the catalogue is in the report
	last uint64 // everything up to this command is settled, was carried out, or is lost
}

// Lost implements wal.Salvaged.
func (p *player) Lost(after, last uint64, err error) error {
	p.any = true
	if last != 0 && last <= p.last {
		return nil // settled
	}
	p.lose(err)
	p.last = max(p.last, last)
	return nil
}

// lose reports what the log does not tell of what was committed behind the catalogue.
func (p *player) lose(err error) {
	p.told = true
	p.r.report.lose(Loss{}, err)
}

// Record implements wal.Salvaged.
func (p *player) Record(seq, before uint64, payload []byte, synced bool) error {
	p.any = true
	settled := seq <= p.r.catalogue.Seq && !p.r.blind
	if settled && len(p.r.lost) == 0 {
		return nil
	}
	if !settled && before > p.last && !p.r.blind {
		p.lose(corrupt.New(LogDir, 0, 0, "commands %d to %d are neither settled nor in the log", p.last+1, before))
	}
	if !settled && !synced && !p.r.blind {
		if err := p.arrived(payload); err != nil {
			p.lose(fmt.Errorf("log: record %d, and what follows it, was not known to be synced, and a value of it is not there: %w", seq, err))
			return wal.ErrCut
		}
	}
	p.last = max(p.last, seq)
	if _, err := command.Count(payload); err != nil {
		p.r.report.lose(Loss{}, fmt.Errorf("log: record %d: %w", seq, err))
		return nil
	}
	d := command.NewDecoder(payload)
	for d.Next() {
		c := d.Command()
		if !settled && p.r.doubtful && !p.r.blind && p.r.mayBeLoaded(c) {
			_, n := c.Spilled()
			p.r.report.lose(Loss{}, fmt.Errorf("the root that the bulk load of commands %d to %d ends with cannot be found: if it was stored, they are lost as far as their leaves cannot be found either", seq-n+1, seq))
		}
		if err := p.carryOut(c, settled); err != nil {
			return err
		}
	}
	return p.r.ctx.Err()
}

// arrived looks whether the values that a record refers to are there. In a power cut the record may reach the disk before a value: Open ends
// the log in front of such a record, and reads what was there before it. A value that the device does not give back, or whose file does not
// open, may have arrived.
func (p *player) arrived(payload []byte) error {
	d := command.NewDecoder(payload)
	for d.Next() {
		c := d.Command()
		if c.Op != command.PutApart {
			continue
		}
		ref, err := value.DecodeRef(c.Value)
		if err != nil {
			return err
		}
		err = corrupt.Twice(func() error { return value.Verify(p.r.store, ref) })
		if errors.Is(err, corrupt.Err) && !errors.Is(err, segment.ErrUnreadable) {
			return err
		}
	}
	return nil
}

// carryOut does one command. What was settled before concerns only the keys that the trees did not give.
func (p *player) carryOut(c command.Command, settled bool) error {
	r := p.r
	switch c.Op {
	case command.Clock, command.Bulk, command.DropKeyspace, command.Note:
		return nil // a dropped keyspace was never made; a bulk load is committed by a root, which comes behind it
	}
	if ok, err := r.keyspace(c.Keyspace); !ok || err != nil || c.Op == command.CreateKeyspace {
		return err
	}
	keys := &lostKeys{all: true}
	if settled {
		keys = r.lostIn(c.Keyspace)
	}
	switch c.Op {
	case command.DeleteRange:
		return keys.within(c.Key, c.Value, func(lo, hi []byte) error { return r.sink.DeleteRange(c.Keyspace, lo, hi) })
	case command.Delete:
		if keys.has(c.Key) {
			return r.sink.Delete(c.Keyspace, c.Key)
		}
		return nil
	}
	if !keys.has(c.Key) {
		return nil
	}
	rec := c.Record()
	switch {
	case settled:
		return r.putOlder(c.Keyspace, c.Key, rec)
	case rec.Kind == record.Apart:
		return p.putApart(c, rec)
	}
	_, err := r.put(c.Keyspace, c.Key, rec)
	return err
}

// putApart carries out a command whose value lies apart. When it cannot be read, the key is removed: an older value of it
// would be a wrong one.
func (p *player) putApart(c command.Command, rec record.Record) error {
	bad, err := p.r.put(c.Keyspace, c.Key, rec)
	if bad == nil || err != nil {
		return err
	}
	p.r.loseValue(c.Keyspace, c.Key, bad)
	return p.r.sink.Delete(c.Keyspace, c.Key)
}
