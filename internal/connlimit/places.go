// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"container/list"
	"time"
)

// Reasons why a connection is closed, as metrics have them.
const (
	reasonSource      = "source-limit"   // its source, or identity, has too many
	reasonPort        = "port-limit"     // all places are taken, and it was its turn
	reasonSlow        = "too-slow"       // it did not get to the next Stage in time
	reasonDescriptors = "no-descriptors" // this process has no more
)

// place is what one connection holds.
type place struct {
	key   string
	since time.Time
	turn  uint64 // the order in which places were taken
	pool  *pool
	at    *list.Element
}

// pool is the places of one Stage. It decides who goes, and does nothing about it.
type pool struct {
	room Room
	// stay has whoever holds a place keep it for ever against those that hold as much: authenticated connections go on
	// being useful, and to replace one by the other would have both ends dial without end.
	stay    bool
	size    int
	turns   uint64
	holders map[string]*list.List // by key: places, the oldest first; none is empty
}

func newPool(r Room, stay bool) *pool {
	return &pool{room: r, stay: stay, holders: map[string]*list.List{}}
}

// enter takes a place and gives the one that has to be left for it, which may be the new one; nil if there was room.
func (p *pool) enter(key string, now time.Time) (taken, out *place, reason string) {
	p.turns++
	taken = &place{key: key, since: now, turn: p.turns, pool: p}
	own := p.holders[key]
	if own == nil {
		own = list.New()
		p.holders[key] = own
	}
	taken.at = own.PushBack(taken)
	p.size++
	switch {
	case own.Len() > p.room.PerKey:
		return taken, oldest(own), reasonSource
	case p.size > p.room.Total:
		return taken, p.displaced(taken, own, now), reasonPort
	}
	return taken, nil, ""
}

// displaced is who goes where all places are taken: the oldest of whoever holds the most.
func (p *pool) displaced(taken *place, own *list.List, now time.Time) *place {
	most := own
	for _, held := range p.holders {
		if held.Len() > most.Len() || held.Len() == most.Len() && most != own && oldest(held).turn < oldest(most).turn {
			most = held
		}
	}
	if most != own || own.Len() > 1 {
		return oldest(most)
	}
	// Everybody holds one.
	first := taken
	for _, held := range p.holders {
		if x := oldest(held); x.turn < first.turn {
			first = x
		}
	}
	if p.stay || now.Sub(first.since) < grace {
		return taken
	}
	return first
}

// leave gives a place back. It may be called again.
func (x *place) leave() {
	if x.at == nil {
		return
	}
	held := x.pool.holders[x.key]
	held.Remove(x.at)
	x.at = nil
	x.pool.size--
	if held.Len() == 0 {
		delete(x.pool.holders, x.key)
	}
}

// first is the oldest of whoever holds the most, nil if there is nobody.
func (p *pool) first() *place {
	var most *list.List
	for _, held := range p.holders {
		if most == nil || held.Len() > most.Len() || held.Len() == most.Len() && oldest(held).turn < oldest(most).turn {
			most = held
		}
	}
	if most == nil {
		return nil
	}
	return oldest(most)
}

func oldest(held *list.List) *place { return held.Front().Value.(*place) }
