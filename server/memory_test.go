package server

import "testing"

func TestMemoryBesideTheCachesIsAShareWhereThereIsLittle(t *testing.T) {
	for available, want := range map[int64]int64{
		0:         mostMessages, // not known
		64 << 30:  mostMessages,
		2 << 30:   256 << 20,
		512 << 20: 64 << 20,
		128 << 20: 64 << 20, // one message has to fit
	} {
		if got := bound(available, mostMessages); got != want {
			t.Errorf("of %d MiB: %d, want %d", available>>20, got, want)
		}
	}
}
