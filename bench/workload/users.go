package workload

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/pandodb/pando/bench/engine"
)

// DataVariable names the directory of the real data.
const DataVariable = "PANDO_DATA"

func userFirst() []string {
	return []string{"anna", "boris", "clara", "david", "elena", "felix", "greta", "hugo", "irene", "jonas", "karin", "lukas", "maria", "nils", "olga", "peter"}
}

func userLast() []string {
	return []string{"adler", "brandt", "costa", "dubois", "eriksen", "ferrari", "garcia", "horvat", "ivanov", "jansen", "kowalski", "larsen", "moreau", "novak", "olsen", "petrov"}
}

// userCities is how many cities there are.
const userCities = 1000

func userCity(i int) string {
	c := mix(uint64(i)*golden+3) % userCities
	return towns()[c%10] + " " + strconv.Itoa(int(c/10))
}

func userName(i int) (first, last string) {
	r := mix(uint64(i) * golden)
	return userFirst()[r&15], userLast()[r>>4&15]
}

func userEmail(i int) string {
	first, last := userName(i)
	return first + "." + last + strconv.Itoa(i) + "@example.com"
}

// Users makes users [from, to).
func Users(from, to int) []engine.User {
	list := make([]engine.User, 0, to-from)
	for i := from; i < to; i++ {
		r := mix(uint64(i)*golden + 9)
		first, last := userName(i)
		list = append(list, engine.User{
			ID: int64(i), Name: first + " " + last, Email: userEmail(i), Age: int32(18 + r%60), City: userCity(i),
			Created: 1_700_000_000_000 + int64(i)*60_000, Score: float64(r>>8%10_000) / 100, Active: r>>30&3 > 0,
			Tags: []string{plans()[r>>40&3], towns()[r>>44%10]},
		})
	}
	return list
}

// madeUp is how many flights are made up where there is no real data.
func madeUp(s Sizes) int { return s.Documents / 3 }

// flightsScale says which flights there are.
func flightsScale(s Sizes) string {
	if os.Getenv(DataVariable) == "" {
		return thousands(madeUp(s)) + " made up flights"
	}
	return "real flights"
}

// flightTable returns the flights of the real data, or made up ones where there is none, and what to call them.
func flightTable(s Sizes) (*engine.Table, string, error) {
	dir := os.Getenv(DataVariable)
	if dir == "" {
		return madeUpFlights(madeUp(s)), "made up flights", nil
	}
	file, err := os.Open(filepath.Join(dir, "flights.csv.zst"))
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	plain, err := zstd.NewReader(file)
	if err != nil {
		return nil, "", err
	}
	defer plain.Close()
	lines, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		return nil, "", fmt.Errorf("flights: %w", err)
	}
	t := &engine.Table{Columns: lines[0]}
	for _, line := range lines[1:] {
		row := make([]any, len(line))
		for i, text := range line {
			row[i] = cellOf(text)
		}
		t.Rows = append(t.Rows, row)
	}
	return t, "flights", nil
}

func cellOf(text string) any {
	if text == "" || text == "NA" {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return int32(n)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	return text
}

func madeUpFlights(n int) *engine.Table {
	t := &engine.Table{Columns: []string{"month", "day", "dep_time", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest", "distance"}}
	for i := range n {
		r := mix(uint64(i) * golden)
		t.Rows = append(t.Rows, []any{
			int32(1 + i*12/n), int32(1 + i*360/n%30), int32(r % 2400), int32(r>>12%120) - 30, []string{"UA", "AA", "B6", "DL"}[r>>20&3],
			int32(r >> 24 % 5000), "N" + strconv.Itoa(int(r>>40%3000)), []string{"EWR", "LGA", "JFK"}[r>>52%3], "D" + strconv.Itoa(int(r>>55%100)), int32(80 + r>>30%2500),
		})
	}
	return t
}

// late counts what engines are asked to count.
func late(t *engine.Table, origin string, delay int32) int {
	at := map[string]int{}
	for i, c := range t.Columns {
		at[c] = i
	}
	n := 0
	for _, row := range t.Rows {
		if d, ok := row[at["arr_delay"]].(int32); ok && d > delay && row[at["origin"]] == origin {
			n++
		}
	}
	return n
}

func makeFresh(dir string) error { return os.MkdirAll(dir, 0o755) }

func removeAll(dir string) { _ = os.RemoveAll(dir) } // a temporary directory: what stays is removed with the whole run
