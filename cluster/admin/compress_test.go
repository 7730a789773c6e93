// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"net/http"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
)

// encodings keeps how the bodies of calls and of their answers were encoded.
type encodings struct {
	carrier
	call, answer string
}

func (e *encodings) Do(r *http.Request) (*http.Response, error) {
	e.call = r.Header.Get("Content-Encoding")
	response, err := e.carrier.Do(r)
	if err == nil {
		e.answer = response.Header.Get("Content-Encoding")
	}
	return response, err
}

func TestOnlyLargeAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	server, view := carried(t, &testkit.Log{})
	over := &encodings{carrier: carrier{to: server.Handler(), caller: callerOf(pki.Operator, "alice")}}
	client := admin.NewClientOver(over, "m1:7443")
	for name, want := range map[string]string{"m1": "", strings.Repeat("m", 5000): "gzip"} {
		view.group.members[0].Name = name
		if _, err := client.Raft.Peers(t.Context(), &fairleadv1.PeersRequest{}); err != nil {
			t.Fatal(err)
		}
		if over.call != "" || over.answer != want {
			t.Errorf("name of %d bytes: call encoded as %q, answer as %q, want none and %q", len(name), over.call, over.answer, want)
		}
	}
}
