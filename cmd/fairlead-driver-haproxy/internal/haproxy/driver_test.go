// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

func newDriver(t *testing.T, m *model) *Driver {
	t.Helper()
	book, err := OpenBook(filepath.Join(t.TempDir(), "servers.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := book.Close(); err != nil {
			t.Error(err)
		}
		if len(m.mistakes) > 0 {
			t.Errorf("HAProxy does not know %q", m.mistakes)
		}
	})
	return New(Options{Runtime: m, Book: book, Mark: DefaultMark, Drain: 10 * time.Second, Log: slog.New(slog.DiscardHandler)})
}

func TestTheModelPassesTheConformanceTest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(kit.NewHandler(newDriver(t, newModel()), kit.HandlerOptions{}))
	defer server.Close()
	report, err := kit.Test(t.Context(), kit.TestOptions{URL: server.URL, LBSpec: webhook.Map{"backend": "web"}})
	if err != nil || report.Failed > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// lbcf §3.4, §3.5: only a backend that HAProxy has can be a load balancer, and it has no attributes.
func TestLoadBalancersAreBackendsThatHAProxyHas(t *testing.T) {
	t.Parallel()
	d := newDriver(t, newModel())
	for _, c := range []struct {
		spec, attributes webhook.Map
		says             string // empty if it is good
	}{
		{webhook.Map{"backend": "web"}, nil, ""},
		{webhook.Map{"backend": "web"}, webhook.Map{}, ""},
		{nil, nil, `lacks "backend"`},
		{webhook.Map{"backend": "nowhere"}, nil, "no such backend"},
		{webhook.Map{"backend": "web", "port": "443"}, nil, `"port" is not known`},
		{webhook.Map{"backend": "web"}, webhook.Map{"balance": "leastconn"}, "attributes: there are none"},
	} {
		verdict, err := d.ValidateLoadBalancer(t.Context(), webhook.ValidateLoadBalancerRequest{Operation: webhook.Create, LBSpec: c.spec, Attributes: c.attributes})
		if err != nil || verdict.Succ != (c.says == "") || !strings.Contains(verdict.Msg, c.says) {
			t.Errorf("validate %v, %v: %+v, %v", c.spec, c.attributes, verdict, err)
		}
		created, err := d.CreateLoadBalancer(t.Context(), webhook.CreateLoadBalancerRequest{LBSpec: c.spec, Attributes: c.attributes})
		if err != nil || (created.Status == webhook.Succ) != (c.says == "") || !strings.Contains(created.Msg, c.says) {
			t.Errorf("create %v, %v: %+v, %v", c.spec, c.attributes, created, err)
		}
		if c.says == "" && !maps.Equal(created.LBInfo, webhook.Map{"backend": "web"}) {
			t.Errorf("its identity is %v", created.LBInfo)
		}
	}
	update := webhook.ValidateLoadBalancerRequest{Operation: webhook.Update, LBSpec: webhook.Map{"backend": "nowhere"}}
	if verdict, err := d.ValidateLoadBalancer(t.Context(), update); err != nil || !verdict.Succ {
		t.Errorf("an update while the backend is away: %+v, %v", verdict, err)
	}
}

// lbcf §3.7: what is on a backend is deregistered, and never goes because a LoadBalancer object does.
func TestDeletingALoadBalancerDeletesNothing(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	k := drawn("web", someAddresses[0])
	if a, err := d.EnsureBackend(t.Context(), request(k, wish{weight: 1}, false)); err != nil || a.Status != webhook.Succ {
		t.Fatalf("%+v, %v", a, err)
	}
	before := m.picture()
	a, err := d.DeleteLoadBalancer(t.Context(), webhook.LoadBalancerRequest{LBInfo: webhook.Map{"backend": "web"}})
	if err != nil || a.Status != webhook.Succ || !maps.Equal(before, m.picture()) {
		t.Errorf("%+v, %v, %v", a, err, m.picture())
	}
}

func drawn(backend, address string) key {
	a, err := parseAddress(address)
	if err != nil {
		panic(err)
	}
	return key{backend, a}
}

