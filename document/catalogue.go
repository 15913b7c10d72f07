package document

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/index"
)

// The catalogue says which collections there are. It lies in a keyspace of its own; docs/format/collections.md describes it.
// Everything in memory is made from it when the store is opened, and replaced as a whole when it changes.
const (
	metaKeyspace     = "documents" // the catalogue; the keyspaces of collections are below it
	collectionKey    = 'c'         // 'c', database, 0, collection: the entry
	templateKey      = 't'         // 't', collection's number, template's number: the definition
	templateKeyBytes = 1 + 4 + 4
	indexLeafBytes   = 8 << 10 // larger leaves do not make entries smaller, and looking one up dearer
	recordLeaf       = 32 << 10
)

// catalogue is what there is, as of one moment. It is never changed.
type catalogue struct {
	byName   map[string]*collection // "database.collection"
	byNumber map[uint32]*collection // those that were dropped in this run too: change streams may still tell of them
	views    map[string]*view
}

// entry is a collection or view as the catalogue keeps it.
type entry struct {
	Number    uint32        `bson:"number"`
	UUID      bson.Binary   `bson:"uuid"`
	Options   bson.Raw      `bson:"options"` // as listCollections shows them
	Format    uint8         `bson:"format"`
	NextIndex uint32        `bson:"nextIndex"`
	Indexes   []indexEntry  `bson:"indexes,omitempty"`
	ViewOn    string        `bson:"viewOn,omitempty"`
	View      bool          `bson:"view,omitempty"`
	Pipeline  bson.RawValue `bson:"pipeline,omitempty"`
	Former    []formerName  `bson:"former,omitempty"`
	Collated  bool          `bson:"collated,omitempty"` // _ids are compared by the collection's collation
	Loose     bool          `bson:"loose,omitempty"`    // of a time series: see collection
	Temporary bool          `bson:"temporary,omitempty"`

	Dropped        uint64 `bson:"dropped,omitempty"` // of a dropped collection: the last change before
	Database, Name string `bson:",omitempty"`        // of a dropped collection
}

// indexEntry is a secondary index as the catalogue keeps it.
type indexEntry struct {
	Number   uint32   `bson:"number"`
	Spec     bson.Raw `bson:"spec"`
	Multikey int64    `bson:"multikey"` // a bit for each component
	Ready    bool     `bson:"ready"`    // false while it is being built
}

// nameKey is the catalogue's key of a collection.
func nameKey(database, name string) []byte {
	return append(append(append([]byte{collectionKey}, database...), 0), name...)
}

func templateKeyOf(collection, number uint32) []byte {
	key := append(make([]byte, 0, templateKeyBytes+1), templateKey) // a bound of a walk has one more
	key = binary.BigEndian.AppendUint32(key, collection)
	return binary.BigEndian.AppendUint32(key, number)
}

// templateBounds returns the bounds of a walk over all templates of a collection.
func templateBounds(collection uint32) (lower, upper []byte) {
	return templateKeyOf(collection, 0), append(templateKeyOf(collection, math.MaxUint32), 0)
}

func recordsName(number uint32) string {
	return metaKeyspace + "/" + strconv.FormatUint(uint64(number), 10)
}

func indexName(number, index uint32) string {
	return recordsName(number) + "/" + strconv.FormatUint(uint64(index), 10)
}

// newCatalogue returns a catalogue that is going to have a collection for each keyspace of records.
func newCatalogue(all []pando.KeyspaceInfo) *catalogue {
	n := 0
	for _, k := range all {
		if rest, ok := strings.CutPrefix(k.Name, metaKeyspace+"/"); ok && strings.IndexByte(rest, '/') < 0 {
			n++
		}
	}
	return &catalogue{byName: make(map[string]*collection, n), byNumber: make(map[uint32]*collection, n), views: map[string]*view{}}
}

