// SPDX-License-Identifier: Apache-2.0

// Package config reads and judges the configuration files of the processes. A file is read as a whole and
// refused as a whole, with the line, the field, the reason and a remedy; nothing starts on half of one.
// Start reading at Controller.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Controller is the configuration of one member: controller.yaml.
type Controller struct {
	// Name of this member; it survives the loss of the data folder.
	Name string `yaml:"name"`
	// DataDir holds log, snapshots and applied.state; made when absent.
	DataDir string `yaml:"dataDir"`
	// FloorDir is where a file of 256 bytes says what this member promised, so that a data folder that was put back is noticed: a folder that a
	// boot of the machine loses and a restart of the process does not; made when absent. Empty means /run/fairlead.
	FloorDir string `yaml:"floorDir"`

	Listen    Listen    `yaml:"listen"`
	Advertise Advertise `yaml:"advertise"`
	TLS       MemberTLS `yaml:"tls"`
	Enrolment Enrolment `yaml:"enrolment"`
	// Members are the first members of the group, this one included; how to reach the others before the record
	// tells.
	Members []Member `yaml:"members"`
	// BootstrapToken founds a new group when every member in Members has the same one and is empty. Without it
	// an empty member waits to be joined.
	BootstrapToken string `yaml:"bootstrapToken"`

	BGP     BGP     `yaml:"bgp"`
	Sources Sources `yaml:"sources"`
	Status  Status  `yaml:"status"`
	// Admission is how objects of LBCF's kinds are judged before they are stored, where listen.admission is set.
	Admission Admission `yaml:"admission"`
	LBCF      LBCF      `yaml:"lbcf"`
	Drivers   Drivers   `yaml:"drivers"`
	// Metrics has /metrics at a port of its own instead of the health port, by TLS and for ServiceAccounts alone.
	Metrics Metrics `yaml:"metrics"`
	// LoadBalancerClass that is ours; empty means fairlead.io/lb. Services without a class are ours, too, unless
	// OnlyClass is set.
	LoadBalancerClass string `yaml:"loadBalancerClass"`
	OnlyClass         bool   `yaml:"onlyClass"`
	// ExternalIPs is what becomes of an address in spec.externalIPs that no AddressPolicy allows: ExternalIPsDeny or ExternalIPsWarn; empty
	// means deny. It must be equal on all members.
	ExternalIPs string `yaml:"externalIPs"`
	// ClusterCIDRs are what pods and Services have addresses of inside the cluster: no Service comes to have one of those, neither by
	// spec.externalIPs, whatever AddressPolicies allow, nor of a pool. ClusterIPs and what Nodes say of their pods are known without. It must
	// be equal on all members.
	ClusterCIDRs []netip.Prefix `yaml:"clusterCIDRs"`
	// NodePorts has the record hold every Service with node ports, so that agents with nodePortAddresses can serve those; it must be
	// equal on all members.
	NodePorts bool `yaml:"nodePorts"`
	// ClusterIPs has the record hold every Service with a ClusterIP, so that agents with sock can resolve those; it must be equal on all
	// members.
	ClusterIPs bool `yaml:"clusterIPs"`
	// BalancingPolicies has the record hold policies of client-side balancing; it must be equal on all members.
	BalancingPolicies bool `yaml:"balancingPolicies"`
	// Tunnels has hosts reach each other's proxy ports by tunnels; nil: they do not. It must be equal on all members.
	Tunnels *Tunnels `yaml:"tunnels"`
	// Unsteered says that somebody else prepares the nodes: next hops count without an acknowledgement.
	Unsteered bool `yaml:"unsteered"`

	Nodes    Nodes    `yaml:"nodes"`
	Raft     Raft     `yaml:"raft"`
	Liveness Liveness `yaml:"liveness"`
	L2       L2       `yaml:"l2"`
	// Log is debug, info, warn or error.
	Log string `yaml:"log"`
}

// Listen are the addresses that this member listens on.
type Listen struct {
	API    string `yaml:"api"`
	Raft   string `yaml:"raft"`
	Health string `yaml:"health"` // plain HTTP: /livez, /healthz, /readyz and /metrics only; empty: none; absent: where the API is
	// Admission is where the API server asks about objects of LBCF's kinds, by TLS; empty: nowhere.
	Admission string `yaml:"admission"`
}

