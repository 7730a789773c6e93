// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
)

const defaultPeerPort = 179

// Peer converts a BGP neighbour of either group.
func Peer(o *api.BGPPeer) (world.Peer, []world.Problem) {
	meta, r := open(world.KindPeer, &o.ObjectMeta, false)
	spec := &o.Spec
	p := world.Peer{
		Meta: meta, Homed: homed(&o.ObjectMeta), ASN: spec.PeerASN, OwnASN: cmp.Or(spec.LocalASN, spec.MyASN), Port: defaultPeerPort,
		Multihop: spec.EBGPMultiHop, Password: world.Secret(spec.Password), OneFamily: spec.DisableMP && !spec.DualStackAddressFamily,
	}
	r.unsupported(spec)
	if spec.PeerAddress == "" {
		if spec.Interface == "" {
			r.fail("spec.peerAddress", "give the switch's address", "empty")
		}
	} else {
		p.Address = r.dialledPeer("spec.peerAddress", spec.PeerAddress)
	}
	if spec.PeerPort != nil {
		p.Port = r.port("spec.peerPort", *spec.PeerPort, false)
	}
	if p.ASN == 0 {
		r.fail("spec.peerASN", "give the switch's AS number", "empty")
	}
	if p.OwnASN == 0 {
		r.fail("spec.myASN", "give the cluster's AS number", "empty")
	}
	r.timers(&p, spec)
	r.passwordSecret(&p, o)
	r.session(&p, o)
	r.ownEnd(p.Mode, spec)
	if spec.Interface != "" {
		r.unnumbered(&p, spec)
	}
	return p, r.problems
}

// unnumbered reads a peer that is behind an interface of each node that peers. What such a session cannot do is refused.
func (r *report) unnumbered(p *world.Peer, spec *api.BGPPeerSpec) {
	p.Interface = spec.Interface
	if len(spec.Interface) > 15 || strings.ContainsAny(spec.Interface, "/%: \t\n") {
		r.fail("spec.interface", "write the name of an interface of the nodes, such as eth1", "%q is no interface's name", spec.Interface)
	}
	if p.Mode != world.PeerNode {
		r.fail("spec.interface", "ask for mode node, or give the switch an address, and name it in spec.peerAddress",
			"whoever is on the link is a neighbour of one node, and members peer, whose paths name other nodes")
	}
	if spec.PeerAddress != "" {
		r.fail("spec.interface", "remove it, or spec.peerAddress", "the neighbour is known by its address or by an interface, not by both")
	}
	if spec.SourceAddress != "" {
		r.fail("spec.sourceAddress", "remove it", "a session by interface comes from the link-local address that the interface has")
	}
	if spec.Password != "" || spec.PasswordSecret.Name != "" {
		r.fail("spec.interface", "remove the password, or give the switch an address, and name it in spec.peerAddress",
			"sessions between link-local addresses cannot be signed: GoBGP finds no key for an address of one link")
	}
	if p.Multihop {
		r.fail("spec.ebgpMultiHop", "remove it", "whoever is behind spec.interface is on the link, and no hop away")
	}
	if p.OneFamily {
		r.fail("spec.disableMP", "remove it", "a session by interface has both families: IPv4 by IPv6 (RFC 8950)")
	}
}

// maxPasswordBytes is the longest password that Linux signs sessions with.
const maxPasswordBytes = 80

// passwordSecret names the Secret with the password, as members find it. MetalLB looks in its own namespace, which is the
// peer's.
func (r *report) passwordSecret(p *world.Peer, o *api.BGPPeer) {
	ref := o.Spec.PasswordSecret
	if n := len(o.Spec.Password); n > maxPasswordBytes {
		r.fail("spec.password", "choose a shorter one", "it has %d bytes; TCP MD5 takes up to %d", n, maxPasswordBytes)
	}
	if ref.Name == "" {
		return
	}
	if o.Spec.Password != "" {
		r.fail("spec.passwordSecret", "remove one of the two", "spec.password is given as well")
		return
	}
	namespace := cmpDefault(ref.Namespace, o.Namespace)
	if namespace == "" {
		r.fail("spec.passwordSecret.namespace", "name the Secret's namespace", "empty, and the peer has none")
		return
	}
	if len(validation.IsDNS1123Subdomain(ref.Name)) > 0 || len(validation.IsDNS1123Label(namespace)) > 0 {
		r.fail("spec.passwordSecret", "write the name and the namespace of a Secret", "%q in %q is no name of a Secret", ref.Name, namespace)
		return
	}
	p.PasswordFrom = world.PasswordSecret(namespace, ref.Name)
}

// unsupported names what the manifest asks for and the session will not have. What would make a session that the
// user did not ask for is refused; what only leaves a comfort out is said.
func (r *report) unsupported(spec *api.BGPPeerSpec) {
	if spec.DynamicASN != "" {
		r.fail("spec.dynamicASN", "use spec.peerASN", "a peer is known by its AS number: with any accepted, a wrong one would not be noticed")
	}
	if spec.VRF != "" {
		r.fail("spec.vrf", "peer from the default VRF", "VRFs are not supported")
	}
	if spec.BFDProfile != "" {
		r.degrade("spec.bfdProfile", "remove it", "BFD is not supported; the session goes on without")
	}
}

