// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/socktest"
	"fairlead.io/fairlead/internal/testkit"
)

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
	set(t, "ip_forward")
	for n := 1; n <= 3; n++ {
		in := netnstest.New(t, fmt.Sprintf("n%d", n))
		s.Link(in, n)
		forwardARP(t, n)
		in.Run("ip", "route", "add", "192.0.2.0/24", "dev", "mgmt")
		in.SetSysctl("ipv4/ip_forward", "1")
		in.SetSysctl("ipv6/conf/all/forwarding", "1")
		s.Manifests.Node(n, true)
		s.nodes = append(s.nodes, in)
	}
	for n := 2; n <= 3; n++ {
		pod := netnstest.New(t, fmt.Sprintf("pod%d", n))
		netnstest.Join(
			netnstest.Link{In: pod, Name: "eth0", Addresses: []string{fmt.Sprintf("10.9.%d.2/24", n), fmt.Sprintf("fd00:9:%d::2/64", n)}},
			netnstest.Link{In: s.nodes[n-1], Name: "pod", Addresses: []string{fmt.Sprintf("10.9.%d.1/24", n), fmt.Sprintf("fd00:9:%d::1/64", n)}})
		pod.Run("ip", "-6", "route", "add", "default", "via", fmt.Sprintf("fd00:9:%d::1", n))
		pod.Run("ip", "route", "add", "default", "via", fmt.Sprintf("10.9.%d.1", n))
		says(pod, fmt.Sprintf("pod-%d", n))
		s.pod(n, true)
	}
	return s
}

// set switches a setting of IPv4 on in the lab's namespace.
func set(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
}

// forwardARP lets a machine of the lab find the others.
func forwardARP(t *testing.T, n int) {
	t.Helper()
	set(t, fmt.Sprintf("conf/seg-%d/proxy_arp", n))
}

