package document

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Statement is one of several updates and deletes that are carried out one after the other.
type Statement struct {
	Filter any
	Update any // what Apply takes; nil: delete
	// Options are those of the update; a delete has no Upsert, ArrayFilters, Sort and SkipValidation.
	Options UpdateOptions
}

// ApplyMany carries out statements in their order, each as Apply or Delete would do it, and tells report what became of it, with a
// result that may be nil beside an error. After an error it goes on if report says so. Neighbours that each ask for one document, by
// nothing but its _id or the fields of a unique index, share a commit as long as none of them fails: a commit waits for a sync of the
// log, which costs more than a change does. So do neighbours that ask for one document in any way, when what WithStatements keeps of those
// before them is long: each commit writes it anew. Such a group is carried out as a whole or not at all. A context of WithStatements has
// one id for each statement.
func (c *Collection) ApplyMany(ctx context.Context, list []Statement, report func(i int, r *UpdateResult, err error) bool) {
	for at := 0; at < len(list); {
		group, err := c.nextGroup(ctx, list[at:])
		if err != nil {
			if !report(at, nil, err) {
				return
			}
			at++
			continue
		}
		together := len(group) > 1 && c.carryOutTogether(statementsFrom(ctx, list, at, len(group)), group)
		for i, s := range group {
			r := s.result()
			if !together {
				r, err = s.alone(statementsFrom(ctx, list, at, 1))
			}
			if !report(at, r, err) && err != nil {
				return
			}
			at, group[i] = at+1, nil
		}
	}
}

// statementsFrom returns the context for n statements of a list, from one on, of those that ctx names.
func statementsFrom(ctx context.Context, list []Statement, from, n int) context.Context {
	if from+n < len(list) {
		ctx = moreFollow(ctx)
	}
	s, ok := ctx.Value(statementsKey{}).(*statements)
	if !ok || from+n > len(s.ids) {
		return ctx
	}
	return WithStatements(ctx, s.session, s.number, s.ids[from:from+n]...)
}

// grouped is a statement that may share a commit with others.
type grouped struct {
	*change
	upserts  bool
	planned  bool           // a plan may look for its document
	inserted bsoncore.Value // _id of the document that it inserted; Type 0: none
}

// result says what the statement did in a commit that it shared.
func (s *grouped) result() *UpdateResult {
	return &UpdateResult{Matched: s.matched, Modified: s.modified, UpsertedID: bson.RawValue{Type: bson.Type(s.inserted.Type), Value: s.inserted.Data}}
}

// alone carries the statement out with commits of its own. What it did before an error is said beside that.
func (s *grouped) alone(ctx context.Context) (*UpdateResult, error) {
	if s.u != nil {
		return s.carryOut(ctx, s.upserts)
	}
	err := s.run(ctx)
	return s.result(), err
}

// nextGroup parses the first of some statements, and those behind it that can share a commit with it. An error is that of the first.
func (c *Collection) nextGroup(ctx context.Context, list []Statement) ([]*grouped, error) {
	var group []*grouped
	x, err := c.use()
	if err != nil {
		x = nil // who carries the first one out is told
	}
	for i := range list[:min(len(list), changeChunk)] {
		s := &list[i]
		ch, err := c.parseStatement(ctx, s)
		if err != nil && i == 0 {
			return nil, err
		}
		if err != nil {
			return group, nil // it has its turn when those before it have been carried out
		}
		planned := x == nil || !ch.needsNoPlan(x)
		alone := ch.many || x == nil || planned && !c.sharesPlans(ctx, x)
		if i == 0 || !alone {
			group = append(group, &grouped{change: ch, upserts: s.Options.Upsert && ch.u != nil, planned: planned})
		}
		if alone {
			break
		}
	}
	return group, nil
}

// sharesPlans reports whether statements for which a plan is needed are to share a commit: where it is worth it, but not in a transaction,
// which is one, and not where inserts have to come one after the other.
func (c *Collection) sharesPlans(ctx context.Context, x *collection) bool {
	settings := x.settings.Load()
	return c.tx == nil && c.at == nil && !settings.capped && settings.series == nil && c.store.retries.isLong(ctx)
}

// parseStatement parses an update or a delete.
func (c *Collection) parseStatement(ctx context.Context, s *Statement) (*change, error) {
	if s.Update == nil {
		o := &s.Options
		return c.parseDelete(ctx, s.Filter, &DeleteOptions{Many: o.Many, Hint: o.Hint, Collation: o.Collation, Let: o.Let})
	}
	v, err := toUpdate(s.Update)
	if err != nil {
		return nil, err
	}
	return c.parseUpdate(ctx, s.Filter, v, &s.Options)
}

// sharedAttempts is how often a group is tried that other commits overtake. After that each statement has a commit of its own, for
// which it is easier to get through.
const sharedAttempts = 3

// carryOutTogether carries out a group with one commit. It is false when nothing was changed: each statement then has to go by itself,
// and fails by itself if it was the one that failed.
func (c *Collection) carryOutTogether(ctx context.Context, group []*grouped) bool {
	x, err := c.use()
	if x == nil || err != nil || ctx.Err() != nil {
		return false
	}
	if !slices.ContainsFunc(group, func(s *grouped) bool { return s.planned }) { // plans may take long
		x.groups.Lock() // two groups have a document in common more often than not, and would overtake each other again and again
		defer x.groups.Unlock()
	}
	buffers := spareChanges.Get().(*changeBuffers)
	defer buffers.release()
	for range sharedAttempts {
		err = c.store.writeOnce(ctx, func(w *writer) error {
			for i, s := range group {
				s.changeBuffers, s.number = buffers, i
				if err := s.within(ctx, w, x); err != nil {
					return err
				}
			}
			return nil
		})
		if !isConflict(err) {
			break
		}
	}
	for _, s := range group {
		s.changeBuffers, s.number = nil, 0
	}
	return err == nil
}

// within carries the statement out as part of a commit.
func (s *grouped) within(ctx context.Context, w *writer, x *collection) error {
	s.query.call.By(ctx)
	s.matched, s.modified, s.inserted = 0, 0, bsoncore.Value{}
	keys, err := s.onlyKey(w, x)
	if s.planned && errors.Is(err, errNeedsPlan) {
		keys, err = s.firstKey(ctx, w, x)
	}
	if err != nil {
		return err
	}
	w.unchecked = s.unchecked
	if err := s.all(w, x, keys); err != nil || s.matched > 0 || !s.upserts {
		return err
	}
	doc, err := s.missing()
	if err != nil {
		return err
	}
	if doc, s.inserted, err = s.c.prepare(doc); err != nil {
		return err
	}
	w.did(s.number, Outcome{N: 1, UpsertedID: bson.RawValue{Type: bson.Type(s.inserted.Type), Value: s.inserted.Data}})
	return w.insert(x, doc)
}
