// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Health checks that are asked for, asked for otherwise, and not any more: a server is added anew where HAProxy can do it
// no other way, never while it has connections, and all else that was asked for waits with it.
func TestHealthChecksChangeWhereNobodyIsCutOff(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	k := drawn("web", someAddresses[0])
	every := func(d time.Duration) *wish { return &wish{weight: 4, interval: d} }
	for _, step := range []struct {
		want     *wish
		sessions int
		says     string // with Fail
	}{
		{want: every(0)},
		{want: every(time.Second), sessions: 3, says: "only while it has no connections"},
		{want: every(time.Second)},
		{want: every(time.Second), sessions: 3},
		{want: every(5 * time.Second), sessions: 3, says: "only while it has no connections"},
		{want: every(0), sessions: 3},
		{want: every(time.Second), sessions: 3},
		{want: every(5 * time.Second)},
	} {
		if s := m.servers[ours(k)]; s != nil {
			s.sessions = step.sessions
		}
		before := m.picture()[ours(k)]
		status, msg, err := call(t, d, k, step.want)
		switch after := m.picture()[ours(k)]; {
		case err != nil || (status == webhook.Fail) != (step.says != "") || !strings.Contains(msg, step.says):
			t.Errorf("%v: %s (%s), %v", step.want, status, msg, err)
		case step.says == "" && after != pictureOf(k, step.want):
			t.Errorf("%v: it is %q", step.want, after)
		case step.says != "" && after != before:
			t.Errorf("%v: it was %q and is %q", step.want, before, after)
		}
	}
}
