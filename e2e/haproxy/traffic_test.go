// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func TestTheDriverPassesTheConformanceTest(t *testing.T) {
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p)
	before := p.servers()
	report, err := kit.Test(t.Context(), kit.TestOptions{
		URL: d.url, LBSpec: webhook.Map{"backend": "web"}, Parameters: webhook.Map{"weight": "80", "maxconn": "50"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Result == kit.Failed || c.Result == kit.Skipped && c.Name != "judgePodDeregister" { // which is not every driver's
			t.Errorf("%s (§%s) %s: %s", c.Name, c.Section, c.Result, c.Why)
		}
	}
	if after := p.servers(); !maps.Equal(before, after) {
		t.Errorf("servers were %v, and are %v after the test", before, after)
	}
}

func TestRequestsReachPodsAndServersOfOthers(t *testing.T) {
	static, a, b := startPod(t, "static"), startPod(t, "a"), startPod(t, "b")
	p := startProxy(t, static)
	d := startDriver(t, p)
	foreign := p.servers()["static"]
	answering(t, p.url, map[string]int{"static": 6})
	d.ensure(a.address, nil)
	d.ensure(b.address, nil)
	d.ensure(b.address, nil)
	answering(t, p.url, map[string]int{"static": 10, "a": 10, "b": 10})
	d.ensure(b.address, webhook.Map{"weight": "3"})
	answering(t, p.url, map[string]int{"static": 8, "a": 8, "b": 24})
	d.gone(a.address)
	answering(t, p.url, map[string]int{"static": 8, "b": 24})
	d.gone(b.address)
	if got := p.servers(); len(got) != 1 || got["static"] != foreign {
		t.Errorf("servers are %v, static was %s", got, foreign)
	}
}

func TestIPv6BackendsAreServers(t *testing.T) {
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p)
	if a := d.ensure("[2001:db8::1]:8080", webhook.Map{"weight": "0"}); a.InjectedInfo["server"] != "fl-2001:db8::1_8080" {
		t.Errorf("injectedInfo is %v", a.InjectedInfo)
	}
	if got := p.servers()["fl-2001:db8::1_8080"]; got != "2001:db8::1:8080 state 0 weight 0" {
		t.Errorf("it is %q among %v", got, p.servers())
	}
	d.gone("[2001:db8::1]:8080")
	if got := p.servers(); len(got) != 1 {
		t.Errorf("servers are %v", got)
	}
}

// Parameters that change are set on the server that is there: its connections stay.
func TestParametersChangeOnALiveServer(t *testing.T) {
	a := startPod(t, "a")
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p)
	d.ensure(a.address, webhook.Map{"weight": "0", "maxconn": "9"})
	if got := p.bound(serverOf(a.address)); got != "9" {
		t.Errorf("it takes %q connections", got)
	}
	slow := make(chan string, 1)
	d.ensure(a.address, webhook.Map{"weight": "256", "maxconn": "4"})
	p.ask("set server web/static weight 0")
	go func() { slow <- get(p.url + "slow") }()
	a.await(t)
	d.ensure(a.address, webhook.Map{"weight": "7"})
	if got, want := p.servers()[serverOf(a.address)], a.address+" state 0 weight 7"; got != want || p.bound(serverOf(a.address)) != "" {
		t.Errorf("it is %s with %q connections at most, want %s", got, p.bound(serverOf(a.address)), want)
	}
	close(a.letGo)
	if got := <-slow; got != "a" {
		t.Errorf("the request that was under way got %q", got)
	}
}

// A server of others with the address of a pod serves beside ours, and stays when ours goes.
func TestAnAddressThatOthersHaveIsSharedWithThem(t *testing.T) {
	static := startPod(t, "static")
	p := startProxy(t, static)
	d := startDriver(t, p)
	before := p.servers()
	if a := d.ensure(static.address, nil); !strings.Contains(a.Msg, "static") {
		t.Errorf("the user hears %q", a.Msg)
	}
	if got := p.servers(); len(got) != 2 || got["static"] != before["static"] {
		t.Errorf("servers were %v, and are %v", before, got)
	}
	d.gone(static.address)
	if got := p.servers(); !maps.Equal(got, before) {
		t.Errorf("servers were %v, and are %v", before, got)
	}
}

