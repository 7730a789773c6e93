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
	p := l.agent(in, n, lines)
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
	files := l.Issue(pki.Agent, name)
	var members []string
	for _, m := range l.Members {
		members = append(members, fmt.Sprintf("%q", m.Address+":7443"))
	}
	config := filepath.Join(l.dir, "agent-"+name+".yaml")
	text := fmt.Sprintf("node: %s\nstateDir: %s\nmembers: [%s]\ntls: {ca: %s, cert: %s, key: %s}\n%s",
		name, filepath.Join(l.dir, "agent-"+name), strings.Join(members, ", "), files.CA, files.Cert, files.Key, lines)
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
