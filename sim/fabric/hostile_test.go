// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/fabric/message"
)

// A hostile switch has every speaker die that has a session, or opens one, for as long as it is so.
func TestAHostileSwitchHasSpeakersDie(t *testing.T) {
	deadly := func(s *speaker) bool { return slices.Contains(s.heard, message.Message(message.Deadly{})) }
	for _, how := range []fabric.Hostility{fabric.HostileUp, fabric.HostileOpen} {
		l := newPeering(fabric.BIRD("", 0))
		a := l.connect("a", nil)
		l.pass(time.Second)
		l.sw.Hostile(how)
		b := l.connect("b", nil)
		l.pass(time.Second)
		if got, want := deadly(a), how == fabric.HostileUp; got != want {
			t.Errorf("%d: a speaker with a session was sent it: %t", how, got)
		}
		if l.sw.Established("a") != (how == fabric.HostileUp) {
			t.Errorf("%d: the session is open: %t", how, l.sw.Established("a"))
		}
		if !deadly(b) {
			t.Errorf("%d: a speaker that opened a session was sent %v", how, b.heard)
		}
		l.sw.Hostile(fabric.Peaceful)
		c := l.connect("c", nil)
		l.pass(time.Second)
		if deadly(c) || !l.sw.Established("c") {
			t.Errorf("%d: a peaceful switch sent %v", how, c.heard)
		}
	}
}

// A confusing switch says so to every speaker that has a session, once.
func TestAConfusingSwitchTellsEverySession(t *testing.T) {
	l := newPeering(fabric.BIRD("", 0))
	a, b := l.connect("a", nil), l.connect("b", nil)
	l.pass(time.Second)
	l.sw.Confuse()
	l.pass(time.Second)
	for i, s := range []*speaker{a, b, l.connect("c", nil)} {
		l.pass(time.Second)
		if got, want := slices.Contains(s.heard, message.Message(message.Confusing{})), i < 2; got != want {
			t.Errorf("speaker %d heard it: %t, want %t", i, got, want)
		}
	}
	if !l.sw.Established("a") || !l.sw.Established("b") {
		t.Error("it ended a session")
	}
}
