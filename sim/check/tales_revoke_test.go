// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// revokeTales are of certificates that are revoked.
func revokeTales() []tale {
	return []tale{
		fine("S22", "turned-away", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.sends("m1", "n1", start.APIPort) // what was on its way
			s.wait(2 * time.Second)
			s.sends("n1", "m1", start.APIPort) // it may try
			s.say(event.Barred{Process: "m1", Life: 1, Peer: "n1", Serial: "d1"})
			s.sends("m1", "n2", start.APIPort)
			s.sends("m1", "n1", start.CertificatePort)
		}),
		breaks("S22", "answered-by-name", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.wait(2 * time.Second)
			s.sends("m1", "n1", start.APIPort)
		}),
		breaks("S22", "answered-by-number", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: fsm.RevokedSerial, Name: "a3"})
			s.wait(2 * time.Second)
			s.sends("m2", "m3", start.RaftPort)
		}),
		fine("S22", "answered-by-one-that-lags", func(s *story) {
			certified(s)
			a, _ := s.entry(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.apply(a, "m1", "m2")
			s.wait(2 * time.Second)
			s.sends("m3", "n1", start.APIPort)
			s.say(event.Barred{Process: "m1", Life: 1, Peer: "n1", Serial: "d1"})
			s.say(event.Acted{Process: "n1", Life: 1, Revision: s.state.Read().Revision()})
		}),
		fine("S22", "a-role-of-another", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "host", Name: "n1"}, &fsm.Revoke{Of: "agent", Name: "n2"})
			s.wait(2 * time.Second)
			s.sends("m1", "n1", start.APIPort)
			s.say(event.Barred{Process: "m1", Life: 1, Peer: "n2", Serial: "d2"})
		}),
		fine("S22", "forgotten-until-applied-anew", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.say(event.Barred{Process: "m1", Life: 1, Peer: "n1", Serial: "d1"})
			s.wait(2 * time.Second)
			s.say(event.Ended{Process: "m1", Life: 1, Killed: true}, event.Started{Process: "m1", Life: 2})
			s.wait(2 * time.Second)
			s.sends("m1", "n1", start.APIPort)
		}),
		breaks("S22", "forgotten-for-good", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.say(event.Ended{Process: "m1", Life: 1, Killed: true}, event.Started{Process: "m1", Life: 2})
			s.say(event.Restored{Process: "m1", Life: 2, Index: uint64(s.state.Applied()), Digest: s.state.Digest().String()})
			s.wait(2 * time.Second)
			s.sends("m1", "n1", start.APIPort)
		}),
		fine("S22", "let-in-again", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.say(event.Barred{Process: "m2", Life: 1, Peer: "n1", Serial: "d1"})
			s.wait(2 * time.Second)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1", Before: 50})
			s.say(event.Certified{Process: "n1", Serial: "e1", Issued: 50})
			s.wait(2 * time.Second)
			s.sends("m1", "n1", start.APIPort)
		}),
		breaks("S22", "let-in-with-what-was-stolen", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1", Before: 50})
			s.wait(2 * time.Second)
			s.sends("m1", "n1", start.APIPort)
		}),
		breaks("S22", "kept-out-with-another-one", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1", Before: 50})
			s.say(event.Certified{Process: "n1", Serial: "e1", Issued: 50}, event.Certified{Process: "n1", Serial: "e2", Issued: 60})
			s.commit(&fsm.EndRevocation{Of: "agent", Name: "n1"})
			s.say(event.Ended{Process: "m1", Life: 1, Killed: true}, event.Started{Process: "m1", Life: 2})
			s.say(event.Restored{Process: "m1", Life: 2, Index: uint64(s.state.Applied()), Digest: s.state.Digest().String()})
			s.say(event.Barred{Process: "m1", Life: 2, Peer: "n1", Serial: "e2"})
		}),
		breaks("S22", "refused-without-a-word", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.say(event.Barred{Process: "m1", Life: 1, Peer: "n2", Serial: "d2"})
		}),
		breaks("S22", "carried-out", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.wait(2 * time.Second)
			s.say(event.Acted{Process: "n1", Life: 1, Revision: s.commit(check.Put("k", "v"))})
		}),
		fine("S22", "carried-out-late", func(s *story) {
			certified(s)
			at := s.commit(check.Put("k", "v"))
			s.commit(&fsm.Revoke{Of: "agent", Name: "n1"})
			s.say(event.Barred{Process: "m2", Life: 1, Peer: "n1", Serial: "d1"})
			s.wait(5 * time.Second)
			s.say(event.Acted{Process: "n1", Life: 1, Revision: at})
		}),
		breaks("S22", "agent-dials-a-revoked-member", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: fsm.RevokedSerial, Name: "a3"})
			s.wait(8 * time.Second)
			s.say(event.Message{From: "n1", To: "m3", Port: start.APIPort, What: "dial", Sent: s.now})
		}),
		breaks("S22", "agent-forgets-with-a-restart", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: fsm.RevokedSerial, Name: "a3"})
			s.wait(8 * time.Second)
			s.say(event.Ended{Process: "n1", Life: 1, Killed: true}, event.Started{Process: "n1", Life: 2, Boot: "b1"})
			s.say(event.Message{From: "n1", To: "m3", Port: start.APIPort, What: "dial", Sent: s.now})
		}),
		fine("S22", "agent-forgets-with-its-disk", func(s *story) {
			certified(s)
			s.commit(&fsm.Revoke{Of: fsm.RevokedSerial, Name: "a3"})
			s.wait(8 * time.Second)
			s.say(event.Ended{Process: "n1", Life: 1, Killed: true}, event.Wiped{Machine: "n1"}, event.Started{Process: "n1", Life: 2, Boot: "b1"})
			s.say(event.Message{From: "n1", To: "m3", Port: start.APIPort, What: "dial", Sent: s.now})
		}),
		fine("S22", "agent-hears-it-from-nobody", func(s *story) {
			certified(s)
			s.say(event.FaultBegan{ID: 7, Fault: "partition", On: []string{"n1"}})
			s.commit(&fsm.Revoke{Of: fsm.RevokedSerial, Name: "a3"})
			s.wait(8 * time.Second)
			s.say(event.Message{From: "n1", To: "m3", Port: start.APIPort, What: "dial", Sent: s.now})
			s.say(event.Barred{Process: "n2", Life: 1, Peer: "m3", Serial: "a3"})
		}),
	}
}

// certified has everybody show a certificate.
func certified(s *story) {
	for _, c := range []event.Certified{
		{Process: "m1", Serial: "a1", Issued: 10}, {Process: "m2", Serial: "a2", Issued: 10}, {Process: "m3", Serial: "a3", Issued: 10},
		{Process: "n1", Serial: "d1", Issued: 10}, {Process: "n2", Serial: "d2", Issued: 10}, {Process: "n3", Serial: "d3", Issued: 10},
	} {
		s.say(c)
	}
}

// sends has one process say something to another.
func (s *story) sends(from, to, port string) {
	s.say(event.Message{From: from, To: to, Port: port, What: "data", Size: 10, Sent: s.now, Arrived: s.now})
}
