package engines

import (
	"errors"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/bench/engine"
)

// hashKeyspace is where pando-hash has all of its data.
const hashKeyspace = "hash"

// pandoHashDriver: Pando with all data in one keyspace whose layout is a hash table. It is the adapter of pando but for that.
//
// Options set: Layout Hash, and those of pando: Profile from the class, MemoryBytes from the budget that every engine gets. All else is
// the default, here too: what is left to tune is for trees. The default keyspace, a tree, stays empty and costs nothing.
//
// It keeps no order, so it is not asked for scans and seeks, nor for documents, whose indexes are ordered.
func pandoHashDriver() engine.Driver {
	d := pandoDriver()
	d.Name, d.Kind, d.NoOrder = "pando-hash", "memtable with log over a hash table, without order", true
	d.Settings = "one keyspace with Layout Hash; MemoryBytes = the budget; otherwise defaults"
	d.Open, d.OpenDocuments = openPandoHash(pando.Hash), nil
	return d
}

// openPandoHash opens a database with a keyspace of that layout; tests have others than the driver.
func openPandoHash(layout pando.Layout) func(engine.Options) (engine.Store, error) {
	return func(o engine.Options) (engine.Store, error) {
		db, err := pando.Open(o.Dir, pandoOptions(o))
		if err != nil {
			return nil, err
		}
		ks, err := db.Keyspace(hashKeyspace, &pando.KeyspaceOptions{Layout: layout})
		if err != nil {
			return nil, errors.Join(err, db.Close())
		}
		return withoutOrder{newPandoStore(db, ks)}, nil
	}
}

// withoutOrder is a store that is asked for single records only.
type withoutOrder struct{ *pandoStore }

// Scan needs an order: a walk in any order would be other work than that of the engines that it stands beside.
func (withoutOrder) Scan(engine.Scan, engine.Visit) error { return engine.ErrUnsupported }

// Snapshot is Pando's, without order too.
func (s withoutOrder) Snapshot() (engine.Snapshot, error) {
	snap, err := s.pandoStore.Snapshot()
	return snapshotWithoutOrder{snap}, err
}

// View is Pando's, without order too.
func (s withoutOrder) View(fn func(engine.Reader) error) error {
	return s.db.View(func(tx *pando.Tx) error { return fn(transactionWithoutOrder{s.within(tx)}) })
}

// Update is Pando's, without order too.
func (s withoutOrder) Update(fn func(engine.Transaction) error) error {
	return s.db.Update(func(tx *pando.Tx) error { return fn(transactionWithoutOrder{s.within(tx)}) })
}

type transactionWithoutOrder struct{ pandoTransaction }

// Scan needs an order.
func (transactionWithoutOrder) Scan(engine.Scan, engine.Visit) error { return engine.ErrUnsupported }

type snapshotWithoutOrder struct{ engine.Snapshot }

// Scan needs an order.
func (snapshotWithoutOrder) Scan(engine.Scan, engine.Visit) error { return engine.ErrUnsupported }
