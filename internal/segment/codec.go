package segment

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pandodb/pando/internal/parts"
)

// Codec says how a payload is compressed. The numbers are on disk: never change them.
type Codec uint8

const (
	None           Codec = 0
	S2             Codec = 1
	Zstd           Codec = 2
	ZstdDictionary Codec = 3
	Columns        Codec = 4 // for pages; what is none, or shrinks more by zstd, is stored by that
	Parts          Codec = 5 // for pages that do not shrink: nobody asks for it
	Stencil        Codec = 6 // and for those of them whose entries have much at the same place

	maxCodec = Stencil
)

// parted reports whether a payload can be read and verified by parts.
func (c Codec) parted() bool { return c == Parts || c == Stencil }

const (
	// minCompress: shorter payloads cannot shrink by enough to be worth a decoder's call.
	minCompress = 32
	// probeBytes is how much of a longer payload is tried before the whole of it is compressed.
	probeBytes = 4 << 10
	// minEntropyGain is the value of compress.Estimate from which on an entropy coder is likely to gain something.
	minEntropyGain = 0.1
	// overCopy is how much room zstd likes to have behind what it decompresses: then it copies whole words and minds no ends.
	overCopy = 16
	// MaxDictionary is the longest compression dictionary in bytes.
	MaxDictionary = 1 << 20
)

// ErrNoDictionary is what errors.Is finds when a blob needs a dictionary that was not added.
var ErrNoDictionary = errors.New("compression dictionary is not known")

// coder holds the zstd coders of one dictionary, or of none. They are made when used, because an encoder holds a few MiB of tables for each
// processor that it serves.
type coder struct {
	raw      []byte     // the dictionary; nil: none
	lost     error      // why there is none where there should be one
	making   sync.Mutex // of one of those below
	encoders [efforts]atomic.Pointer[zstd.Encoder]
	decoder  atomic.Pointer[zstd.Decoder]
}

// effort is how hard the encoder of zstd searches for what has come before. On pages quick takes about half the time of thorough, and
// shrinks them nearly as much.
type effort uint8

const (
	thorough effort = iota
	quick
	efforts
)

func (e effort) level() zstd.EncoderLevel {
	if e == quick {
		return zstd.SpeedFastest
	}
	return zstd.SpeedDefault
}

// dictionaryMagic begins a dictionary in zstd's own format; anything else is used as plain content.
const dictionaryMagic = "\x37\xa4\x30\xec"

func (c *coder) trained() bool {
	return len(c.raw) >= 4 && string(c.raw[:4]) == dictionaryMagic
}

// contentID names a dictionary of plain content in zstd frames. Frames never leave their blob, whose header names the
// dictionary, so one constant serves all.
const contentID = 1

// made returns what lies at p, which is created when it is not there.
func made[T any](c *coder, p *atomic.Pointer[T], create func() (*T, error)) (*T, error) {
	if t := p.Load(); t != nil {
		return t, nil
	}
	c.making.Lock()
	defer c.making.Unlock()
	if t := p.Load(); t != nil {
		return t, nil
	}
	t, err := create()
	if err != nil {
		return nil, err
	}
	p.Store(t)
	return t, nil
}

func (c *coder) forEncoding(e effort) (*zstd.Encoder, error) {
	return made(c, &c.encoders[e], func() (*zstd.Encoder, error) {
		o := []zstd.EOption{
			zstd.WithEncoderLevel(e.level()),
			zstd.WithEncoderConcurrency(min(runtime.GOMAXPROCS(0), 4)),
			zstd.WithEncoderCRC(false), // the blob has its own
			zstd.WithLowerEncoderMem(true),
			zstd.WithZeroFrames(true),
		}
		if c.trained() {
			o = append(o, zstd.WithEncoderDict(c.raw))
		} else if c.raw != nil {
			o = append(o, zstd.WithEncoderDictRaw(contentID, c.raw))
		}
		return zstd.NewWriter(nil, o...)
	})
}

func (c *coder) forDecoding() (*zstd.Decoder, error) {
	return made(c, &c.decoder, func() (*zstd.Decoder, error) {
		o := []zstd.DOption{
			zstd.WithDecoderConcurrency(max(runtime.GOMAXPROCS(0), 2)),
			zstd.WithDecoderMaxMemory(MaxBlob),
			zstd.WithDecodeAllCapLimit(true),
			zstd.WithDecoderLowmem(true),
		}
		if c.trained() {
			o = append(o, zstd.WithDecoderDicts(c.raw))
		} else if c.raw != nil {
			o = append(o, zstd.WithDecoderDictRaw(contentID, c.raw))
		}
		return zstd.NewReader(nil, o...)
	})
}

