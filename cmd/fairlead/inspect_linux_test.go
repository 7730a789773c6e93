// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/health"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/program"
	"fairlead.io/fairlead/internal/mounttest"
)

// inspected is a node whose kernel has these rules, and its agent.yaml.
func inspected(t *testing.T, rules ...*sock.Rule) (config string) {
	t.Helper()
	isolate(t)
	folder := t.TempDir()
	mount := filepath.Join(folder, "bpf")
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	mounttest.Mount(t, "bpf", mount, "")
	pins := filepath.Join(mount, "fairlead")
	p, err := program.Open(program.Options{Pins: pins})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := program.Remove(pins); err != nil {
			t.Error(err)
		}
	})
	for _, c := range sock.NewPlanner(program.DefaultSizes.Capacity).Step(sock.Want{Rules: rules}) {
		if err := p.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	config = filepath.Join(folder, "agent.yaml")
	text := fmt.Sprintf("node: n1\nstateDir: %s\nmembers: [192.0.2.1:7443]\ntls: {ca: ca.crt, cert: n1.crt, key: n1.key}\nsock: {pins: %s}\n", filepath.Join(folder, "state"), pins)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

func webRule() *sock.Rule {
	at := func(text string) sock.Backend { return sock.Backend{At: netip.MustParseAddrPort(text)} }
	heavy := at("10.0.0.2:8080")
	heavy.Weight = 3
	vip := []sock.At{{Address: netip.MustParseAddr("192.0.2.1"), Port: 80, Mode: sock.ServiceLoadBalancer}}
	return &sock.Rule{ID: 7, Kind: sock.Service, Name: "shop/web", Fronts: []sock.Front{
		{At: vip, Protocol: sock.TCP, Backends: []sock.Backend{at("10.0.0.1:8080"), heavy}, Affinity: time.Hour},
		{At: vip, Protocol: sock.UDP, Empty: sock.Refuse},
	}}
}

// Balancing §21: where a policy leaves its own backends alone, a trace says what their calls get there instead.
// Rule: balancing §21.
func TestTraceFollowsWhatGoesOn(t *testing.T) {
	vip := []sock.At{{Address: netip.MustParseAddr("192.0.2.1"), Port: 80}}
	for kind, who := range map[sock.Kind]string{sock.LocalRedirect: "from backends of the rule itself, and beyond its limit in a second", sock.Balancing: "from backends of the rule itself"} {
		policy := &sock.Rule{ID: 9, Kind: kind, Name: "local", SparesBackends: true, Fronts: []sock.Front{
			{At: vip, Protocol: sock.TCP, Backends: []sock.Backend{{At: netip.MustParseAddrPort("10.0.9.1:8080")}}},
		}}
		got := fairlead(t, "inspect", "--config", inspected(t, webRule(), policy), "trace", "192.0.2.1:80").mustPrint(t)
		for _, want := range []string{"10.0.9.1:8080", "calls " + who + " go on: they get to 10.0.0.1:8080, 10.0.0.2:8080 of service rule 7"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", kind, want, got)
			}
		}
	}
}

// Balancing §21: what the kernel holds is told in words, and what becomes of a call.
// Rule: balancing §21.
func TestInspectTellsWhatTheKernelHolds(t *testing.T) {
	config := inspected(t, webRule())
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"places"}, []string{"192.0.2.1:80/tcp", "rule 7", "ServiceLoadbalancer", "use", "3600s", "10.0.0.1:8080, 10.0.0.2:8080 (3 of 4)", "192.0.2.1:80/udp", "refuse"}},
		{[]string{"clients"}, []string{"CLIENT", "UNUSED"}},
		{[]string{"sockets"}, []string{"SOCKET", "ENDPOINT"}},
		{[]string{"counters"}, []string{"nodePort", "resolved"}},
		{[]string{"trace", "192.0.2.1:80"}, []string{"use", "10.0.0.2:8080, 3 of 4 calls", "keeps its own until it was not used for 3600s"}},
		{[]string{"trace", "192.0.2.1:80/udp"}, []string{"refuse", "ECONNREFUSED"}},
		{[]string{"trace", "192.0.2.9:80"}, []string{"pass", "nothing is resolved"}},
	} {
		got := fairlead(t, append([]string{"inspect", "--config", config}, c.args...)...).mustPrint(t)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, got)
			}
		}
	}
	var answer inspectedPlaces
	text := fairlead(t, "inspect", "--config", config, "places", "-o", "json").mustPrint(t)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Places) != 2 || len(answer.Places[0].Endpoints) != 2 {
		t.Errorf("%s (%v)", text, err)
	}
}

