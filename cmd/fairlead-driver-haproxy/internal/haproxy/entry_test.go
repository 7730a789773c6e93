// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/testkit"
)

func TestNamesOfBackendsCannotBecomeCommands(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"web", "web-1", "WEB_1.example:443", strings.Repeat("a", 255)} {
		if got, err := parseBackend(webhook.Map{"backend": good}); err != nil || got != good {
			t.Errorf("%q: %q, %v", good, got, err)
		}
	}
	for _, bad := range []string{"", " ", "web x", "web;disable server web/a", "web\nshow info", "web/a", "wéb", strings.Repeat("a", 256)} {
		if got, err := parseBackend(webhook.Map{"backend": bad}); err == nil {
			t.Errorf("%q was read as %q", bad, got)
		}
	}
	if _, err := parseBackend(webhook.Map{"backend": "web", "port": "80"}); err == nil || !strings.Contains(err.Error(), "port") {
		t.Errorf("a key that is not known: %v", err)
	}
}

func TestAddressesAreOfServers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1:80", "[2001:db8::1]:80": "[2001:db8::1]:80", "[2001:DB8:0::1]:80": "[2001:db8::1]:80",
		"[::ffff:192.0.2.1]:80": "192.0.2.1:80",
	} {
		if got, err := parseAddress(text); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "192.0.2.1", "192.0.2.1:0", "192.0.2.1:65536", "0.0.0.0:80", "[fe80::1%eth0]:80", "example.com:80", "192.0.2.1:80 x", "2001:db8::1:80"} {
		if got, err := parseAddress(bad); err == nil {
			t.Errorf("%q was read as %s", bad, got)
		}
	}
}

// Two addresses never share a server, and names are ones that HAProxy takes.
func TestPropertyNamesTellAddressesApart(t *testing.T) {
	t.Parallel()
	address := func(t *rapid.T, label string) netip.AddrPort {
		bytes := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 18, 255}), 16, 16).Draw(t, label)
		ip := netip.AddrFrom16([16]byte(bytes))
		if rapid.Bool().Draw(t, label+" is IPv4") {
			ip = netip.AddrFrom4([4]byte(bytes[:4]))
		}
		return netip.AddrPortFrom(ip, rapid.SampledFrom([]uint16{1, 18, 80, 65535}).Draw(t, label+" port"))
	}
	testkit.Check(t, func(t *rapid.T) {
		a, b := address(t, "a"), address(t, "b")
		if (a == b) != (DefaultMark.name(a) == DefaultMark.name(b)) {
			t.Fatalf("%s and %s are %s and %s", a, b, DefaultMark.name(a), DefaultMark.name(b))
		}
		if name := DefaultMark.name(a); strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") != "" {
			t.Fatalf("HAProxy takes no server of the name %s", name)
		}
	})
}

func TestParametersAreHeldToHAProxysBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   webhook.Map
		want wish
	}{
		{nil, wish{weight: 1}},
		{webhook.Map{"weight": "0"}, wish{}},
		{webhook.Map{"weight": "256", "maxconn": "100"}, wish{weight: 256, maxConn: 100}},
		{webhook.Map{"check": "false"}, wish{weight: 1}},
		{webhook.Map{"check": "true"}, wish{weight: 1, interval: 2 * time.Second}},
		{webhook.Map{"check": "true", "interval": "500ms"}, wish{weight: 1, interval: 500 * time.Millisecond}},
	} {
		if got, err := parseParameters(c.in); err != nil || got != c.want {
			t.Errorf("%v: %+v, %v", c.in, got, err)
		}
	}
	for _, bad := range []webhook.Map{
		{"weight": "257"}, {"weight": "-1"}, {"weight": "80%"}, {"weight": ""}, {"maxconn": "many"}, {"maxconn": "1000001"}, {"wieght": "1"},
		{"check": "yes"}, {"interval": "2s"}, {"check": "false", "interval": "2s"}, {"check": "true", "interval": "2"}, {"check": "true", "interval": "0s"},
		{"check": "true", "interval": "99ms"}, {"check": "true", "interval": "61m"}, {"check": "true", "interval": "150ms"},
	} {
		if got, err := parseParameters(bad); err == nil {
			t.Errorf("%v was read as %+v", bad, got)
		}
	}
}

func TestMarksAreLettersAndDigits(t *testing.T) {
	t.Parallel()
	if m, err := ParseMark("edge2"); err != nil || m.name(netip.MustParseAddrPort("[2001:db8::1]:80")) != "edge2-2001:db8::1_80" {
		t.Errorf("%q, %v", m, err)
	}
	for _, bad := range []string{"", "a-b", "a b", "ä"} {
		if _, err := ParseMark(bad); err == nil {
			t.Errorf("%q is a mark", bad)
		}
	}
}
