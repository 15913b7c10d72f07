package index

import (
	"encoding/hex"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/notation"
)

// String returns the interval as MongoDB's explain shows it, in ascending direction: [1, 5).
func (iv *Interval) String() string { return iv.Text(false) }

// Text is String in the direction that a component is read in: reversed shows the higher end first.
func (iv *Interval) Text(reversed bool) string {
	var b strings.Builder
	low, high, lowInclusive, highInclusive := iv.Low, iv.High, iv.LowInclusive, iv.HighInclusive
	if reversed {
		low, high, lowInclusive, highInclusive = high, low, highInclusive, lowInclusive
	}
	b.WriteByte("(["[bit(lowInclusive)])
	iv.showEnd(&b, low)
	b.WriteString(", ")
	iv.showEnd(&b, high)
	b.WriteByte(")]"[bit(highInclusive)])
	return b.String()
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (iv *Interval) showEnd(b *strings.Builder, v bsoncore.Value) {
	if iv.key && iv.IsPoint() {
		b.WriteString("CollationKey(0x" + hex.EncodeToString(iv.lo) + ")")
		return
	}
	notation.Write(b, v)
}

// text returns a value as the server writes it in messages.
func text(v bsoncore.Value) string { return notation.Whole(v) }

func documentText(d bsoncore.Document) string { return text(valueOf(bsoncore.TypeEmbeddedDocument, d)) }
