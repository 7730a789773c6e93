// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
)

// logLevel is what members and agents log at.
const logLevel = "info"

// controller is one member of the group: a network with one process.
type controller struct {
	m       int
	name    string
	net     sandbox.Namespace
	process *sandbox.Process
}

func newController(w *world, m int) (*controller, error) {
	c := &controller{m: m, name: fmt.Sprintf("m%d", m), net: sandbox.Namespace(fmt.Sprintf("m%d", m))}
	if err := c.net.Make(); err != nil {
		return nil, err
	}
	if err := attach(c.net, c.name, memberAddress(m)); err != nil {
		return nil, err
	}
	if err := plug(c.name); err != nil {
		return nil, err
	}
	config, err := c.configure(w)
	if err != nil {
		return nil, err
	}
	c.process = &sandbox.Process{
		Name: "member " + c.name, Network: c.net, Log: w.log("member-" + c.name),
		Argv: []string{w.o.Binary, "controller", "--config", config},
	}
	return c, nil
}

func (c *controller) configure(w *world) (file string, err error) {
	files, err := w.issue(pki.Member, c.name, memberAddress(c.m).String())
	if err != nil {
		return "", err
	}
	var members strings.Builder
	for i := 1; i <= memberCount; i++ {
		fmt.Fprintf(&members, "- {name: m%d, api: \"%s:7443\", raft: \"%s:7444\"}\n", i, memberAddress(i), memberAddress(i))
	}
	file = filepath.Join(w.dir, c.name+".yaml")
	text := fmt.Sprintf(`name: %s
dataDir: %s
floorDir: %s
listen: {api: ":7443", raft: ":7444", health: ":7480"}
advertise: {api: "%s:7443", raft: "%s:7444"}
tls: {ca: %s, cert: %s, key: %s}
bootstrapToken: demo
members:
%sbgp: {asn: %d, port: -1, routerID: %s, demoteAfter: %s}
raft: {heartbeat: %s}
sources: {kubernetes: {kubeconfig: %s}}
externalIPs: warn # nobody else is in the cluster
log: %s
`, c.name, filepath.Join(w.dir, c.name), filepath.Join(w.dir, "floors"), memberAddress(c.m), memberAddress(c.m), files.CA, files.Cert, files.Key,
		members.String(), memberASN, memberAddress(c.m), w.o.timers().demote, w.o.timers().heartbeat, w.kube.Kubeconfig(), logLevel)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// api is where the member's API listens.
func (c *controller) api() string { return memberAddress(c.m).String() + ":7443" }

// cutOff separates the member from the others in both directions, and from nobody else.
func (c *controller) cutOff() error {
	var others []string
	for i := 1; i <= memberCount; i++ {
		if i != c.m {
			others = append(others, memberAddress(i).String())
		}
	}
	set := strings.Join(others, ", ")
	_, err := c.net.Run(fmt.Sprintf(`table ip fairlead-demo {
	chain in { type filter hook input priority 0; ip saddr { %s } drop; }
	chain out { type filter hook output priority 0; ip daddr { %s } drop; }
}`, set, set), "nft", "-f", "-")
	return err
}

// heal ends cutOff.
func (c *controller) heal() error {
	_, err := c.net.Run("", "nft", "delete", "table", "ip", "fairlead-demo")
	return err
}
