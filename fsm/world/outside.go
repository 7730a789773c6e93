// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
	"time"
)

// Driver is a program that looks after outside load balancers: LBCF's LoadBalancerDriver.
type Driver struct {
	Meta
	URL string
	// Timeouts are those of its webhooks that say one; the others have the default.
	Timeouts      []Timeout
	AcceptsDryRun bool
	// Draining says that it takes no new objects.
	Draining bool
	// Secret is the name of a Secret beside it with what it is called with; empty for nothing.
	Secret string
	// Settle is how long after its end a call of unknown outcome may still take effect, and Concurrent how many calls
	// may be in flight at once; zero for the defaults.
	Settle     time.Duration
	Concurrent int
}

// Timeout is the budget of one webhook.
type Timeout struct {
	Webhook string
	Budget  time.Duration
}

// EnsurePolicy is ensurePolicy of any object: Policy as it is written, "Always" asks again and again; Period is zero
// where it does not say it.
type EnsurePolicy struct {
	Policy string
	Period time.Duration
}

// OutsideBalancer is LBCF's LoadBalancer: an outside load balancer that BackendGroups may use.
type OutsideBalancer struct {
	Meta
	// Driver is the name of the driver as it is written; DriverID is where that lives.
	Driver     string
	DriverID   ID
	Spec       []KV
	Attributes []KV
	Ensure     EnsurePolicy
	// Scope are the namespaces that may use it, "*" for all; none means its own.
	Scope []string
	// Finalizer says that it carries ours. One that is going without it goes without a call of its driver.
	Finalizer bool
	Status    BalancerStatus
}

// BalancerStatus is what the status of an object says of an outside load balancer: ours as we wrote it, or that of an
// installation that is taken over.
type BalancerStatus struct {
	// Name is the entry's, in a Bind, and DriverID where its driver lives; empty in a LoadBalancer.
	Name     string
	DriverID ID
	// Info is lbInfo; it counts if Created.
	Info    []KV
	Created bool
	// Synced says that the driver confirmed the attributes: those in Attributes in a Bind, else the present ones.
	Synced     bool
	Attributes []KV
}

// Balancing is what BackendGroups and Binds have in common: which pods with which ports, and when they leave.
type Balancing struct {
	Parameters []KV
	Ensure     EnsurePolicy
	// Pods selects pods of the namespace; nil for none.
	Pods *PodSelection
	// Leave is when a pod that is not ready is deregistered.
	Leave LeavePolicy
}

// PodSelection is a choice of pods, by labels or by name.
type PodSelection struct {
	// ByLabel says that Selector chooses, all but those in Except; without it Names do.
	ByLabel  bool
	Selector []KV
	Except   []string
	Names    []string
	Ports    []BackendPort
}

// BackendPort is a port of a pod or of a Service, as it is meant. Protocol is as it is written.
type BackendPort struct {
	Port     uint16
	Protocol string
}

// Deregister policies, and what happens when a driver is asked in vain.
const (
	LeaveIfNotReady   = "IfNotReady"
	LeaveIfNotRunning = "IfNotRunning"
	LeaveWebhook      = "Webhook"
	LeaveDoNothing    = "DoNothing"
)

// LeavePolicy is deregisterPolicy: LeaveIfNotReady, LeaveIfNotRunning or LeaveWebhook. Driver is who is asked by
// LeaveWebhook, and Failing what holds when it gives no answer: LeaveDoNothing, LeaveIfNotReady or LeaveIfNotRunning.
type LeavePolicy struct {
	Policy  string
	Driver  ID
	Failing string
}

// BackendGroup is LBCF's BackendGroup: backends of one kind on some load balancers. Exactly one of Pods, Service and
// Static is used.
type BackendGroup struct {
	Meta
	Balancing
	LoadBalancers []string // names, as written
	Service       *ServiceBackends
	// IsStatic says that Static counts, even if it is empty.
	IsStatic bool
	Static   []string
}

// ServiceBackends are the nodes of a Service of type NodePort.
type ServiceBackends struct {
	Name         string
	Port         BackendPort
	NodeSelector []KV
	// OnlyReady and NotExcluded leave out nodes that NodeSelector chooses: those that are not ready, and those that are to have
	// no traffic of load balancers. Without them all count, as in LBCF (lbcf §5.4).
	OnlyReady   bool
	NotExcluded bool
}

// Bind is LBCF's Bind: load balancers of its own, and pods on them.
type Bind struct {
	Meta
	Balancing
	Entries   []BindEntry
	Finalizer bool
	Statuses  []BalancerStatus
}

// BindEntry is one load balancer of a Bind.
type BindEntry struct {
	Name       string
	Driver     string // as written
	DriverID   ID
	Spec       []KV
	Attributes []KV
}

