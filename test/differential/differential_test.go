package differential

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

var (
	first = flag.Uint64("first", 1, "the first seed")
	fresh = flag.Bool("fresh", false, "take seeds that were never run, from the time of day on")
	seeds = flag.Int("seeds", 20, "collections to make")
	calls = flag.Int("calls", 150, "calls for each of them")
)

// firstSeed is where the seeds of a run begin.
func firstSeed() uint64 {
	if *fresh {
		return uint64(time.Now().UnixNano())
	}
	return *first
}

// TestSameAnswers compares the answers of both servers to the same calls.
func TestSameAnswers(t *testing.T) {
	t.Parallel()
	them, us := theirs(t), ours(t)
	known := knownDifferences(t)
	from := firstSeed()
	for seed := from; seed < from+uint64(*seeds); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := &pair{t: t, us: us, them: them, known: known}
			p.compareAll(newGenerator(seed))
			p.kinds(newGenerator(seed), *calls/5)
			p.series(newGenerator(seed), *calls/5)
		})
	}
}

// pair is both servers with the same collection.
type pair struct {
	t        *testing.T
	us, them *peer
	known    map[string]string
	indexes  string // that the collection has, in words
}

// both runs a command on both servers and returns what is to be equal, in words.
func (p *pair) both(command bson.D, ordered bool) (us, them string) {
	p.t.Helper()
	answer := func(peer *peer) string {
		got, err := peer.run(command)
		if err != nil {
			p.t.Fatal(err)
		}
		return outcome(p.t, got, ordered, command[0].Value == "series")
	}
	return answer(p.us), answer(p.them)
}

// load makes the collections anew, with the same documents, so that one difference is not the cause of all that follow.
func (p *pair) load(docs, others bson.A) {
	p.t.Helper()
	for name, docs := range map[string]bson.A{"c": docs, "other": others, "out": others[:3]} {
		p.both(doc("delete", name, "deletes", bson.A{doc("q", doc(), "limit", int32(0))}), true)
		p.same(doc("insert", name, "documents", docs, "ordered", false), true)
	}
}

func (p *pair) compareAll(g generator) {
	docs, others := g.documents(60), g.documents(25)
	for _, name := range []string{"c", "other", "out"} {
		p.both(doc("drop", name), true) // since 7.0 dropping what is not there is no error
		create := doc("create", name)
		if g.chance(6) {
			create = append(create, bson.E{Key: "collation", Value: g.collation()})
			p.indexes += shown(p.t, create)
		}
		p.same(create, true)
	}
	var made []bson.D
	for i := range 1 + g.IntN(2) {
		index := g.index()
		name := fmt.Sprint(i)
		if strings.HasSuffix(index[0].Value.(bson.D)[0].Key, "$**") {
			name = "w" + name // a hint at it is refused for other conditions than in mongod
		}
		index = append(index, bson.E{Key: "name", Value: name})
		if p.same(doc("createIndexes", "c", "indexes", bson.A{index}), true) {
			p.indexes += shown(p.t, index)
			made = append(made, index)
		}
	}
	p.same(doc("createIndexes", "other", "indexes", bson.A{doc("key", doc(pick(g, "a", "n", "o.x"), int32(1)), "name", "i")}), true)
	p.load(docs, others)
	p.validate(g)
	for _, index := range made {
		for range *calls / 10 {
			if command, ok := g.between(index); ok {
				p.same(command, true)
			}
		}
	}
	for range *calls {
		c := g.call()
		if same := p.same(c.command, c.ordered); !c.writes {
			continue
		} else if same {
			for _, name := range []string{"c", "other", "out"} {
				p.same(doc("find", name, "sort", doc("_id", int32(1)), "batchSize", int32(100_000)), true, c.command)
			}
		}
		p.load(docs, others)
	}
}

// validate inserts documents into a collection with a validator, and so compares the details of what fails.
func (p *pair) validate(g generator) {
	p.both(doc("drop", "v"), true)
	validator := pick(g, g.filter(2), doc("$jsonSchema", g.schema(2)), doc("$jsonSchema", g.schema(1), "n", g.condition(1)))
	if !p.same(doc("create", "v", "validator", validator), true) {
		return
	}
	p.same(doc("insert", "v", "documents", g.documents(20), "ordered", false), true)
	p.same(doc("find", "v", "sort", doc("_id", int32(1))), true)
}

// same sends a command to both servers, reports a difference that is not known, and whether both answered the same, and no error.
func (p *pair) same(command bson.D, ordered bool, after ...bson.D) bool {
	p.t.Helper()
	us, them := p.both(command, ordered)
	if us == them {
		return !strings.HasPrefix(us, "error")
	}
	if p.evaluates(command, us, them) {
		return false
	}
	text := fmt.Sprintf("%s\nours:   %s\ntheirs: %s\nindexes: %s", shown(p.t, command), around(us, them), around(them, us), p.indexes)
	for _, c := range after {
		text = "after " + shown(p.t, c) + "\n" + text
	}
	for part, reason := range p.known {
		if strings.Contains(text, part) {
			p.t.Logf("known (%s): %s", reason, text)
			return false
		}
	}
	p.t.Error(text)
	return false
}

