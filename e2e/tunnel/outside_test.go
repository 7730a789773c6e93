// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/socktest"
	"fairlead.io/fairlead/internal/testkit"
)

// everywhere leads to pods over both protocols, in both families.
const everywhere = `apiVersion: balancing.elf.io/v1beta1
kind: BalancingPolicy
metadata: {name: web-%[1]d, annotations: {balancing.elf.io/nodeProxyTargetPort.web: http, balancing.elf.io/nodeProxyTargetPort.data: "8080"}}
spec:
  frontend: {addressMatcher: {ip: "%[2]s", toPorts: [{name: web, port: "80", protocol: TCP}, {name: data, port: "80", protocol: UDP}]}}
  backend:
    serviceEndpoint:
      endpointSelector: {matchLabels: {app: web}}
      redirectMode: nodeProxy
      toPorts: [{name: web, port: "10080", protocol: TCP}, {name: data, port: "10080", protocol: UDP}]
`

// edge is a host outside the cluster that is called as a node is.
type edge struct {
	*stage
	in     *netnstest.Namespace
	client *socktest.Lab
}

func (s *stage) outside() *edge {
	in := netnstest.New(s.t, "edge")
	s.Link(in, 4)
	forwardARP(s.t, 4)
	in.Run("ip", "route", "add", "192.0.2.0/24", "dev", "mgmt")
	return &edge{s, in, socktest.New(s.t)}
}

// lines are those of its agent.yaml; what more there is in them comes last.
func (e *edge) lines(more string) string {
	return fmt.Sprintf("addresses: [192.0.2.104]\nhealth: \"\"\nlog: debug\nsock: {cgroup: %s, pins: %s}\n%s", e.client.Cgroup, e.client.Pins, more)
}

// places are where its programs dial the policies.
var places = []string{"tcp/169.254.77.1/80", "udp/169.254.77.1/80", "tcp/fd00:77::1/80", "udp/fd00:77::1/80"}

// hears is what a program of the host hears at a place, where it may hear nothing, or how it failed.
func (e *edge) hears(place string) string { return e.waits(place, hasty) }

// waits is hears with so much time for an answer.
func (e *edge) waits(place string, within time.Duration) string {
	return said(e.in.Command("bash", "-c", fmt.Sprintf("exec 3<>/dev/%s && echo hello >&3 && timeout %d dd bs=64 count=1 status=none <&3", place, within/time.Second)), e.client, 2*within)
}

// everywhere waits until a program hears a word at each place.
func (e *edge) everywhere(when string, word string) {
	e.t.Helper()
	for _, place := range places {
		e.Eventually(when+": "+word+" at "+place, func() error {
			if got := e.hears(place); got != word {
				return fmt.Errorf("heard %q", got)
			}
			return nil
		})
	}
}

// peers is how many hosts a node's kernel knows the tunnel of.
func peers(in *netnstest.Namespace) int {
	return strings.Count(in.Run("bridge", "fdb", "show", "dev", "fairlead-tun"), " dst ")
}

// Section 13.1 and 24 row 8 (ext): a host outside the cluster that makes tunnels gets an address of its own, and nodes know it; a program there
// hears the pod behind a proxy port, over both protocols and in both families. Without a tunnel its programs are refused at once; once it is taken out
// every node forgets it, and another host gets another number.
// Rule: balancing §13.
func TestHostOutsideTheClusterIsInTheMesh(t *testing.T) {
	s := newStage(t)
	e := s.outside()
	s.agents = []*lab.Process{s.agent(2, "tunnel: {}\n"), s.agent(1, "tunnel: {}\n")}
	for i, ip := range []string{"169.254.77.1", "fd00:77::1"} {
		s.Manifests.Put(fmt.Sprintf("policy-%d.yaml", i), fmt.Sprintf(everywhere, i, ip))
	}
	host := s.Outside(e.in, "n2", e.lines(""))
	for _, place := range places {
		s.Eventually("refused at once without a tunnel at "+place, func() error {
			before := e.in.Repeated()
			if word, again := e.hears(place), e.in.Repeated()-before; !strings.Contains(word, "refused") || again > 0 {
				return fmt.Errorf("%q, when asked %d times more", word, again)
			}
			return nil
		})
	}
	host.Kill()
	host = s.Outside(e.in, "n2", e.lines("tunnel: {}\n"))
	e.everywhere("in the mesh", "pod-2")
	if out, _, _ := s.CLI("get", "tunnels"); !strings.Contains(out, "outside/n2") {
		t.Errorf("the record has no tunnel of it:\n%s", out)
	}
	if n := peers(s.nodes[1]); n != 2 {
		t.Errorf("n2 knows %d hosts, not n1 and the host outside", n)
	}

	s.agents[0].Kill()
	host.Kill()
	for _, place := range places {
		if word := e.waits(place, testkit.Patience); word != "pod-2" {
			t.Errorf("without agents: %q at %s", word, place)
		}
	}
	s.agents[0].Start()
	host.Start()
	e.everywhere("after restarts", "pod-2")

	if _, said, code := s.CLI("host", "remove", "n2"); code != 0 {
		t.Fatal(said)
	}
	s.Eventually("every node forgets it", func() error {
		for i, in := range s.nodes[:2] {
			if n := peers(in); n != 1 {
				return fmt.Errorf("n%d knows %d hosts", i+1, n)
			}
		}
		return nil
	})
	s.Eventually("its address is free", func() error {
		if out, _, _ := s.CLI("get", "tunnels"); strings.Contains(out, "outside/n2") {
			return errors.New(out)
		}
		return nil
	})
	if word := e.hears(places[0]); word == "pod-2" {
		t.Error("a node answers a host that was taken out")
	}
}
