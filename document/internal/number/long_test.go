package number

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
)

// TestLongNumbers: what is cut off a number of many digits before it is read is what would be cut off afterwards.
func TestLongNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	digits := func() string {
		s := strings.Repeat("0", r.IntN(2)*r.IntN(200))
		for range r.IntN(2) * r.IntN(200) {
			s += string(rune('0' + r.IntN(10)))
		}
		return s + strings.Repeat("0", r.IntN(2)*r.IntN(200))
	}
	for range 2000 {
		s := []string{"", "-", "+"}[r.IntN(3)] + "0" + digits() + []string{"", "." + digits()}[r.IntN(2)] +
			[]string{"", fmt.Sprintf("e%d", r.IntN(600)-300), fmt.Sprintf("E+%d", r.IntN(6000))}[r.IntN(3)]
		x, _, err := apd.NewFromString(s)
		if err != nil {
			t.Fatal(s, err)
		}
		c := context34()
		c.Rounding = apd.RoundDown
		if x.NumDigits() > precision {
			_, _ = c.Round(x, x)
		}
		if d, ok := ParseDecimal(s); !ok || d != store(x) {
			t.Fatalf("%s is %s, want %s", s, d, store(x))
		}
	}
	for _, s := range []string{strings.Repeat("1", 200) + "x", strings.Repeat("1", 200) + ".1.", "1" + strings.Repeat("-", 200)} {
		if d, ok := ParseDecimal(s); ok {
			t.Errorf("%s is %s", s, d)
		}
	}
	const many = 8 << 20 // which took minutes
	if d, ok := ParseDecimal(strings.Repeat("7", many) + "e-" + fmt.Sprint(many-1)); !ok || d.String() != "7."+strings.Repeat("7", 33) {
		t.Error(d, ok)
	}
	if d, ok := ParseDecimal(strings.Repeat("7", many) + "x"); ok {
		t.Error(d)
	}
}
