// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
)

// curl makes a request as a tool would that knows nothing of Fairlead but its certificate.
func (w *world) curl(role pki.Role, name, member string, http2 bool, prepare func(base string) (*http.Request, error)) (status int, proto, body string) {
	w.t.Helper()
	material := w.endpoint(pki.Request{Role: role, Name: name}).Source.Material()
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: material.Roots, Certificates: []tls.Certificate{material.Certificate}},
		ForceAttemptHTTP2: http2,
	}
	defer transport.CloseIdleConnections()
	if !http2 {
		transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	request, err := prepare("https://" + w.member(member).address)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport, Timeout: patience}).Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, response.Proto, string(data)
}

func post(procedure, body string) func(string) (*http.Request, error) {
	return func(base string) (*http.Request, error) {
		request, err := http.NewRequest(http.MethodPost, base+procedure, strings.NewReader(body))
		if err == nil {
			request.Header.Set("Content-Type", "application/json")
		}
		return request, err
	}
}

func get(procedure string) func(string) (*http.Request, error) {
	return func(base string) (*http.Request, error) {
		query := url.Values{"encoding": {"json"}, "message": {"{}"}, "connect": {"v1"}}
		return http.NewRequest(http.MethodGet, base+procedure+"?"+query.Encode(), nil)
	}
}

func TestJSONIsAnsweredOverBothVersionsOfHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct {
		http2 bool
		proto string
		how   func(string) (*http.Request, error)
	}{
		"http1-post": {false, "HTTP/1.1", post("/fairlead.v1.RaftService/Status", "{}")},
		"http2-post": {true, "HTTP/2.0", post("/fairlead.v1.RaftService/Status", "{}")},
		"http1-get":  {false, "HTTP/1.1", get("/fairlead.v1.RaftService/Status")},
		"http2-get":  {true, "HTTP/2.0", get("/fairlead.v1.RaftService/Status")},
	} {
		t.Run(name, func(t *testing.T) {
			status, proto, body := w.curl(pki.Viewer, "bob", "m2", test.http2, test.how)
			var answer struct {
				Leader  string
				Members []struct{ Name, State, Suffrage string }
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || proto != test.proto {
				t.Fatalf("%s %d %v: %s", proto, status, err, body)
			}
			if answer.Leader != "m1" || len(answer.Members) != 3 || answer.Members[1].State != "Follower" || answer.Members[1].Suffrage != "SUFFRAGE_VOTER" {
				t.Fatalf("answer %s", body)
			}
		})
	}
}

func TestRefusalsAreReadableAsJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.group.members[2].Healthy = false })
	status, _, body := w.curl(pki.Operator, "alice", "m2", false, post("/fairlead.v1.RaftService/Remove", `{"server":"m2"}`))
	var answer struct {
		Code, Message string
		Details       []struct {
			Type  string
			Debug struct {
				What, Why, Remedy, Code string
				ForceOverrides          bool
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Details) != 1 {
		t.Fatalf("%d %v: %s", status, err, body)
	}
	detail := answer.Details[0].Debug
	if status != http.StatusBadRequest || answer.Code != "failed_precondition" || detail.Code != "would-lose-quorum" || !detail.ForceOverrides ||
		detail.What != "remove m2" || !strings.Contains(detail.Why, "afterwards 1 of 2") || !strings.Contains(answer.Message, detail.Remedy) {
		t.Fatalf("%d: %s", status, body)
	}
}

func TestGetNeverChangesAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status, _, _ := w.curl(pki.Operator, "alice", "m1", false, get("/fairlead.v1.RaftService/Snapshot"))
	if status != http.StatusMethodNotAllowed || len(w.group.history()) != 0 {
		t.Fatalf("status %d, done %q", status, w.group.history())
	}
}

func TestForbiddenCallsAreRefusedLoggedAndCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	viewer, m2 := w.client(pki.Viewer, "bob", "m2"), w.member("m2")
	for range 3 {
		_, err := viewer.Raft.Remove(w.ctx(), &fairleadv1.RemoveRequest{Server: "m3"})
		if !errors.Is(err, admin.Forbidden) || !strings.Contains(err.Error(), "the role viewer may not; use a certificate of role operator") {
			t.Fatalf("viewer removes: %v", err)
		}
	}
	if len(w.group.history()) != 0 {
		t.Fatalf("done: %q", w.group.history())
	}
	if got := m2.counter(t, "fairlead_api_refused_total", "/fairlead.v1.RaftService/Remove", "viewer"); got != 3 {
		t.Errorf("counted %v", got)
	}
	if log := m2.log.String(); strings.Count(log, "call refused") != 1 || !strings.Contains(log, "identity=viewer/bob") || !strings.Contains(log, "remote=127.0.0.1:") {
		t.Errorf("log:\n%s", log)
	}
}

