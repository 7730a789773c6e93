// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/internal/testkit"
)

func place(t testing.TB, text string) driver.Place {
	t.Helper()
	p, err := driver.ParsePlace(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReachRefusesWhatIsNoOtherMachines(t *testing.T) {
	own := netip.MustParseAddr("198.51.100.11")
	r := driver.Reach{
		Allowed: []driver.Place{place(t, "127.0.0.1:7490"), place(t, "127.7.0.0/16"), place(t, "[fe80::5]:80"), place(t, "::1")},
		Whose: func(_ context.Context, a netip.Addr) string {
			return map[bool]string{true: "this machine's own"}[a == own]
		},
	}
	for to, why := range map[string]string{
		"192.0.2.7:80":                 "",
		"10.96.0.10:80":                "",
		"[2001:db8::7]:80":             "",
		"127.0.0.1:7490":               "",
		"[::ffff:127.0.0.1]:7490":      "",
		"127.7.3.1:22":                 "",
		"[::1]:9":                      "",
		"[fe80::5%eth0]:80":            "",
		"[64:ff9b::c000:207]:80":       "",
		"[64:ff9b::7f00:1]:80":         "a loopback address",
		"[64:ff9b::a9fe:a9fe]:80":      "a link-local address",
		"[64:ff9b::c633:640b]:80":      "this machine's own address",
		"[::127.0.0.1]:80":             "a loopback address",
		"127.0.0.1:7491":               "a loopback address",
		"127.0.0.2:7490":               "a loopback address",
		"[::ffff:127.0.0.1]:1":         "a loopback address",
		"[fe80::5%eth0]:81":            "a link-local address",
		"[fe80::6%eth0]:80":            "a link-local address",
		"169.254.169.254:80":           "a link-local address",
		"[::ffff:169.254.169.254]:80":  "a link-local address",
		"0.0.0.0:80":                   "an unspecified address",
		"0.1.2.3:80":                   "an unspecified address",
		"[::]:80":                      "an unspecified address",
		"224.0.0.1:80":                 "a multicast address",
		"[ff02::1%eth0]:80":            "a multicast address",
		"255.255.255.255:80":           "a multicast address",
		"198.51.100.11:7443":           "this machine's own address",
		"[::ffff:198.51.100.11]:10250": "this machine's own address",
	} {
		err := r.Check(t.Context(), netip.MustParseAddrPort(to))
		if (err == nil) != (why == "") || err != nil && (!errors.Is(err, driver.ErrAddress) || !strings.Contains(err.Error(), why)) {
			t.Errorf("%s: %v, want %q", to, err, why)
		}
	}
	if err := (driver.Reach{}).Check(t.Context(), netip.AddrPort{}); err == nil {
		t.Error("no address at all is called")
	}
}

// Nobody gets to this machine by another spelling, and what is allowed is allowed in each.
func TestSpellingsOfAnAddressAreOneToReach(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		bytes := [4]byte{rapid.SampledFrom([]byte{0, 10, 127, 169, 192, 224}).Draw(t, "first"), rapid.SampledFrom([]byte{0, 254}).Draw(t, "second"), 0, rapid.Byte().Draw(t, "last")}
		port := rapid.Uint16Range(1, 3).Draw(t, "port")
		four := netip.AddrFrom4(bytes)
		r := driver.Reach{}
		if rapid.Bool().Draw(t, "allowed") {
			r.Allowed = []driver.Place{{Prefix: netip.PrefixFrom(four, rapid.IntRange(0, 32).Draw(t, "bits")).Masked(), Port: rapid.Uint16Range(0, 3).Draw(t, "at")}}
		}
		plain := r.Check(t.Context(), netip.AddrPortFrom(four, port))
		mapped := r.Check(t.Context(), netip.AddrPortFrom(netip.AddrFrom16(four.As16()), port))
		if (plain == nil) != (mapped == nil) {
			t.Fatalf("%v, but as IPv6 %v", plain, mapped)
		}
		free := len(r.Allowed) > 0 && r.Allowed[0].Prefix.Contains(four) && (r.Allowed[0].Port == 0 || r.Allowed[0].Port == port)
		inside := four.IsLoopback() || four.IsLinkLocalUnicast() || four.IsMulticast() || bytes[0] == 0
		if want := free || !inside; (plain == nil) != want {
			t.Fatalf("%s:%d with %+v: %v", four, port, r.Allowed, plain)
		}
	})
}

func TestPlacesAreReadOrRefused(t *testing.T) {
	for text, want := range map[string]driver.Place{
		"192.0.2.1":          {Prefix: netip.MustParsePrefix("192.0.2.1/32")},
		"::ffff:192.0.2.1":   {Prefix: netip.MustParsePrefix("192.0.2.1/32")},
		"192.0.2.0/24":       {Prefix: netip.MustParsePrefix("192.0.2.0/24")},
		"127.0.0.1:7490":     {Prefix: netip.MustParsePrefix("127.0.0.1/32"), Port: 7490},
		"[2001:db8::1]:7490": {Prefix: netip.MustParsePrefix("2001:db8::1/128"), Port: 7490},
	} {
		if got, err := driver.ParsePlace(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "localhost", "localhost:80", "192.0.2.1/24", "::ffff:192.0.2.0/120", "192.0.2.1:0", "192.0.2.1:65536", ":80", "0.0.0.0/33"} {
		if p, err := driver.ParsePlace(text); err == nil {
			t.Errorf("%q is taken for %+v", text, p)
		}
	}
}

func TestThisMachinesAddressesAreItsOwn(t *testing.T) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, has := range list {
		a := netip.MustParsePrefix(has.String()).Addr()
		if own, err := driver.OwnAddress(a); err != nil || !own {
			t.Errorf("%s: %v, %v", a, own, err)
		}
	}
	if own, err := driver.OwnAddress(netip.MustParseAddr("192.0.2.254")); err != nil || own {
		t.Errorf("a strange address is this machine's: %v", err)
	}
}
