package fault

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

// historyLost is the code of a stream that cannot go on: what it would tell of is gone.
const historyLost = 286

// docWatch is a change stream, and what its events lead to.
type docWatch struct {
	cursor *document.Cursor                // nil: it is to go on behind token
	late   bool                            // it may have met with a fault that has passed
	token  bson.Raw                        // of the last event
	docs   map[string]map[int32][]bson.Raw // by collection and _id; more than one document: it was updated, and may be any
	other  map[string]bool                 // collections that $out has put into the place of others: no event tells what they have
}

// watch begins a change stream on what there is.
func (s *docStorm) watch() {
	s.t.Helper()
	if s.options.History < 0 {
		return
	}
	for _, t := range s.tables {
		if t.vague {
			return // nobody knows what there is
		}
	}
	w := &docWatch{docs: map[string]map[int32][]bson.Raw{}, other: map[string]bool{}}
	var err error
	w.cursor, err = s.database().OpenWatch(ctx, nil, nil)
	s.must("watch", err)
	w.token = w.cursor.ResumeToken()
	for name := range s.tables {
		w.docs[name] = s.readAll(name)
	}
	s.watching = w
}

func (s *docStorm) readAll(name string) map[int32][]bson.Raw {
	s.t.Helper()
	docs := map[int32][]bson.Raw{}
	for doc, err := range s.collection(name).Find(ctx, nil, nil) {
		s.must("find", err)
		docs[int32(doc.Lookup("_id").AsInt64())] = []bson.Raw{slices.Clone(doc)}
	}
	return docs
}

// events takes in what the change stream has to tell, until there was nothing for a while.
func (s *docStorm) events(patience time.Duration) {
	s.t.Helper()
	w := s.watching
	if w == nil {
		return
	}
	if w.cursor == nil {
		var err error
		w.cursor, err = s.database().OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: w.token})
		if s.unwatched(err) {
			return
		}
	}
	for more := true; more; {
		for w.cursor.TryNext(ctx) {
			w.token = slices.Clone(w.cursor.ResumeToken())
			w.take(w.cursor.Current())
		}
		if s.unwatched(w.cursor.Err()) {
			return
		}
		soon, cancel := context.WithTimeout(ctx, patience) // which passes when nobody has anything to do
		more = w.cursor.Wait(soon) == nil
		cancel()
	}
}

// unwatched reports whether the stream cannot go on just now, or any more: where too much was written meanwhile.
func (s *docStorm) unwatched(err error) bool {
	s.t.Helper()
	if document.CodeOf(err) == historyLost {
		s.note("watch: %v", err)
		s.pauseWatch()
		s.watching = nil
		return true
	}
	if err != nil && s.watching.late {
		s.note("watch: %v", err)
		s.watching.late = false
		s.pauseWatch()
		return true
	}
	if !s.judge("watch", err) {
		return false
	}
	s.pauseWatch()
	return true
}

// pauseWatch closes the stream, which goes on later.
func (s *docStorm) pauseWatch() {
	s.t.Helper()
	w := s.watching
	if w == nil {
		return
	}
	if w.cursor != nil {
		s.judge("close a stream", w.cursor.Close())
		w.cursor = nil
	}
}

func (w *docWatch) take(event bson.Raw) {
	name, _ := event.Lookup("ns", "coll").StringValueOK()
	docs := w.docs[name]
	if docs == nil {
		docs = map[int32][]bson.Raw{}
		w.docs[name] = docs
	}
	number, _ := event.Lookup("documentKey", "_id").AsInt64OK()
	id := int32(number)
	switch event.Lookup("operationType").StringValue() {
	case "insert", "replace":
		docs[id] = []bson.Raw{slices.Clone(event.Lookup("fullDocument").Document())}
	case "update":
		docs[id] = []bson.Raw{nil, nil}
	case "delete":
		delete(docs, id)
	case "drop":
		delete(w.docs, name)
		delete(w.other, name)
	case "rename":
		to := event.Lookup("to", "coll").StringValue()
		w.docs[to], w.other[to] = docs, w.other[name] || name[0] != 'c'
		delete(w.docs, name)
		delete(w.other, name)
	}
}

// lookAtEvents compares what the events lead to with what there is.
func (s *docStorm) lookAtEvents() {
	s.t.Helper()
	const patience = 5 * time.Second
	s.events(patience)
	if s.watching != nil && s.watching.cursor == nil {
		s.events(patience)
	}
	w := s.watching
	if w == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		if s.tables[name].vague || w.other[name] {
			continue
		}
		there, told := s.readAll(name), w.docs[name]
		for id, docs := range told {
			switch doc := there[id]; {
			case doc == nil:
				s.fatalf("%s: %d is gone, and no event tells of it", name, id)
			case len(docs) == 1 && !bytes.Equal(docs[0], doc[0]):
				s.fatalf("%s: %d is %v, and events tell of %v", name, id, doc[0], docs[0])
			}
		}
		for id := range there {
			if told[id] == nil {
				s.fatalf("%s: %d is there, and no event tells of it", name, id)
			}
		}
	}
	s.judge("close a stream", w.cursor.Close())
	s.watching = nil
}
