// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
)

// switchboard joins guests by name: what one sends arrives at the other after a while.
type switchboard struct {
	w     *engine.World
	r     *rand.Rand
	hosts map[string]*seen
	next  uint32
	ends  map[plug]plug
	order map[plug]time.Duration
	sent  int
}

// plug is an end of a connection.
type plug struct {
	host string
	conn uint32
}

func newSwitchboard(w *engine.World) *switchboard {
	return &switchboard{
		w: w, r: w.Random("latency"),
		hosts: map[string]*seen{}, ends: map[plug]plug{}, order: map[plug]time.Duration{},
	}
}

// socket is one process's Wire.
type socket struct {
	*switchboard
	host string
}

func (s *switchboard) start(spec Spec, args ...string) *seen {
	spec.Wire = socket{s, spec.Name}
	s.hosts[spec.Name] = start(s.w, spec, args...)
	return s.hosts[spec.Name]
}

func (s *switchboard) carry(to plug, kind byte, payload []byte) {
	frame := append(binary.LittleEndian.AppendUint32(nil, to.conn), kind)
	frame = append(binary.LittleEndian.AppendUint32(frame, uint32(len(payload))), payload...)
	at := max(s.order[to], s.w.Now()+time.Duration(s.r.IntN(300_000)))
	s.order[to] = at
	s.sent++
	s.w.At(at, func() { s.hosts[to.host].process.Deliver(frame) })
}

func (s socket) Dial(host, port string, hello []byte) uint32 {
	s.next += 2
	here, there := plug{s.host, s.next}, plug{host, s.next + 1}
	s.ends[here], s.ends[there] = there, here
	s.carry(there, 4, fmt.Appendf(nil, "%s\x00%s\x00%s", s.host, port, hello))
	s.carry(here, 5, nil)
	return here.conn
}

func (s socket) Listen(string) {}

func (s socket) Send(conn uint32, data []byte) { s.carry(s.ends[plug{s.host, conn}], 1, data) }

func (s socket) Close(conn uint32, reset bool) {
	kind := byte(2)
	if reset {
		kind = 3
	}
	s.carry(s.ends[plug{s.host, conn}], kind, nil)
}

func TestGuestsTalkOverTheWire(t *testing.T) {
	w := engine.New(1)
	s := newSwitchboard(w)
	server := s.start(Spec{Name: "s"}, "echo")
	client := s.start(Spec{Name: "c"}, "chat", "s", "40")
	runFor(t, w, 5*time.Second)
	if want := []string{`inbound "c\x00echo\x00hi"`}; !slices.Equal(server.lines, want) {
		t.Errorf("server said %q, want %q", server.lines, want)
	}
	if client.ends != 1 || client.err != nil || !slices.Contains(client.lines, "echoed 30") {
		t.Errorf("client ended %d times with %v after %q", client.ends, client.err, client.lines)
	}
}