func (m *member) counter(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	metrics:
		for _, metric := range family.GetMetric() {
			for _, want := range labels {
				found := false
				for _, label := range metric.GetLabel() {
					found = found || label.GetValue() == want
				}
				if !found {
					continue metrics
				}
			}
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return sum
}

func TestOnlyMembersAreBelievedAboutOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pretend := func(role pki.Role, name, by string) (int, string) {
		status, _, body := w.curl(role, name, "m1", false, func(base string) (*http.Request, error) {
			request, err := post("/fairlead.v1.RaftService/Snapshot", "{}")(base)
			if err == nil {
				request.Header.Set("Fairlead-Actor", "operator/alice")
				request.Header.Set("Fairlead-Forwarded-By", by)
			}
			return request, err
		})
		return status, body
	}
	for _, test := range []struct {
		role     pki.Role
		name, by string
		why      string
	}{
		{pki.Viewer, "bob", "bob", "only members"},
		{pki.Viewer, "bob", "m2", "only members"},
		{pki.Agent, "n1", "m2", "only members"},
		{pki.Member, "m2", "m3", "handed it on"},
		{pki.Member, "m2", "m2", "belongs to no group"}, // its handshake named none
	} {
		status, body := pretend(test.role, test.name, test.by)
		if status != http.StatusForbidden || !strings.Contains(body, test.why) {
			t.Errorf("%s/%s through %s: %d %s", test.role, test.name, test.by, status, body)
		}
	}
	if len(w.group.history()) != 0 {
		t.Fatalf("done: %q", w.group.history())
	}
}

func TestAgentsReachTheirOwnNodeOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.client(pki.Agent, "n1", "m1")
	if _, err := grouptest.Beat(w.ctx(), agent.Agent, &fairleadv1.HeartbeatRequest{Node: "n1"}); err != nil {
		t.Fatalf("own heartbeat: %v", err)
	}
	if _, err := grouptest.Beat(w.ctx(), agent.Agent, &fairleadv1.HeartbeatRequest{Node: "n2"}); !errors.Is(err, admin.Forbidden) {
		t.Fatalf("heartbeat of another node: %v", err)
	}
	sync := func(node string) (string, error) {
		stream, err := agent.Agent.Sync(w.ctx(), &fairleadv1.SyncRequest{Node: node})
		if err != nil {
			return "", err
		}
		defer func() { _ = stream.Close() }()
		if !stream.Receive() {
			return "", stream.Err()
		}
		return string(stream.Msg().GetDigest()), nil
	}
	if got, err := sync("n1"); err != nil || got != "for n1" {
		t.Fatalf("own sync: %q, %v", got, err)
	}
	if got, err := sync("n2"); !errors.Is(err, admin.Forbidden) {
		t.Fatalf("sync of another node: %q, %v", got, err)
	}
}

func TestMembersWithoutGroupMayOnlyJoin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty := w.clientFor(w.endpoint(pki.Request{Role: pki.Member, Name: "m4"}), "m1")
	settled := w.client(pki.Member, "m4", "m1")
	if _, err := empty.Record.Propose(w.ctx(), &fairleadv1.ProposeRequest{}); !errors.Is(err, admin.Forbidden) {
		t.Errorf("an empty member proposes: %v", err)
	}
	if _, err := settled.Record.Propose(w.ctx(), &fairleadv1.ProposeRequest{}); err != nil {
		t.Errorf("a member proposes: %v", err)
	}
	if _, err := empty.Join.Join(w.ctx(), &fairleadv1.JoinRequest{Name: "m4", ServerId: "m4-x"}); err != nil {
		t.Errorf("an empty member joins: %v", err)
	}
	if _, err := empty.Join.Join(w.ctx(), &fairleadv1.JoinRequest{Name: "m5", ServerId: "m5-x"}); !errors.Is(err, admin.Forbidden) {
		t.Errorf("a member joins for another: %v", err)
	}
}

func TestRequestsAreBoundedInSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	operator, member := w.client(pki.Operator, "alice", "m1"), w.client(pki.Member, "m2", "m1")
	_, err := operator.Raft.Remove(w.ctx(), &fairleadv1.RemoveRequest{Server: "m3", Reason: strings.Repeat("x", 2<<20)})
	if connect.CodeOf(err) != connect.CodeResourceExhausted || len(w.group.history()) != 0 {
		t.Errorf("2 MiB of reason: %v", err)
	}
	batch := [][]byte{bytes.Repeat([]byte{1}, 8<<20)}
	if response, err := member.Record.Propose(w.ctx(), &fairleadv1.ProposeRequest{Proposals: batch}); err != nil || len(response.GetOutcomes()[0]) != 8<<20 {
		t.Errorf("a batch of 8 MiB: %v", err)
	}
	batch[0] = bytes.Repeat([]byte{1}, 17<<20)
	if _, err := member.Record.Propose(w.ctx(), &fairleadv1.ProposeRequest{Proposals: batch}); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("a batch of 17 MiB: %v", err)
	}
}

// Whoever sends his request a byte at a time does not hold a connection for ever.
func TestSlowCallersAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shifted := time.Now().Add(-14900 * time.Millisecond) // of the fifteen seconds that the call has
	w.now = func() time.Time { return shifted }
	w.start("m4", func() pki.Membership { return pki.Membership{Group: "g1", Epoch: 1} })
	material := w.endpoint(pki.Request{Role: pki.Viewer, Name: "bob"}).Source.Material()
	conn, err := tls.Dial("tcp", w.member("m4").address, &tls.Config{
		RootCAs: material.Roots, Certificates: []tls.Certificate{material.Certificate}, NextProtos: []string{"http/1.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	const head = "POST /fairlead.v1.RaftService/Status HTTP/1.1\r\nHost: m4\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the server still waits for the rest: %v", err)
	}
}

func TestPagesAreForTheirRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for role, want := range map[pki.Role]int{pki.Viewer: http.StatusOK, pki.Operator: http.StatusOK, pki.Agent: http.StatusForbidden} {
		status, _, body := w.curl(role, "x", "m1", true, func(base string) (*http.Request, error) {
			return http.NewRequest(http.MethodGet, base+"/ui/", nil)
		})
		if status != want || (body == "a page") != (want == http.StatusOK) {
			t.Errorf("%s: %d %s", role, status, body)
		}
	}
}

func TestFaultsOfOneHandlerStayInThatCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	viewer := w.client(pki.Viewer, "bob", "m1")
	_, err := viewer.Record.Get(w.ctx(), &fairleadv1.GetRequest{Kind: "routes"})
	if connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), "boom") {
		t.Fatalf("panic shows as %v", err)
	}
	if log := w.member("m1").log.String(); !strings.Contains(log, "handler panicked") || !strings.Contains(log, "boom") || !strings.Contains(log, "services_test.go") {
		t.Errorf("log:\n%s", log)
	}
	if _, err := viewer.Raft.Peers(w.ctx(), &fairleadv1.PeersRequest{}); err != nil {
		t.Fatalf("after the panic: %v", err)
	}
}

func TestServerEndsStreamsAndThenItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.client(pki.Agent, "n1", "m1")
	stream, err := agent.Agent.Sync(w.ctx(), &fairleadv1.SyncRequest{Node: "n1"})
	if err != nil || !stream.Receive() {
		t.Fatalf("sync: %v, %v", err, stream.Err())
	}
	if got := w.member("m1").counter(t, "fairlead_api_streams"); got != 1 {
		t.Errorf("%v open streams", got)
	}
	w.member("m1").stop()
	if stream.Receive() || !errors.Is(stream.Err(), admin.Stopped) { // which it would not hear if its time had had to run out
		t.Errorf("the stream ended with %v", stream.Err())
	}
	if got := w.member("m1").counter(t, "fairlead_api_streams"); got != 0 {
		t.Errorf("%v open streams afterwards", got)
	}
}

func TestClientPassesOverServersThatAreDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	viewer := w.client(pki.Viewer, "bob", "m1", "m2", "m3")
	for _, next := range []string{"m1", "m2", "m3"} {
		if _, err := viewer.Raft.Peers(w.ctx(), &fairleadv1.PeersRequest{}); err != nil || viewer.Server() != w.member(next).address {
			t.Fatalf("reached %s, want %s: %v", viewer.Server(), next, err)
		}
		w.member(next).stop()
	}
	_, err := viewer.Raft.Peers(w.ctx(), &fairleadv1.PeersRequest{})
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), w.member("m2").address) {
		t.Fatalf("all are down: %v", err)
	}
}

func TestClientSaysWhatIsWrongWithItsCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.endpoint(pki.Request{Role: pki.Viewer, Name: "bob", TTL: time.Hour, Now: func() time.Time { return time.Now().Add(-2 * time.Hour) }})
	_, err := w.clientFor(old, "m1").Raft.Peers(w.ctx(), &fairleadv1.PeersRequest{})
	if err == nil || !strings.Contains(err.Error(), "does not accept our certificate; its log says why") {
		t.Fatalf("expired: %v", err)
	}
	astray := w.endpoint(pki.Request{Role: pki.Member, Name: "m4"})
	astray.Self = func() pki.Membership { return pki.Membership{Group: "g2", Epoch: 1} }
	_, err = w.clientFor(astray, "m1").Raft.Peers(w.ctx(), &fairleadv1.PeersRequest{})
	if err == nil || !strings.Contains(err.Error(), "another group or another epoch") {
		t.Fatalf("other group: %v", err)
	}
}

// The HTTP/2 of a module of its own is mended when that is brought up; net/http's is only with another Go.
func TestTheAPIIsServedByTheHTTP2OfAModule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status, proto, stack := w.curl(pki.Viewer, "eve", "m1", true, func(base string) (*http.Request, error) {
		return http.NewRequest(http.MethodGet, base+"/stack", nil)
	})
	if status != http.StatusOK || proto != "HTTP/2.0" || !strings.Contains(stack, "golang.org/x/net/http2.(*serverConn)") || strings.Contains(stack, "net/http.(*http2") {
		t.Errorf("%d by %s:\n%s", status, proto, stack)
	}
}

// One agent's certificate has so many streams of a member, and others' go on; what ended makes room.
func TestOneCertificateHasSoManyStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	greedy, modest := w.client(pki.Agent, "n1", "m1"), w.client(pki.Agent, "n2", "m1")
	open := func(client *admin.Client, node string) (end func(), err error) {
		ctx, cancel := context.WithCancel(w.ctx())
		stream, err := client.Agent.Sync(ctx, &fairleadv1.SyncRequest{Node: node, Boot: "b1"})
		if err == nil && !stream.Receive() {
			err = stream.Err()
		}
		if err != nil {
			cancel()
		}
		return cancel, err
	}
	var ends []func()
	var refused error
	for range 100 {
		end, err := open(greedy, "n1")
		if err != nil {
			refused = err
			break
		}
		ends = append(ends, end)
	}
	if !errors.Is(refused, admin.Busy) || !strings.Contains(refused.Error(), "under way") || len(ends) != 64 {
		t.Errorf("after %d streams: %v", len(ends), refused)
	}
	if _, err := open(modest, "n2"); err != nil {
		t.Errorf("another agent: %v", err)
	}
	ends[0]()
	testkit.Eventually(t, "a stream that ended makes room", func() error {
		_, err := open(greedy, "n1")
		return err
	})
	if log := w.member("m1").log.String(); !strings.Contains(log, "caller over its limit") || !strings.Contains(log, "agent/n1") {
		t.Errorf("log: %s", log)
	}
}

// What one certificate has come into the log is bounded, by how long it is; small things and others' go on.
func TestOneCertificateChangesSoMuch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acknowledge := func(client *admin.Client, node string, bytes int) error {
		_, err := client.Agent.Acknowledge(w.ctx(), &fairleadv1.AcknowledgeRequest{Node: node, Boot: "b1", Failed: []*fairleadv1.FailedAddress{{Why: strings.Repeat("x", bytes)}}})
		return err
	}
	greedy, modest := w.client(pki.Agent, "n1", "m1"), w.client(pki.Agent, "n2", "m1")
	for i, bytes := range []int{900 << 10, 900 << 10, 1} {
		if err := acknowledge(greedy, "n1", bytes); errors.Is(err, admin.Busy) != (i == 1) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if err := acknowledge(modest, "n2", 900<<10); errors.Is(err, admin.Busy) {
		t.Errorf("another agent: %v", err)
	}
}
