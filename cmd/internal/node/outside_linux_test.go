// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
)

// outside makes the lab's agent that of a host outside the cluster, with a token that was offered for it.
func (l *sockLab) outside(name string) {
	l.t.Helper()
	token := enrol.NewToken()
	l.config.Node, l.config.OutOfCluster, l.config.NAT = name, true, ""
	l.config.TLS, l.config.Enrol = config.TLS{}, &config.Enrol{CA: filepath.Join(l.ca, pki.CAFile), TokenFile: filepath.Join(l.t.TempDir(), "token")}
	if err := os.WriteFile(l.config.Enrol.TokenFile, []byte(token), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := l.config.Validate(); err != nil {
		l.t.Fatal(err)
	}
	l.group.Apply(l.t, &fsm.PutEnrolment{ID: enrol.Sum(token), Node: fsm.NodeID(name), Outside: true, TTL: time.Hour})
}

func (l *sockLab) host(name string) *fsm.Host {
	h, _ := fsm.Get[*fsm.Host](l.group.Read(), fsm.TableHosts, name)
	return h
}

// Balancing §8, §15, §24.7, §24.9: a host outside the cluster enrols with a one-time token, also if a node has its name, and gets what Services and
// policies have for it: endpoints wherever they are, whatever traffic policies say, and never local redirection. It is in the record as a host of its
// own. Once it is taken out it is told nothing more, and keeps what it has.
func TestBalancing15HostOutsideTheClusterResolves(t *testing.T) {
	l := newSockLab(t)
	l.outside("n1")
	first, second, third := l.says("first"), l.says("second"), l.says("third")
	vip := netip.MustParseAddr("192.0.2.1")
	inside := fsm.Service{ClusterIPs: []netip.Addr{vip}, InternalLocal: true, Local: true}
	l.putService(inside, first)
	agent := start(t, l.config)
	l.eventually("first")
	if h := l.host("n1"); h == nil || h.Boot == "" {
		t.Fatalf("in the record it is %+v", h)
	}
	if n, _ := fsm.Get[*fsm.Node](l.group.Read(), fsm.TableNodes, "n1"); n.Boot != "" || !n.Acknowledged.IsZero() {
		t.Errorf("the node of that name became %+v", n)
	}
	put := func(id fsm.RedirectID, mode string, at netip.AddrPort, outside bool) {
		t.Helper()
		l.group.Apply(t, &fsm.PutRedirect{Redirect: fsm.Redirect{
			ID: id, UID: string(id), EveryNode: true, Outside: outside, Service: "shop/web", Mode: mode,
			Captures: []fsm.Capture{{Address: vip, Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, Target: at.Port()}},
			Backends: []fsm.RedirectBackend{{Address: at.Addr(), Node: "n1", Pod: "shop/p", UID: "p", Ready: true}},
		}})
	}
	put("LocalRedirectPolicy/b", "local", third, true)
	put("BalancingPolicy/a", "podEndpoint", second, true)
	l.eventually("second")
	put("BalancingPolicy/a", "podEndpoint", third, false)
	l.eventually("first")
	put("BalancingPolicy/a", "hostPort", second, true)
	l.eventually("second")
	grouptest.Eventually(t, "it is noted what the host carried out", func() bool { return !l.host("n1").Acknowledged.IsZero() })

	l.group.Apply(t, &fsm.RemoveHost{ID: "n1"})
	put("BalancingPolicy/a", "podEndpoint", third, true)
	grouptest.Eventually(t, "no member serves it", func() bool { return agent.Status().Member == "" })
	if got := l.hears(); got != "second" {
		t.Errorf("taken out it gets %s", got)
	}
	l.group.Apply(t, &fsm.RegisterHost{ID: "n1", Admit: true})
	l.eventually("third")
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}
