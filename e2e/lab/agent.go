// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/netnstest"
)

// Agent starts the shipped agent of node n, from 1, in a namespace that has a way to the members (see Link), with lines of its
// agent.yaml besides those that name it, its files and the members.
func (l *Lab) Agent(in *netnstest.Namespace, n int, lines string) *Process {
	l.t.Helper()
	return l.started(l.agent(in, n, lines))
}

// Outside starts the shipped agent of a host outside the cluster, likewise, which the group takes in.
func (l *Lab) Outside(in *netnstest.Namespace, name, lines string) *Process {
	l.t.Helper()
	l.Eventually("the group takes the host in", func() error {
		if _, errors, code := l.CLI("host", "admit", name); code != 0 {
			return fmt.Errorf("%d: %s", code, errors)
		}
		return nil
	})
	return l.started(l.configured(in, "host-"+name, l.Issue(pki.Host, name), fmt.Sprintf("node: %s\noutOfCluster: true\n%s", name, lines)))
}

func (l *Lab) started(p *Process) *Process {
	l.t.Cleanup(func() {
		if p.Runs() {
			p.Kill()
		}
		l.tell(p)
	})
	p.Start()
	return p
}

// agent is the agent of node n, not started yet.
func (l *Lab) agent(in *netnstest.Namespace, n int, lines string) *Process {
	l.t.Helper()
	name := fmt.Sprintf("n%d", n)
	return l.configured(in, name, l.Issue(pki.Agent, name), fmt.Sprintf("node: %s\n%s", name, lines))
}

// configured is an agent with files and the members in its configuration.
func (l *Lab) configured(in *netnstest.Namespace, name string, files pki.Files, lines string) *Process {
	l.t.Helper()
	var members []string
	for _, m := range l.Members {
		members = append(members, fmt.Sprintf("%q", m.Address+":7443"))
	}
	config := filepath.Join(l.dir, "agent-"+name+".yaml")
	text := fmt.Sprintf("stateDir: %s\nmembers: [%s]\ntls: {ca: %s, cert: %s, key: %s}\n%s",
		filepath.Join(l.dir, "agent-"+name), strings.Join(members, ", "), files.CA, files.Cert, files.Key, lines)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return &Process{Name: name, t: l.t, bin: l.bin, args: []string{"agent", "--config", config}, in: in}
}

// Link makes a namespace node n, from 1, of a steered lab: it has the node's address, and a way to the members and to what
// else listens in 198.51.100.0/24. The lab's end of the cable is seg-n.
func (l *Lab) Link(in *netnstest.Namespace, n int) {
	link := fmt.Sprintf("seg-%d", n)
	l.ip("link", "add", link, "type", "veth", "peer", "name", "mgmt")
	l.ip("link", "set", "mgmt", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), in.FD()))
	in.Run("ip", "address", "add", NodeAddress(n).String()+"/32", "dev", "mgmt")
	in.Run("ip", "link", "set", "mgmt", "up")
	in.Run("ip", "route", "add", "198.51.100.0/24", "dev", "mgmt")
	l.ip("link", "set", link, "up")
	l.ip("route", "add", NodeAddress(n).String(), "dev", link)
	l.t.Cleanup(func() { l.ip("link", "delete", link) })
}
