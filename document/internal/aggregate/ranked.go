package aggregate

import (
	"bytes"
	"math"
	"slices"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/number"
)

// ranked is a value with its sort key.
type ranked struct {
	key []byte
	v   value
}

// rankedAccumulator keeps the n first, or last, values in the order of their keys: $top, $topN, $bottom, $bottomN, and with the
// value itself as key $minN and $maxN.
type rankedAccumulator struct {
	op        string
	n         int
	last      bool // the last ones
	single    bool // $top, $bottom: a value, no array
	own       bool // the value is the key
	backwards bool // $maxN: the result is the other way round
	later     bool // of equal ones the last ones stay: over windows that lose documents
	collation *collation.Collation
	list      rankedList
	size      int
	key       []byte
}

func (a *rankedAccumulator) add(key []byte, v value) (int, error) {
	if a.own {
		if isNullish(v) {
			return 0, nil
		}
		a.key = keyenc.Append(a.key[:0], v, false, a.collation)
		key = a.key
	}
	full := a.list.n >= a.n
	switch {
	case !full:
	case !a.last && bytes.Compare(key, a.list.last().key) >= 0:
		return 0, nil
	case a.last && bytes.Compare(key, a.list.first().key) < 0:
		return 0, nil
	case a.last && !a.later && bytes.Equal(key, a.list.first().key):
		return 0, nil
	}
	r := ranked{append([]byte(nil), key...), clone(v)}
	before := a.size
	a.size += len(key) + len(v.Data) + 72
	switch {
	case !full:
	case a.last:
		a.size -= len(a.list.first().key) + len(a.list.first().v.Data) + 72
		a.list.dropFirst()
	default:
		a.size -= len(a.list.last().key) + len(a.list.last().v.Data) + 72
		a.list.dropLast()
	}
	a.list.insert(r)
	if a.size > maxAccumulated {
		return 0, accumulatedTooMuch(a.op)
	}
	return a.size - before, nil
}

func (a *rankedAccumulator) result() (value, error) {
	if a.single {
		if a.list.n == 0 {
			return null(), nil
		}
		return a.list.first().v, nil
	}
	values := make([]value, 0, a.list.n)
	err := a.list.all(func(r *ranked) error {
		values = append(values, r.v)
		return nil
	})
	if err != nil {
		return value{}, err
	}
	if a.backwards {
		slices.Reverse(values)
	}
	return array(values...), nil
}

func (a *rankedAccumulator) reset() { a.list, a.size = rankedList{}, 0 }

func (a *rankedAccumulator) evict(emit func(key []byte, v value) error) error {
	if err := a.list.all(func(r *ranked) error { return emit(r.key, r.v) }); err != nil {
		return err
	}
	a.reset()
	return nil
}

// endsAccumulator is $firstN and $lastN.
type endsAccumulator struct {
	op     string
	n      int
	last   bool
	values []value
	start  int // where the oldest of the last n values is
	size   int
	gone   int  // of the first n, those that are kept elsewhere
	enough bool // there was a value too many
}

func (a *endsAccumulator) add(_ []byte, v value) (int, error) {
	if a.enough = a.enough || a.gone+len(a.values) >= a.n && !a.last; a.enough {
		return 0, nil
	}
	if v.Type == 0 {
		v = null()
	}
	before := a.size
	a.size += len(v.Data)
	if len(a.values) < a.n {
		a.size += 32
		a.values = append(a.values, clone(v))
	} else {
		old := &a.values[a.start]
		a.size -= len(old.Data)
		old.Type, old.Data = v.Type, append(old.Data[:0], v.Data...)
		a.start = (a.start + 1) % a.n
	}
	if a.size > maxAccumulated {
		return 0, accumulatedTooMuch(a.op)
	}
	return a.size - before, nil
}

// satisfied is true when one value more than needed was there: MongoDB evaluates that one too.
func (a *endsAccumulator) satisfied() bool { return a.enough }

func (a *endsAccumulator) result() (value, error) {
	return array(append(slices.Clone(a.values[a.start:]), a.values[:a.start]...)...), nil
}

func (a *endsAccumulator) reset() { a.values, a.start, a.size, a.gone, a.enough = nil, 0, 0, 0, false }

