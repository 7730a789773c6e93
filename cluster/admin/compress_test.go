// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"compress/gzip"
	"io"
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

// bombed sends what is a thousandth of its size.
type bombed struct{ carrier }

func (b *bombed) Do(r *http.Request) (*http.Response, error) {
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(make([]byte, 8<<20)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	r.Header.Set("Content-Encoding", "gzip")
	r.ContentLength, r.Body = int64(small.Len()), io.NopCloser(&small)
	return b.carrier.Do(r)
}

// A message that is too large once it is decompressed is not decompressed further, not even to say how large it is.
func TestMessagesAreDecompressedAsFarAsTheyMayBe(t *testing.T) {
	t.Parallel()
	server, _ := carried(t, &testkit.Log{})
	client := admin.NewClientOver(&bombed{carrier{to: server.Handler(), caller: callerOf(pki.Operator, "alice")}}, "m1:7443")
	_, err := client.Raft.Peers(t.Context(), &fairleadv1.PeersRequest{})
	if err == nil || !strings.Contains(err.Error(), "too large once it is decompressed") {
		t.Errorf("answered %v", err)
	}
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
