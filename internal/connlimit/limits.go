// SPDX-License-Identifier: Apache-2.0

package connlimit

import "time"

// Stage is how far a connection has come. It only rises.
type Stage int

// The Stages.
const (
	Silent   Stage = iota // has sent nothing
	Unproven              // has sent something, which proves nothing
	Guest                 // finished its handshake and need not prove more
	Known                 // has proven who it is
	stages
)

// String is how metrics say it.
func (s Stage) String() string {
	return [stages]string{"silent", "unproven", "guest", "known"}[s]
}

// Room is how many connections may be at a Stage.
type Room struct {
	Total  int // at a time
	PerKey int // of one source; of one identity where it is Known
}

// Limits are those of one port. A Room without places is of a Stage that the port does not have.
type Limits struct {
	// Strangers bounds Silent and Unproven connections, each by itself.
	Strangers Room
	Guests    Room
	Known     Room
	// StrangerWithin and GuestWithin are how long a connection may stay such; 0 leaves that to the server.
	StrangerWithin time.Duration
	GuestWithin    time.Duration
	// MessageWithin is how long the next bytes of a message may take that began to come. A message ends where something is
	// written; between messages a connection may be idle. 0 leaves it to the server.
	MessageWithin time.Duration
	// WriteWithin is how long one write may wait for the other end to take it; 0 leaves it to the server.
	WriteWithin time.Duration
}

// grace is how long a connection is safe from others that hold no more than it does: when many come at once, such as all
// agents after a member was away, those that came first are served, and do not lose what was computed for them to the last.
const grace = time.Second

// reservedPerKey is how many times as much as a stranger a source has from which somebody proved who he is lately.
const reservedPerKey = 4

// room of a Stage, for sources that are known lately or not.
func (l Limits) room(s Stage, reserved bool) Room {
	r := [stages]Room{l.Strangers, l.Strangers, l.Guests, l.Known}[s]
	if reserved && s != Known {
		r.PerKey *= reservedPerKey
	}
	return r
}

// within is how long a connection may stay at a Stage, 0 for ever.
func (l Limits) within(s Stage) time.Duration {
	return [stages]time.Duration{l.StrangerWithin, l.StrangerWithin, l.GuestWithin, 0}[s]
}

// share is which part of the descriptors of this process one Room of strangers may take: four ports have four of those each,
// and all together leave half.
const share = 32

// fit makes the rooms of strangers and guests so small that they leave descriptors for others.
func (l Limits) fit(descriptors uint64) Limits {
	for _, r := range []*Room{&l.Strangers, &l.Guests} {
		if most := descriptors / share; r.Total > 0 && uint64(r.Total) > most {
			r.Total = max(1, int(most))
		}
		r.PerKey = min(r.PerKey, r.Total)
	}
	return l
}
