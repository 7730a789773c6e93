// SPDX-License-Identifier: Apache-2.0

package balancing_test

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api/balancing"
)

// Section 2.3: every id but 0 is one, up to 2^32-1, and is read as it was printed.
func TestIDsAreNumbersOf32BitsWithoutZero(t *testing.T) {
	for _, text := range []string{"", "0", "-1", "4294967296", "1.5", "x", " 7"} {
		if id, err := balancing.ParseID(text); err == nil {
			t.Errorf("%q is %s", text, id)
		}
	}
	testkit.Check(t, func(t *rapid.T) {
		id := balancing.ID(rapid.Uint32Range(1, 1<<32-1).Draw(t, "id"))
		if got, err := balancing.ParseID(id.String()); err != nil || got != id {
			t.Fatalf("%s: %s, %v", id, got, err)
		}
	})
}

func TestServiceIDOfAnObjectWithoutAnnotationsIsNone(t *testing.T) {
	if id, err := balancing.ServiceID(nil); id != 0 || err != nil {
		t.Error(id, err)
	}
	if _, err := balancing.ServiceID(map[string]string{balancing.AnnotationServiceID: ""}); err == nil {
		t.Error("an empty id is one")
	}
}

// Section 2.3: what is printed on a Node is read again.
func TestPropertyNodesAreReadAsTheyWerePrinted(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := balancing.Node{ID: balancing.ID(rapid.Uint32().Draw(t, "id")), Managed: rapid.Bool().Draw(t, "managed")}
		if rapid.Bool().Draw(t, "v4") {
			n.ProxyV4 = netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")))
		}
		if rapid.Bool().Draw(t, "v6") {
			bytes := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address"))
			bytes[0] = 0x20 // none of IPv4 in IPv6 form
			n.ProxyV6 = netip.AddrFrom16(bytes)
		}
		got, errs := balancing.NodeOf(n.Annotations())
		if got != n || len(errs) > 0 {
			t.Fatalf("%+v, not %+v: %v", got, n, errs)
		}
	})
}

func TestNodeAnnotationsThatMakeNoSenseAreLeftOut(t *testing.T) {
	good := map[string]string{
		balancing.AnnotationNodeID: "7", balancing.AnnotationNodeProxyIP4: "192.0.2.1", balancing.AnnotationNodeProxyIP6: "2001:db8::1",
		balancing.AnnotationNodeProxyManaged: "true",
	}
	for key, bad := range map[string]string{
		balancing.AnnotationNodeID: "0", balancing.AnnotationNodeProxyIP4: "2001:db8::1", balancing.AnnotationNodeProxyIP6: "fe80::1%eth0",
		balancing.AnnotationNodeProxyManaged: "yes",
	} {
		some := maps.Clone(good)
		some[key] = bad
		got, errs := balancing.NodeOf(some)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), key) || !strings.Contains(errs[0].Error(), bad) {
			t.Errorf("%s: %v", key, errs)
		}
		delete(some, key)
		if want, _ := balancing.NodeOf(some); got != want {
			t.Errorf("%s: %+v, not %+v", key, got, want)
		}
	}
}

// Section 2.2: every integer from 1 to 65535, and zeros in front; 0 in no spelling.
func TestPortsAreEveryNumberOf16BitsWithoutZero(t *testing.T) {
	for text, want := range map[string]uint16{
		"1": 1, "80": 80, "080": 80, "0000000443": 443, "60000": 60000, "60999": 60999, "65000": 65000, "65500": 65500, "65530": 65530, "65535": 65535,
		"0": 0, "00": 0, "": 0, "65536": 0, "-1": 0, "http": 0, "8 0": 0, "+80": 0,
	} {
		if got, err := balancing.ParsePort(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestPortNamesHaveLettersAndSingleDashesInside(t *testing.T) {
	for name, want := range map[string]bool{"http": true, "p1": true, "a-b": true, "A": true, "": false, "1": false, "-a": false, "a-": false, "a--b": false, "a_b": false, "ä": false} {
		if got := balancing.IsPortName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

func TestAnnotationsOfPoliciesSayOneOfTwo(t *testing.T) {
	for text, want := range map[string][2]bool{"": {false, true}, "refuse": {false, true}, "fallthrough": {true, true}, "fallThrough": {false, false}} {
		got, err := balancing.FallsThrough(map[string]string{balancing.AnnotationOnNoBackend: text})
		if got != want[0] || (err == nil) != want[1] {
			t.Errorf("%q: %t, %v", text, got, err)
		}
	}
	for text, want := range map[string][2]bool{"": {false, true}, "false": {false, true}, "true": {true, true}, "True": {false, false}} {
		got, err := balancing.SkipsOwnBackends(map[string]string{balancing.AnnotationSkipFromBackend: text})
		if got != want[0] || (err == nil) != want[1] {
			t.Errorf("%q: %t, %v", text, got, err)
		}
	}
	for text, want := range map[string]bool{"80": true, "http": true, "0": false, "65536": false, "": false, "a_b": false} {
		if err := balancing.CheckTargetPort(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
