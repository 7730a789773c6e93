// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// Parent and child are one program, so that what they say needs no format that lasts. The parent asks, the child answers, one after the other.

// request is one question, or one thing to do.
type request struct {
	Do       verb
	Start    Settings
	Announce announcement
	Longer   time.Duration // of Mend
	Memory   uint64        // in bytes, of which the child is to make do from now on; 0: no other than before
}

// verb is what a request asks for.
type verb int

const (
	doStart verb = iota + 1 // always the first
	doAnnounce
	doWritten
	doLinks
	doMend
	doPeers
	doNothing // but hear that the parent is there
	doDetach  // always the last, as doDrain is
	doDrain
)

// Settings are a speaker's, as the child is told them.
type Settings struct {
	ASN         uint32
	RouterID    netip.Addr
	ListenPort  uint16
	ListenAddrs []netip.Addr
	Management  string
	Silence     time.Duration // after so long without a word of its parent the child ends; Speaker sets it
}

// announcement is what is to be announced, or what of it has changed.
type announcement struct {
	// Whole says that Paths are all. Otherwise they are all those of the prefixes in Touched.
	Whole   bool
	Touched []netip.Prefix
	Paths   []bgp.Path
	Peers   []bgp.Peer
	Demoted bool
}

// announcementOf says what a speaker that was told before, or nothing if it is nil, is to be told now.
func announcementOf(desired bgp.Desired, before *bgp.Desired) announcement {
	a := announcement{Peers: desired.Peers, Demoted: desired.Demoted}
	if before == nil {
		a.Whole, a.Paths = true, slices.Collect(desired.Paths.All())
		return a
	}
	if a.Touched = desired.Touched; a.Touched == nil {
		a.Touched = desired.Paths.Differing(before.Paths)
	}
	for _, prefix := range a.Touched {
		a.Paths = desired.Paths.AppendOf(a.Paths, prefix)
	}
	return a
}

// desired puts an announcement onto the paths that were announced before.
func (a announcement) desired(before bgp.Paths) bgp.Desired {
	d := bgp.Desired{Peers: a.Peers, Demoted: a.Demoted}
	paths := bgp.NewPaths(a.Paths...)
	if d.Paths = paths; !a.Whole {
		d.Touched = a.Touched
		d.Paths = before.With(a.Touched, paths.Of)
	}
	return d
}

// answer is what the child says to a request.
type answer struct {
	Written  bool
	Links    []bgp.Link
	Peers    []bgp.PeerStatus
	Failures []failure
}

// failure is an error, as far as those who get it ask what it is.
type failure struct {
	Text string
	Kind kind
}

type kind int

const (
	other kind = iota
	invalid
	stopped
	dropped
	inUse
)

var kinds = map[kind]error{
	invalid: bgp.ErrInvalid, stopped: bgp.ErrStopped, dropped: bgp.ErrDropped, inUse: syscall.EADDRINUSE,
}

// failuresOf takes an error apart into those that it joins.
func failuresOf(err error) (out []failure) {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && isJoin(err) {
		for _, one := range joined.Unwrap() {
			out = append(out, failuresOf(one)...)
		}
		return out
	}
	f := failure{Text: err.Error()}
	for k, is := range kinds {
		if errors.Is(err, is) {
			f.Kind = k
		}
	}
	return []failure{f}
}

// isJoin tells whether an error is nothing but others, one a line, as errors.Join makes them.
func isJoin(err error) bool { return fmt.Sprintf("%T", err) == "*errors.joinError" }

// failed is an error of the child.
type failed struct {
	text string
	is   error
}

func (f failed) Error() string { return f.text }
func (f failed) Unwrap() error { return f.is }

// err puts failures together again.
func (a answer) err() error {
	var errs []error
	for _, f := range a.Failures {
		errs = append(errs, failed{f.Text, kinds[f.Kind]})
	}
	return errors.Join(errs...)
}

// channel is one end of the connection of parent and child.
type channel struct {
	conn net.Conn
	in   *gob.Decoder
	out  *gob.Encoder
	cap  *io.LimitedReader
}

// largest bounds what one side takes from the other at once: the paths of a million prefixes.
const largest = 256 << 20

func newChannel(conn net.Conn) *channel {
	limit := &io.LimitedReader{R: conn}
	return &channel{conn: conn, in: gob.NewDecoder(limit), out: gob.NewEncoder(conn), cap: limit}
}

func (c *channel) send(m any) error { return c.out.Encode(m) }

func (c *channel) receive(m any) error {
	c.cap.N = largest
	return c.in.Decode(m)
}