// ownEnd tells of what is each speaker's own, and not the group's to say.
func (r *report) ownEnd(mode world.PeerMode, spec *api.BGPPeerSpec) {
	who, file := "member", "controller.yaml"
	if mode == world.PeerNode {
		who, file = "node", "agent.yaml"
	}
	if spec.SourceAddress != "" && spec.Interface == "" {
		r.degrade("spec.sourceAddress", fmt.Sprintf("remove it, and set bgp.localAddress in each %s's %s", who, file), "each %s dials from an address of its own", who)
	}
	if spec.RouterID != "" {
		r.degrade("spec.routerID", fmt.Sprintf("remove it, and set bgp.routerID in each %s's %s", who, file), "each %s has a router id of its own", who)
	}
}

// dialledPeer reads the address of a neighbour. Loopback is fine: a switch may run on the same host. So is a link-local
// IPv4 address, which is one of a network like others; that of IPv6 says nothing without an interface.
func (r *report) dialledPeer(field, text string) netip.Addr {
	a, ok := r.address(field, text)
	if !ok || a.IsLoopback() || a.Is4() && a.IsLinkLocalUnicast() {
		return a
	}
	if what := unroutable(a); what != "" {
		r.fail(field, "use the address of an interface", "%s is %s", a, what)
		return netip.Addr{}
	}
	return a
}

// maxHoldTime is the longest that fits into an OPEN message (RFC 4271).
const maxHoldTime = 65535 * time.Second

// timers reads the times of RFC 4271: whole seconds; a hold time of at least three. Speakers have no peer whose times do not fit together.
func (r *report) timers(p *world.Peer, spec *api.BGPPeerSpec) {
	p.HoldTime = r.seconds("spec.holdTime", spec.HoldTime)
	p.KeepaliveTime = r.seconds("spec.keepaliveTime", spec.KeepaliveTime)
	p.ConnectTime = r.seconds("spec.connectTime", spec.ConnectTime)
	switch {
	case spec.HoldTime == nil:
		p.HoldTime = min(3*p.KeepaliveTime, maxHoldTime) // as with MetalLB
	case spec.HoldTime.Duration != p.HoldTime: // it was refused
	case p.KeepaliveTime > p.HoldTime:
		r.fail("spec.keepaliveTime", "use a third of the hold time", "%s is longer than the hold time %s", p.KeepaliveTime, p.HoldTime)
	case p.HoldTime != 0 && p.HoldTime < 3*time.Second:
		r.fail("spec.holdTime", "use at least 3s", "%s is too short (RFC 4271)", p.HoldTime)
	case p.HoldTime == 0:
		r.degrade("spec.holdTime", "use at least 3s, or leave it out", "it is 30s: without one a switch that is gone would not be noticed")
	}
	if most := (p.HoldTime / 3).Truncate(time.Second); spec.HoldTime != nil && most > 0 && p.KeepaliveTime > most && p.KeepaliveTime <= p.HoldTime {
		r.degrade("spec.keepaliveTime", "use a third of the hold time, or leave it out",
			"it is %s: with %s the switch could give the session up for a single message that comes late (RFC 4271 §4.4)", most, p.KeepaliveTime)
		p.KeepaliveTime = most
	}
}

func (r *report) seconds(field string, d *metav1.Duration) time.Duration {
	return r.secondsUpTo(field, d, maxHoldTime)
}

func (r *report) secondsUpTo(field string, d *metav1.Duration, most time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if d.Duration < 0 || d.Duration > most || d.Duration%time.Second != 0 {
		r.fail(field, fmt.Sprintf("use whole seconds up to %ds", most/time.Second), "%s does not fit", d.Duration)
		return 0
	}
	return d.Duration
}

// maxCommunities is how many communities speakers put on a path.
const maxCommunities = 128

// Advertisement converts an advertisement of either group.
func Advertisement(o *api.BGPAdvertisement) (world.Advertisement, []world.Problem) {
	meta, r := open(world.KindAdvertisement, &o.ObjectMeta, false)
	spec := &o.Spec
	a := world.Advertisement{
		Meta: meta, Homed: homed(&o.ObjectMeta), LocalPref: r.localPref(spec.LocalPref), Pools: spec.IPAddressPools, Peers: spec.Peers, Communities: spec.Communities,
		AggregationLength:   r.length("spec.aggregationLength", spec.AggregationLength, 32),
		AggregationLengthV6: r.length("spec.aggregationLengthV6", spec.AggregationLengthV6, 128),
	}
	a.NodeSelectors = r.selectors("spec.nodeSelectors", spec.NodeSelectors)
	a.PoolSelectors = r.selectors("spec.ipAddressPoolSelectors", spec.IPAddressPoolSelectors)
	a.ServiceSelectors = r.selectors("spec.serviceSelectors", spec.ServiceSelectors)
	a.MED = r.med(spec.MED, o.Annotations)
	a.Weighted = r.weighted(spec.Weights, o.Annotations)
	r.aggregation(&a)
	if n := len(spec.Communities); n > maxCommunities {
		r.fail("spec.communities", "keep the ones that switches act upon", "%d of them: at most %d fit", n, maxCommunities)
	}
	for i, c := range spec.Communities {
		// Without a colon it may be a name that a Community object explains.
		if c == "" || strings.Contains(c, ":") {
			r.community(fmt.Sprintf("spec.communities[%d]", i), c)
		}
	}
	if i := slices.IndexFunc(r.problems, func(p world.Problem) bool { return p.Severity == world.Failed }); i >= 0 {
		p := r.problems[i]
		a.Fault = fmt.Sprintf("%s: %s; %s", p.Field, p.Why, p.Remedy)
	}
	return a, r.problems
}

