// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// The protocols of target ports, by their IANA numbers.
const (
	tcp = 6
	udp = 17
)

// Priority is the SO_PRIORITY of sockets that probe, and of an agent's to members, by which the programs at sockets leave them alone. Its low bits choose no queue.
const Priority = 0x464c5000

// Target is what is asked again and again, and what to make of the answers. Policies with the same target share it.
type Target struct {
	Type     string         // of package desired
	At       netip.AddrPort // port 0 for ICMP
	Path     string         // of HTTP and HTTPS
	Statuses string         // of HTTP and HTTPS that count as an answer, with commas between; empty: 200 to 399
	Interval time.Duration
	Timeout  time.Duration
	// Healthy and Unhealthy are how many results in a row change what is thought.
	Healthy, Unhealthy int
}

func (t Target) String() string {
	switch t.Type {
	case desired.ProbeICMP:
		return fmt.Sprintf("%s %s", t.Type, t.At.Addr())
	case desired.ProbeHTTP, desired.ProbeHTTPS:
		return fmt.Sprintf("%s %s%s", t.Type, t.At, t.Path)
	}
	return fmt.Sprintf("%s %s", t.Type, t.At)
}

func (t Target) compare(o Target) int {
	return cmp.Or(t.At.Compare(o.At), strings.Compare(t.Type, o.Type), strings.Compare(t.Path, o.Path), strings.Compare(t.Statuses, o.Statuses),
		cmp.Compare(t.Interval, o.Interval), cmp.Compare(t.Timeout, o.Timeout), cmp.Compare(t.Healthy, o.Healthy), cmp.Compare(t.Unhealthy, o.Unhealthy))
}

// Expects tells whether a status of HTTP counts as an answer.
func (t Target) Expects(status int) bool {
	if t.Statuses == "" {
		return status >= 200 && status < 400
	}
	return slices.Contains(strings.Split(t.Statuses, ","), strconv.Itoa(status))
}

// Place is a listed address and a target port of a policy.
type Place struct {
	Address netip.Addr
	Port    desired.Port
}

func (p Place) compare(o Place) int {
	return cmp.Or(p.Address.Compare(o.Address), cmp.Compare(p.Port.Protocol, o.Port.Protocol), cmp.Compare(p.Port.Number, o.Port.Number))
}

func (p Place) String() string {
	return fmt.Sprintf("%s %d/%s", p.Address, p.Port.Number, protocolName(p.Port.Protocol))
}

// Check is a place, and the targets that decide about it: it is bad once all of them are.
type Check struct {
	Place
	By []Target
}

// Checks says what is probed for a policy, in order of its places; those that nothing tells anything of are left out.
//
// A port of TCP is probed as the policy asks. One of UDP is probed if that is by datagrams; otherwise it follows the same port of TCP,
// or, if the policy has that not, the address' ports of TCP together. A port that the policy names, and ICMP, decide about all ports.
func Checks(r *desired.Policy) (out []Check) {
	if !known(r.Probe.Type) || r.Mode != desired.ToAddresses {
		return nil
	}
	places := placesOf(r)
	for _, p := range places {
		if by := targetsOf(r.Probe, p, places); len(by) > 0 {
			out = append(out, Check{p, by})
		}
	}
	return out
}

// known tells whether this release knows a type of probe.
func known(kind string) bool {
	return slices.Contains([]string{desired.ProbeTCP, desired.ProbeHTTP, desired.ProbeHTTPS, desired.ProbeICMP, desired.ProbeUDP}, kind)
}

// placesOf are those that a policy's connections may get to, in order, each once.
func placesOf(r *desired.Policy) (out []Place) {
	for _, c := range r.Captures {
		for _, b := range r.Backends {
			if a := b.Address.Unmap(); a.Is4() == c.Address.Unmap().Is4() && b.Node == "" {
				out = append(out, Place{a, desired.Port{Protocol: c.Port.Protocol, Number: c.Target}})
			}
		}
	}
	slices.SortFunc(out, Place.compare)
	return slices.Compact(out)
}

// targetsOf are the targets that decide about a place.
func targetsOf(p desired.Probe, at Place, all []Place) []Target {
	one := func(kind string, port uint16) Target { return target(p, kind, netip.AddrPortFrom(at.Address, port)) }
	switch {
	case p.Type == desired.ProbeICMP:
		return []Target{one(p.Type, 0)}
	case p.Port != 0:
		return []Target{one(p.Type, p.Port)}
	case p.Type == desired.ProbeUDP && at.Port.Protocol == udp:
		return []Target{one(desired.ProbeUDP, at.Port.Number)}
	case p.Type == desired.ProbeUDP && at.Port.Protocol == tcp:
		return []Target{one(desired.ProbeTCP, at.Port.Number)}
	case at.Port.Protocol == tcp:
		return []Target{one(p.Type, at.Port.Number)}
	}
	var out []Target
	for _, other := range all {
		switch {
		case other.Address != at.Address || other.Port.Protocol != tcp:
		case other.Port.Number == at.Port.Number:
			return []Target{one(p.Type, at.Port.Number)}
		default:
			out = append(out, one(p.Type, other.Port.Number))
		}
	}
	return out
}

// Times of probes that nobody should be able to ask for.
const (
	leastInterval = 50 * time.Millisecond
	leastTimeout  = 10 * time.Millisecond
)

// target is what a policy asks for at one address and port.
func target(p desired.Probe, kind string, at netip.AddrPort) Target {
	t := Target{
		Type: kind, At: at, Interval: max(p.Interval, leastInterval), Timeout: max(p.Timeout, leastTimeout),
		Healthy: int(max(p.Healthy, 1)), Unhealthy: int(max(p.Unhealthy, 1)),
	}
	if kind == desired.ProbeHTTP || kind == desired.ProbeHTTPS {
		t.Path = cmp.Or(p.Path, "/")
		statuses := slices.Clone(p.Statuses)
		slices.Sort(statuses)
		texts := make([]string, 0, len(statuses))
		for _, s := range slices.Compact(statuses) {
			texts = append(texts, strconv.FormatUint(uint64(s), 10))
		}
		t.Statuses = strings.Join(texts, ",")
	}
	return t
}

// Targets lists what is probed for policies, in order, each once.
func Targets(checks []Check) (out []Target) {
	for _, c := range checks {
		out = append(out, c.By...)
	}
	slices.SortFunc(out, Target.compare)
	return slices.Compact(out)
}

func protocolName(p uint8) string {
	switch p {
	case tcp:
		return "tcp"
	case udp:
		return "udp"
	}
	return strconv.Itoa(int(p))
}