// Advertise are the addresses under which others reach this member, where they differ from Listen.
type Advertise struct {
	API  string `yaml:"api"`
	Raft string `yaml:"raft"`
}

// TLS names the files of `fairlead pki`.
type TLS struct {
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// MemberTLS is TLS of a member. The files are kept renewed in place.
type MemberTLS struct {
	TLS `yaml:",inline"`
	// CAKey is the key of a signer, whose certificate is beside it (signer.key, signer.crt), or of a CA in CA. A member that has
	// it signs certificates; one such member is enough, the others hand on to it. Empty: this one has not.
	CAKey string `yaml:"caKey"`
}

// Enrolment is who may get the certificate of a node's agent without having one.
type Enrolment struct {
	// ServiceAccount is whose tokens count, namespace/name. Empty means kube-system/fairlead-agent.
	ServiceAccount string `yaml:"serviceAccount"`
}

// BGP is what is a member's own of its BGP side; peers are in the record. Without an AS number the member does
// not speak BGP.
type BGP struct {
	ASN      uint32     `yaml:"asn"`
	RouterID netip.Addr `yaml:"routerID"`
	// Listen are the addresses to be dialled at; none: all. Port 0 means 179, -1 does not listen.
	Listen []netip.Addr `yaml:"listen"`
	Port   int          `yaml:"port"`
	// LocalAddress is what the member dials from; unset: the kernel's choice.
	LocalAddress netip.Addr `yaml:"localAddress"`
	// ConfigFile is a config_bgp.toml of the old system: its neighbours are put into the record.
	ConfigFile string `yaml:"configFile"`
	// PasswordDir holds a file per TCP-MD5 password, named as peers name them.
	PasswordDir string `yaml:"passwordDir"`
	// Management is where the gobgp command gets answers, and nothing but answers: 127.0.0.1:50051 is where it asks by
	// itself, unix:///PATH serves root only. Empty: nowhere.
	Management string `yaml:"management"`
	// RestartWindow is how long a returning member looks for the group before it announces, demoted, what it
	// last knew. 0 means 10 s.
	RestartWindow time.Duration `yaml:"restartWindow"`
	// DemoteAfter is how long a member may be without contact to a quorum. 0 means 3 s.
	DemoteAfter time.Duration `yaml:"demoteAfter"`
}

// Sources are where Services come from.
type Sources struct {
	// Manifests are folders of Kubernetes YAML.
	Manifests []string `yaml:"manifests"`
	// Kubernetes is a live cluster; nil reads none.
	Kubernetes *Kubernetes `yaml:"kubernetes"`
	// ConfigNamespaces are those from which objects are read that configure the fabric: pools, peers, advertisements, communities. None
	// means the group's own, which is that of the agents' ServiceAccount, and metallb-system. It must be equal on all members.
	ConfigNamespaces []string `yaml:"configNamespaces"`
}

// What becomes of an address in spec.externalIPs that no AddressPolicy allows.
const (
	ExternalIPsDeny = "deny" // no Service comes to have it
	ExternalIPsWarn = "warn" // Services have it, and people are told
)

// metalLBNamespace is where MetalLB's objects are.
const metalLBNamespace = "metallb-system"

// ConfigNamespaces are those from which objects are read that configure the fabric.
func (c *Controller) ConfigNamespaces() []string {
	if len(c.Sources.ConfigNamespaces) > 0 {
		return c.Sources.ConfigNamespaces
	}
	own, _, _ := strings.Cut(cmp.Or(c.Enrolment.ServiceAccount, "kube-system/fairlead-agent"), "/")
	return []string{own, metalLBNamespace}
}

// validateTenants judges what tenants are kept from.
func (c *Controller) validateTenants(bad func(field, why string)) {
	switch c.ExternalIPs {
	case "":
		c.ExternalIPs = ExternalIPsDeny
	case ExternalIPsDeny, ExternalIPsWarn:
	default:
		bad("externalIPs", fmt.Sprintf("%q is neither %s nor %s", c.ExternalIPs, ExternalIPsDeny, ExternalIPsWarn))
	}
	for i, p := range c.ClusterCIDRs {
		if !p.IsValid() || p.Addr().Is4In6() || p.Bits() == 0 {
			bad(fmt.Sprintf("clusterCIDRs[%d]", i), fmt.Sprintf("%s is no prefix of pods or Services, such as 10.96.0.0/12", p))
		}
	}
	for i, name := range c.Sources.ConfigNamespaces {
		if !namespaceName.MatchString(name) || len(name) > 63 {
			bad(fmt.Sprintf("sources.configNamespaces[%d]", i), fmt.Sprintf("%q is no name of a namespace", name))
		}
	}
}

// Kubernetes says how a live cluster is reached. One of Kubeconfig and InCluster is set.
type Kubernetes struct {
	// Kubeconfig is a file with the API server and an account of it.
	Kubeconfig string `yaml:"kubeconfig"`
	// InCluster takes the ServiceAccount of the pod that this process runs in.
	InCluster bool `yaml:"inCluster"`
	// ConfigMaps is the namespace of kube-gobgp-cfg and kube-iprule-cfg; empty means kube-system.
	ConfigMaps string `yaml:"configMaps"`
	// LBCF says when the objects of LBCF are ours.
	LBCF HandOver `yaml:"lbcf"`
}

// HandOver is about an LBCF controller in the same cluster.
type HandOver struct {
	// Force acts on LBCF's objects without looking whether an LBCF controller runs.
	Force bool `yaml:"force"`
}

// Status is what is shown in Kubernetes of each Service.
type Status struct {
	// ExternalIPs also writes the addresses of spec.externalIPs into status.loadBalancer, where listings then show them
	// twice.
	ExternalIPs bool `yaml:"externalIPs"`
	// Finalizer keeps a deleted Service visible until its addresses are withdrawn, by Kubernetes' finalizer for that. It takes
	// the right to patch services.
	Finalizer bool `yaml:"finalizer"`
}

// Nodes is what of the cluster's word on nodes has new flows go past them; it must be equal on all members. Zero heeds none.
type Nodes struct {
	// Cordoned is CordonServe or CordonAside; empty means CordonServe.
	Cordoned string `yaml:"cordoned"`
	// Taints are keys of taints that have new flows go to other nodes.
	Taints []string `yaml:"taints"`
}

// What a cordon means for the addresses of a node.
const (
	CordonServe = "serve" // nothing: it is about where pods are started
	CordonAside = "aside" // new flows go to other nodes, where one may be announced
)

// Raft is for unusual networks and for tests; zero means the default.
type Raft struct {
	Heartbeat         time.Duration `yaml:"heartbeat"`
	Election          time.Duration `yaml:"election"`
	SnapshotThreshold uint64        `yaml:"snapshotThreshold"`
	SnapshotInterval  time.Duration `yaml:"snapshotInterval"`
	TrailingLogs      uint64        `yaml:"trailingLogs"`
	MaxLogBytes       uint64        `yaml:"maxLogBytes"`
}

// Bounds of Raft's times: below, a group loses its leader whenever a machine is busy; above, nobody waits for another one.
const (
	minHeartbeat = 20 * time.Millisecond
	maxHeartbeat = 10 * time.Second
)

// minLogBytes leaves room behind a snapshot for the longest entry that there may be.
const minLogBytes = 64 << 20

func (r Raft) validate(bad func(field, why string)) {
	for field, d := range map[string]time.Duration{"raft.heartbeat": r.Heartbeat, "raft.election": r.Election} {
		if d != 0 && (d < minHeartbeat || d > maxHeartbeat) {
			bad(field, fmt.Sprintf("%s is not from %s to %s", d, minHeartbeat, maxHeartbeat))
		}
	}
	if r.SnapshotInterval < 0 {
		bad("raft.snapshotInterval", fmt.Sprintf("%s is less than nothing", r.SnapshotInterval))
	}
	if r.MaxLogBytes != 0 && (r.MaxLogBytes < minLogBytes || r.MaxLogBytes > math.MaxInt64) {
		bad("raft.maxLogBytes", fmt.Sprintf("%d is not from %d to %d", r.MaxLogBytes, minLogBytes, math.MaxInt64))
	}
}

// Liveness is how silent nodes are probed.
type Liveness struct {
	// ProbePort is the TCP port that they are asked at, beside ICMP; a refusal is an answer, too. 0 means 10250, the
	// kubelet's.
	ProbePort uint16 `yaml:"probePort"`
}

// L2 is how addresses are answered for on nodes' segments.
type L2 struct {
	// Lease is for how long a node may answer for an address after it asked whether it may: so long nobody answers once it
	// dies, and so long a new leader may take to be found. From 300 ms to 3 s; 0 means four times what Raft takes to miss a
	// leader, 600 ms at least. The same in all members, or leases are made anew with each leader.
	Lease time.Duration `yaml:"lease"`
}

// Bounds of L2.Lease.
const (
	minLease     = 300 * time.Millisecond
	defaultLease = 600 * time.Millisecond
	maxLease     = 3 * time.Second
)

// validate fills in what follows from how soon Raft misses a leader.
func (l *L2) validate(r Raft, bad func(field, why string)) {
	if l.Lease == 0 {
		l.Lease = min(max(defaultLease, 4*max(r.Heartbeat, r.Election)), maxLease)
	}
	if l.Lease < minLease || l.Lease > maxLease {
		bad("l2.lease", fmt.Sprintf("%s is not from %s to %s", l.Lease, minLease, maxLease))
	}
}

// Defaults of listeners (design §11).
const (
	defaultAPI    = ":7443"
	defaultRaft   = ":7444"
	defaultHealth = "7480"
)

// healthUnsaid stands in Listen.Health until it is clear that nobody says where.
const healthUnsaid = "unsaid"

// healthBeside is where health listens if nobody says: at the address of the API.
func healthBeside(api string) string {
	if host, _, err := net.SplitHostPort(api); err == nil {
		return net.JoinHostPort(host, defaultHealth)
	}
	return ":" + defaultHealth // Validate tells what is wrong with the API's
}

// LoadController reads a controller.yaml, fills in defaults and judges it as a whole.
func LoadController(path string) (Controller, error) {
	return LoadControllerOver(OldController{}, path)
}

// LoadControllerOver is LoadController, with what is said in the old way where the file says nothing.
func LoadControllerOver(old OldController, path string) (Controller, error) {
	var first Controller // tells whether there is a cluster
	if err := decode(path, &first); err != nil {
		return Controller{}, err
	}
	c := Controller{
		Listen: Listen{API: defaultAPI, Raft: defaultRaft, Health: healthUnsaid},
		Log:    "info",
	}
	old.under(&c, first.Sources.Kubernetes != nil)
	if err := decode(path, &c); err != nil {
		return Controller{}, err
	}
	if c.Listen.Health == healthUnsaid {
		c.Listen.Health = healthBeside(c.Listen.API)
	}
	if err := c.Validate(); err != nil {
		return Controller{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Validate fills in what follows from other fields and tells everything that is wrong, in one error.
func (c *Controller) Validate() error {
	if c.Advertise.API == "" {
		c.Advertise.API = c.Listen.API
	}
	if c.Advertise.Raft == "" {
		c.Advertise.Raft = c.Listen.Raft
	}
	var errs []error
	bad := func(field, why string) { errs = append(errs, fmt.Errorf("%s: %s", field, why)) }
	c.validateTunnels(bad)
	if c.Name == "" {
		bad("name", "is missing; give each member its own, such as the node's name")
	}
	if c.DataDir == "" {
		bad("dataDir", "is missing; name a folder on a disk that survives reboots")
	}
	for field, v := range map[string]string{"tls.ca": c.TLS.CA, "tls.cert": c.TLS.Cert, "tls.key": c.TLS.Key} {
		if v == "" {
			bad(field, "is missing; `fairlead pki init` and `fairlead pki issue` make the files")
		}
	}
	if a := c.Enrolment.ServiceAccount; a != "" && strings.Count(a, "/") != 1 {
		bad("enrolment.serviceAccount", fmt.Sprintf("%q is no namespace/name", a))
	}
	c.validateAddresses(bad)
	c.validateMembers(bad)
	c.validateBGP(bad)
	c.Sources.validate(bad)
	c.validateTenants(bad)
	c.validateAdmission(bad)
	c.validateMetrics(bad)
	c.LBCF.validate(bad)
	c.Drivers.validate(bad)
	c.Nodes.validate(bad)
	c.Raft.validate(bad)
	c.L2.validate(c.Raft, bad)
	if c.Status != (Status{}) && c.Sources.Kubernetes == nil {
		bad("status", "there is no cluster to show anything in; name one in sources.kubernetes")
	}
	if _, err := Level(c.Log); err != nil {
		bad("log", err.Error())
	}
	return joinSorted(errs)
}

func (c *Controller) validateAddresses(bad func(field, why string)) {
	listen := map[string]string{"listen.api": c.Listen.API, "listen.raft": c.Listen.Raft}
	if c.Listen.Health != "" {
		listen["listen.health"] = c.Listen.Health
	}
	if c.Listen.Admission != "" {
		listen["listen.admission"] = c.Listen.Admission
	}
	if c.Metrics.Listen != "" {
		listen["metrics.listen"] = c.Metrics.Listen
	}
	for field, v := range listen {
		if why := faultOfAddress(v, false); why != "" {
			bad(field, why)
		}
	}
	for field, v := range map[string]string{"advertise.api": c.Advertise.API, "advertise.raft": c.Advertise.Raft} {
		if why := faultOfAddress(v, true); why != "" {
			bad(field, why+"; others dial it")
		}
	}
}

func (c *Controller) validateBGP(bad func(field, why string)) {
	b := &c.BGP
	if why := faultOfManagement(b.Management); why != "" {
		bad("bgp.management", why)
	}
	if b.ASN == 0 {
		return
	}
	if !b.RouterID.Is4() {
		bad("bgp.routerID", "is no IPv4 address; use one of this member's own")
	}
	if b.Port < -1 || b.Port > 65535 {
		bad("bgp.port", fmt.Sprintf("%d is no port; -1 does not listen", b.Port))
	}
	if b.Port == 0 {
		b.Port = 179
	}
	if b.RestartWindow < 0 || b.DemoteAfter < 0 {
		bad("bgp.restartWindow, bgp.demoteAfter", "are durations from 0 up")
	}
}

func (n *Nodes) validate(bad func(field, why string)) {
	if n.Cordoned != "" && n.Cordoned != CordonServe && n.Cordoned != CordonAside {
		bad("nodes.cordoned", fmt.Sprintf("%q is neither %s nor %s", n.Cordoned, CordonServe, CordonAside))
	}
	for i, key := range n.Taints {
		if key == "" || strings.ContainsAny(key, "=:, ") {
			bad(fmt.Sprintf("nodes.taints[%d]", i), fmt.Sprintf("%q is no key of a taint; leave out value and effect", key))
		}
	}
}

func (s *Sources) validate(bad func(field, why string)) {
	k := s.Kubernetes
	if k == nil {
		return
	}
	const field = "sources.kubernetes"
	switch {
	case k.Kubeconfig == "" && !k.InCluster:
		bad(field, "says no API server; give kubeconfig: FILE, or inCluster: true in a pod")
	case k.Kubeconfig != "" && k.InCluster:
		bad(field, "has both kubeconfig and inCluster; remove one of them")
	}
	if k.ConfigMaps == "" {
		k.ConfigMaps = "kube-system"
	}
	if !namespaceName.MatchString(k.ConfigMaps) || len(k.ConfigMaps) > 63 {
		bad(field+".configMaps", fmt.Sprintf("%q is no name of a namespace; leave it out for kube-system", k.ConfigMaps))
	}
}

// namespaceName is a label of RFC 1123, as Kubernetes has it.
var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// faultOfAddress tells what is wrong with a host:port; a dialled one needs its host.
func faultOfAddress(v string, dialled bool) string {
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		return fmt.Sprintf("%q is no host:port", v)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("%q: %q is no port", v, port)
	}
	if a, err := netip.ParseAddr(host); dialled && (host == "" || err == nil && a.IsUnspecified()) {
		return fmt.Sprintf("%q names no host that can be dialled", v)
	}
	return ""
}

// joinSorted makes one error of several; the order does not depend on the order of checks.
func joinSorted(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	lines := make([]string, len(errs))
	for i, e := range errs {
		lines[i] = e.Error()
	}
	return errors.New(sortedLine(lines))
}