// community judges a community that is written out.
func (r *report) community(field, text string) {
	if world.IsLargeCommunity(text) {
		if _, err := world.ParseLargeCommunity(text); err != nil {
			r.fail(field, "write large:AS:value:value with parts up to 4294967295 (the AS below that)", "%q is no large community", text)
		}
		return
	}
	if _, err := world.ParseCommunity(text); err != nil {
		r.fail(field, "write AS:value with both up to 65535, large:AS:value:value, or a name", "%q is no community", text)
	}
}

// AnnotationMED is spec.med, for MetalLB's advertisements.
const AnnotationMED = ourPrefix + "med"

// lowestLocalPref is above the preference that demoted members have.
const lowestLocalPref = 2

// localPref reads a local preference. One too low is raised: its paths still come after all others, and a refusal would withdraw them.
func (r *report) localPref(n uint32) uint32 {
	if n == 0 || n >= lowestLocalPref {
		return n
	}
	r.degrade("spec.localPref", fmt.Sprintf("use %d, or more", lowestLocalPref),
		"addresses are announced with %d in the place of %d, which is for members that step back", lowestLocalPref, n)
	return lowestLocalPref
}

// maxMED is below what is added to demote a member.
const maxMED = 999_999_999

func (r *report) med(n *int64, notes map[string]string) uint32 {
	field, value := "spec.med", int64(0)
	switch text := strings.TrimSpace(notes[AnnotationMED]); {
	case n != nil:
		value = *n
	case text != "":
		field = annotationField(AnnotationMED)
		parsed, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			parsed = -1
		}
		value = parsed
	}
	if value < 0 || value > maxMED {
		r.fail(field, fmt.Sprintf("use a number from 0 to %d", maxMED), "out of range")
		return 0
	}
	return uint32(value)
}

// AnnotationWeights is spec.weights, for MetalLB's advertisements.
const AnnotationWeights = ourPrefix + "weights"

func (r *report) weighted(by string, notes map[string]string) bool {
	field := "spec.weights"
	if by == "" {
		field, by = annotationField(AnnotationWeights), strings.TrimSpace(notes[AnnotationWeights])
	}
	if by != "" && by != "readyEndpoints" {
		r.fail(field, "write readyEndpoints, or leave it out", "%q is unknown", by)
	}
	return by == "readyEndpoints"
}

// aggregateBits is how many bits of an address a prefix leaves open at most that is announced in the place of its addresses: all of
// them have to be announced, and all are looked at whenever one changes.
const aggregateBits = 12

// aggregation leaves out prefixes that never stand for all their addresses.
func (r *report) aggregation(a *world.Advertisement) {
	a.AggregationLength = r.aggregable("spec.aggregationLength", a.AggregationLength, 32)
	a.AggregationLengthV6 = r.aggregable("spec.aggregationLengthV6", a.AggregationLengthV6, 128)
}

func (r *report) aggregable(field string, length, most uint8) uint8 {
	if least := most - aggregateBits; length < least {
		r.degrade(field, fmt.Sprintf("use %d to %d, or aggregate at the switches towards their neighbours, which keep the single addresses", least, most),
			"refused, addresses are announced one by one: a /%d is announced only where all its addresses are, and is too large for that", length)
		return most
	}
	return length
}

func (r *report) length(field string, n *int32, most uint8) uint8 {
	if n == nil {
		return most
	}
	if *n < 1 || *n > int32(most) {
		r.fail(field, fmt.Sprintf("use 1 to %d", most), "%d is no length of a prefix", *n)
		return most
	}
	return uint8(*n)
}

// Community converts the names of communities.
func Community(o *api.Community) (world.Community, []world.Problem) {
	meta, r := open(world.KindCommunity, &o.ObjectMeta, false)
	c := world.Community{Meta: meta, Homed: homed(&o.ObjectMeta)}
	seen := map[string]bool{}
	for i, alias := range o.Spec.Communities {
		field := fmt.Sprintf("spec.communities[%d]", i)
		if alias.Name == "" {
			r.fail(field+".name", "name it", "empty")
		}
		if seen[alias.Name] {
			r.fail(field+".name", "name each community once", "%q is there twice", alias.Name)
		}
		seen[alias.Name] = true
		r.community(field+".value", alias.Value)
		c.Aliases = append(c.Aliases, world.KV{Key: alias.Name, Value: alias.Value})
	}
	return c, r.problems
}
