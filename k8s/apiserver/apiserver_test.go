// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"fairlead.io/fairlead/k8s/apiserver"
)

func TestTheServerIsKnownByConfigurationNameAndService(t *testing.T) {
	now, asked, away := time.Unix(0, 0), 0, false
	edge := apiserver.Edge{
		Slices: func(context.Context) ([]discoveryv1.EndpointSlice, error) {
			if asked++; away {
				return nil, errors.New("away")
			}
			return []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.11", "no address"}}, {Addresses: []string{"2001:db8::11"}}}}}, nil
		},
		Lookup: func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if away || host != "api.example" {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{netip.MustParseAddr("198.51.100.7")}, nil
		},
	}
	for _, c := range []struct {
		server string
		has    []string
	}{
		{"https://api.example:6443", []string{"198.51.100.7", "::ffff:198.51.100.7", "192.0.2.11", "2001:db8::11"}},
		{"api.example:6443", []string{"198.51.100.7", "192.0.2.11"}},
		{"https://10.96.0.1", []string{"10.96.0.1", "192.0.2.11"}},
		{"https://[2001:db8::1]:443/x", []string{"2001:db8::1"}},
	} {
		away, asked = false, 0
		a := apiserver.New(c.server, edge, func() time.Time { return now })
		for range 3 { // the second round is from memory, the last while nobody answers
			for _, text := range c.has {
				if !a.Has(t.Context(), netip.MustParseAddr(text)) {
					t.Errorf("%s: %s is not known", c.server, text)
				}
			}
			if a.Has(t.Context(), netip.MustParseAddr("203.0.113.1")) {
				t.Errorf("%s: a strange address is the server's", c.server)
			}
			now, away = now.Add(20*time.Second), true
		}
		if asked != 2 {
			t.Errorf("%s: asked %d times in 40 s", c.server, asked)
		}
	}
}
