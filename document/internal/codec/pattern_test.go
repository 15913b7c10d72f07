package codec

import (
	"fmt"
	"math"
	"testing"
)

// TestDigits compares the digits of numbers around each power of ten with those that package fmt makes, where there is room to spare
// and where there is none.
func TestDigits(t *testing.T) {
	numbers := []uint64{0, 12_345_678, 90_807_060, 10_020_030, math.MaxUint64}
	for power := uint64(1); power <= math.MaxUint64/10; power *= 10 {
		numbers = append(numbers, power-1, power, power+1, 3*power)
	}
	for _, number := range numbers {
		for width := range maxDigits + 1 {
			want := fmt.Sprintf("front%0*d", width, number)
			for _, room := range []int{5, 32} {
				if got := appendDigits(append(make([]byte, 0, room), "front"...), number, width); string(got) != want {
					t.Errorf("%d with %d digits in a buffer of %d bytes: %q, want %q", number, width, room, got, want)
				}
			}
		}
	}
}