// pod writes the pod of a node.
func (s *stage) pod(n int, ready bool) {
	state := map[bool]string{true: "True", false: "False"}[ready]
	s.Manifests.Put(fmt.Sprintf("pod-%d.yaml", n), fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: web-%[1]d, namespace: shop, labels: {app: web}}
spec: {nodeName: n%[1]d, containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.9.%[1]d.2, podIPs: [{ip: 10.9.%[1]d.2}, {ip: "fd00:9:%[1]d::2"}], conditions: [{type: Ready, status: "%[2]s"}]}
`, n, state))
}

// says tells every client a word.
func says(in *netnstest.Namespace, word string) {
	in.Serve(":8080", netnstest.Say(word))
	in.ServePacket(":8080", func([]byte, net.Addr) []byte { return []byte(word) })
}

func (s *stage) agent(n int, lines string) *lab.Process {
	return s.Agent(s.nodes[n-1], n, "steer: false\nhealth: \"\"\nlog: debug\n"+lines)
}

// hears is what a program on n1 hears at the policy's address, or how it failed.
func (s *stage) hears() string { return s.hearsAt(80) }

// hasty is for programs that may hear nothing; they are asked again.
const hasty = 2 * time.Second

func (s *stage) hearsAt(port int) string { return s.waitsAt(port, 2*hasty) }

// waitsAt is hearsAt with so much time for an answer.
func (s *stage) waitsAt(port int, within time.Duration) string {
	return said(s.nodes[0].Command("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/169.254.77.1/%d && cat <&3", port)), s.client, within)
}

// said is what a program among some clients says until it ends or its time is over.
func said(c *exec.Cmd, among *socktest.Lab, within time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	among.Join(c)
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	out, _ := c.CombinedOutput() // which says why if it failed
	return strings.TrimSpace(string(out))
}

// backends are the addresses in the record that the policy leads to.
func (s *stage) backends() []string {
	out, _, _ := s.CLI("get", "policies", "-o", "json")
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
	s.Eventually(when, func() error {
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
// Rule: balancing §13.
func TestPolicyLeadsThroughTunnels(t *testing.T) {
	s := newStage(t)
	s.agents = []*lab.Process{
		s.agent(1, fmt.Sprintf("tunnel: {}\nsock: {cgroup: %s, pins: %s}\n", s.client.Cgroup, s.client.Pins)), s.agent(2, "tunnel: {}\n"), s.agent(3, ""),
	}
	s.Manifests.Put("policy.yaml", policy)
	s.leads("the node that has a tunnel", "pod-2")
	if got := s.backends(); len(got) != 2 || !strings.HasPrefix(got[0], "10.250.0.") || !strings.HasPrefix(got[1], "fd00:250::") {
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
	if got := s.waitsAt(80, testkit.Patience); got != "pod-2" && got != "pod-3" {
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
	s.Eventually("no policy", func() error {
		if out := s.hears(); strings.HasPrefix(out, "pod-") {
			return errors.New(out)
		}
		return nil
	})
}

// withMore is the policy with a second port that leads by a proxy port of its own.
func withMore(proxyPort int) string {
	return fmt.Sprintf(`apiVersion: balancing.elf.io/v1beta1
kind: BalancingPolicy
metadata: {name: web, annotations: {balancing.elf.io/nodeProxyTargetPort.web: http, balancing.elf.io/nodeProxyTargetPort.more: http}}
spec:
  frontend: {addressMatcher: {ip: 169.254.77.1, toPorts: [{name: web, port: "80", protocol: TCP}, {name: more, port: "81", protocol: TCP}]}}
  backend: {serviceEndpoint: {endpointSelector: {matchLabels: {app: web}}, redirectMode: nodeProxy, toPorts: [{name: web, port: "10080", protocol: TCP}, {name: more, port: "%d", protocol: TCP}]}}
`, proxyPort)
}

// calls has a program of n1 dial the policy's first port one time after the other until it is stopped, and a hundred times at least. It gives how many calls
// were made and those lines of what came back that are no pod's.
func (s *stage) calls() (stop func() (made int, odd []string)) {
	s.t.Helper()
	c := s.nodes[0].Command("bash", "-c", `while :; do exec 3<>/dev/tcp/169.254.77.1/80 && head -c 64 <&3 && echo; exec 3>&-; sleep 0.02; done`)
	s.client.Join(c)
	said := &words{}
	c.Stdout, c.Stderr = said, said
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	s.t.Cleanup(end)
	return func() (made int, odd []string) {
		s.Eventually("a hundred calls", func() error {
			if made := strings.Count(said.String(), "\n"); made < 100 {
				return fmt.Errorf("%d were made", made)
			}
			return nil
		})
		end()
		lines := strings.Split(said.String(), "\n")
		for _, line := range lines[:len(lines)-1] { // the last one was cut off
			if made++; !strings.HasPrefix(line, "pod-") {
				odd = append(odd, line)
			}
		}
		return made, odd
	}
}

// words are what a program says while it runs.
type words struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.String()
}

// Section 13: while another port of a policy comes, goes by another proxy port, and leaves, not one call to a port that stays fails.
// Rule: balancing §13.
func TestPortsThatStayAreServedWhileOthersChange(t *testing.T) {
	s := newStage(t)
	s.agents = []*lab.Process{
		s.agent(1, fmt.Sprintf("tunnel: {}\nsock: {cgroup: %s, pins: %s}\n", s.client.Cgroup, s.client.Pins)), s.agent(2, "tunnel: {}\n"), s.agent(3, "tunnel: {}\n"),
	}
	s.Manifests.Put("policy.yaml", policy)
	s.leads("both nodes", "pod-2", "pod-3")
	more := func() string { return s.hearsAt(81) }
	stop := s.calls()
	for _, step := range []struct {
		when, policy string
		led          bool
	}{
		{"another port", withMore(10081), true},
		{"without it", policy, false},
		{"the port again", withMore(10082), true},
		{"which goes by another proxy port", withMore(10083), true},
		{"without it at last", policy, false},
	} {
		s.Manifests.Put("policy.yaml", step.policy)
		s.Eventually(step.when, func() error {
			out, _, _ := s.CLI("get", "policies", "-o", "json")
			_, proxyPort, _ := strings.Cut(step.policy, `{name: more, port: "1`)
			if proxyPort, _, _ = strings.Cut(proxyPort, `"`); proxyPort != "" && !strings.Contains(out, `"target": 1`+proxyPort) {
				return errors.New(out)
			}
			if word := more(); strings.HasPrefix(word, "pod-") != step.led {
				return fmt.Errorf("at the other port is heard %q", word)
			}
			return nil
		})
	}
	if made, odd := stop(); len(odd) > 0 {
		t.Errorf("of %d calls to the port that stays %d failed, such as %q", made, len(odd), odd[:min(len(odd), 4)])
	}
}