// Balancing §14, §21: what the agent thinks of listed addresses is told as it wrote it down.
// Rule: balancing §14.
func TestInspectTellsWhatIsThought(t *testing.T) {
	config := inspected(t)
	fairlead(t, "inspect", "--config", config, "probes").mustFail(t, exitFailed, "the agent has written nothing down")
	folder := filepath.Join(filepath.Dir(config), "state")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]health.State{
		{Policy: "BalancingPolicy/db", Address: "198.51.100.11", Port: "6432/tcp", By: []string{"TCP 198.51.100.11:6432"}, Opinion: "bad", Why: "refused", Open: true, At: time.Now()},
		{Policy: "BalancingPolicy/db", Address: "198.51.100.12", Port: "6432/tcp", By: []string{"TCP 198.51.100.12:6432"}, Opinion: "unknown", At: time.Now()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, node.ProbesFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	got := fairlead(t, "inspect", "--config", config, "probes").mustPrint(t)
	for _, want := range []string{"BalancingPolicy/db", "198.51.100.11", "6432/tcp", "TCP 198.51.100.12:6432", "bad, used", "refused", "unknown"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// told has the agent of a node be told this last.
func told(t *testing.T, config string, items map[string][]byte) {
	t.Helper()
	var m desiredtest.Told
	m.Items(items)
	data, err := m.State(t, nil).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(filepath.Dir(config), "state")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, node.StateFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Balancing §21: where the kernel does not hold what the agent was told last, that is told, place by place, and nothing where it does. A listed
// address that the agent found bad is not missed.
// Rule: balancing §21.
func TestInspectComparesTheKernelWithWhatItShallHold(t *testing.T) {
	vip := netip.MustParseAddr("192.0.2.1")
	redirect := desired.Policy{Name: "BalancingPolicy/db", Number: 7, EveryNode: true, Mode: desired.ToAddresses, Probe: desired.Probe{Type: "TCP"}}
	var backends []sock.Backend
	for _, a := range []string{"198.51.100.1", "198.51.100.2"} {
		redirect.Backends = append(redirect.Backends, desired.PolicyBackend{Address: netip.MustParseAddr(a), Ready: true})
		backends = append(backends, sock.Backend{At: netip.MustParseAddrPort(a + ":6432")})
	}
	for _, port := range []uint16{5432, 5433} {
		redirect.Captures = append(redirect.Captures, desired.Capture{Address: vip, Port: desired.Port{Protocol: sock.TCP, Number: port}, Target: 6432})
	}
	front := func(port uint16, backends ...sock.Backend) sock.Front {
		return sock.Front{At: []sock.At{{Address: vip, Port: port, Mode: sock.BalancingAddress}}, Protocol: sock.TCP, Backends: backends, Empty: sock.Refuse}
	}
	value, err := desired.PolicyValue(redirect)
	if err != nil {
		t.Fatal(err)
	}
	items := map[string][]byte{desired.PolicyKey(redirect.Name): value}
	rule := func(fronts ...sock.Front) *sock.Rule {
		return &sock.Rule{ID: 7, Kind: sock.Balancing, Name: redirect.Name, Fronts: fronts}
	}
	diff := func(config string) []inspectedDifference {
		t.Helper()
		var answer inspectedDifferences
		text := fairlead(t, "inspect", "--config", config, "diff", "-o", "json").mustPrint(t)
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return answer.Places
	}

	t.Run("equal", func(t *testing.T) {
		config := inspected(t, rule(front(5432, backends...), front(5433, backends...)))
		told(t, config, items)
		if got := diff(config); len(got) > 0 {
			t.Errorf("differs: %v", got)
		}
	})
	t.Run("other", func(t *testing.T) {
		config := inspected(t, rule(front(5432, backends[0]), front(80, backends...)))
		told(t, config, items)
		both := "use 198.51.100.1:6432, 198.51.100.2:6432 (BalancingPolicy/db, balancingAddress)"
		want := []inspectedDifference{
			{"192.0.2.1:80/tcp", both, ""},
			{"192.0.2.1:5432/tcp", "use 198.51.100.1:6432 (BalancingPolicy/db, balancingAddress)", both}, {"192.0.2.1:5433/tcp", "", both},
		}
		if got := diff(config); !reflect.DeepEqual(got, want) {
			t.Errorf("differs in %v, want %v", got, want)
		}
		text := fairlead(t, "inspect", "--config", config, "diff").mustPrint(t)
		for _, want := range []string{"SHALL BE", "192.0.2.1:5433/tcp", both} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
	t.Run("bad", func(t *testing.T) {
		config := inspected(t, rule(front(5432, backends[0]), front(5433, backends[0])))
		told(t, config, items)
		data, err := json.Marshal([]health.State{{Policy: redirect.Name, Address: "198.51.100.2", Port: "6432/tcp", Opinion: "bad"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(config), "state", node.ProbesFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := diff(config); len(got) > 0 {
			t.Errorf("differs: %v", got)
		}
	})
}

// heed has somebody hear who asks for a comparison, as an agent does.
func heed(t *testing.T, pins string) {
	t.Helper()
	p, err := program.Open(program.Options{Pins: pins})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			p.Asked()
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Balancing §21: a table is emptied once somebody says so, and no other; what the agent keeps, it is asked to fill anew, and it is said whether it began.
// Rule: balancing §21.
func TestCleanEmptiesATable(t *testing.T) {
	config := inspected(t, webRule())
	pins := filepath.Join(filepath.Dir(config), "bpf", "fairlead")
	clean := func(stdin string, args ...string) ran {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"inspect", "--config", config, "clean", "-o", "json"}, args...), strings.NewReader(stdin), &stdout, &stderr)
		return ran{code, stdout.String(), stderr.String()}
	}
	places := func() int {
		t.Helper()
		var answer inspectedPlaces
		text := fairlead(t, "inspect", "--config", config, "places", "-o", "json").mustPrint(t)
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return len(answer.Places)
	}
	cleaned := func(got ran) (answer inspectedClean) {
		t.Helper()
		if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || got.code != exitDone {
			t.Fatalf("%+v (%v)", got, err)
		}
		return answer
	}
	for _, said := range []string{"", "n\n", "\n"} {
		got := clean(said, "places")
		want := "Remove all rows of places? Then calls to service addresses are not resolved until the agent has filled it anew. [y/N] fairlead: inspect: nothing was removed: it takes the answer y, or --yes\n"
		if got.code != exitFailed || got.stdout != "" || got.stderr != want {
			t.Errorf("to %q it says %+v, want %q", said, got, want)
		}
	}
	clean("y\n", "webs").mustFail(t, exitUsage, "no table \"webs\"; it is one of places, endpoints, nodes, affinity, flows, sockets, all")
	if n := places(); n != 2 || program.Asks(pins) {
		t.Errorf("%d places are there before anything is cleaned, asked %v", n, program.Asks(pins))
	}
	if got, want := cleaned(clean("", "flows", "--yes")), (inspectedClean{[]cleanedTable{{"flows", 0}}, ""}); !reflect.DeepEqual(got, want) || program.Asks(pins) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := cleaned(clean("y\n", "places")), (inspectedClean{[]cleanedTable{{"places", 2}}, "asked"}); !reflect.DeepEqual(got, want) || !program.Asks(pins) || places() != 0 {
		t.Errorf("%+v, want %+v; %d places are there, asked %v", got, want, places(), program.Asks(pins))
	}
	heed(t, pins)
	all := []cleanedTable{{"places", 0}, {"endpoints", 4 + 2}, {"nodes", 0}, {"affinity", 0}, {"flows", 0}, {"sockets", 0}} // two of them by identity
	if got, want := cleaned(clean("yes\n", "all")), (inspectedClean{all, "begun"}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i, one := range all {
		want := inspectedClean{[]cleanedTable{{one.Table, 0}}, ""}
		if i < 3 {
			want.Comparison = "begun"
		}
		if got := cleaned(clean("", one.Table, "--yes")); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for comparison, want := range map[string]string{"": "nodes 5", "begun": "The agent fills", "asked": "No agent has begun"} {
		var text strings.Builder
		if err := (inspectedClean{[]cleanedTable{{"nodes", 5}}, comparison}).WriteTable(&text); err != nil || !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("no %q in\n%s(%v)", want, text.String(), err)
		}
	}
}

func TestInspectThatCannotSaysWhy(t *testing.T) {
	config := inspected(t)
	fairlead(t, "inspect", "--config", config, "trace", "192.0.2.1").mustFail(t, exitUsage, "no address and port; write it as 192.0.2.1:443")
	fairlead(t, "inspect", "--config", config, "trace", "192.0.2.1:80/sctp").mustFail(t, exitUsage, "not resolved; tcp and udp are")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(elsewhere, []byte(strings.ReplaceAll(string(text), "/bpf/fairlead", "/bpf/none")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"places"}, {"clean", "all", "--yes"}} {
		fairlead(t, append([]string{"inspect", "--config", elsewhere}, args...)...).mustFail(t, exitFailed, "no agent resolves there", "is `sock` in")
	}
}

func TestTheAnswersOfInspectAreDocumentedWithTheirFields(t *testing.T) {
	var b strings.Builder
	b.WriteString("| command | JSON |\n|---|---|\n")
	for _, x := range []struct {
		command string
		answer  any
	}{
		{"`inspect places`", inspectedPlaces{}}, {"`inspect clients`", inspectedClients{}}, {"`inspect sockets`", inspectedSockets{}},
		{"`inspect diff`", inspectedDifferences{}}, {"`inspect counters`", inspectedCounters{}}, {"`inspect probes`", inspectedProbes{}}, {"`inspect trace`", traced{}},
		{"`inspect clean`", inspectedClean{}},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", x.command, fields(reflect.TypeOf(x.answer)))
	}
	documented(t, "inspect", b.String())
}
