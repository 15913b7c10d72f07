package workload

import (
	"bytes"
	"fmt"
	"strconv"
)

// The vocabulary of the documents: few enough words that compression finds them again, as in logs and catalogues.
func towns() []string {
	return []string{"Lisbon", "Krakow", "Turku", "Leipzig", "Ghent", "Bergen", "Porto", "Graz", "Malmo", "Seville"}
}

func plans() []string { return []string{"free", "team", "business", "enterprise"} }

// document makes a JSON document of about 200 bytes: a third of it is random, the rest repeats.
func (d *Data) document(dst []byte, i, v uint64) []byte {
	r := mix(i*golden + v)
	dst = append(dst[:0], `{"version":`...)
	dst = strconv.AppendUint(dst, v, 10)
	dst = append(dst, `,"id":`...)
	dst = strconv.AppendUint(dst, i, 10)
	dst = append(dst, `,"token":"`...)
	dst = appendHex(dst, r)
	dst = append(dst, `","customer":{"name":"customer-`...)
	dst = strconv.AppendUint(dst, r%100_000, 10)
	dst = append(dst, `","town":"`...)
	dst = append(dst, towns()[r>>20%10]...)
	dst = append(dst, `","plan":"`...)
	dst = append(dst, plans()[r>>30&3]...)
	dst = append(dst, `"},"active":`...)
	dst = strconv.AppendBool(dst, r>>40&1 == 1)
	dst = append(dst, `,"balance":`...)
	dst = strconv.AppendUint(dst, r>>44, 10)
	dst = append(dst, `,"created":"2024-`...)
	dst = appendTwo(dst, 1+r>>50%12)
	dst = append(dst, '-')
	dst = appendTwo(dst, 1+r>>54%28)
	return append(dst, `T08:00:00Z","tags":["import","nightly"]}`...)
}

func appendTwo(dst []byte, n uint64) []byte {
	return append(dst, byte('0'+n/10), byte('0'+n%10))
}

func appendHex(dst []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[n>>shift&15])
	}
	return dst
}

// checkDocument takes the version out of a document and makes it again.
func (d *Data) checkDocument(value []byte, i uint64) error {
	rest, ok := bytes.CutPrefix(value, []byte(`{"version":`))
	text, _, found := bytes.Cut(rest, []byte(","))
	v, err := strconv.ParseUint(string(text), 10, 64)
	if !ok || !found || err != nil {
		return fmt.Errorf("record %d: not one of our documents", i)
	}
	if want := d.document(nil, i, v); !bytes.Equal(want, value) {
		return fmt.Errorf("record %d: wrong document", i)
	}
	return nil
}