// BackendRecord is LBCF's mirror of one backend on one load balancer. We write it, and read it to take over what
// another controller wrote, and to see when somebody deletes it by hand.
type BackendRecord struct {
	Meta
	// OwnerKind is "BackendGroup" or "Bind"; Owner and OwnerUID name it.
	OwnerKind string
	Owner     string
	OwnerUID  string
	// LoadBalancer is the name of the LoadBalancer, or of the entry in a Bind.
	LoadBalancer string
	Driver       string // as written
	DriverID     ID
	Info         []KV
	Attributes   []KV
	Parameters   []KV
	Ensure       EnsurePolicy
	// Kind is "Pod", "Service" or "Static"; Name is that of the pod or the Service.
	Kind     string
	Name     string
	Port     BackendPort
	NodePort uint16
	Node     string
	Static   string
	// Finalizer says that it carries ours.
	Finalizer bool

	Address    string
	Injected   []KV
	Registered bool

	// Mirror is the annotation that tells which binding of which group's record it mirrors; empty for a record that
	// another controller made.
	Mirror string
}

// Pod is a pod as far as it can be a backend.
type Pod struct {
	Meta
	IP string
	// IPs are all of its addresses, of which IP should be one: at most one of each family.
	IPs  []netip.Addr
	Node string
	// HostUID is the one that its node's kubelet knows it by, where that is not UID: a static pod's, of which the object is a mirror.
	HostUID string
	// Ready is the Ready condition, Running the phase.
	Ready   bool
	Running bool
	Labels  []KV
	// Ports are those of its containers that have a name, in their order: of two of a name the first counts.
	Ports []PodPort
	// HostPorts are ports of its node that lead to it.
	HostPorts []HostPort
}

// HostPort is a port of a node.
type HostPort struct {
	Protocol Protocol
	Port     uint16
}

// PodPort is a port of a container.
type PodPort struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// Addresses are where the pod can be reached, the first of each family.
func (p *Pod) Addresses() []netip.Addr {
	var out []netip.Addr
	add := func(a netip.Addr) {
		a = a.Unmap()
		if !slices.ContainsFunc(out, func(b netip.Addr) bool { return FamilyOf(a) == FamilyOf(b) }) {
			out = append(out, a)
		}
	}
	if a, err := netip.ParseAddr(p.IP); err == nil {
		add(a)
	}
	for _, a := range p.IPs {
		add(a)
	}
	return out
}

// Available tells whether the pod can be registered: it has an address, is ready, and stays (lbcf §5.1).
func (p Pod) Available() bool { return p.IP != "" && !p.Deleting && p.Ready }

// Alive tells whether the pod runs: it has an address, its phase is Running, and it stays (lbcf §5.1).
func (p Pod) Alive() bool { return p.IP != "" && !p.Deleting && p.Running }

func (d Driver) clone() Driver {
	d.Timeouts = slices.Clone(d.Timeouts)
	return d
}

func (l OutsideBalancer) clone() OutsideBalancer {
	l.Spec, l.Attributes, l.Scope = slices.Clone(l.Spec), slices.Clone(l.Attributes), slices.Clone(l.Scope)
	l.Status = l.Status.clone()
	return l
}

func (s BalancerStatus) clone() BalancerStatus {
	s.Info, s.Attributes = slices.Clone(s.Info), slices.Clone(s.Attributes)
	return s
}

func (b Balancing) clone() Balancing {
	b.Parameters = slices.Clone(b.Parameters)
	if b.Pods != nil {
		p := *b.Pods
		p.Selector, p.Except, p.Names, p.Ports = slices.Clone(p.Selector), slices.Clone(p.Except), slices.Clone(p.Names), slices.Clone(p.Ports)
		b.Pods = &p
	}
	return b
}

func (g BackendGroup) clone() BackendGroup {
	g.Balancing = g.Balancing.clone()
	g.LoadBalancers, g.Static = slices.Clone(g.LoadBalancers), slices.Clone(g.Static)
	if g.Service != nil {
		s := *g.Service
		s.NodeSelector = slices.Clone(s.NodeSelector)
		g.Service = &s
	}
	return g
}

func (b Bind) clone() Bind {
	b.Balancing = b.Balancing.clone()
	b.Entries = cloneEach(b.Entries, func(e BindEntry) BindEntry {
		e.Spec, e.Attributes = slices.Clone(e.Spec), slices.Clone(e.Attributes)
		return e
	})
	b.Statuses = cloneEach(b.Statuses, BalancerStatus.clone)
	return b
}

func (r BackendRecord) clone() BackendRecord {
	r.Info, r.Attributes = slices.Clone(r.Info), slices.Clone(r.Attributes)
	r.Parameters, r.Injected = slices.Clone(r.Parameters), slices.Clone(r.Injected)
	return r
}

func (p Pod) clone() Pod {
	p.Labels, p.IPs, p.Ports, p.HostPorts = slices.Clone(p.Labels), slices.Clone(p.IPs), slices.Clone(p.Ports), slices.Clone(p.HostPorts)
	return p
}