// around cuts a down to where it begins to differ from b.
func around(a, b string) string {
	const before, behind = 200, 500
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	from, to := max(0, same-before), min(len(a), same+behind)
	if to-from == len(a) {
		return a
	}
	return fmt.Sprintf("(%d bytes) %s", len(a), a[from:to])
}

// evaluates reports whether both failed, but only when they looked at documents: which operand of which document is looked at first
// is not defined. Then nothing fails on a collection without documents, or both do in the same way.
func (p *pair) evaluates(command bson.D, us, them string) bool {
	p.t.Helper()
	if !strings.HasPrefix(us, "error") || !strings.HasPrefix(them, "error") || command[0].Value != "c" {
		return false
	}
	if strings.Contains(us+them, "27 IndexNotFound") && strings.Contains(shown(p.t, command), "$geoNear") {
		return true // a constant fails too: which of the two is found first depends on what is folded
	}
	empty := slices.Clone(command)
	empty[0].Value = "empty"
	p.both(doc("drop", "empty"), true) // as an upsert may have filled it
	us, them = p.both(empty, false)
	return us == them
}

// outcome returns what of an answer is to be the same; with ignoreOrder not the order of the fields of documents.
func outcome(t *testing.T, answer bson.M, ordered, ignoreOrder bool) string {
	t.Helper()
	if ok := answer["ok"]; ok != 1.0 && ok != int32(1) { // the latter of a count of a view
		return fmt.Sprintf("error %v %v", answer["code"], answer["codeName"])
	}
	if failed, ok := answer["writeErrors"].(bson.A); ok {
		text := fmt.Sprintf("error n=%v", answer["n"])
		for _, f := range failed {
			kept := bson.D{}
			for _, e := range f.(bson.D) {
				if e.Key != "errmsg" {
					kept = append(kept, e)
				}
			}
			text += " " + shown(t, kept)
		}
		return text
	}
	var parts []string
	for _, name := range []string{"n", "nModified", "value"} {
		if v, ok := answer[name]; ok {
			parts = append(parts, shown(t, bson.D{{Key: name, Value: v}}))
		}
	}
	list, _ := answer["values"].(bson.A)
	for i := range list {
		list[i] = plain(list[i]) // which of several equal values distinct gives depends on the plan
	}
	if cursor, ok := answer["cursor"].(bson.D); ok {
		for _, e := range cursor {
			if e.Key == "firstBatch" || e.Key == "nextBatch" {
				list = e.Value.(bson.A)
			}
		}
	}
	from := len(parts)
	for _, v := range list {
		if d, ok := v.(bson.D); ok && ignoreOrder {
			slices.SortStableFunc(d, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
		}
		parts = append(parts, shown(t, bson.D{{Key: "", Value: v}}))
	}
	if !ordered {
		slices.Sort(parts[from:])
	}
	return strings.Join(parts, " ")
}

// plain makes numbers of one type of all in v.
func plain(v any) any {
	switch v := v.(type) {
	case int32:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v + 0 // of zeros that without a sign
	case bson.Decimal128:
		f, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return v
		}
		return f + 0
	case bson.D:
		for i := range v {
			v[i].Value = plain(v[i].Value)
		}
	case bson.A:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}

// made matches ObjectIDs: servers make them, the generator does not.
var made = regexp.MustCompile(`"\$oid":"[0-9a-f]{24}"`)

// now matches times of day, which no date of the generator is: what $currentDate sets.
var now = regexp.MustCompile(`\{"\$date":\{"\$numberLong":"1[789]\d{11}"\}\}|\{"\$timestamp":\{"t":1[789]\d{8},"i":\d+\}\}`)

func shown(t *testing.T, d bson.D) string {
	t.Helper()
	text, err := bson.MarshalExtJSON(d, true, false)
	if err != nil {
		t.Fatal(err)
	}
	return now.ReplaceAllString(made.ReplaceAllString(string(text), `"$oid":"made"`), `"now"`)
}

// knownDifferences reads known_differences.txt: lines of a part of the report of a difference, a tab and the reason.
func knownDifferences(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open("known_differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	known := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); line != "" && !strings.HasPrefix(line, "#") {
			part, reason, ok := strings.Cut(line, "\t")
			if !ok || reason == "" {
				t.Fatalf("known_differences.txt: %q is not a part of a report, a tab and a reason", line)
			}
			known[part] = reason
		}
	}
	return known
}
