package aggregate

import (
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// maxAccumulated is how much one $push, $addToSet or the like may gather.
const maxAccumulated = 100 << 20

// accumulator makes one value of many.
type accumulator interface {
	// add takes a value, which it copies if it keeps it; key is its sort key for those that have one. It returns by how many
	// bytes the accumulator has grown.
	add(key []byte, v value) (grew int, err error)
	// result may be called at any time. A missing value counts as null.
	result() (value, error)
	reset()
}

// evictable is an accumulator that can give its inputs back, or such as make the same of what comes behind them, so that they are kept
// elsewhere for a while. Those that have sort keys come with theirs.
type evictable interface {
	evict(emit func(key []byte, v value) error) error
}

// satiable is an accumulator that may have all that it takes.
type satiable interface{ satisfied() bool }

func accumulatedTooMuch(op string) error {
	return mongoerror.New(mongoerror.ExceededMemoryLimit, "%s used too much memory and cannot spill to disk. Memory limit: %d bytes", op, maxAccumulated)
}

// sumAccumulator is $sum, and $count with ones.
type sumAccumulator struct {
	sum   number.Sum
	scale *scale // of windows that lose documents
}

func (a *sumAccumulator) add(_ []byte, v value) (int, error) {
	a.sum.AddValue(v)
	a.scale.note(v)
	return 0, nil
}

func (a *sumAccumulator) result() (value, error) { return a.scale.applied(a.sum.Result()).Value(), nil }
func (a *sumAccumulator) reset()                 { a.sum = number.Sum{} }

// averageAccumulator is $avg.
type averageAccumulator struct {
	average number.Average
	scale   *scale // of windows that lose documents
}

func (a *averageAccumulator) add(_ []byte, v value) (int, error) {
	a.average.AddValue(v)
	a.scale.note(v)
	return 0, nil
}

func (a *averageAccumulator) result() (value, error) {
	average := a.average
	if a.scale != nil {
		average.Scale(a.scale.zero())
	}
	n, ok := average.Result()
	if !ok {
		return null(), nil
	}
	return n.Value(), nil
}

func (a *averageAccumulator) reset() { a.average = number.Average{} }

// deviationAccumulator is $stdDevPop and $stdDevSamp.
type deviationAccumulator struct {
	deviation number.Deviation
	sample    bool
}

func (a *deviationAccumulator) add(_ []byte, v value) (int, error) {
	a.deviation.AddValue(v)
	return 0, nil
}

func (a *deviationAccumulator) result() (value, error) {
	f, ok := a.deviation.Population()
	if a.sample {
		f, ok = a.deviation.Sample()
	}
	if !ok {
		return null(), nil
	}
	return doubleValue(f), nil
}

func (a *deviationAccumulator) reset() { a.deviation = number.Deviation{} }

// kept is a value with memory of its own, which is used again.
type kept struct{ v value }

func (k *kept) set(v value) (grew int) {
	before := cap(k.v.Data)
	k.v.Type, k.v.Data = v.Type, append(k.v.Data[:0], v.Data...)
	return cap(k.v.Data) - before
}

// extremeAccumulator is $min and $max.
type extremeAccumulator struct {
	kept
	sign      int  // 1: $max
	later     bool // of equal values the last one counts
	collation *collation.Collation
}

func (a *extremeAccumulator) add(_ []byte, v value) (int, error) {
	if isNullish(v) {
		return 0, nil
	}
	if a.v.Type != 0 {
		if c := order.Compare(v, a.v, a.collation) * a.sign; c < 0 || c == 0 && !a.later {
			return 0, nil
		}
	}
	return a.set(v), nil
}

func (a *extremeAccumulator) result() (value, error) {
	if a.v.Type == 0 {
		return null(), nil
	}
	return a.v, nil
}

func (a *extremeAccumulator) reset() { a.v.Type = 0 }

func (a *extremeAccumulator) evict(emit func(key []byte, v value) error) error {
	v := a.v
	if a.v = (value{}); v.Type == 0 {
		return nil
	}
	return emit(nil, v)
}

// oneAccumulator keeps one of the values that it was given.
type oneAccumulator struct {
	kept
	have bool
}

// result is null when nothing was added, and missing when what was added is.
func (a *oneAccumulator) result() (value, error) {
	if !a.have {
		return null(), nil
	}
	return a.v, nil
}

func (a *oneAccumulator) reset() { a.have, a.v.Type = false, 0 }

func (a *oneAccumulator) evict(emit func(key []byte, v value) error) error {
	v, have := a.v, a.have
	if a.v, a.have = (value{}), false; !have {
		return nil
	}
	return emit(nil, v)
}

// firstAccumulator is $first.
type firstAccumulator struct {
	oneAccumulator
	given bool // the first one, to be kept elsewhere
}

func (a *firstAccumulator) add(_ []byte, v value) (int, error) {
	if a.satisfied() {
		return 0, nil
	}
	a.have = true
	return a.set(v), nil
}

func (a *firstAccumulator) satisfied() bool { return a.have || a.given }

func (a *firstAccumulator) reset() {
	a.oneAccumulator.reset()
	a.given = false
}

func (a *firstAccumulator) evict(emit func(key []byte, v value) error) error {
	a.given = a.satisfied()
	return a.oneAccumulator.evict(emit)
}

// lastAccumulator is $last.
type lastAccumulator struct{ oneAccumulator }

func (a *lastAccumulator) add(_ []byte, v value) (int, error) {
	a.have = true
	return a.set(v), nil
}

// pushAccumulator is $push: the array is built as it will be returned.
type pushAccumulator struct {
	buf []byte
	n   int
}

func (a *pushAccumulator) add(_ []byte, v value) (int, error) {
	if v.Type == 0 {
		return 0, nil
	}
	before := cap(a.buf)
	if a.n == 0 {
		a.buf, _ = begin(a.buf[:0])
	}
	a.buf = appendItem(a.buf, a.n, v)
	if a.n++; len(a.buf) > maxAccumulated {
		return 0, accumulatedTooMuch("$push")
	}
	return cap(a.buf) - before, nil
}

func (a *pushAccumulator) result() (value, error) {
	if a.n == 0 {
		return array(), nil
	}
	whole := end(a.buf, 0)
	a.buf = whole[:len(whole)-1]
	return value{Type: bsoncore.TypeArray, Data: whole}, nil
}

func (a *pushAccumulator) reset() { a.n, a.buf = 0, a.buf[:0] }

func (a *pushAccumulator) evict(emit func(key []byte, v value) error) error {
	whole, _ := a.result()
	it := path.ElementsOf(whole.Data)
	for _, v, ok := it.Next(); ok; _, v, ok = it.Next() {
		if err := emit(nil, v); err != nil {
			return err
		}
	}
	a.n, a.buf = 0, nil
	return nil
}

// setAccumulator is $addToSet.
type setAccumulator struct {
	collation *collation.Collation
	seed      uint64
	byHash    map[uint64][]int
	values    []value
	size      int
}

func (a *setAccumulator) add(_ []byte, v value) (int, error) {
	if v.Type == 0 {
		return 0, nil
	}
	if a.byHash == nil {
		a.byHash, a.seed = map[uint64][]int{}, rand.Uint64()
	}
	h := order.Hash(a.seed, v, a.collation)
	for _, i := range a.byHash[h] {
		if order.Equal(a.values[i], v, a.collation) {
			return 0, nil
		}
	}
	a.byHash[h] = append(a.byHash[h], len(a.values))
	a.values = append(a.values, clone(v))
	grew := len(v.Data) + 80
	if a.size += grew; a.size > maxAccumulated {
		return 0, accumulatedTooMuch("$addToSet")
	}
	return grew, nil
}

func (a *setAccumulator) result() (value, error) { return array(a.values...), nil }
func (a *setAccumulator) reset()                 { a.values, a.byHash, a.size = nil, nil, 0 }

func (a *setAccumulator) evict(emit func(key []byte, v value) error) error {
	for _, v := range a.values {
		if err := emit(nil, v); err != nil {
			return err
		}
	}
	a.reset()
	return nil
}

// mergeAccumulator is $mergeObjects.
type mergeAccumulator struct {
	names  []string
	values []value
	index  map[string]int
	size   int
}

func (a *mergeAccumulator) add(_ []byte, v value) (int, error) {
	if isNullish(v) {
		return 0, nil
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return 0, mongoerror.New(mongoerror.Code(40400), "$mergeObjects requires object inputs, but input %s is of type %s", v, mongoerror.TypeName(v.Type))
	}
	if a.index == nil {
		a.index = map[string]int{}
	}
	before := a.size
	it := path.ElementsOf(v.Data)
	for name, v, ok := it.Next(); ok; name, v, ok = it.Next() {
		i, there := a.index[string(name)]
		if !there {
			i = len(a.names)
			a.index[string(name)] = i
			a.names, a.values = append(a.names, string(name)), append(a.values, value{})
			a.size += len(name) + 100
		}
		a.size += len(v.Data) - len(a.values[i].Data)
		a.values[i] = value{Type: v.Type, Data: append(a.values[i].Data[:0], v.Data...)}
	}
	if a.size > maxAccumulated {
		return 0, accumulatedTooMuch("$mergeObjects")
	}
	return a.size - before, nil
}

func (a *mergeAccumulator) result() (value, error) {
	b, start := begin(nil)
	for i, name := range a.names {
		b = appendField(b, name, a.values[i])
	}
	return documentValue(end(b, start)), nil
}

func (a *mergeAccumulator) reset() { a.names, a.values, a.index, a.size = nil, nil, nil, 0 }

func (a *mergeAccumulator) evict(emit func(key []byte, v value) error) error {
	if len(a.names) == 0 {
		return nil
	}
	merged, err := a.result()
	if a.reset(); err != nil {
		return err
	}
	return emit(nil, merged)
}
