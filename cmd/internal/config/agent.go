// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/dataplane/nat"
)

// Agent is the configuration of the agent of one node: agent.yaml.
type Agent struct {
	// Node is the name that the group knows this node by; in Kubernetes the Node's. One file may serve many nodes:
	// `fairlead agent --node` goes first.
	Node string `yaml:"node"`
	// OutOfCluster says that this is no node but a host outside the cluster, even if a node has its name: the agent only resolves service
	// addresses for the host's own programs, and makes them a tunnel to nodes where that is asked for.
	OutOfCluster bool `yaml:"outOfCluster"`
	// Addresses are where other machines reach a host outside the cluster; none: from where members are reached.
	Addresses []netip.Addr `yaml:"addresses"`
	// StateDir holds what the node was told last, and certificates that the agent got itself; made when absent.
	StateDir string `yaml:"stateDir"`
	// Members are host:port of members' APIs; the others are learned.
	Members []string `yaml:"members"`
	// TLS names the agent's certificate, which is kept renewed in place. With Enrol it may be left out.
	TLS TLS `yaml:"tls"`
	// Enrol says how to get a first certificate, and another one when that has expired.
	Enrol *Enrol `yaml:"enrol"`

	// Steer is whether packets to service addresses are delivered on this node and answers leave through the switch.
	Steer bool `yaml:"steer"`
	// NAT is who translates service addresses to endpoints: nftables, or kube-proxy (or whoever else does).
	NAT string `yaml:"nat"`
	// ClusterCIDRs are the ranges that clients inside the cluster come from, for NAT.
	ClusterCIDRs []string `yaml:"clusterCIDRs"`
	// MasqueradeAll rewrites the source of all connections that NAT translates.
	MasqueradeAll bool `yaml:"masqueradeAll"`
	// Consistent are the Services, namespace/name or patterns of that, whose endpoints all nodes of the same list choose
	// alike, for NAT.
	Consistent []string `yaml:"consistent"`
	// HealthCheckNodePorts is whether this agent answers at Services' health-check node ports, in kube-proxy's place, for NAT.
	HealthCheckNodePorts bool `yaml:"healthCheckNodePorts"`
	// NodePortAddresses are the ranges of nodes' addresses where this agent answers at Services' node ports, in kube-proxy's
	// place, for NAT. None: nowhere.
	NodePortAddresses []string `yaml:"nodePortAddresses"`
	// Sock has programs of this host get to an endpoint at once when they connect to a service address, so that nothing is
	// translated per packet; nil: their packets are, as those of others.
	Sock *Sock `yaml:"sock"`
	// Tunnel has this host make tunnels to others, where the group has tunnels, and a node lead its proxy ports to pods; nil: it does not.
	Tunnel *Tunnel `yaml:"tunnel"`
	// L2 is whether this node answers ARP and Neighbor Discovery for service addresses that the group leases it. It needs
	// Steer, and CAP_NET_RAW.
	L2 bool `yaml:"l2"`
	// BGP is this node's own speaker, for peers of mode node; nil: it has none.
	BGP *NodeBGP `yaml:"bgp"`
	// Interfaces are patterns of the network interfaces that face the switch or the clients, for Steer and L2. Default:
	// Ethernet cards, bonds, teams and VLANs, and whatever leads to the switch.
	Interfaces []string `yaml:"interfaces"`
	// SysNet is the folder of the kernel's settings of networks, for Steer; empty means /proc/sys/net. In a container that
	// is read-only, and the host's has to be mounted at another place.
	SysNet string `yaml:"sysNet"`
	// RulesMax is up to how many addresses of a family have ip rules of their own. 0 means 256.
	RulesMax int `yaml:"rulesMax"`
	// Priorities and Marks are for nodes where somebody else uses ours; 0 means the default.
	Priorities Priorities `yaml:"priorities"`
	Marks      Marks      `yaml:"marks"`
	// DrainDelay is how long the rules of an address stay after it left the state that the group wants.
	DrainDelay time.Duration `yaml:"drainDelay"`

	// MinSyncPeriod is from one change of what the kernel holds to the next, at least; 0: as soon as the one before is done.
	MinSyncPeriod time.Duration `yaml:"minSyncPeriod"`
	// SyncPeriod is how often what the kernel holds is compared as a whole, whatever was heard of changes. 0 means a minute
	// for rules and routes, and five for translations.
	SyncPeriod time.Duration `yaml:"syncPeriod"`

	// Namespace is a file descriptor of the network namespace to work in; 0 is the process's own. Tests set it.
	Namespace int `yaml:"-"`
	// Reread reads the same files anew, for the one thing that may change while the agent runs, sock.redirectLimit; nil: nothing does.
	Reread func() (Agent, error) `yaml:"-"`
	// Health listens in plain HTTP: /livez, /healthz, /readyz and /metrics only; empty: none.
	Health string `yaml:"health"`
	// UnhealthyAfter is how long nothing may have been carried out while there is something to do; 0 means a minute.
	UnhealthyAfter time.Duration `yaml:"unhealthyAfter"`
	// Log is debug, info, warn or error.
	Log string `yaml:"log"`
}