// load reads the catalogue, and undoes what a killed process left half done. Collections are opened when they are used first.
func (s *Store) load() error {
	meta, err := s.db.Keyspace(metaKeyspace, nil)
	if errors.Is(err, pando.ErrNotFound) { // a reader makes none
		s.current.Store(newCatalogue(nil))
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the catalogue of documents: %w", err)
	}
	s.meta = meta
	all, err := s.db.Keyspaces()
	if err != nil {
		return fmt.Errorf("list the keyspaces: %w", err)
	}
	cat := newCatalogue(all)
	// Nobody reads these entries again, as long as the store is open.
	entries := func(kind byte) *pando.Iterator {
		return meta.Iter(&pando.IterOptions{Lower: []byte{kind}, Upper: []byte{kind + 1}, Once: true})
	}
	there := entries(collectionKey)
	defer there.Close()
	for there.Next() {
		value := there.Value()
		if there.Err() != nil {
			break
		}
		if err := s.loadEntry(cat, there.Key(), value); err != nil {
			return err
		}
	}
	s.breakCycles(cat)
	gone := entries(droppedKey)
	defer gone.Close()
	for gone.Next() {
		if key := gone.Key(); len(key) == 5 {
			s.nextID = max(s.nextID, binary.BigEndian.Uint32(key[1:])) // the log tells of this number
		}
	}
	if err := errors.Join(there.Err(), gone.Err()); err != nil {
		return fmt.Errorf("read the catalogue of documents: %w", err)
	}
	s.current.Store(cat)
	return s.removeLeftovers(cat, all)
}

// loadEntry takes in the collection or view of one entry.
func (s *Store) loadEntry(cat *catalogue, key, value []byte) error {
	database, name, ok := bytes.Cut(key[1:], []byte{0})
	if !ok {
		return fmt.Errorf("catalogue of documents: a key without a collection's name: %q", key)
	}
	ns := namespace{string(database), string(name)}
	e, err := readStored(value)
	if err != nil {
		return fmt.Errorf("catalogue of documents: entry of %s: %w", ns, err)
	}
	s.nextID = max(s.nextID, e.number)
	if e.view {
		cat.views[ns.String()] = s.storedView(ns, document(e.options))
		return nil
	}
	for _, i := range e.indexes {
		if !i.ready {
			s.log.Warn("an index build was cut off and is undone", "collection", ns.String(), "index", i.number)
		}
	}
	c := &collection{store: s, number: e.number, uuid: e.uuid}
	c.name.Store(&ns)
	c.unread.stored.Store(e)
	cat.byName[ns.String()], cat.byNumber[c.number] = c, c
	return nil
}

// removeLeftovers drops those of all keyspaces that no collection refers to: a process was killed between making them and writing them
// into the catalogue, or while it built an index, or dropped something.
func (s *Store) removeLeftovers(cat *catalogue, all []pando.KeyspaceInfo) error {
	for _, k := range all {
		rest, ok := strings.CutPrefix(k.Name, metaKeyspace+"/")
		if !ok {
			continue
		}
		first, second, isIndex := strings.Cut(rest, "/")
		number, ok := numberIn(first)
		if ok {
			s.nextID = max(s.nextID, number)
		}
		if ok && cat.refersTo(number, second, isIndex) {
			continue
		}
		if err := s.db.DropKeyspace(k.Name); err != nil {
			if errors.Is(err, pando.ErrReadOnly) {
				return nil
			}
			if errors.Is(err, pando.ErrDiskFull) { // nobody is to wait for room before he can read
				s.undropped.names = append(s.undropped.names, k.Name)
				cat.take(number, second)
				continue
			}
			return fmt.Errorf("remove what a killed process left behind: %w", err)
		}
		s.log.Info("removed what a killed process left behind", "keyspace", k.Name)
	}
	return nil
}

// dropTemporary drops collections that were not complete when a process was killed, or could not be dropped. What cannot be dropped now is
// when the store is opened again.
func (s *Store) dropTemporary() {
	for _, c := range s.current.Load().byName {
		if !c.unread.stored.Load().temporary {
			continue
		}
		ns := c.name.Load()
		err := c.handle().Drop(s.work)
		if errors.Is(err, pando.ErrReadOnly) {
			return
		}
		if err != nil {
			s.log.Warn("what a killed process had not completed could not be removed", "collection", ns.String(), "error", err)
			continue
		}
		s.log.Info("removed what a killed process had not completed", "collection", ns.String())
	}
}