// lbcf §3.11: where there is no backend, nothing is registered.
func TestDeregisteringFromABackendThatIsGoneSucceeds(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	k := drawn("web", someAddresses[0])
	if a, err := d.EnsureBackend(t.Context(), request(k, wish{weight: 1}, false)); err != nil || a.Status != webhook.Succ {
		t.Fatalf("%+v, %v", a, err)
	}
	delete(m.backends, "web")
	m.restart()
	if a, err := d.EnsureBackend(t.Context(), request(k, wish{weight: 1}, false)); err != nil || a.Status != webhook.Fail || !strings.Contains(a.Msg, "no such backend") {
		t.Errorf("ensure: %+v, %v", a, err)
	}
	if err := d.putBack(t.Context()); err != nil {
		t.Errorf("put back: %v", err)
	}
	if a, err := d.DeregisterBackend(t.Context(), request(k, wish{}, false)); err != nil || a.Status != webhook.Succ {
		t.Errorf("deregister: %+v, %v", a, err)
	}
	// It is out of the book, too.
	m.backends["web"] = true
	m.restart()
	if err := d.putBack(t.Context()); err != nil || len(m.servers) > 0 {
		t.Errorf("put back: %v, %v", m.picture(), err)
	}
	// What the driver never could have registered is deregistered, as is what nobody can understand.
	bad := webhook.BackendRequest{LBInfo: nil, BackendAddr: "example.com"}
	if a, err := d.DeregisterBackend(t.Context(), bad); err != nil || a.Status != webhook.Succ {
		t.Errorf("nonsense: %+v, %v", a, err)
	}
}

// What an operator took off by hand stays off while HAProxy lives: only what HAProxy itself forgot is put back.
func TestOnlyWhatHAProxyForgotIsPutBack(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	k := drawn("web", someAddresses[0])
	look := func(want bool) {
		t.Helper()
		if err := d.putBack(t.Context()); err != nil || (m.servers[ours(k)] != nil) != want {
			t.Errorf("put back: %v, %v", m.picture(), err)
		}
	}
	if a, err := d.EnsureBackend(t.Context(), request(k, wish{weight: 1}, false)); err != nil || a.Status != webhook.Succ {
		t.Fatalf("%+v, %v", a, err)
	}
	look(true)
	delete(m.servers, ours(k))
	look(false)
	m.restart()
	look(true)
}

// Users hear HAProxy's words about servers that it does not take, which is certain: nothing was done.
func TestWhatHAProxyRefusesFails(t *testing.T) {
	t.Parallel()
	d := newDriver(t, newModel())
	a, err := d.EnsureBackend(t.Context(), request(drawn("fixed", someAddresses[0]), wish{weight: 1}, false))
	if err != nil || a.Status != webhook.Fail || !strings.Contains(a.Msg, "must use a dynamic load balancing") {
		t.Errorf("%+v, %v", a, err)
	}
}

// Where the socket lets the driver look but change nothing, both calls fail, and nothing is forgotten.
func TestASocketOfALowLevelFails(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	k := drawn("web", someAddresses[0])
	if a, err := d.EnsureBackend(t.Context(), request(k, wish{weight: 1}, false)); err != nil || a.Status != webhook.Succ {
		t.Fatalf("%+v, %v", a, err)
	}
	m.fault = func() fault { return unwilling }
	if a, err := d.EnsureBackend(t.Context(), request(k, wish{weight: 2}, false)); err != nil || a.Status != webhook.Fail || !strings.Contains(a.Msg, "Refused") {
		t.Errorf("ensure: %+v, %v", a, err)
	}
	if a, err := d.DeregisterBackend(t.Context(), request(k, wish{}, false)); err != nil || a.Status != webhook.Fail || !strings.Contains(a.Msg, "Refused") {
		t.Errorf("deregister: %+v, %v", a, err)
	}
	m.fault = func() fault { return fine }
	m.restart()
	if err := d.putBack(t.Context()); err != nil || m.servers[ours(k)] == nil {
		t.Errorf("put back: %v, %v", m.picture(), err)
	}
}

func TestACallWhoseCallerIsGoneDoesNothing(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	asked := m.asked
	if a, err := d.EnsureBackend(ctx, request(drawn("web", someAddresses[0]), wish{weight: 1}, false)); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", a, err)
	}
	if m.asked != asked {
		t.Error("it asked HAProxy")
	}
}

// sick is an HAProxy that says of a command what a test wants.
type sick struct {
	*model
	command, says string
	err           error
}

