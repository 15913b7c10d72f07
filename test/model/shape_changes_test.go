package model

import "time"

// write is one change of a plot. One with neither value nor bounds is a deletion.
type write struct {
	key, value []byte
	bounds     *Bounds
	expires    time.Time
}

// pattern is how what is there changes over time. The first step puts all rows where it begins full; step counts those behind it.
type pattern struct {
	name string
	full bool
	step func(p *plot, step int)
}

var patterns = []pattern{
	{"riseAndFall", false, func(p *plot, step int) { // stretch by stretch, and down from the end, or from the front
		waves := 2 + p.odd%4
		from, to := step%waves*p.size/waves, (step%waves+1)*p.size/waves
		switch {
		case step/waves%2 == 0:
			p.each(from, to, p.put)
		case p.odd%2 == 0:
			p.each(from, to, p.del)
		default:
			p.each(p.size-to, p.size-from, p.del)
		}
	}},
	{"stripes", true, func(p *plot, step int) { // no change takes most of what a page has, until all is gone
		width := 2 + p.odd%6
		if step%(width+1) == width {
			p.each(0, p.size, p.put)
			return
		}
		p.every(width, step%width, p.del)
	}},
	{"thirds", true, func(p *plot, step int) {
		if step%4 == 3 {
			p.each(0, p.size, p.put)
			return
		}
		p.each(p.size*(step%4)/3, p.size*(step%4+1)/3, p.del)
	}},
	{"oneOfMany", true, func(p *plot, step int) { // all but one row in so many, then these
		switch step % 3 {
		case 0:
			p.each(0, p.size, p.del)
			p.every(p.odd, 0, p.put)
		case 1:
			p.every(p.odd, 0, p.del)
		case 2:
			p.each(0, p.size, p.put)
		}
	}},
	{"sparse", true, func(p *plot, step int) { // one row in each of many pages, another one each time
		if step%5 == 4 {
			p.every(20+p.odd, step*7%20, p.del)
		} else {
			p.every(20+p.odd, step*7%20, p.put)
		}
	}},
	{"edges", true, func(p *plot, step int) { // the first and the last row of each group, where pages begin and end, and then the others
		group := 3 + p.odd
		p.each(0, p.size, func(i int) {
			switch edge := i%group == 0 || i%group == group-1; {
			case edge && step%4 == 0, !edge && step%4 == 2:
				p.del(i)
			case edge && step%4 == 1, !edge && step%4 == 3:
				p.put(i)
			}
		})
	}},
	{"queue", false, func(p *plot, _ int) { // puts at the end, takes from the front key by key or at once
		for range p.w.rng.IntN(p.size/4+1) + 1 {
			p.put(p.back)
			p.back++
		}
		n := min(p.back-p.front, p.w.rng.IntN(p.size/4+2))
		if p.odd%3 == 0 {
			p.cut(p.front, p.front+n)
		} else {
			p.each(p.front, p.front+n, p.del)
		}
		p.front += n
	}},
	{"sameFew", false, func(p *plot, _ int) { p.each(0, 3, p.put) }},
	{"again", true, func(p *plot, _ int) { // what is there already, and deletions of what is not
		p.each(0, p.size, func(i int) {
			if old, there := p.w.state.Get(p.ks, string(p.key(i))); there && i%7 != 0 {
				p.putValue(i, []byte(old))
			} else {
				p.del(i)
			}
		})
	}},
	{"allAndNothing", true, func(p *plot, step int) { // in each of the ways in which one can, filled in the same commit now and then
		if step%2 == 1 || p.w.rng.IntN(3) == 0 {
			p.each(0, p.size, p.put)
			if step%2 == 1 {
				return
			}
		}
		switch p.w.rng.IntN(4) {
		case 0:
			p.remove(Bounds{})
		case 1:
			p.remove(Bounds{Lo: p.sorted[0]})
			p.remove(Bounds{Hi: p.sorted[0]})
		case 2:
			p.each(0, p.size, p.del)
		case 3: // all but the first, or the last
			p.cut(0, p.size-1)
			p.remove(Bounds{Lo: p.sorted[1]})
		}
	}},
	{"bigAndSmall", false, func(p *plot, step int) { // a long value, a short one and none in turn, neighbours at different turns or at the same
		p.each(0, p.size, func(i int) {
			switch (step + i*(p.odd%2)) % 3 {
			case 0:
				p.putValue(i, p.fill(p.w.opts.ValueThreshold+1+p.w.rng.IntN(1000)))
			case 1:
				p.putValue(i, p.fill(p.w.rng.IntN(10)))
			case 2:
				p.del(i)
			}
		})
	}},
	{"oneLeaf", true, func(p *plot, step int) { // a few neighbours in the midst of many come and go
		from, to := p.size/2, p.size/2+max(p.size/10, 1)
		switch step % 4 {
		case 0:
			p.cut(from, to)
		case 1, 2:
			p.each(from+step%2, to, p.put)
		case 3:
			p.each(from+1, to, p.del)
		}
	}},
	{"ranges", true, func(p *plot, step int) { // that overlap, touch, and lie within one another, with rows on their bounds and between them
		if step%6 == 5 {
			p.each(0, p.size, p.put)
		}
		at, width := p.w.rng.IntN(p.size), 1+p.w.rng.IntN(p.size/4+1)
		for range 1 + p.w.rng.IntN(6) {
			p.cut(at, at+width)
			switch p.w.rng.IntN(4) {
			case 0:
				p.put(at)
			case 1:
				p.put(at + width)
			case 2:
				p.each(at+width/3, at+width/2, p.put)
			case 3:
				p.cut(at+width/4, at+width/2)
			}
			at += p.w.rng.IntN(width+2) - width/3
		}
	}},
	{"halves", true, func(p *plot, step int) { // of what is left, until it is one row; then all comes back, twice as much each time
		rounds := 4 + p.odd%6
		if at := step % (2 * rounds); at < rounds {
			p.cut(p.size>>(at+1), p.size>>at)
		} else {
			p.each(p.size>>(2*rounds-at), p.size>>(2*rounds-at-1), p.put)
		}
	}},
	{"bothEnds", false, func(p *plot, step int) { // come towards the row in the midst, and go from there
		at, do := step%8*p.size/16, p.put
		if step%16 >= 8 {
			at, do = (7-step%8)*p.size/16, p.del
		}
		p.each(at, at+p.size/16+1, func(i int) { do(i); do(-1 - i) })
	}},
	{"passing", false, func(p *plot, _ int) { // rows that expire at once, soon or late; others in their place do not
		from := p.w.rng.IntN(p.size)
		p.each(from, from+p.size/4+1, func(i int) {
			in := pickFrom(p.w, []time.Duration{-time.Hour, time.Millisecond, 50 * time.Millisecond, 3 * time.Second, 10 * time.Hour})
			p.todo = append(p.todo, write{key: p.key(i), value: p.value(), expires: time.Now().Add(in)})
		})
		p.each(from/2, from/2+p.size/8, p.put)
	}},
}