// rest lets go of all but the dictionary. Whoever is using a coder finishes with it: none has a goroutine while it works on whole payloads,
// so that there is nothing to close.
func (c *coder) rest() {
	for i := range c.encoders {
		c.encoders[i].Store(nil)
	}
	c.decoder.Store(nil)
}

// expand decompresses payload, which has to fill dst. What lies behind dst in its capacity may change.
func (c *coder) expand(dst, payload []byte) error {
	decoder, err := c.forDecoding()
	if err != nil {
		return fmt.Errorf("zstd decoder: %w", err)
	}
	out, err := decoder.DecodeAll(payload, dst[:0:min(cap(dst), len(dst)+overCopy)])
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	if len(out) != len(dst) {
		return fmt.Errorf("decompress: %d bytes instead of %d", len(out), len(dst))
	}
	return nil
}

// codecs compresses and decompresses payloads, concurrently.
type codecs struct {
	plain        coder
	coders       sync.Pool  // of *columnCoder
	mu           sync.Mutex // for changes of dictionaries
	dictionaries atomic.Pointer[map[uint16]*coder]
}

func (c *codecs) dictionary(id uint16) (*coder, error) {
	if m := c.dictionaries.Load(); m != nil {
		if d := (*m)[id]; d != nil {
			return d, d.lost
		}
	}
	return nil, fmt.Errorf("dictionary %d: %w", id, ErrNoDictionary)
}

func (c *codecs) add(id uint16, raw []byte) error {
	if id == 0 || len(raw) == 0 || len(raw) > MaxDictionary {
		return fmt.Errorf("add dictionary %d: must have a number above 0 and 1 to %d bytes, has %d", id, MaxDictionary, len(raw))
	}
	d := &coder{raw: slices.Clone(raw)}
	if _, err := d.forDecoding(); err != nil {
		return fmt.Errorf("add dictionary %d: %w", id, err)
	}
	return c.put(id, d)
}

// put enters a dictionary, unless there is another one under its number.
func (c *codecs) put(id uint16, d *coder) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := map[uint16]*coder{}
	if old := c.dictionaries.Load(); old != nil {
		next = maps.Clone(*old)
	}
	if next[id] != nil && string(next[id].raw) != string(d.raw) {
		return fmt.Errorf("add dictionary %d: the number is taken by another one", id)
	}
	next[id] = d
	c.dictionaries.Store(&next)
	return nil
}

func (c *codecs) drop(id uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.dictionaries.Load(); old != nil {
		next := maps.Clone(*old)
		delete(next, id)
		c.dictionaries.Store(&next)
	}
}

// appendStored appends the payload for raw to dst and says how it is compressed: by codec, or not at all when that does
// not save a sixteenth, or does not seem to.
func (c *codecs) appendStored(dst []byte, codec Codec, dictionary uint16, e effort, raw []byte) ([]byte, Codec, error) {
	if codec != None && !worthwhile(codec, raw) {
		codec = None
	}
	return c.appendTried(dst, codec, dictionary, e, raw)
}

// appendTried is appendStored for a payload that is likely to shrink: it is compressed without a look at samples of it.
func (c *codecs) appendTried(dst []byte, codec Codec, dictionary uint16, e effort, raw []byte) ([]byte, Codec, error) {
	dst, used, err := c.appendShrunk(dst, codec, dictionary, e, raw)
	if used == None && err == nil {
		dst = append(dst, raw...)
	}
	return dst, used, err
}

// appendShrunk is appendTried for one who has another form for what does not shrink: then it appends nothing.
func (c *codecs) appendShrunk(dst []byte, codec Codec, dictionary uint16, e effort, raw []byte) ([]byte, Codec, error) {
	if codec == None || len(raw) < minCompress {
		return dst, None, nil
	}
	start := len(dst)
	byColumns := codec == Columns
	if byColumns {
		if codec = Zstd; dictionary != 0 {
			codec = ZstdDictionary
		}
	}
	switch codec {
	case S2:
		dst = slices.Grow(dst, s2.MaxEncodedLen(len(raw)))
		dst = dst[:start+len(s2.Encode(dst[start:cap(dst)], raw))]
	case Zstd, ZstdDictionary:
		z := &c.plain
		if codec == ZstdDictionary {
			var err error
			if z, err = c.dictionary(dictionary); err != nil {
				return dst, None, err
			}
		}
		encoder, err := z.forEncoding(e)
		if err != nil {
			return dst, None, fmt.Errorf("zstd encoder: %w", err)
		}
		dst = encoder.EncodeAll(raw, slices.Grow(dst, encoder.MaxEncodedSize(len(raw))))
	default:
		return dst, None, fmt.Errorf("unknown codec %d", codec)
	}
	if byColumns {
		var shorter bool
		if dst, shorter = c.tryColumns(dst, start, e, raw); shorter {
			codec = Columns
		}
	}
	if len(dst)-start > len(raw)-len(raw)/16 {
		return dst[:start], None, nil
	}
	return dst, codec, nil
}