func (s *sick) Ask(ctx context.Context, line string) (string, error) {
	if line == s.command {
		return s.says, s.err
	}
	return s.model.Ask(ctx, line)
}

func TestHealthIsWhetherHAProxyCanBeChanged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := &sick{model: newModel(), command: "show cli level", says: "admin\n\n"}
	d := newDriver(t, s.model)
	d.o.Runtime, d.o.Log = s, slog.New(slog.NewTextHandler(&log, nil))
	for _, c := range []struct {
		says string
		err  error
		want bool
		logs string
	}{
		{"admin\n\n", nil, true, ""},
		{"operator\n\n", nil, false, "configure it with `level admin`"},
		{"operator\n\n", nil, false, ""}, // said once
		{"", fmt.Errorf("%w: connection refused", ErrUnreachable), false, "connection refused"},
		{"admin\n\n", nil, true, "healthy again"},
	} {
		log.Reset()
		s.says, s.err = c.says, c.err
		if got := d.Healthy(t.Context()); got != c.want || !strings.Contains(log.String(), c.logs) || c.logs == "" && log.Len() > 0 {
			t.Errorf("%q, %v: healthy %v, log %q", c.says, c.err, got, log.String())
		}
	}
}

// lbcf §3.9: pods have their own address, services the node port on the node.
func TestAddressesOfPodsAndServices(t *testing.T) {
	t.Parallel()
	service := json.RawMessage(`{"spec":{"ports":[{"port":80,"protocol":"UDP","nodePort":30053},{"port":80,"protocol":"TCP","nodePort":30080},{"port":81}]}}`)
	node := func(port int32, addresses ...webhook.NodeAddress) webhook.GenerateBackendAddrRequest {
		return webhook.GenerateBackendAddrRequest{ServiceBackend: &webhook.ServiceBackend{
			Service: service, Port: webhook.PortOf(port, "TCP"), NodeName: "n1", NodeAddresses: addresses,
		}}
	}
	pod := func(text string, port webhook.Port) webhook.GenerateBackendAddrRequest {
		return webhook.GenerateBackendAddrRequest{PodBackend: &webhook.PodBackend{Pod: json.RawMessage(text), Port: port}}
	}
	host, internal := webhook.NodeAddress{Type: "Hostname", Address: "n1"}, webhook.NodeAddress{Type: "InternalIP", Address: "192.0.2.11"}
	d := newDriver(t, newModel())
	for name, c := range map[string]struct {
		r          webhook.GenerateBackendAddrRequest
		want, says string
	}{
		"pod":         {pod(`{"status":{"podIP":"192.0.2.1"}}`, webhook.PortOf(8080, "TCP")), "192.0.2.1:8080", ""},
		"pod-old":     {pod(`{"status":{"podIP":"192.0.2.1"}}`, webhook.Port{PortNumber: 8080}), "192.0.2.1:8080", ""},
		"pod-ipv6":    {pod(`{"status":{"podIP":"2001:db8::1"}}`, webhook.PortOf(80, "TCP")), "[2001:db8::1]:80", ""},
		"pod-early":   {pod(`{"status":{}}`, webhook.PortOf(80, "TCP")), "", "no address yet"},
		"pod-udp":     {pod(`{"status":{"podIP":"192.0.2.1"}}`, webhook.PortOf(53, "UDP")), "", "protocol UDP"},
		"pod-no-port": {pod(`{"status":{"podIP":"192.0.2.1"}}`, webhook.Port{}), "", "not one of a server"},
		"no-pod":      {pod(`[]`, webhook.PortOf(80, "TCP")), "", "pod: "},
		"node":        {node(80, host, internal), "192.0.2.11:30080", ""},
		"node-ipv6":   {node(80, webhook.NodeAddress{Type: "InternalIP", Address: "2001:db8::b"}, internal), "[2001:db8::b]:30080", ""},
		"node-hidden": {node(80, host), "", "node n1 has no InternalIP"},
		"no-nodeport": {node(81, internal), "", "no node port"},
		"neither":     {webhook.GenerateBackendAddrRequest{}, "", "neither"},
	} {
		got, err := d.GenerateBackendAddr(t.Context(), c.r)
		if err != nil || got.BackendAddr != c.want || !strings.Contains(got.Msg, c.says) || (got.Status == webhook.Succ) != (c.want != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
