// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"
)

// A host that has a /64 of IPv6 is one source by whichever address it comes.
func TestSourceIsAnAddressOrItsNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:4711":                "192.0.2.7",
		"[::ffff:192.0.2.7]:4711":       "192.0.2.7",
		"[2001:db8:0:7::1]:4711":        "2001:db8:0:7::/64",
		"[2001:db8:0:7:ffff::9]:4712":   "2001:db8:0:7::/64",
		"[fe80::1%eth0]:4711":           "fe80::/64",
		"no address, as of a net.Pipe ": "no address, as of a net.Pipe ",
	} {
		if got := Source(text(remote)); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}

type text string

func (text) Network() string  { return "tcp" }
func (a text) String() string { return string(a) }

var _ net.Addr = text("")

func TestAcquaintancesAreForgottenInTimeAndBounded(t *testing.T) {
	a, now := acquaintancesOf([]netip.Addr{netip.MustParseAddr("192.0.2.1")}), time.Unix(0, 0)
	a.note("first", now)
	for i := range maxLately {
		a.note(fmt.Sprint(i), now.Add(time.Second))
	}
	later := now.Add(time.Minute)
	if len(a.seen) != maxLately || a.has("first", later) || !a.has("0", later) {
		t.Errorf("%d are remembered, the first of them %v", len(a.seen), a.has("first", later))
	}
	later = now.Add(time.Second + lately)
	if a.has("0", later) || !a.has("192.0.2.1", later) || a.has("192.0.2.2", later) {
		t.Error("who came long ago counts, or who was named does not")
	}
}
