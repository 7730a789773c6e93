// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// Members of format 1 know nothing of this, and would fork the record or stop.
func TestNothingIsAskedOutsideBeforeFormatTwo(t *testing.T) {
	s := fsm.New()
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: 1})
	for _, c := range []fsm.Command{
		&fsm.PutDriver{Driver: fsm.Driver{Name: "ns/d1", URL: "http://192.0.2.80"}},
		&fsm.PutLoadBalancer{ID: "o1", Driver: "ns/d1"},
		&fsm.AdoptBinding{Binding: fsm.PutBinding{ID: "x1", Balancer: "o1"}, UID: "u1"},
		&fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: "o1", Deadline: time.Second},
	} {
		if have := outcome(t, s, c); have != fsm.RejectFormat {
			t.Errorf("%T: %v", c, have)
		}
	}
}

// Whatever net/url takes for a user or a password is not shown, the rest is as it was; what it does not take for a URL is
// cut up to its last @.
func TestPropertyShownURLsHaveNoPassword(t *testing.T) {
	part := rapid.SampledFrom([]string{"", "h", "u", "hunter2", ":", "/", "//", "@", "?", "#", "%40", "%zz", "[::1", "]", "http://", "ftp:", " "})
	testkit.Check(t, func(t *rapid.T) {
		raw := strings.Join(rapid.SliceOfN(part, 0, 9).Draw(t, "parts"), "")
		shown := fsm.WithoutUserinfo(raw)
		u, err := url.Parse(raw)
		if err != nil {
			if strings.Contains(shown, "@") {
				t.Fatalf("%q is shown as %q", raw, shown)
			}
			return
		}
		if u.User == nil {
			if shown != raw {
				t.Fatalf("%q is shown as %q", raw, shown)
			}
			return
		}
		is, err := url.Parse(shown)
		u.User = nil
		if err != nil || is.User != nil || is.String() != u.String() {
			t.Fatalf("%q is shown as %q", raw, shown)
		}
	})
	for raw, want := range map[string]string{
		"http://u:p@h:80/a@b?c@d": "http://h:80/a@b?c@d", "https://u@h": "https://h", "http://h/a@b": "http://h/a@b",
		"http://u:p@x@h": "http://h", "http://u:p/x@[::1": "[::1", "": "",
	} {
		if got := fsm.WithoutUserinfo(raw); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
}
