// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/socktest"
)

// soon is as long as a busy machine may take for what takes milliseconds.
const soon = 20 * time.Second

const policy = `apiVersion: balancing.elf.io/v1beta1
kind: BalancingPolicy
metadata: {name: web, annotations: {balancing.elf.io/nodeProxyTargetPort.web: http}}
spec:
  frontend: {addressMatcher: {ip: 169.254.77.1, toPorts: [{name: web, port: "80", protocol: TCP}]}}
  backend: {serviceEndpoint: {endpointSelector: {matchLabels: {app: web}}, redirectMode: nodeProxy, toPorts: [{name: web, port: "10080", protocol: TCP}]}}
`

// stage is a client's node, n1, and two with a pod each, n2 and n3; the way between nodes is the lab's namespace.
type stage struct {
	*lab.Lab
	t      *testing.T
	nodes  []*netnstest.Namespace
	agents []*lab.Process
	client *socktest.Lab
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, client: socktest.New(t)}
	s.Lab = lab.New(t, lab.Options{
		Members: 1, Steered: true, Extra: "balancingPolicies: true\ntunnels: {range4: 10.250.0.0/24, range6: fd00:250::/64}\n",
	})
	forward := func(name string) {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	forward("ip_forward")
	for n := 1; n <= 3; n++ {
		in := netnstest.New(t, fmt.Sprintf("n%d", n))
		s.Link(in, n)
		forward(fmt.Sprintf("conf/seg-%d/proxy_arp", n))
		in.Run("ip", "route", "add", "192.0.2.0/24", "dev", "mgmt")
		in.SetSysctl("ipv4/ip_forward", "1")
		s.Manifests.Node(n, true)
		s.nodes = append(s.nodes, in)
	}
	for n := 2; n <= 3; n++ {
		pod := netnstest.New(t, fmt.Sprintf("pod%d", n))
		netnstest.Join(
			netnstest.Link{In: pod, Name: "eth0", Addresses: []string{fmt.Sprintf("10.9.%d.2/24", n)}},
			netnstest.Link{In: s.nodes[n-1], Name: "pod", Addresses: []string{fmt.Sprintf("10.9.%d.1/24", n)}})
		pod.Run("ip", "route", "add", "default", "via", fmt.Sprintf("10.9.%d.1", n))
		says(t, pod, fmt.Sprintf("pod-%d", n))
		s.pod(n, true)
	}
	return s
}

// pod writes the pod of a node.
func (s *stage) pod(n int, ready bool) {
	state := map[bool]string{true: "True", false: "False"}[ready]
	s.Manifests.Put(fmt.Sprintf("pod-%d.yaml", n), fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: web-%d, namespace: shop, labels: {app: web}}
spec: {nodeName: n%d, containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.9.%d.2, conditions: [{type: Ready, status: "%s"}]}
`, n, n, n, state))
}

// says tells every client a word.
func says(t *testing.T, in *netnstest.Namespace, word string) {
	t.Helper()
	var l net.Listener
	if err := in.Do(func() (err error) { l, err = net.Listen("tcp", ":8080"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(word)) // who left hears nothing
			_ = c.Close()
		}
	}()
}

func (s *stage) agent(n int, lines string) *lab.Process {
	return s.Agent(s.nodes[n-1], n, "steer: false\nhealth: \"\"\nlog: debug\n"+lines)
}

// hears is what a program on n1 hears at the policy's address, or how it failed.
func (s *stage) hears() string {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	c := s.nodes[0].Command("bash", "-c", "exec 3<>/dev/tcp/169.254.77.1/80 && cat <&3")
	s.client.Join(c)
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	out, _ := c.CombinedOutput() // which says why if it failed
	return strings.TrimSpace(string(out))
}

// backends are the addresses in the record that the policy leads to.
func (s *stage) backends() []string {
	out, _, _ := s.CLI("get", "redirects", "-o", "json")
	var got struct {
		Items []struct {
			Backends []struct{ Address string }
		}
	}
	_ = json.Unmarshal([]byte(out), &got) // what does not answer has none
	var list []string
	for _, i := range got.Items {
		for _, b := range i.Backends {
			list = append(list, b.Address)
		}
	}
	slices.Sort(list)
	return list
}

// leads waits until programs hear these, each of them, and nothing else.
func (s *stage) leads(when string, words ...string) {
	s.t.Helper()
	s.Eventually(when, soon, func() error {
		heard := map[string]bool{}
		for range 12 {
			word := s.hears()
			if heard[word] = true; !slices.Contains(words, word) {
				return fmt.Errorf("heard %q", word)
			}
		}
		if len(heard) != len(words) {
			return fmt.Errorf("heard only %v", heard)
		}
		return nil
	})
}

// Section 13 and 24 row 8, the whole way: nodes whose agents make tunnels get an address each, the policy leads to those of nodes with a
// ready pod, and a program of another node hears the pod. Nodes leave when their pods or they themselves do.
func TestBalancing13PolicyLeadsThroughTunnels(t *testing.T) {
	s := newStage(t)
	s.agents = []*lab.Process{
		s.agent(1, fmt.Sprintf("tunnel: {}\nsock: {cgroup: %s, pins: %s}\n", s.client.Cgroup, s.client.Pins)), s.agent(2, "tunnel: {}\n"), s.agent(3, ""),
	}
	s.Manifests.Put("policy.yaml", policy)
	s.leads("the node that has a tunnel", "pod-2")
	if got := s.backends(); len(got) != 1 || !strings.HasPrefix(got[0], "10.250.0.") {
		t.Errorf("leads to %v", got)
	}

	s.agents[2].Kill()
	s.agents[2] = s.agent(3, "tunnel: {}\n")
	s.leads("both nodes", "pod-2", "pod-3")

	s.pod(3, false)
	s.leads("only ready pods", "pod-2")
	s.pod(3, true)
	s.leads("both again", "pod-2", "pod-3")

	before := s.backends()
	s.agents[1].Kill()
	if got := s.hears(); got != "pod-2" && got != "pod-3" {
		t.Errorf("without the agent of n2: %q", got)
	}
	s.agents[1].Start()
	s.leads("after a restart", "pod-2", "pod-3")
	if got := s.backends(); !slices.Equal(got, before) {
		t.Errorf("a restart changed addresses: %v, before %v", got, before)
	}

	s.nodes[1].Run("ip", "link", "set", "mgmt", "down")
	s.leads("without a node that is down", "pod-3")

	s.Manifests.Remove("policy.yaml")
	s.Eventually("no policy", soon, func() error {
		if out := s.hears(); strings.HasPrefix(out, "pod-") {
			return errors.New(out)
		}
		return nil
	})
}