// Sock is resolution of service addresses at the client's socket. Numbers are rows of tables; 0 means the default.
type Sock struct {
	// Cgroup is the folder of the cgroup (v2) whose sockets are resolved, with those below it; empty: where cgroup v2 is mounted.
	Cgroup string `yaml:"cgroup"`
	// Pins is a folder on a bpffs, by which programs and tables stay without an agent; empty: /sys/fs/bpf/fairlead.
	Pins string `yaml:"pins"`
	// Places are addresses and ports of Services; Slots their endpoints, twice those of UDP and of Services with affinity.
	Places int `yaml:"places"`
	Slots  int `yaml:"slots"`
	// Records are sockets that got to an endpoint, Affinity clients of Services with affinity, Flows those of datagrams.
	Records  int `yaml:"records"`
	Affinity int `yaml:"affinity"`
	Flows    int `yaml:"flows"`
	// Events is how many calls of each Service are logged a second; 0: none.
	Events int `yaml:"events"`
	// RedirectLimit is how many calls a second LocalRedirectPolicies take at each address and port; 0: all.
	RedirectLimit int `yaml:"redirectLimit"`
	// IPv4 and IPv6 are whether calls of the family are resolved; nil: they are.
	IPv4 *bool `yaml:"ipv4"`
	IPv6 *bool `yaml:"ipv6"`
	// PodLogs is the kubelet's folder of logs, for the names of pods in events; empty: /var/log/pods.
	PodLogs string `yaml:"podLogs"`
	// StrictExternalLocal has programs of this host get to endpoints of this host alone at the load-balancer addresses and node ports of Services
	// with externalTrafficPolicy: Local.
	StrictExternalLocal bool `yaml:"strictExternalLocal"`
	// EndTCP has connections of TCP end, too, whose endpoint left; those of UDP do anyway.
	EndTCP bool `yaml:"endTCP"`
	// Namespaces is a folder with a file for each pod's network namespace, for those sockets; empty: /run/netns.
	Namespaces string `yaml:"namespaces"`
}

// Tunnel is tunnels to other hosts. How they are made is the group's to say.
type Tunnel struct{}

// Resolves tells whether calls of a family are resolved.
func (s *Sock) Resolves(v6 bool) bool {
	on := s.IPv4
	if v6 {
		on = s.IPv6
	}
	return on == nil || *on
}

// mostRows bounds a table: what is more than that takes gigabytes of the kernel's memory.
const mostRows = 1 << 24

func (c *Agent) validateSock(bad func(field, why string)) {
	if c.Sock == nil {
		return
	}
	for field, n := range map[string]int{
		"places": c.Sock.Places, "slots": c.Sock.Slots, "records": c.Sock.Records, "affinity": c.Sock.Affinity, "flows": c.Sock.Flows,
	} {
		if n < 0 || n > mostRows {
			bad("sock."+field, fmt.Sprintf("is a number of rows up to %d, or 0 for the default", mostRows))
		}
	}
	if c.Sock.Events < 0 {
		bad("sock.events", "is a number of log lines a second, or 0 for none")
	}
	if c.Sock.RedirectLimit < 0 || c.Sock.RedirectLimit > math.MaxUint32 {
		bad("sock.redirectLimit", "is a number of calls a second, or 0 for no limit")
	}
	if !c.Sock.Resolves(false) && !c.Sock.Resolves(true) {
		bad("sock.ipv4", "and sock.ipv6 are both off: nothing is resolved then; leave sock out")
	}
	for field, path := range map[string]string{"cgroup": c.Sock.Cgroup, "pins": c.Sock.Pins, "podLogs": c.Sock.PodLogs, "namespaces": c.Sock.Namespaces} {
		if path != "" && !filepath.IsAbs(path) {
			bad("sock."+field, fmt.Sprintf("%q is no absolute path", path))
		}
	}
}

