package offheap

import "testing"

func TestUsageGrowsWithWhatIsWrittenTo(t *testing.T) {
	const size = 64 << 20
	before, _ := Usage()
	b, err := Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 1
	}
	after, addresses := Usage()
	if after-before < size/2 || before <= 0 || addresses < after {
		t.Errorf("%d bytes before, %d after, of %d bytes of addresses", before, after, addresses)
	}
	if err := Free(b); err != nil {
		t.Fatal(err)
	}
}