// worthwhile tries a little of a long payload, from its beginning and from its middle, so that data which is compressed
// already costs next to nothing.
func worthwhile(codec Codec, raw []byte) bool {
	if len(raw) < 4*probeBytes {
		return true
	}
	middle := len(raw) / 2
	return shrinks(codec, raw[:probeBytes]) || shrinks(codec, raw[middle:middle+probeBytes])
}

func shrinks(codec Codec, sample []byte) bool {
	var out [probeBytes + probeBytes/4]byte // above s2.MaxEncodedLen(probeBytes), so that Encode does not allocate
	if n := len(s2.Encode(out[:], sample)); n <= len(sample)-len(sample)/16 {
		return true
	}
	return codec != S2 && compress.Estimate(sample) >= minEntropyGain
}

// plain returns what lies in a verified payload that is not compressed; false: it is.
func (h Header) plain(payload []byte) (raw []byte, ok bool) {
	switch h.Codec {
	case None:
		return payload, true
	case Parts:
		raw, err := parts.Page(payload)
		return raw, err == nil && len(raw) == int(h.Raw)
	}
	return nil, false
}

// decode decompresses payload into a slice of exactly h.Raw bytes, in dst's memory when that is enough. h was verified or
// at least checked.
func (c *codecs) decode(dst []byte, h Header, payload []byte) ([]byte, error) {
	dst = resize(dst, int(h.Raw))
	switch h.Codec {
	case S2:
		return decodeS2(dst, payload)
	case Stencil:
		return dst, parts.Expand(dst, payload)
	case Zstd, ZstdDictionary:
		z := &c.plain
		if h.Codec == ZstdDictionary {
			var err error
			if z, err = c.dictionary(h.Dictionary); err != nil {
				return nil, err
			}
		}
		return dst, z.expand(dst, payload)
	case Columns:
		return dst, c.decodeColumns(dst, payload)
	}
	return nil, fmt.Errorf("unknown codec %d", h.Codec)
}

func decodeS2(dst, payload []byte) ([]byte, error) {
	n, err := s2.DecodedLen(payload)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if n != len(dst) {
		return nil, fmt.Errorf("decompress: %d bytes instead of %d", n, len(dst))
	}
	out, err := s2.Decode(dst, payload)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	return out, nil
}

func (c *codecs) close() {
	c.plain.rest()
	c.dictionaries.Store(nil)
}

// resize returns a slice of n bytes of undefined content, in b's memory when that is enough. It grows with some room to
// spare, so that a buffer that meets ever longer blobs is not made anew for each.
func resize(b []byte, n int) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	const grain = 4 << 10
	return make([]byte, n, (n+n/4+grain-1)&^(grain-1))
}

// AddDictionary makes a dictionary known under a number above 0. Blobs that were compressed with it cannot be read before.
// Adding the same again changes nothing; another one under the same number is refused.
func (s *Store) AddDictionary(id uint16, raw []byte) error { return s.codecs.add(id, raw) }

// LoseDictionary says that the dictionary of a number is damaged: so is what was compressed with it then.
func (s *Store) LoseDictionary(id uint16, damage error) error {
	return s.codecs.put(id, &coder{lost: fmt.Errorf("compression dictionary %d: %w", id, damage)})
}

// RestDictionary lets go of the memory that a dictionary takes beside itself, as it is not going to be compressed with any more. What was can
// be read as before.
func (s *Store) RestDictionary(id uint16) {
	if c, err := s.codecs.dictionary(id); err == nil {
		c.rest()
	}
}

// DropDictionary forgets a dictionary. The caller makes sure that no blob will be read that was compressed with it.
func (s *Store) DropDictionary(id uint16) { s.codecs.drop(id) }