// NodeBGP is what is a node's own of its BGP side; peers and paths come from the group.
type NodeBGP struct {
	ASN uint32 `yaml:"asn"`
	// RouterID is unset for the IPv4 address that leads to the members.
	RouterID netip.Addr `yaml:"routerID"`
	// LocalAddress is what the node dials from; unset: the kernel's choice.
	LocalAddress netip.Addr `yaml:"localAddress"`
	// Listen are the addresses to be dialled at, none: all. Port 0 does not listen: the node dials.
	Listen []netip.Addr `yaml:"listen"`
	Port   uint16       `yaml:"port"`
	// PasswordDir holds a file per TCP-MD5 password, named as peers name them. Members send none.
	PasswordDir string `yaml:"passwordDir"`
}

// Enrol is how an agent proves which node it runs on before it has a certificate.
type Enrol struct {
	// CA is the file of the group's CA, which members are known by.
	CA string `yaml:"ca"`
	// TokenFile holds a ServiceAccount token bound to a Pod of this node (audience fairlead), or the one-time token
	// that `fairlead pki enrol` printed.
	TokenFile string `yaml:"tokenFile"`
}

// Priorities of the ip rules that steer: to an address, from one, and for marked answers. They rise, below 32766.
type Priorities struct {
	In   uint32 `yaml:"in"`
	Out  uint32 `yaml:"out"`
	Mark uint32 `yaml:"mark"`
}

// Marks are bits of packet marks that nobody else uses: of packets to a service address, of answers, of connections that
// NAT makes come from this node, of those among them that came by a node port, and of connections
// to proxy ports.
type Marks struct {
	In       uint32 `yaml:"in"`
	Out      uint32 `yaml:"out"`
	NAT      uint32 `yaml:"nat"`
	NodePort uint32 `yaml:"nodePort"`
	Proxy    uint32 `yaml:"proxy"`
}

// Who may translate.
const (
	NATNftables  = "nftables"
	NATKubeProxy = "kube-proxy"
)

const (
	defaultDrainDelay = 30 * time.Second
	// leastUnhealthyAfter is the longest pause before the agent tries again what failed.
	leastUnhealthyAfter = 10 * time.Second
	// mostMinSyncPeriod is as long as the group may well wait for a node.
	mostMinSyncPeriod = 5 * time.Second
	// leastSyncPeriod leaves time to read what 10,000 Services make.
	leastSyncPeriod = 5 * time.Second
)

// LoadAgent reads an agent.yaml, fills in defaults and judges it as a whole. A node that is not empty goes before the
// file's.
func LoadAgent(path, node string) (Agent, error) { return LoadAgentOver(Old{}, path, node) }