// A request that runs when its pod is deregistered ends as it would have, and new ones go elsewhere.
func TestDeregistrationWaitsForConnections(t *testing.T) {
	static, a := startPod(t, "static"), startPod(t, "a")
	p := startProxy(t, static)
	d := startDriver(t, p)
	d.ensure(a.address, nil)
	answer := slow(t, p, a)
	if got := d.deregister(a.address); got.Status != webhook.Running || got.RetryAfter() != time.Second {
		t.Fatalf("with a request under way: %+v", got)
	}
	answering(t, p.url, map[string]int{"static": 10})
	a.letGo <- struct{}{}
	if got := <-answer; got != "a" {
		t.Errorf("the request that was under way got %q", got)
	}
	d.gone(a.address)
}

// What does not end by itself is shut after the drain time.
func TestDeregistrationShutsConnectionsInTheEnd(t *testing.T) {
	static, a := startPod(t, "static"), startPod(t, "a")
	p := startProxy(t, static)
	d := startDriver(t, p, "--drain", "1s")
	d.ensure(a.address, nil)
	answer := slow(t, p, a)
	d.gone(a.address)
	if got := <-answer; got == "a" {
		t.Error("the request ended as if nothing had been shut")
	}
}

// slow makes a request that a answers once it is let go. Until it has arrived, the static server gets none.
func slow(t *testing.T, p *proxy, a *pod) <-chan string {
	t.Helper()
	p.ask("set server web/static weight 0")
	answer := make(chan string, 1)
	go func() { answer <- get(p.url + "slow") }()
	a.await(t)
	p.ask("set server web/static weight 1")
	return answer
}

// An address that is bound anew while its old connections end is bound: the new pod is not the old one.
func TestAnAddressThatComesBackWhileItDrainsServes(t *testing.T) {
	static, a := startPod(t, "static"), startPod(t, "a")
	p := startProxy(t, static)
	d := startDriver(t, p)
	d.ensure(a.address, nil)
	slow(t, p, a)
	if got := d.deregister(a.address); got.Status != webhook.Running {
		t.Fatalf("with a request under way: %+v", got)
	}
	d.ensure(a.address, webhook.Map{"weight": "256"})
	testkit.Until(t, "the new pod gets requests", func() bool { return get(p.url) == "a" })
	close(a.letGo)
}

func TestACallThatComesLateIsRefused(t *testing.T) {
	static, a := startPod(t, "static"), startPod(t, "a")
	p := startProxy(t, static)
	d := startDriver(t, p)
	old := d.call()
	d.ensure(a.address, nil)
	got, err := d.client.DeregisterBackend(t.Context(), old, about(a.address, nil))
	if err != nil || got.Status != webhook.Fail || !strings.Contains(got.Msg, "late") {
		t.Errorf("a deregistration from before: %+v, %v", got, err)
	}
	got, err = d.client.DeregisterBackend(t.Context(), driver.Call{Attempt: fsm.Revision{Epoch: 2, Index: 1}}, about(a.address, nil))
	if err != nil || got.Status != webhook.Succ {
		t.Errorf("a deregistration of a restored group: %+v, %v", got, err)
	}
}

// Users hear HAProxy's own words about what it cannot do, and nothing is done.
func TestWhatHAProxyRefusesIsToldToUsers(t *testing.T) {
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p)
	r := about("192.0.2.1:80", nil)
	r.LBInfo = webhook.Map{"backend": "fixed"}
	got, err := d.client.EnsureBackend(t.Context(), d.call(), r)
	if err != nil || got.Status != webhook.Fail || !strings.Contains(got.Msg, "dynamic load balancing") {
		t.Errorf("a backend with static balancing: %+v, %v", got, err)
	}
	verdict, err := d.client.ValidateLoadBalancer(t.Context(), driver.Call{}, webhook.ValidateLoadBalancerRequest{
		Operation: webhook.Create, LBSpec: webhook.Map{"backend": "nowhere"},
	})
	if err != nil || verdict.Succ || !strings.Contains(verdict.Msg, "no such backend") {
		t.Errorf("a backend that is not there: %+v, %v", verdict, err)
	}
}

func TestHealthFollowsHAProxy(t *testing.T) {
	p := startProxy(t, startPod(t, "static"))
	d := startDriver(t, p)
	if !d.healthy() {
		t.Error("not healthy beside an HAProxy that runs")
	}
	p.kill()
	if d.healthy() {
		t.Error("healthy without HAProxy")
	}
	got, err := d.client.EnsureBackend(t.Context(), d.call(), about("192.0.2.1:80", nil))
	if err != nil || got.Status != webhook.Fail || !strings.Contains(got.Msg, "cannot be reached") {
		t.Errorf("without HAProxy: %+v, %v", got, err)
	}
	p.start()
	testkit.Until(t, "the driver is healthy", d.healthy)
}
