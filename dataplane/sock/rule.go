// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Kind is what asked for a rule. Of two kinds at one place the lower one counts (balancing §7).
type Kind uint8

const (
	LocalRedirect Kind = iota
	Balancing
	Service // by an address of its own: ClusterIP, load balancer, externalIP
	NodePort
	kinds
)

func (k Kind) String() string {
	switch k {
	case LocalRedirect:
		return "localRedirect"
	case Balancing:
		return "balancing"
	case Service, NodePort:
		return "service"
	}
	return "unknown"
}

// Name tells kinds apart that String, for events, does not.
func (k Kind) Name() string {
	if k == NodePort {
		return "nodePort"
	}
	return k.String()
}

// Mode tells more of a place or of its backends, for events; the numbers are those of balancing §16.2.
type Mode uint8

const (
	ServiceClusterIP     Mode = 0x01
	ServiceLoadBalancer  Mode = 0x02
	ServiceExternalIP    Mode = 0x03
	ServiceNodePort      Mode = 0x04
	LocalRedirectService Mode = 0x10
	LocalRedirectAddress Mode = 0x11
	BalancingPod         Mode = 0x20
	BalancingHostPort    Mode = 0x21
	BalancingNodeProxy   Mode = 0x22
	BalancingAddress     Mode = 0x23
)

func (m Mode) String() string {
	switch m {
	case ServiceClusterIP:
		return "ServiceClusterIP"
	case ServiceLoadBalancer:
		return "ServiceLoadbalancer"
	case ServiceExternalIP:
		return "ServiceExternalIP"
	case ServiceNodePort:
		return "ServiceNodeport"
	case LocalRedirectService:
		return "localRedirectService"
	case LocalRedirectAddress:
		return "localRedirectAddress"
	case BalancingPod:
		return "balancingPod"
	case BalancingHostPort:
		return "balancingHostPort"
	case BalancingNodeProxy:
		return "balancingNodeProxy"
	case BalancingAddress:
		return "balancingAddress"
	}
	return ""
}

// Rule is what one policy or one Service asks of this host. It is not changed once a Planner has it.
type Rule struct {
	ID     uint32 // of its own among all rules, and never 0
	Kind   Kind   // Service also for its node ports
	Name   string // namespace/name of a Service, the name of a policy
	Rank   uint64 // of two rules of one kind at a place the lower one counts, then the lower Name: when it was made
	Fronts []Front
	// SparesBackends leaves sockets of its own backends alone, which go on as if the rule were not there (balancing §6).
	SparesBackends bool
}

// Front is where a rule is dialled by one protocol, and what is there.
type Front struct {
	At       []At
	Protocol uint8 // TCP or UDP
	Backends []Backend
	Resting  []Backend     // that no call gets for now, and whose sockets stay (balancing §14)
	Affinity time.Duration // that a client keeps its backend; 0: none. Whole seconds, rounded up
	// Empty is what becomes of a call without Backends: Refuse, Unreachable, Pass, or Next.
	Empty Verdict
}

// At is one place of a Front.
type At struct {
	Address netip.Addr // AnyNode4 or AnyNode6 for a node port
	Port    uint16
	Mode    Mode
}

// Backend is one that may be chosen, of the family of the places.
type Backend struct {
	At     netip.AddrPort
	Weight uint16 // 0 counts as 1. One that stands there twice has both weights
}

// Verdict is what is done with a call.
type Verdict uint8

const (
	Pass        Verdict = iota // leave it as it is
	Use                        // give it one of the backends
	Refuse                     // ECONNREFUSED
	Unreachable                // EHOSTUNREACH: there are backends, but none that this host may use
	Next                       // as if the rule were not there
)

func (v Verdict) String() string {
	return [...]string{"pass", "use", "refuse", "unreachable", "next"}[v]
}

// place is where it is dialled.
func (a At) place(protocol uint8) Place { return Place{a.Address.Unmap(), a.Port, protocol} }

// rests is whether any backend rests.
func (r *Rule) rests() bool {
	return slices.ContainsFunc(r.Fronts, func(f Front) bool { return len(f.Resting) > 0 })
}

// kindAt is the kind that a rule is of at a place.
func (r *Rule) kindAt(p Place) Kind {
	if r.Kind == Service && (p.Address == AnyNode4 || p.Address == AnyNode6) {
		return NodePort
	}
	return r.Kind
}

// before is whether a rule counts and not the other, both of one kind and at one place.
func (r *Rule) before(o *Rule) int {
	return cmp.Or(cmp.Compare(r.Rank, o.Rank), cmp.Compare(r.Name, o.Name), cmp.Compare(r.ID, o.ID))
}
