// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/sim/kernel/message"
)

// Nobody makes an interface by which anybody may send packets into the node, or that learns from anybody.
func TestTunnelsThatAreOpenToAnybodyAreRefused(t *testing.T) {
	guard := message.Request{Tunnel: &message.Tunnel{Guard: &message.TunnelGuard{}}}
	own := netip.MustParseAddr("192.0.2.21")
	for name, c := range map[string]struct {
		before []message.Request
		link   message.TunnelLink
		why    string
	}{
		"nobody-says-who-may-come": {nil, message.TunnelLink{Local: own, Plain: true}, "who may come in"},
		"it-learns":                {[]message.Request{guard}, message.TunnelLink{Local: own}, "learns"},
		"not-from-the-node":        {[]message.Request{guard}, message.TunnelLink{Local: netip.MustParseAddr("192.0.2.99"), Plain: true}, "not the node's"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newOneNode(t, 1)
			for _, r := range c.before {
				if a := l.ask(r); a.Error != "" || !a.Changed {
					t.Fatalf("before: %+v %v", a, l.refused)
				}
			}
			a := l.ask(message.Request{Tunnel: &message.Tunnel{Do: &message.TunnelChange{Verb: "make the interface", Link: c.link}}})
			if a.Error != "EINVAL" || len(l.refused) != 1 || !strings.Contains(l.refused[0], c.why) {
				t.Errorf("%q, refused %v, want %q", a.Error, l.refused, c.why)
			}
		})
	}
}
