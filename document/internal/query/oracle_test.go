package query

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pandodb/pando/document/internal/path"
)

// generator makes schemas of draft 4, as far as MongoDB has it, and values of JSON, that have much in common.
type generator struct{ *rand.Rand }

func (g generator) name() string { return []string{"a", "b", "c", "ab"}[g.IntN(4)] }

func (g generator) value(depth int) any {
	switch g.IntN(8 - 2*min(depth, 2)) {
	case 0:
		return float64(g.IntN(6))
	case 1:
		return []any{"", "a", "ab", "xyz", "\u00e9"}[g.IntN(5)]
	case 2:
		return g.IntN(2) == 0
	case 3:
		return nil
	case 4, 5:
		list := []any{}
		for range g.IntN(4) {
			list = append(list, g.value(depth+1))
		}
		return list
	}
	object := map[string]any{}
	for range g.IntN(4) {
		object[g.name()] = g.value(depth + 1)
	}
	return object
}

func (g generator) schemas(depth int) []any {
	list := []any{}
	for range 1 + g.IntN(3) {
		list = append(list, g.schema(depth+1))
	}
	return list
}

func (g generator) schema(depth int) map[string]any {
	s := map[string]any{}
	for range 1 + g.IntN(3) {
		switch n := g.IntN(22); {
		case n < 3:
			s["type"] = []any{"string", "number", "object", "array", "boolean", "null"}[g.IntN(6)]
		case n == 3:
			s["enum"] = []any{g.value(2)}
		case n == 4:
			s["minimum"], s["exclusiveMinimum"] = float64(g.IntN(5)), g.IntN(2) == 0
		case n == 5:
			s["maximum"] = float64(g.IntN(5))
		case n == 6:
			s["multipleOf"] = float64(1 + g.IntN(3))
		case n == 7:
			s["minLength"], s["maxLength"] = float64(g.IntN(2)), float64(1+g.IntN(2))
		case n == 8:
			s["pattern"] = []any{"^a", "b$", "x"}[g.IntN(3)]
		case n == 9:
			s["minItems"], s["maxItems"] = float64(g.IntN(2)), float64(1+g.IntN(3))
		case n == 10:
			s["uniqueItems"] = true
		case n == 11:
			s["minProperties"], s["maxProperties"] = float64(g.IntN(2)), float64(1+g.IntN(3))
		case n == 12:
			s["required"] = []any{g.name()}
		case depth < 3:
			g.nested(s, n, depth)
		}
	}
	return s
}

func (g generator) nested(s map[string]any, n, depth int) {
	switch n {
	case 13, 14:
		s["properties"] = map[string]any{g.name(): g.schema(depth + 1)}
	case 15:
		s["patternProperties"] = map[string]any{"^a": g.schema(depth + 1)}
	case 16:
		s["additionalProperties"] = []any{true, false, g.schema(depth + 1)}[g.IntN(3)]
	case 17:
		s["items"] = []any{g.schema(depth + 1), g.schemas(depth)}[g.IntN(2)]
		s["additionalItems"] = []any{true, false, g.schema(depth + 1)}[g.IntN(3)]
	case 18:
		s["dependencies"] = map[string]any{g.name(): []any{[]any{g.name()}, g.schema(depth + 1)}[g.IntN(2)]}
	case 19:
		s["not"] = g.schema(depth + 1)
	default:
		s[[]string{"allOf", "anyOf", "oneOf"}[g.IntN(3)]] = g.schemas(depth)
	}
}

// TestSchemaOracle compares $jsonSchema with another implementation of draft 4, on random schemas and documents.
func TestSchemaOracle(t *testing.T) {
	seed := rand.Uint64()
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	agreed := map[bool]int{}
	for range 1000 {
		schema := g.schema(0)
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(jsonschema.Draft4)
		if err := compiler.AddResource("mem:schema", schema); err != nil {
			t.Fatal(seed, err)
		}
		oracle, err := compiler.Compile("mem:schema")
		if err != nil {
			t.Fatalf("seed %d: %v: %v", seed, schema, err)
		}
		f, err := Parse(document(t, `{"$jsonSchema": `+text(t, schema)+`}`), nil)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, text(t, schema), err)
		}
		for range 4 {
			doc := map[string]any{}
			for range g.IntN(4) {
				doc[g.name()] = g.value(0)
			}
			want := oracle.Validate(doc) == nil
			got, err := f.Match(path.Document(document(t, text(t, doc))))
			if err != nil || got != want {
				t.Errorf("seed %d: %s on %s: %v, %v", seed, text(t, schema), text(t, doc), got, err)
			}
			agreed[want]++
		}
	}
	t.Logf("seed %d: %d valid, %d not", seed, agreed[true], agreed[false])
}

func text(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
