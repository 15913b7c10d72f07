package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/plan"
)

// TestPlanningIsBounded: filters that could be carried out in a great many ways are planned in few steps.
func TestPlanningIsBounded(t *testing.T) {
	var disjunctions, elements []string
	for i := range 8 {
		var branches []string
		for k := range 8 {
			branches = append(branches, fmt.Sprintf(`{"%c": %d}`, 'a'+(i+k)%8, k))
		}
		disjunctions = append(disjunctions, fmt.Sprintf(`{"$or": [%s]}`, strings.Join(branches, ", ")))
	}
	for i := range 500 {
		elements = append(elements, fmt.Sprint(i))
	}
	for name, filter := range map[string]string{
		"a conjunction of disjunctions": fmt.Sprintf(`{"$and": [%s]}`, strings.Join(disjunctions, ", ")),
		"many elements":                 fmt.Sprintf(`{"a": {"$all": [%[1]s]}, "b": {"$all": [%[1]s]}}`, strings.Join(elements, ", ")),
		"many values":                   fmt.Sprintf(`{"a": {"$in": [%[1]s]}, "b": {"$in": [%[1]s]}}`, strings.Join(elements, ", ")),
	} {
		t.Run(name, func(t *testing.T) {
			counted := 0
			c := &plan.Collection{
				Namespace: "test.c",
				Records:   func() (int64, error) { return 1_000_000, nil },
				Count: func(int, []byte, []byte) (int64, error) {
					counted++
					return 100_000, nil
				},
			}
			for _, field := range "abcdefgh" {
				def, err := index.Parse(document(t, fmt.Sprintf(`{"key": {"%c": 1}}`, field)), nil)
				if err != nil {
					t.Fatal(err)
				}
				c.Indexes = append(c.Indexes, plan.Index{Definition: def, Multikey: 1})
			}
			q, err := queryOf(t, fmt.Sprintf(`{"find": %s}`, filter))
			if err != nil {
				t.Fatal(err)
			}
			plans, err := plan.All(q, c)
			if err != nil {
				t.Fatal(err)
			}
			if counted > 5000 || len(plans) > 200 {
				t.Errorf("%d ranges counted for %d plans", counted, len(plans))
			}
		})
	}
}
