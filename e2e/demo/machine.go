// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
)

// machine is one node: a network with an agent and a bridge for pods. It may die and come back as a new one, of which
// only the disk is the same.
type machine struct {
	n       int
	name    string
	net     sandbox.Namespace
	boot    string // file with the boot id
	alive   bool
	drained bool // by an operator
	agent   *sandbox.Process
	pods    map[string]*pod // that run here, by name
}

// newMachine writes what is on the node's disk.
func newMachine(w *world, n int) (*machine, error) {
	name := fmt.Sprintf("n%d", n)
	m := &machine{n: n, name: name, net: sandbox.Namespace(name), boot: filepath.Join(w.dir, name+".boot"), pods: map[string]*pod{}}
	files, err := w.issue(pki.Agent, name)
	if err != nil {
		return nil, err
	}
	var members []string
	for i := 1; i <= memberCount; i++ {
		members = append(members, fmt.Sprintf("%q", memberAddress(i).String()+":7443"))
	}
	config := filepath.Join(w.dir, name+".yaml")
	text := fmt.Sprintf(`node: %s
stateDir: %s
members: [%s]
tls: {ca: %s, cert: %s, key: %s}
steer: true
nat: nftables
health: "127.0.0.1:7480"
log: %s
`, name, filepath.Join(w.dir, name), strings.Join(members, ", "), files.CA, files.Cert, files.Key, logLevel)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	m.agent = &sandbox.Process{
		Name: "agent of " + name, Network: m.net, Log: w.log("agent-" + name), Boot: m.boot,
		Argv: []string{w.o.Binary, "agent", "--config", config},
	}
	return m, nil
}

// boots makes the node's network anew, runs its pods again, and starts its agent.
func (m *machine) boots(w *world) error {
	if err := os.WriteFile(m.boot, []byte(newUUID()+"\n"), 0o644); err != nil {
		return err
	}
	if err := m.net.Make(); err != nil {
		return err
	}
	if err := attach(m.net, m.name, nodeAddress(m.n)); err != nil {
		return err
	}
	// Answers would leave through the gateway of the data centre, if nobody steered them: it drops them.
	lines := append(bridge("pods", podGateway(m.n)), fmt.Sprintf("route add default via %s", kubeAddress))
	for other := 1; other <= nodeCount; other++ {
		if other != m.n {
			lines = append(lines, fmt.Sprintf("route add %s via %s", podNet(other), nodeAddress(other)))
		}
	}
	if err := m.net.IP(lines...); err != nil {
		return err
	}
	if err := m.net.Sysctl("net.ipv4.ip_forward=1"); err != nil {
		return err
	}
	if err := plug(m.name); err != nil {
		return err
	}
	for _, p := range m.pods {
		if err := p.starts(w, m); err != nil {
			return err
		}
	}
	m.alive = true
	return m.agent.Start()
}

// dies cuts the node's power: nothing leaves it any more, and nobody says goodbye.
func (m *machine) dies() error {
	m.alive = false
	if err := unplug(m.name); err != nil {
		return err
	}
	if err := m.agent.Kill(); err != nil {
		return err
	}
	for _, p := range m.pods {
		if err := p.ends(); err != nil {
			return err
		}
	}
	return errors.Join(detach(m.name), m.net.Remove())
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// pod is one server with a network of its own.
type pod struct {
	name    string
	service string
	index   int // of its address on the node
	process *sandbox.Process
}

func (p *pod) net() sandbox.Namespace { return sandbox.Namespace("pod-" + p.name) }

// runs starts a pod on the node. The index makes its address.
func (m *machine) runs(w *world, service, name string, index int) (*pod, error) {
	p := &pod{name: name, service: service, index: index}
	if err := p.starts(w, m); err != nil {
		return nil, err
	}
	m.pods[name] = p
	return p, nil
}

// starts makes the pod's network and runs its server.
func (p *pod) starts(w *world, m *machine) error {
	if err := p.net().Make(); err != nil {
		return err
	}
	port := "p" + fmt.Sprint(p.index)
	if err := m.net.IP("link add "+port+" type veth peer name eth0 netns "+string(p.net()), "link set "+port+" master pods up"); err != nil {
		return err
	}
	if err := p.net().IP(fmt.Sprintf("address add %s/24 dev eth0", podAddress(m.n, p.index)), "link set eth0 up",
		fmt.Sprintf("route add default via %s", podGateway(m.n))); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.process = &sandbox.Process{
		Name: "pod " + p.name, Network: p.net(), Log: w.log("pod-" + p.name), Argv: []string{self},
		Env: []string{servePod + "=" + identityOf(p.service, p.name, m.name)},
	}
	return p.process.Start()
}

// ends takes the server and its network away, at once.
func (p *pod) ends() error {
	if err := p.process.Kill(); err != nil {
		return err
	}
	return p.net().Remove()
}

// asks is the readiness probe of a pod.
func (m *machine) asks(p *pod) error {
	return m.net.Do(func() error {
		conn, err := net.DialTimeout("tcp4", netip.AddrPortFrom(podAddress(m.n, p.index), podPort).String(), 10*time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