// makeKeyspace makes the keyspace of something new. A database that only reads makes none: it is the only one that does not find it.
func (s *Store) makeKeyspace(name string, o *pando.KeyspaceOptions) (*pando.Keyspace, error) {
	ks, err := s.db.Keyspace(name, o)
	if errors.Is(err, pando.ErrNotFound) {
		return nil, pando.ErrReadOnly
	}
	return ks, err
}

// refersTo reports whether a collection that has not been used yet has a keyspace: the one of its records or, with isIndex, one of those of
// its indexes.
func (c *catalogue) refersTo(number uint32, of string, isIndex bool) bool {
	x := c.byNumber[number]
	if x == nil || !isIndex {
		return x != nil
	}
	i, ok := numberIn(of)
	return ok && slices.ContainsFunc(x.unread.stored.Load().indexes, func(s storedIndex) bool { return s.ready && s.number == i })
}

// take keeps a collection that has not been used yet from giving an index the number of another one, whose keyspace is still to be dropped: its
// entry may not know of that number.
func (c *catalogue) take(number uint32, of string) {
	x := c.byNumber[number]
	if i, ok := numberIn(of); ok && x != nil {
		s := x.unread.stored.Load()
		s.taken = max(s.taken, i)
	}
}

// numberIn reads a number as it stands in the name of a keyspace.
func numberIn(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil && (s[0] != '0' || len(s) == 1)
}

// fillRecords opens of a collection what its records are found with, as its entry says. What they are read and written with is the codec.
func (c *collection) fillRecords(e *entry) error {
	settings, err := parseSettings(e.Options)
	if err != nil {
		return err
	}
	c.format = Format(e.Format)
	if len(e.Former) > 0 {
		former := e.Former
		c.former.Store(&former)
	}
	c.settings.Store(settings)
	c.loose.Store(e.Loose)
	c.looseStored.Store(e.Loose)
	c.temporary.Store(e.Temporary)
	if e.Collated {
		if err := c.collateIDs(); err != nil {
			return err
		}
	}
	o := &pando.KeyspaceOptions{LeafBytes: recordLeaf, Compression: &settings.compression}
	c.records, err = c.store.db.Keyspace(recordsName(e.Number), o)
	return err
}

// fillCodec makes the codec of a collection, with the templates that there are.
func (c *collection) fillCodec() (err error) {
	c.codec, err = codec.New(c.format, &templates{c})
	return err
}

// fillIndexes opens the indexes of a collection. Their keyspaces are there, but those of indexes that were being built. No new index gets a
// number up to taken.
func (c *collection) fillIndexes(e *entry, taken uint32) error {
	c.nextIndex.Store(max(e.NextIndex, taken))
	var list []*secondary
	for _, i := range e.Indexes {
		if !i.Ready {
			continue
		}
		x, err := c.openIndex(i)
		if err != nil {
			return err
		}
		list = append(list, x)
	}
	c.indexes.Store(&list)
	return nil
}

// openIndex makes the index of an entry.
func (c *collection) openIndex(i indexEntry) (*secondary, error) {
	def, err := index.Parse(document(i.Spec), nil) // a specification that is stored names its collation, if it has one
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", i.Spec, err)
	}
	if def.Name == cappedIDIndex && c.settings.Load().capped {
		if def, err = c.cappedIDs(); err != nil {
			return nil, err
		}
	}
	ks, err := c.store.db.Keyspace(indexName(c.number, i.Number), c.indexOptionsOf(def))
	if err != nil {
		return nil, err
	}
	x := &secondary{number: i.Number, def: def, ks: ks, ready: i.Ready}
	x.multikey.Store(uint64(i.Multikey))
	x.stored.Store(uint64(i.Multikey))
	return x, nil
}

