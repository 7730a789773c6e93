// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	discoveryv1 "k8s.io/api/discovery/v1"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/netnstest"
)

// natSizes are how many Services the nodes translate, and natEndpoints how many endpoints each has. None of them is on one of
// the two nodes, so that both rewrite the source, too.
var natSizes = []int{10, 1000, 10_000}

const (
	natEndpoints = 10
	natPort      = 8080
	natElsewhere = "n3" // the node of all endpoints
)

// natQuiet is how long no transaction must have come after a change until the last one is taken for its end. It is longer
// than kube-proxy waits between two.
const natQuiet = 1500 * time.Millisecond

// natLab is two nodes that translate the same Services, which they learn from the same API server: one by the agent's nat,
// which follows a group of three, the other by kube-proxy in mode nftables. Their clients are here, at the members'; a
// connection that leaves by a node's cable is that node's.
//
//	                        ┌── seg-1 ── n1 (agent) ──────┐
//	clients, members, API ──┤                             ├── pods: every endpoint's address, one server
//	                        └── seg-2 ── n2 (kube-proxy) ─┘
type natLab struct {
	t     *bench
	api   *apiCluster
	lab   *lab.Lab
	nodes []*natNode // the agent's, kube-proxy's
	pods  *netnstest.Namespace
	made  int // Services
}

type natNode struct {
	name  string
	cable string // the clients' end
	ns    *netnstest.Namespace
}

func newNATLab(t *bench) *natLab {
	here := netip.MustParseAddr("198.51.100.1")
	t.run("ip", "addr", "add", here.String()+"/32", "dev", "lo")
	t.Cleanup(func() { t.run("ip", "addr", "del", here.String()+"/32", "dev", "lo") })
	n := &natLab{t: t, api: startBareAPI(t, kubetest.Options{Bind: here})}
	for i := 1; i <= 3; i++ {
		n.api.node(fmt.Sprintf("n%d", i), lab.NodeAddress(i))
	}
	n.lab = lab.New(t, lab.Options{Log: "warn", Steered: true, Kubeconfig: n.api.Kubeconfig()})
	n.pods = netnstest.New(t, "pods")
	for i, name := range []string{"agent", "kube-proxy"} {
		n.nodes = append(n.nodes, n.node(i+1, name))
	}
	serveAnswers(t, n.pods)
	n.lab.Agent(n.nodes[0].ns, 1, "steer: false\nnat: nftables\nclusterCIDRs: [10.244.0.0/16]\nlog: warn\n")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := n.api.Proxy(ctx, n.nodes[1].ns, "n2", netip.MustParsePrefix("10.244.0.0/16")); err != nil {
		t.Fatal(err)
	}
	return n
}

// node makes node number i, between the clients and the pods.
func (n *natLab) node(i int, name string) *natNode {
	node := &natNode{name: name, cable: fmt.Sprintf("seg-%d", i), ns: netnstest.New(n.t, name)}
	n.lab.Link(node.ns, i)
	port := fmt.Sprintf("eth%d", i)
	netnstest.Join(
		netnstest.Link{In: node.ns, Name: "pods", Addresses: []string{fmt.Sprintf("10.254.%d.1/24", i)}},
		netnstest.Link{In: n.pods, Name: port, Addresses: []string{fmt.Sprintf("10.254.%d.2/24", i)}},
	)
	if i == 1 {
		n.pods.Run("ip", "route", "add", "local", "10.0.0.0/11", "dev", "lo")
	}
	node.ns.Run("ip", "route", "add", "10.0.0.0/11", "via", fmt.Sprintf("10.254.%d.2", i))
	node.ns.SetSysctl("ipv4/ip_forward", "1")
	// Connections that were reset are forgotten soon, so that the table of connections does not fill up.
	node.ns.SetSysctl("netfilter/nf_conntrack_tcp_timeout_close", "1")
	n.t.run("ip", "route", "add", "203.0.0.0/8", "via", lab.NodeAddress(i).String(), "dev", node.cable, "metric", fmt.Sprint(i))
	return node
}

// grow makes Services until there are so many, and waits until both nodes translate the last of them.
func (n *natLab) grow(services int) (seconds map[string]float64) {
	n.api.seed(n.made, services, func(i int) []string { return []string{lab.VIP(i).String()} }, func(i int) *discoveryv1.EndpointSlice {
		return natSlice(i, natEndpoints)
	})
	n.made = services
	begin, seconds := time.Now(), map[string]float64{}
	n.lab.EventuallyWithin("translation on both nodes", 10*time.Minute, func() error {
		for _, node := range n.nodes {
			if _, done := seconds[node.name]; done {
				continue
			}
			for i := range min(services, 20) {
				if _, err := node.request((i+1)*services/min(services, 20) - 1); err != nil {
					return fmt.Errorf("%s: %w", node.name, err)
				}
			}
			seconds[node.name] = time.Since(begin).Seconds()
		}
		return nil
	})
	return seconds
}

// request asks Service i by way of the node, with a connection of its own, and gives how long that took until the answer came.
func (n *natNode) request(i int) (time.Duration, error) {
	took, err := ask(n.dialer(), netip.AddrPortFrom(lab.VIP(i), 80))
	return took.answered, err
}

// dialer makes connections that leave by the node's cable.
func (n *natNode) dialer() net.Dialer {
	return net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		outer := c.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, n.cable) })
		return errors.Join(outer, err)
	}}
}

// serveAnswers answers every byte with one.
func serveAnswers(t *bench, pods *netnstest.Namespace) {
	var listener net.Listener
	if err := pods.Do(func() (err error) {
		listener, err = net.Listen("tcp", fmt.Sprintf(":%d", natPort))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // the client resets it
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
}

// run runs a program here.
func (t *bench) run(program string, args ...string) {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

// natSlice is so many endpoints of Service i.
func natSlice(i, endpoints int) *discoveryv1.EndpointSlice {
	s := emptySlice(i)
	for e := range endpoints {
		s.Endpoints = append(s.Endpoints, endpoint(netip.AddrFrom4([4]byte{10, byte(e), byte(i >> 8), byte(i)}), natElsewhere, true))
	}
	return s
}
