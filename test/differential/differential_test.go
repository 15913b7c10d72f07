package differential

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

var (
	fresh = flag.Bool("fresh", false, "take seeds that were never run")
	seeds = flag.Int("seeds", 20, "collections to make")
	calls = flag.Int("calls", 150, "calls for each of them")
)

// TestSameAnswers compares the answers of both servers to the same calls.
func TestSameAnswers(t *testing.T) {
	t.Parallel()
	them, us := theirs(t), ours(t)
	known := knownDifferences(t)
	first := uint64(1)
	if *fresh {
		first = uint64(time.Now().UnixNano())
	}
	for seed := first; seed < first+uint64(*seeds); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := pair{t: t, us: us, them: them, known: known}
			p.compareAll(newGenerator(seed))
		})
	}
}

// pair is both servers with the same collection.
type pair struct {
	t        *testing.T
	us, them *peer
	known    map[string]string
}

// both runs a command on both servers and returns what is to be equal, in words.
func (p pair) both(command bson.D, ordered bool) (us, them string) {
	p.t.Helper()
	answer := func(peer *peer) string {
		got, err := peer.run(command)
		if err != nil {
			p.t.Fatal(err)
		}
		return outcome(p.t, got, ordered)
	}
	return answer(p.us), answer(p.them)
}

// load makes the collection anew.
func (p pair) load(docs bson.A, indexes bson.A) {
	p.t.Helper()
	p.both(bson.D{{Key: "drop", Value: "c"}}, true)
	for _, c := range []bson.D{{{Key: "insert", Value: "c"}, {Key: "documents", Value: docs}},
		{{Key: "createIndexes", Value: "c"}, {Key: "indexes", Value: indexes}}} {
		if us, them := p.both(c, true); us != them {
			p.t.Fatalf("%s\nours:   %s\ntheirs: %s", shown(p.t, c), us, them)
		}
	}
}

func (p pair) compareAll(g generator) {
	docs, indexes := g.documents(60), bson.A{}
	for i := range 1 + g.IntN(2) {
		indexes = append(indexes, bson.D{{Key: "key", Value: g.index()}, {Key: "name", Value: fmt.Sprintf("i%d", i)}})
	}
	if key := indexes[0].(bson.D)[0].Value.(bson.D); len(key) > 1 {
		// Two arrays in one entry are refused, and which document is refused first is not the matter here.
		indexes = bson.A{bson.D{{Key: "key", Value: key[:1]}, {Key: "name", Value: "i0"}}}
	}
	p.load(docs, indexes[:1])
	all := bson.D{{Key: "find", Value: "c"}, {Key: "sort", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "batchSize", Value: int32(1000)}}
	for range *calls {
		command, ordered, writes := g.call()
		us, them := p.both(command, ordered)
		same := p.same(command, us, them)
		if !writes {
			continue
		}
		if same && !strings.HasPrefix(us, "error") {
			us, them = p.both(all, true)
			p.same(append(bson.D{{Key: "after", Value: command}}, all...), us, them)
		}
		// Each write meets the same documents, so that one difference is not the cause of all that follow.
		p.load(docs, indexes[:1])
	}
}

// same reports a difference that is not known.
func (p pair) same(command bson.D, us, them string) bool {
	if us == them {
		return true
	}
	text := fmt.Sprintf("%s\nours:   %s\ntheirs: %s", shown(p.t, command), us, them)
	for part, reason := range p.known {
		if strings.Contains(text, part) {
			p.t.Logf("known (%s): %s", reason, text)
			return false
		}
	}
	p.t.Error(text)
	return false
}

// outcome returns what of an answer is to be the same.
func outcome(t *testing.T, answer bson.M, ordered bool) string {
	t.Helper()
	if answer["ok"] != 1.0 {
		return fmt.Sprintf("error %v", answer["code"])
	}
	if failed, ok := answer["writeErrors"].(bson.A); ok {
		return fmt.Sprintf("error %v", failed[0].(bson.D)[1].Value)
	}
	var parts []string
	for _, name := range []string{"n", "nModified", "value"} {
		if v, ok := answer[name]; ok {
			parts = append(parts, shown(t, bson.D{{Key: name, Value: v}}))
		}
	}
	list, _ := answer["values"].(bson.A)
	if cursor, ok := answer["cursor"].(bson.D); ok {
		for _, e := range cursor {
			if e.Key == "firstBatch" {
				list = e.Value.(bson.A)
			}
		}
	}
	from := len(parts)
	for _, v := range list {
		parts = append(parts, shown(t, bson.D{{Key: "", Value: v}}))
	}
	if !ordered {
		slices.Sort(parts[from:])
	}
	return strings.Join(parts, " ")
}

func shown(t *testing.T, d bson.D) string {
	t.Helper()
	text, err := bson.MarshalExtJSON(d, true, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