// indexOptions returns the options of an index's keyspace. Entries come in the order of the values, so a checkpoint rewrites leaves
// all over the index: that is done with the fast compressor, and zstd left to those who compact.
func (c *collection) indexOptions() *pando.KeyspaceOptions {
	compression := c.settings.Load().compression
	if compression == pando.Zstd {
		compression = pando.S2
	}
	return &pando.KeyspaceOptions{LeafBytes: indexLeafBytes, Compression: &compression}
}

// indexOptionsOf is indexOptions for this index: only entries of a unique one are asked for that may not be there. Others are found
// by walking.
func (c *collection) indexOptionsOf(def *index.Definition) *pando.KeyspaceOptions {
	o := c.indexOptions()
	o.NoBloomFilters = !def.Unique
	return o
}

// entry returns what the catalogue keeps of a collection, with this list of indexes.
func (c *collection) entry(list []*secondary) *entry {
	e := &entry{
		Number: c.number, UUID: c.uuid, Options: bson.Raw(c.settings.Load().spec), Format: uint8(c.format), NextIndex: c.nextIndex.Load(),
		Former: c.formerNames(), Loose: c.loose.Load(), Collated: c.ids != nil, Temporary: c.temporary.Load(),
	}
	for _, x := range list {
		e.Indexes = append(e.Indexes, indexEntry{
			Number: x.number, Spec: bson.Raw(x.def.Spec), Multikey: int64(x.multikey.Load()), Ready: x.ready,
		})
	}
	return e
}

// keptDropped is how many dropped collections change streams may still tell of, at least.
const keptDropped = 1000

// with returns a copy of the catalogue, for a change. When there are many it forgets the oldest that were dropped.
func (c *catalogue) with() *catalogue {
	if len(c.byNumber) > len(c.byName)+2*keptDropped {
		c = c.withoutOldest()
	}
	return &catalogue{byName: maps.Clone(c.byName), byNumber: maps.Clone(c.byNumber), views: maps.Clone(c.views)}
}

// withoutOldest returns the catalogue without the oldest dropped collections.
func (c *catalogue) withoutOldest() *catalogue {
	kept := maps.Clone(c.byNumber)
	gone := 0
	for _, number := range slices.Sorted(maps.Keys(kept)) {
		if gone == keptDropped {
			break
		}
		if kept[number].dropped.Load() {
			delete(kept, number)
			gone++
		}
	}
	return &catalogue{byName: c.byName, byNumber: kept, views: c.views}
}

// templates keeps a collection's templates in the catalogue. It implements codec.Templates.
type templates struct{ c *collection }

// Definitions implements codec.Templates. Nobody reads them again: the codec keeps what it needs of them.
func (t *templates) Definitions() codec.Definitions {
	lower, upper := templateBounds(t.c.number)
	return &definitions{it: t.c.store.meta.Iter(&pando.IterOptions{Lower: lower, Upper: upper, Once: true})}
}

// definitions implements codec.Definitions.
type definitions struct {
	it  *pando.Iterator
	err error
}

// Next implements codec.Definitions.
func (d *definitions) Next() (number uint32, definition []byte, ok bool) {
	if d.err != nil || !d.it.Next() {
		return 0, nil, false
	}
	key := d.it.Key()
	if len(key) != templateKeyBytes {
		d.err = fmt.Errorf("catalogue of documents: a key of %d bytes for a template", len(key))
		return 0, nil, false
	}
	definition = d.it.Value()
	return binary.BigEndian.Uint32(key[templateKeyBytes-4:]), definition, d.it.Err() == nil
}

// Close implements codec.Definitions.
func (d *definitions) Close() error {
	err := errors.Join(d.err, d.it.Err())
	d.it.Close()
	return err
}

// Store implements codec.Templates. The template comes before every record that needs it in the log, so that whatever survives a
// crash can be read; it need not be synced before the record is.
func (t *templates) Store(number uint32, definition []byte) error {
	err := t.c.store.meta.PutUnsynced(templateKeyOf(t.c.number, number), definition)
	if errors.Is(err, pando.ErrDiskFull) {
		return fmt.Errorf("%w: %w", codec.ErrNoRoom, err) // the document may take the place of a longer one all the same
	}
	return err
}