// LoadAgentOver is LoadAgent where something may be said in the old way: the file goes before that.
func LoadAgentOver(old Old, path, node string) (Agent, error) {
	var first Agent // tells what is on by default, and whether sockets are spoken of at all
	if err := decode(path, &first); err != nil {
		return Agent{}, err
	}
	c := Agent{Steer: true, NAT: NATKubeProxy, DrainDelay: defaultDrainDelay, Health: ":" + defaultHealth, Log: "info"}
	if first.OutOfCluster { // what is on by default for nodes is off, and what is left of it was written there
		c = Agent{Health: ":" + defaultHealth, Log: "info"}
	}
	old.under(&c)
	if err := decode(path, &c); err != nil {
		return Agent{}, err
	}
	if first.Sock == nil && !first.OutOfCluster {
		c.Sock = nil
	}
	if node != "" {
		c.Node = node
	}
	if name, err := os.Hostname(); c.Node == "" && c.OutOfCluster && err == nil {
		c.Node = strings.ToLower(name)
	}
	if err := c.Validate(); err != nil {
		return Agent{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Validate fills in what follows from other fields and tells everything that is wrong, in one error.
func (c *Agent) Validate() error {
	var errs []error
	bad := func(field, why string) { errs = append(errs, fmt.Errorf("%s: %s", field, why)) }
	if c.Node == "" {
		bad("node", "is missing; write the node's name, or give it with --node")
	}
	if c.StateDir == "" {
		bad("stateDir", "is missing; name a folder that survives restarts of the agent")
	}
	c.validateMembers(bad)
	c.validateTLS(bad)
	c.validateOutside(bad)
	if !c.OutOfCluster && !slices.Contains([]string{NATNftables, NATKubeProxy}, c.NAT) {
		bad("nat", fmt.Sprintf("%q is not known; use %s or %s", c.NAT, NATNftables, NATKubeProxy))
	}
	if c.L2 && !c.Steer && !c.OutOfCluster {
		bad("l2", "needs steer: it keeps the kernel from answering, and has packets delivered")
	}
	if c.BGP != nil && c.BGP.ASN == 0 {
		bad("bgp.asn", "is missing; write the AS number that switches know this node by")
	}
	if c.BGP != nil && c.BGP.RouterID.IsValid() && !c.BGP.RouterID.Is4() {
		bad("bgp.routerID", "is written as an IPv4 address")
	}
	if c.BGP != nil && len(c.BGP.Listen) > 0 && c.BGP.Port == 0 {
		bad("bgp.listen", "needs bgp.port: without one the node does not listen")
	}
	if c.Marks.In&c.Marks.Out != 0 || (c.Marks.In|c.Marks.Out)&c.Marks.NAT != 0 || (c.Marks.In|c.Marks.Out|c.Marks.NAT)&c.Marks.NodePort != 0 ||
		(c.Marks.In|c.Marks.Out|c.Marks.NAT|c.Marks.NodePort)&c.Marks.Proxy != 0 {
		bad("marks", "share bits; give each its own")
	}
	for i, text := range c.ClusterCIDRs {
		if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
			bad(fmt.Sprintf("clusterCIDRs[%d]", i), fmt.Sprintf("%q is no range; write it as 192.0.2.0/24", text))
		}
	}
	for i, pattern := range c.Consistent {
		if _, err := path.Match(pattern, ""); err != nil || strings.Count(pattern, "/") != 1 {
			bad(fmt.Sprintf("consistent[%d]", i), fmt.Sprintf("%q is no Service; write namespace/name, as shop/web or shop/*", pattern))
		}
	}
	if len(c.Consistent) > 0 && c.NAT != NATNftables {
		bad("consistent", fmt.Sprintf("needs nat: %s; %s chooses by itself", NATNftables, c.NAT))
	}
	if c.HealthCheckNodePorts && c.NAT != NATNftables {
		bad("healthCheckNodePorts", fmt.Sprintf("needs nat: %s; %s answers there itself", NATNftables, c.NAT))
	}
	c.validateNodePorts(bad)
	c.validateSock(bad)
	if c.RulesMax < 0 {
		bad("rulesMax", "is a number from 1 up, or 0 for the default")
	}
	if c.DrainDelay < 0 {
		bad("drainDelay", "is a duration from 0 up")
	}
	if c.MinSyncPeriod < 0 || c.MinSyncPeriod > mostMinSyncPeriod {
		bad("minSyncPeriod", fmt.Sprintf("is a duration from 0 to %v: nodes are waited for", mostMinSyncPeriod))
	}
	if c.SyncPeriod != 0 && c.SyncPeriod < leastSyncPeriod {
		bad("syncPeriod", fmt.Sprintf("is a duration from %v up, or 0 for the defaults: everything is read then", leastSyncPeriod))
	}
	if c.UnhealthyAfter != 0 && c.UnhealthyAfter < leastUnhealthyAfter {
		bad("unhealthyAfter", fmt.Sprintf("is a duration from %v up, or 0 for the default: what failed is tried again that often", leastUnhealthyAfter))
	}
	if c.Health != "" {
		if why := faultOfAddress(c.Health, false); why != "" {
			bad("health", why)
		}
	}
	if _, err := Level(c.Log); err != nil {
		bad("log", err.Error())
	}
	return joinSorted(errs)
}

// maxAddresses is as many as the group keeps of a host.
const maxAddresses = 16

// validateOutside refuses what has no meaning on a host outside the cluster, where resolution is all there is.
func (c *Agent) validateOutside(bad func(field, why string)) {
	if !c.OutOfCluster {
		if len(c.Addresses) > 0 {
			bad("addresses", "needs outOfCluster: true; the addresses of nodes come from the cluster")
		}
		return
	}
	if c.Sock == nil {
		c.Sock = &Sock{}
	}
	for _, no := range []struct {
		field string
		set   bool
		why   string
	}{
		{"steer", c.Steer, "no packets to service addresses are led to a host outside the cluster"},
		{"nat", c.NAT != "", "no packets of others are translated on a host outside the cluster"},
		{"l2", c.L2, "a host outside the cluster is given no addresses to answer for"},
		{"bgp", c.BGP != nil, "a host outside the cluster is no next hop, and announces nothing"},
	} {
		if no.set {
			bad(no.field, "cannot be beside outOfCluster: "+no.why+"; leave it out")
		}
	}
	if len(c.Addresses) > maxAddresses {
		bad("addresses", fmt.Sprintf("lists %d; up to %d are kept", len(c.Addresses), maxAddresses))
	}
	for i, a := range c.Addresses {
		if a.Is4In6() || a.Zone() != "" || a.IsLoopback() || a.IsMulticast() || a.IsUnspecified() {
			bad(fmt.Sprintf("addresses[%d]", i), a.String()+" is none at which other machines reach this one")
		}
	}
}

// kubeProxyPrimary is what kube-proxy may have in the place of ranges: the first address of the Node object.
const kubeProxyPrimary = "primary"

func (c *Agent) validateNodePorts(bad func(field, why string)) {
	if len(c.NodePortAddresses) > 0 && c.NAT != NATNftables {
		bad("nodePortAddresses", fmt.Sprintf("needs nat: %s; %s answers at node ports itself", NATNftables, c.NAT))
	}
	for i, text := range c.NodePortAddresses {
		field := fmt.Sprintf("nodePortAddresses[%d]", i)
		p, err := netip.ParsePrefix(text)
		switch {
		case text == kubeProxyPrimary:
			bad(field, fmt.Sprintf("%q is known to kube-proxy only; write the range that the nodes' addresses are in", text))
		case err != nil || p != p.Masked() || p.Addr().Is4In6():
			bad(field, fmt.Sprintf("%q is no range; write it as 192.0.2.0/24", text))
		case nat.WithoutNodePorts(p):
			bad(field, fmt.Sprintf("%s is loopback or link-local, where no node port is served; write the range that the nodes' addresses are in", text))
		}
	}
}

// NeedsServices is whether Services are of use to the agent, beyond their addresses.
func (c *Agent) NeedsServices() bool {
	return c.NAT == NATNftables || c.HealthCheckNodePorts || c.NeedsAllServices()
}

// NeedsAllServices is whether those without an address of the group's are of use, too, and what else goes along with them.
func (c *Agent) NeedsAllServices() bool {
	return len(c.NodePortAddresses) > 0 || c.Sock != nil || c.Tunnel != nil
}

// ClusterRanges are the ClusterCIDRs of a configuration that Validate found in order.
func (c *Agent) ClusterRanges() []netip.Prefix { return rangesOf(c.ClusterCIDRs) }

// NodePortRanges are the NodePortAddresses, likewise.
func (c *Agent) NodePortRanges() []netip.Prefix { return rangesOf(c.NodePortAddresses) }

func rangesOf(list []string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, text := range list {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

func (c *Agent) validateMembers(bad func(field, why string)) {
	if len(c.Members) == 0 {
		bad("members", "is empty; list host:port of the members' APIs, one at least")
	}
	for i, m := range c.Members {
		if why := faultOfAddress(m, true); why != "" {
			bad(fmt.Sprintf("members[%d]", i), why+"; the API's port is 7443 by default")
		}
	}
}

func (c *Agent) validateTLS(bad func(field, why string)) {
	files := []struct {
		field, made string
		path        *string
	}{{"tls.ca", "ca.crt", &c.TLS.CA}, {"tls.cert", "agent.crt", &c.TLS.Cert}, {"tls.key", "agent.key", &c.TLS.Key}}
	for _, f := range files {
		switch {
		case *f.path != "":
		case c.Enrol != nil:
			*f.path = filepath.Join(c.StateDir, f.made)
		default:
			bad(f.field, "is missing; `fairlead pki issue agent` makes the file, or let the agent enrol: enrol.ca and enrol.tokenFile")
		}
	}
	if c.Enrol == nil {
		return
	}
	if c.Enrol.CA == "" {
		bad("enrol.ca", "is missing; name a copy of the group's ca.crt: the agent has to know whom it shows its token")
	}
	if c.Enrol.TokenFile == "" {
		bad("enrol.tokenFile", "is missing; name the mounted ServiceAccount token, or a file with what `fairlead pki enrol` printed")
	}
}
