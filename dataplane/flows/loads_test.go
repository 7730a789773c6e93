// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"net/netip"
	"testing"
	"time"
)

// K39: what counts for an endpoint is what was translated to it, of its protocol, has not ended, and was not forgotten.
// Rule: K39.
func TestLoadsAreOfConnectionsThatGoOn(t *testing.T) {
	pod, vip := netip.MustParseAddrPort("10.0.0.1:8080"), netip.MustParseAddr("192.0.2.1")
	days := 5 * 24 * time.Hour
	base := Flow{Protocol: 6, From: netip.MustParseAddr("203.0.113.9"), To: vip, State: established, Left: days, By: pod, ID: 7}
	for name, c := range map[string]struct {
		change func(*Flow)
		want   Load
	}{
		"open":                   {func(*Flow) {}, Load{Open: 1}},
		"new":                    {func(f *Flow) { f.ID = 8 }, Load{Open: 1, Fresh: 1}},
		"about to be":            {func(f *Flow) { f.State, f.Left = synSent, time.Minute }, Load{Open: 1}},
		"ending":                 {func(f *Flow) { f.State = finWait }, Load{}},
		"at the endpoint itself": {func(f *Flow) { f.To = pod.Addr() }, Load{}},
		"another port":           {func(f *Flow) { f.By = netip.AddrPortFrom(pod.Addr(), 81) }, Load{}},
		"another protocol":       {func(f *Flow) { f.Protocol, f.State = 17, 0 }, Load{}},
		"quiet for ten minutes":  {func(f *Flow) { f.Left -= 10 * time.Minute }, Load{Open: 1}},
		"quiet for an hour":      {func(f *Flow) { f.Left -= time.Hour }, Load{}},
	} {
		e := Endpoint{Protocol: 6, At: pod}
		l := Loads{Of: map[Endpoint]Load{e: {}}, Timeouts: Timeouts{TCP: []time.Duration{days}}, Before: map[uint32]bool{7: true}, Now: map[uint32]bool{}}
		f := base
		c.change(&f)
		l.Add(f)
		if l.Of[e] != c.want || len(l.Of) != 1 || len(l.Now) != c.want.Open {
			t.Errorf("%s: %+v, %d remembered, want %+v", name, l.Of, len(l.Now), c.want)
		}
	}
}
