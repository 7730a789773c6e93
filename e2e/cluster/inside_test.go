// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/socktest"
)

// inside is a cluster without kube-proxy, whose first node is where the test runs: pods of all nodes have their addresses there.
type inside struct {
	*stage
	client *socktest.Lab
	agent  *lab.Process
}

// newInside makes one whose members have lines more in their configuration; kinds are files that define some.
func newInside(t *testing.T, lines string, kinds ...string) *inside {
	t.Helper()
	bind := netip.MustParseAddr("198.51.100.1") // the API server does not say of itself that it is on loopback
	l := &inside{client: socktest.New(t)}
	addAddress(t, bind)
	kube := kubetest.Start(t, kubetest.Options{Bind: bind})
	for _, files := range kinds {
		if err := kube.ApplyFiles(t.Context(), files); err != nil {
			t.Fatal(err)
		}
	}
	l.stage = stageOf(t, kube, lab.Options{Extra: "clusterIPs: true\n" + lines})
	l.agent = l.Agent(nil, 1, fmt.Sprintf("steer: false\nhealth: 127.0.0.1:7480\nsock: {cgroup: %s, pins: %s}\n", l.client.Cgroup, l.client.Pins))
	return l
}

func addAddress(t testing.TB, a netip.Addr) {
	t.Helper()
	if out, err := exec.Command("ip", "address", "replace", a.String(), "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "address", "del", a.String(), "dev", "lo").Run() })
}

// clusterIP makes service 0 one of type ClusterIP, with TCP and UDP, and gives its address.
func (l *inside) clusterIP(change ...func(*corev1.Service)) string {
	l.t.Helper()
	l.service(0, append(change, func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalIPs = corev1.ServiceTypeClusterIP, nil
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "echo", Port: 7, Protocol: corev1.ProtocolUDP})
	})...)
	return l.object(0).Spec.ClusterIP
}

// answering is a pod of service 0 on a node that says a word to whoever connects, and before what it is sent over UDP.
func (l *inside) answering(node int, word string) {
	l.t.Helper()
	l.pod(0, node)
	l.serve(netip.AddrFrom4([4]byte{10, 244, byte(node), 1}), word)
}

// serve answers at an address as a pod of service 0 does.
func (l *inside) serve(address netip.Addr, word string) {
	l.t.Helper()
	addAddress(l.t, address)
	tcp, err := net.Listen("tcp", netip.AddrPortFrom(address, 80).String())
	l.must(err)
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 7)))
	l.must(err)
	l.t.Cleanup(func() { _ = errors.Join(tcp.Close(), udp.Close()) })
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word) // who left hears nothing
			_ = c.Close()
		}
	}()
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := udp.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = udp.WriteToUDPAddrPort(append([]byte(word+" "), b[:n]...), from)
		}
	}()
}

// says is what a program of the node hears at an address over TCP, or how it failed.
func (l *inside) says(at string, port int) string {
	return l.client.Bash(fmt.Sprintf("exec 3<>/dev/tcp/%s/%d && cat <&3", at, port))
}

func (l *inside) hears(at, want string) {
	l.t.Helper()
	l.Eventually(want+" at "+at, func() error {
		if got := l.says(at, 80); !strings.Contains(got, want) {
			return errors.New(got)
		}
		return nil
	})
}

// K1, K21, balancing §10: in a cluster without kube-proxy a program of a node gets to the endpoints of a Service at the ClusterIP that the
// API server gave it, over TCP and UDP; the API server itself is at its own. What the node was told holds while nobody is there to tell.
// Rule: K1.
func TestClusterIPsLeadToEndpointsWithoutKubeProxy(t *testing.T) {
	l := newInside(t, "")
	at := l.clusterIP()
	l.hears(at, "refused") // nobody serves it yet
	l.answering(1, "first")
	l.hears(at, "first")
	if got := l.client.Bash(fmt.Sprintf("exec 3<>/dev/udp/%s/7 && echo hello >&3 && timeout 5 dd bs=512 count=1 status=none <&3", at)); got != "first hello" {
		t.Errorf("over UDP: %q", got)
	}
	api, err := l.kube.Client().CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	l.must(err)
	if got := l.client.Bash(fmt.Sprintf("exec 3<>/dev/tcp/%s/443 && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3", api.Spec.ClusterIP)); !strings.Contains(got, "HTTPS server") {
		t.Errorf("the API server at its ClusterIP: %q", got)
	}

	l.answering(2, "second")
	l.must(l.pods[podName(0, 1)].Remove(t.Context()))
	l.hears(at, "second")
	l.update(0, func(s *corev1.Service) {
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
	})
	l.hears(at, "No route to host")
	l.update(0, func(s *corev1.Service) {
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	})
	l.hears(at, "second")

	l.killAll()
	l.agent.Kill()
	if got := l.says(at, 80); got != "second" {
		t.Errorf("with nobody there: %q", got)
	}
	l.startAll()
	l.agent.Start()
	l.deleteService(0)
	l.Eventually("the ClusterIP is nobody's", func() error {
		if got := l.says(at, 80); strings.Contains(got, "second") || strings.Contains(got, "refused") {
			return errors.New(got) // it is resolved still
		}
		return nil
	})
}
