// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm"
)

// K50: what is probed of a Service is as it is since its probe, or a port where it is asked at an endpoint that stays, changed; nodes that had another
// to carry out before that say nothing of this one. Verdicts go where what is asked does.
// Rule: K50.
func TestProbedSinceWhatIsAskedChanged(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	at := func(address netip.Addr, port uint16, ready bool) fsm.Endpoint {
		return fsm.Endpoint{Address: address, Ready: ready, Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Port: fsm.Port{Protocol: fsm.TCP, Number: port}}}}}
	}
	tcp := fsm.Probe{Type: "TCP"}
	s, version := formed(t), uint64(0)
	for _, c := range []struct {
		what      string
		uid       string
		probe     fsm.Probe
		endpoints []fsm.Endpoint
		again     bool // it counts from here
		thought   string
	}{
		{"is there", "u", tcp, []fsm.Endpoint{at(a, 80, true)}, true, ""},
		{"has another endpoint", "u", tcp, []fsm.Endpoint{at(a, 80, true), at(b, 81, true)}, false, "10.0.0.1"},
		{"has one that is not ready", "u", tcp, []fsm.Endpoint{at(a, 80, false), at(b, 81, true)}, false, "10.0.0.2"},
		{"has it again", "u", tcp, []fsm.Endpoint{at(a, 80, true), at(b, 81, true)}, false, "10.0.0.2"},
		{"has another port of one", "u", tcp, []fsm.Endpoint{at(a, 80, true), at(b, 82, true)}, true, "10.0.0.1"},
		{"has another port of one that is not ready", "u", tcp, []fsm.Endpoint{at(a, 80, true), at(b, 83, false)}, true, "10.0.0.1"},
		{"has other thresholds", "u", fsm.Probe{Type: "TCP", Unhealthy: 9}, []fsm.Endpoint{at(a, 80, true)}, true, ""},
		{"names a port", "u", fsm.Probe{Type: "TCP", Port: 90}, []fsm.Endpoint{at(a, 80, true)}, true, ""},
		{"has another port, which is not asked", "u", fsm.Probe{Type: "TCP", Port: 90}, []fsm.Endpoint{at(a, 81, true)}, false, "10.0.0.1"},
		{"is another of its name", "v", fsm.Probe{Type: "TCP", Port: 90}, []fsm.Endpoint{at(a, 81, true)}, true, ""},
	} {
		before, _ := fsm.Get[*fsm.Service](s.Read(), fsm.TableServices, "shop/web")
		version++
		tell(t, s, &fsm.PutService{Service: fsm.Service{ID: "shop/web", UID: c.uid, Version: version, Rare: &fsm.Rare{Probe: c.probe}, Endpoints: c.endpoints}})
		has, _ := fsm.Get[*fsm.Service](s.Read(), fsm.TableServices, "shop/web")
		want := s.Read().Revision()
		if !c.again {
			want = before.ProbedSince()
		}
		if has.ProbedSince() != want {
			t.Errorf("a Service that %s is probed since %s, want %s", c.what, has.ProbedSince(), want)
		}
		var thought []string
		for _, v := range has.Verdicts() {
			thought = append(thought, v.Address.String())
		}
		if got := strings.Join(thought, " "); got != c.thought {
			t.Errorf("of one that %s it is known about %q, want %q", c.what, got, c.thought)
		}
		tell(t, s, &fsm.JudgeService{ID: "shop/web", UID: c.uid, Verdicts: []fsm.ProbeVerdict{{Address: a, Say: 1, Of: 1}, {Address: b, Say: 1, Of: 1}}})
	}
	version++
	tell(t, s, &fsm.PutService{Service: fsm.Service{ID: "shop/web", UID: "v", Version: version}})
	if has, _ := fsm.Get[*fsm.Service](s.Read(), fsm.TableServices, "shop/web"); !has.ProbedSince().IsZero() {
		t.Errorf("one that is not probed is so since %s", has.ProbedSince())
	}
}

// K50: what is thought of endpoints stays while they and the probe do, goes with either, and is told in the history.
// Rule: K50.
func TestVerdictsStayWithEndpointAndProbe(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	web := func(version uint64, path string, at ...netip.Addr) *fsm.PutService {
		s := fsm.Service{ID: "shop/web", UID: "u", Version: version, Rare: &fsm.Rare{Probe: fsm.Probe{Type: "HTTP", Path: path}}}
		for _, address := range at {
			s.Endpoints = append(s.Endpoints, fsm.Endpoint{Address: address, Ready: true})
		}
		return &fsm.PutService{Service: s}
	}
	judge := &fsm.JudgeService{ID: "shop/web", UID: "u", Verdicts: []fsm.ProbeVerdict{{Address: a, Say: 2, Of: 3}, {Address: b, Healthy: true, Say: 3, Of: 3}}}
	s := formed(t)
	thinks := func(want string) {
		t.Helper()
		has, _ := fsm.Get[*fsm.Service](s.Read(), fsm.TableServices, "shop/web")
		var said []string
		for _, v := range has.Verdicts() {
			said = append(said, map[bool]string{true: "good ", false: "bad "}[v.Healthy]+v.Address.String())
		}
		if got := strings.Join(said, ", "); got != want {
			t.Errorf("it is thought %q, want %q", got, want)
		}
	}
	tell(t, s, web(1, "/", a, b), judge)
	thinks("bad 10.0.0.1, good 10.0.0.2")
	tell(t, s, web(2, "/", b))
	thinks("good 10.0.0.2")
	tell(t, s, web(3, "/", a, b))
	thinks("good 10.0.0.2")
	tell(t, s, judge, web(4, "/other", a, b))
	thinks("")
	has, _ := fsm.Get[*fsm.Service](s.Read(), fsm.TableServices, "shop/web")
	var told []string
	for _, step := range has.History {
		told = append(told, step.What)
	}
	bad := "10.0.0.1 is bad, say 2 of 3 nodes"
	if got, want := strings.Join(told, " | "), strings.Join([]string{"seen", bad, bad}, " | "); got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}
