// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// checkLab is a node with an agent that answers health checks, and an outside load balancer beyond it that asks it by each of
// its addresses, and knows service addresses by way of it.
//
//	node eth0 198.51.100.1, 198.51.100.2, 2001:db8:f::1 ---- 198.51.100.254, 2001:db8:f::fe balancer
type checkLab struct {
	*world
	t              *testing.T
	node, balancer *netnstest.Namespace
	config         config.Agent
}

const checkedVIP = "192.0.2.1"

func newCheckLab(t *testing.T) *checkLab {
	t.Helper()
	l := &checkLab{world: newWorld(t), t: t, node: netnstest.New(t, "node"), balancer: netnstest.New(t, "balancer")}
	for _, n := range []*netnstest.Namespace{l.node, l.balancer} {
		n.SetSysctl("ipv6/conf/default/accept_dad", "0")
		n.SetSysctl("ipv6/conf/default/dad_transmits", "0")
	}
	netnstest.Join(
		netnstest.Link{In: l.node, Name: "eth0", Addresses: []string{"198.51.100.1/24", "198.51.100.2/24", "2001:db8:f::1/64"}},
		netnstest.Link{In: l.balancer, Name: "eth0", Addresses: []string{"198.51.100.254/24", "2001:db8:f::fe/64"}})
	l.balancer.Run("ip", "route", "add", "192.0.2.0/24", "via", "198.51.100.1")
	l.config = l.steering(t, labNode{l.node})
	l.config.HealthCheckNodePorts, l.config.NodePortAddresses, l.config.DrainDelay = true, []string{"198.51.100.1/32"}, time.Hour
	start(t, l.config)
	return l
}

// put has the group serve shop/web at the address, with pods on these nodes in both families; all are ready but those of "late".
func (l *checkLab) put(port uint16, nodes ...string) {
	l.t.Helper()
	s := fsm.Service{
		ID: "shop/web", Local: true, HealthCheckNodePort: port,
		Frontends: []fsm.Frontend{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: 80}}},
	}
	for i, on := range nodes {
		for _, a := range []string{fmt.Sprintf("10.0.0.%d", i+1), fmt.Sprintf("fd00::%d", i+1)} {
			name, _ := strings.CutSuffix(on, " late")
			s.Endpoints = append(s.Endpoints, fsm.Endpoint{
				Address: netip.MustParseAddr(a), Node: fsm.NodeID(name), Ready: name == on, Serving: true, Terminating: name != on,
				Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: 8080}}}},
			})
		}
	}
	l.group.Apply(l.t, &fsm.PutService{Service: s})
}

// ask makes a health check and gives status and weight, or the error.
func (l *checkLab) ask(address string, port uint16) string {
	client := http.Client{Transport: &http.Transport{DialContext: l.balancer.DialContext, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	answer, err := client.Get("http://" + netip.AddrPortFrom(netip.MustParseAddr(address), port).String())
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused"
	}
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), `"name": "web"`) {
		l.t.Errorf("%s, %v", body, err)
	}
	return fmt.Sprintf("%d weight=%s", answer.StatusCode, answer.Header.Get("X-Load-Balancing-Endpoint-Weight"))
}

// eventually waits until a port is answered alike at all addresses of the node.
func (l *checkLab) eventually(want string, port uint16) {
	l.t.Helper()
	for _, address := range []string{"198.51.100.1", "198.51.100.2", "2001:db8:f::1"} {
		last := ""
		testkit.Until(l.t, fmt.Sprintf("%s port %d: %s", address, port, want), func() bool {
			last = l.ask(address, port)
			return last == want
		})
	}
}

// K24: a health check is answered at every address of the node, at the port that the Service has, with the count of ready
// endpoints on the node; not at service addresses. The port follows the Service, and goes with it at once.
// Rule: K24.
func TestHealthChecksAreAnsweredAtEveryNodeAddress(t *testing.T) {
	t.Parallel()
	l := newCheckLab(t)
	l.put(30100, "n1", "n1", "n2")
	l.group.Apply(t, &fsm.Allocate{Address: netip.MustParseAddr(checkedVIP), Service: "shop/web", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(netip.MustParseAddr(checkedVIP)), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}})
	l.eventually("200 weight=2", 30100)
	if got := l.ask(checkedVIP, 30100); got != "refused" {
		t.Errorf("at the service address: %s", got)
	}
	l.put(30100, "n1", "n1 late", "n2")
	l.eventually("200 weight=1", 30100)
	l.put(30100, "n1 late", "n2")
	l.eventually("503 weight=0", 30100)
	l.put(31234, "n1")
	l.eventually("200 weight=1", 31234)
	l.eventually("refused", 30100)
	l.unrouteWeb()
	l.eventually("refused", 31234)
	if !(labNode{l.node}).steers(checkedVIP) {
		t.Error("the address did not drain")
	}
}

// unrouteWeb takes the Service's address back, to the end.
func (l *checkLab) unrouteWeb() {
	l.t.Helper()
	a := netip.MustParseAddr(checkedVIP)
	l.group.Apply(l.t, &fsm.SetRoute{Prefix: fsm.HostPrefix(a)}, &fsm.ReleaseAllocation{Address: a, Service: "shop/web"})
	r, _ := fsm.Get[*fsm.Route](l.group.Read(), fsm.TableRoutes, fsm.HostPrefix(a).String())
	l.group.Apply(l.t, &fsm.FinishWithdrawal{Prefix: r.Prefix, Node: "n1", Address: r.NextHops[0].Address(), Since: r.NextHops[0].Since},
		&fsm.FreeAllocation{Address: a, Service: "shop/web"})
}

// A port that another program holds is told in the metrics, keeps no address from being served, and is taken once it is free.
// Rule: K24.
func TestPortThatAnotherProgramHolds(t *testing.T) {
	t.Parallel()
	l := newCheckLab(t)
	other := l.node.Listen("tcp", "198.51.100.2:30100")
	l.put(30100, "n1")
	l.group.Apply(t, &fsm.Allocate{Address: netip.MustParseAddr(checkedVIP), Service: "shop/web", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(netip.MustParseAddr(checkedVIP)), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}})
	testkit.Until(t, "the metrics tell", func() bool {
		_, text := ask(t, l.config, "/metrics")
		return strings.Contains(text, `fairlead_healthcheck_ports{state="failed"} 1`) && strings.Contains(text, "fairlead_agent_failed_addresses 0")
	})
	if !(labNode{l.node}).steers(checkedVIP) {
		t.Error("the address is not served")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	l.eventually("200 weight=1", 30100)
	if _, text := ask(t, l.config, "/metrics"); !strings.Contains(text, `fairlead_healthcheck_ports{state="failed"} 0`) {
		t.Error("the metrics still tell")
	}
}