func (a *endsAccumulator) evict(emit func(key []byte, v value) error) error {
	for _, v := range slices.Concat(a.values[a.start:], a.values[:a.start]) {
		if err := emit(nil, v); err != nil {
			return err
		}
	}
	if !a.last {
		a.gone += len(a.values)
	}
	a.values, a.start, a.size = nil, 0, 0
	return nil
}

// exactPercentiles is up to how many values percentiles are exact.
const exactPercentiles = 100_000

// percentileAccumulator is $percentile and $median: exact up to exactPercentiles values, beyond that a t-digest (Dunning and
// Ertl, "Computing extremely accurate quantiles using t-digests", 2019).
type percentileAccumulator struct {
	p       []float64
	single  bool
	values  []float64
	digest  []centroid
	weight  float64
	extreme [2]float64
}

type centroid struct{ mean, weight float64 }

func (a *percentileAccumulator) add(_ []byte, v value) (int, error) {
	n, ok := number.Of(v)
	if !ok || n.IsNaN() {
		return 0, nil
	}
	if len(a.values) >= exactPercentiles {
		a.compress()
	}
	before := cap(a.values)
	a.values = append(a.values, n.Float64())
	return 8 * (cap(a.values) - before), nil
}

// compress merges the values into the digest.
func (a *percentileAccumulator) compress() {
	slices.Sort(a.values)
	if len(a.values) == 0 {
		return
	}
	low, high := a.values[0], a.values[len(a.values)-1]
	if a.weight > 0 {
		low, high = min(low, a.extreme[0]), max(high, a.extreme[1])
	}
	a.extreme = [2]float64{low, high}
	all := make([]centroid, 0, len(a.values)+len(a.digest))
	for _, f := range a.values {
		all = append(all, centroid{f, 1})
	}
	all = append(all, a.digest...)
	slices.SortFunc(all, func(x, y centroid) int {
		switch {
		case x.mean < y.mean:
			return -1
		case x.mean > y.mean:
			return 1
		}
		return 0
	})
	a.weight += float64(len(a.values))
	a.values, a.digest = a.values[:0], mergeCentroids(all, a.weight)
}

// digestSize is the t-digest's parameter delta: about how many centroids there are.
const digestSize = 2000

func mergeCentroids(all []centroid, total float64) []centroid {
	scale := func(q float64) float64 { return digestSize / (2 * math.Pi) * math.Asin(2*q-1) }
	merged := []centroid{all[0]}
	done := 0.0
	start := scale(0)
	for _, c := range all[1:] {
		last := &merged[len(merged)-1]
		if q := (done + last.weight + c.weight) / total; scale(min(q, 1))-start <= 1 && !math.IsInf(c.mean, 0) && !math.IsInf(last.mean, 0) {
			last.mean += (c.mean - last.mean) * c.weight / (last.weight + c.weight)
			last.weight += c.weight
			continue
		}
		done += last.weight
		start = scale(done / total)
		merged = append(merged, c)
	}
	return merged
}

func (a *percentileAccumulator) result() (value, error) {
	if len(a.digest) > 0 {
		a.compress()
	} else {
		slices.Sort(a.values)
	}
	results := make([]value, len(a.p))
	for i, p := range a.p {
		switch {
		case len(a.digest) > 0:
			results[i] = doubleValue(a.quantile(p))
		case len(a.values) > 0:
			at := int(math.Ceil(p*float64(len(a.values)))) - 1
			results[i] = doubleValue(a.values[min(max(at, 0), len(a.values)-1)])
		default:
			results[i] = null()
		}
	}
	if a.single {
		return results[0], nil
	}
	return array(results...), nil
}

// quantile interpolates between the centroids.
func (a *percentileAccumulator) quantile(p float64) float64 {
	rank := p * a.weight
	done, last, mean := 0.0, 0.0, a.extreme[0]
	for _, c := range a.digest {
		middle := done + c.weight/2
		if rank <= middle {
			return mean + (c.mean-mean)*(rank-last)/(middle-last)
		}
		done, last, mean = done+c.weight, middle, c.mean
	}
	return a.extreme[1]
}

func (a *percentileAccumulator) reset() { a.values, a.digest, a.weight = a.values[:0], nil, 0 }
