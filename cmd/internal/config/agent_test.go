// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cmd/internal/config"
)

const validAgent = `node: n1
stateDir: state
members: ["192.0.2.1:7443"]
tls: {ca: ca.crt, cert: n1.crt, key: n1.key}
steer: off
nat: kube-proxy
health: "127.0.0.1:7480"
drainDelay: 5s
`

func loadAgent(t *testing.T, text, node string) (config.Agent, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.LoadAgent(path, node)
}

func TestAgentDefaultsFillInWhatFollows(t *testing.T) {
	c, err := loadAgent(t, "stateDir: state\nmembers: [\"m1:7443\"]\nenrol: {ca: group.crt, tokenFile: token}\n", "n2")
	if err != nil {
		t.Fatal(err)
	}
	if c.Node != "n2" || !c.Steer || c.NAT != config.NATKubeProxy || c.DrainDelay != 30*time.Second || c.Health != ":7480" {
		t.Errorf("%+v", c)
	}
	if c.TLS != (config.TLS{CA: "state/ca.crt", Cert: "state/agent.crt", Key: "state/agent.key"}) {
		t.Errorf("an enrolling agent keeps its certificate in %+v", c.TLS)
	}
	if c, err = loadAgent(t, validAgent, ""); err != nil || c.Steer || c.TLS.Key != "n1.key" || c.DrainDelay != 5*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestAgentFileIsRefusedWithOneLineThatNamesTheField(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown-field":  {"node: n1\n", "node: n1\nsteering: on\n", "line 2: steering: there is no such field; did you mean steer?"},
		"no-node":        {"node: n1\n", "", "node: is missing; write the node's name, or give it with --node"},
		"no-folder":      {"stateDir: state\n", "", "stateDir: is missing"},
		"no-member":      {`["192.0.2.1:7443"]`, "[]", "members: is empty"},
		"member-no-port": {`"192.0.2.1:7443"`, "192.0.2.1", `members[0]: "192.0.2.1" is no host:port; the API's port is 7443`},
		"no-key":         {", key: n1.key", "", "tls.key: is missing; `fairlead pki issue agent`"},
		"enrol-no-token": {"steer: off", "enrol: {ca: group.crt}", "enrol.tokenFile: is missing"},
		"enrol-no-ca":    {"steer: off", "enrol: {tokenFile: token}", "enrol.ca: is missing"},
		"steer-no-bool":  {"steer: off", "steer: sometimes", "line 5"},
		"unknown-nat":    {"nat: kube-proxy", "nat: ipvs", `nat: "ipvs" is not known; use nftables or kube-proxy`},
		"shared-marks":   {"nat: kube-proxy", "nat: nftables\nmarks: {in: 0x3000, out: 0x2000}", "marks: share bits"},
		"bad-range":      {"nat: kube-proxy", "nat: nftables\nclusterCIDRs: [10.0.0.0/8, 10.0.0.1]", `clusterCIDRs[1]: "10.0.0.1" is no range`},
		"bad-service":    {"nat: kube-proxy", "nat: nftables\nconsistent: [shop/web, web]", `consistent[1]: "web" is no Service; write namespace/name`},
		"bad-pattern":    {"nat: kube-proxy", "nat: nftables\nconsistent: [\"shop/[\"]", `consistent[0]: "shop/[" is no Service`},
		"sock-rows":      {"nat: kube-proxy", "sock: {slots: -1}", "sock.slots: is a number of rows up to 16777216, or 0"},
		"sock-too-many":  {"nat: kube-proxy", "sock: {places: 100000000}", "sock.places: is a number of rows up to 16777216, or 0"},
		"sock-folder":    {"nat: kube-proxy", "sock: {cgroup: unified}", `sock.cgroup: "unified" is no absolute path`},
		"sock-field":     {"nat: kube-proxy", "sock: {slot: 1}", "slot"},
		"not-ours":       {"nat: kube-proxy", "nat: kube-proxy\nconsistent: [shop/web]", "consistent: needs nat: nftables; kube-proxy chooses"},
		"their-checks":   {"nat: kube-proxy", "nat: kube-proxy\nhealthCheckNodePorts: true", "healthCheckNodePorts: needs nat: nftables; kube-proxy answers there itself"},
		"K2-theirs":      {"nat: kube-proxy", "nat: kube-proxy\nnodePortAddresses: [192.0.2.0/24]", "nodePortAddresses: needs nat: nftables; kube-proxy answers at node ports itself"},
		"K2-address":     {"nat: kube-proxy", "nat: nftables\nnodePortAddresses: [192.0.2.0/24, 192.0.2.1]", `nodePortAddresses[1]: "192.0.2.1" is no range; write it as 192.0.2.0/24`},
		"K2-host-bits":   {"nat: kube-proxy", "nat: nftables\nnodePortAddresses: [192.0.2.1/24]", `nodePortAddresses[0]: "192.0.2.1/24" is no range`},
		"K2-primary":     {"nat: kube-proxy", "nat: nftables\nnodePortAddresses: [primary]", `nodePortAddresses[0]: "primary" is known to kube-proxy only; write the range`},
		"K2-loopback":    {"nat: kube-proxy", "nat: nftables\nnodePortAddresses: [127.0.0.0/8]", "nodePortAddresses[0]: 127.0.0.0/8 is loopback or link-local"},
		"K2-link-local":  {"nat: kube-proxy", "nat: nftables\nnodePortAddresses: [\"fe80::/64\"]", "nodePortAddresses[0]: fe80::/64 is loopback or link-local"},
		"K2-marks":       {"nat: kube-proxy", "nat: nftables\nmarks: {nat: 0x800, nodePort: 0x800}", "marks: share bits"},
		"negative-delay": {"drainDelay: 5s", "drainDelay: -1s", "drainDelay: is a duration from 0 up"},
		"K44-too-seldom": {"drainDelay: 5s", "minSyncPeriod: 6s", "minSyncPeriod: is a duration from 0 to 5s"},
		"K44-backwards":  {"drainDelay: 5s", "minSyncPeriod: -1s", "minSyncPeriod: is a duration from 0 to 5s"},
		"K44-too-often":  {"drainDelay: 5s", "syncPeriod: 1s", "syncPeriod: is a duration from 5s up, or 0 for the defaults"},
		"K46-impatient":  {"drainDelay: 5s", "unhealthyAfter: 9s", "unhealthyAfter: is a duration from 10s up, or 0 for the default"},
		"outside-nat":    {"drainDelay: 5s", "outOfCluster: true", "nat: cannot be beside outOfCluster: no packets of others are translated"},
		"outside-steer":  {"steer: off\nnat: kube-proxy", "steer: on\noutOfCluster: true", "steer: cannot be beside outOfCluster: no packets to service addresses are led"},
		"outside-l2":     {"nat: kube-proxy", "l2: on\noutOfCluster: true", "l2: cannot be beside outOfCluster: a host outside the cluster is given no addresses"},
		"outside-bgp":    {"nat: kube-proxy", "bgp: {asn: 64512}\noutOfCluster: true", "bgp: cannot be beside outOfCluster: a host outside the cluster is no next hop"},
		"outside-where":  {"nat: kube-proxy", "addresses: [127.0.0.1]\noutOfCluster: true", "addresses[0]: 127.0.0.1 is none at which other machines reach"},
		"inside-where":   {"nat: kube-proxy", "addresses: [192.0.2.9]", "addresses: needs outOfCluster: true"},
		"bad-health":     {`health: "127.0.0.1:7480"`, "health: local", `health: "local" is no host:port`},
		"unknown-level":  {"node: n1\n", "node: n1\nlog: loud\n", `log: "loud" is no log level`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(validAgent, c.old, c.new, 1)
			if text == validAgent {
				t.Fatal("the case changes nothing")
			}
			_, err := loadAgent(t, text, "")
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "agent.yaml: ") {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// Balancing §15: on a host outside the cluster only resolution is on, without a word about it.
// Rule: balancing §15.
func TestHostsOutsideOnlyResolve(t *testing.T) {
	c, err := loadAgent(t, "node: edge-1\noutOfCluster: true\nstateDir: state\nmembers: [\"m1:7443\"]\nenrol: {ca: group.crt, tokenFile: token}\n", "")
	if err != nil || c.Steer || c.NAT != "" || c.L2 || c.BGP != nil || c.Sock == nil || c.Health != ":7480" || c.Log != "info" {
		t.Errorf("%+v, %v", c, err)
	}
	if c.Tunnel != nil {
		t.Error("it makes a tunnel without a word about it")
	}
	c, err = loadAgent(t, "node: edge-1\noutOfCluster: true\ntunnel: {}\nstateDir: state\nmembers: [\"m1:7443\"]\nenrol: {ca: group.crt, tokenFile: token}\n", "")
	if err != nil || c.Tunnel == nil {
		t.Errorf("with a tunnel: %+v, %v", c, err)
	}
}
