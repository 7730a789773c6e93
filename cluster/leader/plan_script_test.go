// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// The scripts of testdata/plan tell what the leader proposes, step by step. Every step ends when nothing is left to
// propose. Commands:
//
//	see         objects come, or come to look different: one a line, see scene.object
//	delete      objects go, and that is certain
//	lose        objects are absent, and nobody knows why
//	forbid, allow  objects may not, or may, be removed: one "kind name" a line
//	blind       the next steps have no view to plan from; look and see end that
//	ack, down, agent-down, up NODE...    what nodes and the group say
//	format N    the record is of an older format from the beginning; the first command of its script
//	fail NODE=ADDRESS...  nodes carried out everything but an address
//	announced MEMBER...   members report that they show everything up to now, and that no switch holds anything else
//	written MEMBER...     they report that they show it; switches may hold more
//	excuse MEMBER...      members are lost for so long that no switch holds their paths
//	speaks NODE...        nodes say that they announce themselves
//	withdrew NODE...      they report that no switch holds more of them than shall be
//	excuse-node NODE...   nodes are lost for so long that no switch holds their own paths
//	leased, lapsed  nodes may use leases that the record lost, and may no more
//	renew       the group begins a new epoch
//	node-ports, no-node-ports, cluster-ips, no-cluster-ips  what nodes are told of beside addresses
//	move SERVICE NODE, unmove SERVICE  an operator moves a Service to a node, and takes it back
//	drain, undrain NAME...  an operator drains a node, or "service/NAME", and takes it back
//	externals any, deny, warn  a policy lets everybody name any address in spec.externalIPs (the default), or none does, and what the operator makes of that
//	reserve PREFIX...  what the operator says pods and Services have addresses of
//	aside cordoned taint=KEY...  what the operator has new flows go past
//	show        what the record holds, and what waits
//	foresee     what would come of objects on top of those, or in-place-of=SOURCE; nothing is proposed
//	would why=NAME  the same as soon as objects come, before anything is proposed
//	why NAME...  what is made of a Service, and why; with record=only as a member tells it that sees no source
func TestPlanScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		s := newScene(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.group.t = t
			return s.step(t, d)
		})
	})
}

// scene is a world that a script changes, and the record that follows it.
type scene struct {
	group        *group
	world        world.World
	kept         map[string]bool // objects that are absent without evidence, as "Kind name"
	unlisted     []world.Kind    // never listed yet
	blind        bool
	leased       bool
	excused      []fsm.ServerID
	excusedNodes []fsm.NodeID
	options      Options
	serviceCIDRs []netip.Prefix
	// strict says that no policy lets everybody name any address in spec.externalIPs.
	strict bool
}

func newScene(t failer) *scene {
	return &scene{group: newGroup(t), kept: map[string]bool{}}
}

func (s *scene) step(t failer, d *datadriven.TestData) string {
	v := s.group.state.Read()
	switch d.Cmd {
	case "see":
		s.blind = false
		for line := range strings.Lines(d.Input) {
			s.line(line)
		}
	case "delete", "lose":
		for line := range strings.Lines(d.Input) {
			f := strings.Fields(line)
			s.remove(f[0], f[1])
			s.kept[f[0]+" "+f[1]] = d.Cmd == "lose"
		}
	case "allow", "forbid":
		for line := range strings.Lines(d.Input) {
			s.kept[strings.TrimSpace(line)] = d.Cmd == "forbid"
		}
	case "unlisted", "listed":
		s.unlisted = nil
		for _, a := range d.CmdArgs {
			s.unlisted = append(s.unlisted, world.Kind(a.Key))
		}
	case "blind", "look":
		s.blind = d.Cmd == "blind"
	case "show":
		return s.show()
	case "foresee":
		return s.foresee(t, d)
	case "why":
		return s.why(d)
	case "would":
		for line := range strings.Lines(d.Input) {
			s.line(line)
		}
		return s.why(d)
	case "renew":
		_, epoch, _ := s.group.state.Identity()
		s.group.must(&fsm.NewEpoch{Group: "test", Epoch: epoch + 1, Cause: "restored"})
	case "aside":
		s.options.AsideCordoned, s.options.AsideTaints = d.HasArg("cordoned"), nil
		for _, a := range d.CmdArgs {
			if a.Key == "taint" {
				s.options.AsideTaints = append(s.options.AsideTaints, a.Vals...)
			}
		}
	case "externals":
		s.strict, s.options.ExternalIPs = !d.HasArg("any"), DenyExternalIPs
		if d.HasArg("warn") {
			s.options.ExternalIPs = WarnExternalIPs
		}
	case "reserve":
		for _, a := range d.CmdArgs {
			s.options.ClusterCIDRs = append(s.options.ClusterCIDRs, netip.MustParsePrefix(a.Key))
		}
	case "service-cidrs":
		for _, a := range d.CmdArgs {
			s.serviceCIDRs = append(s.serviceCIDRs, netip.MustParsePrefix(a.Key))
		}
	case "node-ports", "no-node-ports":
		s.options.NodePorts = d.Cmd == "node-ports"
	case "cluster-ips", "no-cluster-ips":
		s.options.ClusterIPs = d.Cmd == "cluster-ips"
	case "leased", "lapsed":
		s.leased = d.Cmd == "leased"
	case "drain", "undrain":
		for _, a := range d.CmdArgs {
			s.drain(a.Key, d.Cmd == "undrain")
		}
	case "move":
		s.move(d.CmdArgs[0].Key, fsm.NodeID(d.CmdArgs[1].Key))
	case "unmove":
		s.group.must(&fsm.EndMove{Service: fsm.ServiceID("default/" + d.CmdArgs[0].Key)})
	case "judge": // judge web bad=10.0.0.1,10.0.0.2 good=...
		s.judge(d)
	case "format":
		s.group = newGroupOf(t, uint32(number(t, d.CmdArgs[0].Key)))
	case "fail":
		for _, a := range d.CmdArgs {
			s.group.must(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{
				Node: fsm.NodeID(a.Key), Boot: "boot", Upto: s.group.state.Read().Revision(), Failed: []netip.Prefix{fsm.HostPrefix(netip.MustParseAddr(a.Vals[0]))},
			}}})
		}
	case "excuse-node":
		for _, a := range d.CmdArgs {
			s.excusedNodes = append(s.excusedNodes, fsm.NodeID(a.Key))
		}
	case "excuse":
		for _, a := range d.CmdArgs {
			s.excused = append(s.excused, fsm.ServerID(a.Key))
		}
	default:
		for _, a := range d.CmdArgs {
			s.report(t, d.Cmd, a.Key, v)
		}
	}
	lines := s.group.settle(s.input())
	if len(lines) == 0 {
		return "nothing to do"
	}
	return strings.Join(lines, "\n")
}

// judge has most nodes that probe say so of endpoints.
func (s *scene) judge(d *datadriven.TestData) {
	c := &fsm.JudgeService{ID: fsm.ServiceID("default/" + d.CmdArgs[0].Key)}
	if have, ok := fsm.Get[*fsm.Service](s.group.state.Read(), fsm.TableServices, string(c.ID)); ok {
		c.UID = have.UID
	}
	for _, a := range d.CmdArgs[1:] {
		for _, text := range a.Vals {
			c.Verdicts = append(c.Verdicts, fsm.ProbeVerdict{Address: netip.MustParseAddr(text), Healthy: a.Key == "good", Say: 2, Of: 3})
		}
	}
	s.group.must(c)
}

func (s *scene) report(t failer, what, who string, v *fsm.View) {
	node, _ := fsm.Get[*fsm.Node](v, fsm.TableNodes, who)
	switch what {
	case "ack":
		if node.Boot == "" {
			s.group.must(&fsm.RegisterBoot{Node: node.ID, Boot: "boot"})
		}
		s.group.must(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: node.ID, Boot: "boot", Upto: s.group.state.Read().Revision()}}})
	case "down", "agent-down", "up":
		l := map[string]fsm.Liveness{"down": fsm.NodeDown, "agent-down": fsm.AgentDown, "up": fsm.NodeUp}[what]
		s.group.must(&fsm.SetLiveness{Node: node.ID, Boot: node.Boot, Liveness: l})
	case "speaks", "withdrew":
		mark := fsm.SpeakerMark{Node: node.ID, Boot: node.Boot, Speaks: true}
		if what == "withdrew" {
			mark.Withdrawn = s.group.state.Read().Revision()
		}
		s.group.must(&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{mark}})
	case "announced", "written":
		if _, known := fsm.Get[*fsm.Member](v, fsm.TableMembers, who); !known {
			s.group.must(&fsm.ReportMember{Server: fsm.ServerID(who), Name: who, Format: fsm.NewestFormat, Run: "run"})
		}
		mark := fsm.AnnouncedMark{Server: fsm.ServerID(who), Run: "run", Upto: s.group.state.Read().Revision()}
		if what == "announced" {
			mark.Withdrawn = mark.Upto
		}
		s.group.must(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{mark}})
	default:
		t.Fatalf("no command %q", what)
	}
}

// drain begins or ends the drain of a node, or of "service/NAME".
func (s *scene) drain(what string, undo bool) {
	of, name := fsm.DrainNode, what
	if service, is := strings.CutPrefix(what, "service/"); is {
		of, name = fsm.DrainService, "default/"+service
	}
	if undo {
		s.group.must(&fsm.EndDrain{Of: of, Name: name})
		return
	}
	s.group.must(&fsm.BeginDrain{Of: of, Name: name})
}

// move has an operator move a Service to a node.
func (s *scene) move(service string, to fsm.NodeID) {
	s.group.must(&fsm.BeginMove{Service: fsm.ServiceID("default/" + service), Node: to})
}

func (s *scene) input() Input {
	in := Input{Leased: s.leased, Excused: s.excused, ExcusedNodes: s.excusedNodes, Options: s.options, ServiceCIDRs: s.serviceCIDRs}
	if s.blind {
		return in
	}
	w := s.world.Clone()
	w.Source = "script"
	if !s.strict {
		w.AddressPolicies = append(w.AddressPolicies, anything())
	}
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: !slices.Contains(s.unlisted, k), Complete: true})
	}
	w.Sort()
	in.Views = []Admitted{{World: &w, Complete: true, MayRemove: func(kind world.Kind, id world.ID) bool {
		name := strings.TrimPrefix(id.String(), "default/")
		return !s.kept[kindWords[kind]+" "+name]
	}}}
	return in
}

// anything is a policy that lets everybody name any address in spec.externalIPs.
func anything() *world.AddressPolicy {
	return &world.AddressPolicy{
		Meta: world.Meta{ID: world.ID{Name: "anything"}, Version: 1}, LimitsExternalIPs: true, ExternalIPs: []world.Range{
			{From: netip.IPv4Unspecified(), To: netip.AddrFrom4([4]byte{255, 255, 255, 255})},
			{From: netip.IPv6Unspecified(), To: netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")},
		},
	}
}

var kindWords = map[world.Kind]string{
	world.KindService: "service", world.KindEndpointSlice: "endpoints", world.KindNode: "node", world.KindPool: "pool",
	world.KindPolicy: "policy", world.KindNamespace: "namespace", world.KindPeer: "peer", world.KindAdvertisement: "advertisement", world.KindConfigMap: "configmap",
	world.KindL2Advert: "l2",
}

// remove takes an object out of the world.
func (s *scene) remove(kind, name string) {
	drop := func(m world.Meta) bool { return m.Name == name }
	w := &s.world
	switch kind {
	case "service":
		w.Services = slices.DeleteFunc(w.Services, func(o *world.Service) bool { return drop(o.Meta) })
	case "endpoints":
		w.EndpointSlices = slices.DeleteFunc(w.EndpointSlices, func(o *world.EndpointSlice) bool { return o.ServiceName == name })
	case "node":
		w.Nodes = slices.DeleteFunc(w.Nodes, func(o *world.Node) bool { return drop(o.Meta) })
	case "pool":
		w.Pools = slices.DeleteFunc(w.Pools, func(o *world.Pool) bool { return drop(o.Meta) })
	case "policy":
		w.AddressPolicies = slices.DeleteFunc(w.AddressPolicies, func(o *world.AddressPolicy) bool { return drop(o.Meta) })
	case "namespace":
		w.Namespaces = slices.DeleteFunc(w.Namespaces, func(o *world.Namespace) bool { return drop(o.Meta) })
	case "peer":
		w.Peers = slices.DeleteFunc(w.Peers, func(o *world.Peer) bool { return drop(o.Meta) })
	case "mistaken":
		w.Problems = slices.DeleteFunc(w.Problems, func(p world.Problem) bool { return p.Object.Name == name })
	case "advertisement":
		w.Advertisements = slices.DeleteFunc(w.Advertisements, func(o *world.Advertisement) bool { return drop(o.Meta) })
	case "l2":
		w.L2Advertisements = slices.DeleteFunc(w.L2Advertisements, func(o *world.L2Advertisement) bool { return drop(o.Meta) })
	case "community":
		w.Communities = slices.DeleteFunc(w.Communities, func(o *world.Community) bool { return drop(o.Meta) })
	case "configmap":
		w.ConfigMaps = slices.DeleteFunc(w.ConfigMaps, func(o *world.ConfigMap) bool { return drop(o.Meta) })
	}
}

// line is object, of a whole line.
func (s *scene) line(text string) { s.object(s.group.t, strings.Fields(text)) }

// object reads one line: kind, name, then key=value and words.
//
//	service web in=NAMESPACE labels=K:V ip=A,A request=A shown=A pool=P share=K port=80,53/udp,443:30443 created=N class=C type=T families=4,6 cluster=A,A policy=P health=PORT local inside-local all not-ready foreign deleting headless uid=U
//	endpoints web [at=PORT] n1/10.0.0.1 n2/10.0.0.2~serving n3/10.0.0.3~no -/10.0.0.4@ZONE,ZONE
//	mistaken NAME [in=NAMESPACE] [l2]
//	node n1 A... [external=A] [pods=PREFIX,...] [taint=KEY,...] [zone=Z] notready unreachable excluded cordoned deleting
//	pool p FROM-TO... manual priority=N for=NAMESPACE of=K:V(namespaces) only=K:V(Services) avoid drain keeps metallb(of its group)
//	namespace n K:V... | policy p for=NAMESPACE of=K:V max=N external=FROM-TO,FROM-TO(or none)
//	peer p A asn=N port=N mode=M nodes=N,N interface=I | advertisement a communities=C pools=P peers=P,P nodes=N,N only=LABEL:VALUE aggregate=N | community c NAME:C... | configmap c KEY=VALUE
//	l2 a pools=P,P nodes=N,N on=INTERFACE,INTERFACE
//	home=NAMESPACE, uid=U  of any of pool, peer, advertisement and l2: which object it is
func (s *scene) object(t failer, f []string) {
	kind, name := f[0], f[1]
	s.remove(kind, name)
	meta := world.Meta{ID: world.ID{Namespace: "default", Name: name}, UID: name + "-uid"}
	keys, words := map[string]string{}, []string{}
	for _, arg := range f[2:] {
		if k, v, ok := strings.Cut(arg, "="); ok {
			keys[k] = v
		} else {
			words = append(words, arg)
		}
	}
	if uid := keys["uid"]; uid != "" {
		meta.UID = uid
	}
	home := world.Homed{Home: keys["home"]}
	w := &s.world
	switch kind {
	case "policy":
		w.AddressPolicies = append(w.AddressPolicies, scriptPolicy(t, meta, keys))
	case "namespace":
		meta.Namespace = ""
		w.Namespaces = append(w.Namespaces, &world.Namespace{Meta: meta, Labels: labels(words)})
	case "service":
		if keys["in"] != "" {
			meta.Namespace = keys["in"]
		}
		w.Services = append(w.Services, scriptService(t, meta, keys, words))
	case "endpoints":
		w.EndpointSlices = append(w.EndpointSlices, scriptSlices(t, meta, keys, words)...)
	case "node":
		n := scriptNode(t, meta, keys, words)
		n.Labels = append(n.Labels, world.KV{Key: "name", Value: meta.Name})
		w.Nodes = append(w.Nodes, &n)
	case "pool":
		w.Pools = append(w.Pools, scriptPool(t, meta, keys, words))
	case "peer":
		meta.Namespace = ""
		p := world.Peer{Meta: meta, Homed: home, Interface: keys["interface"], Port: 179, ASN: uint32(number(t, keys["asn"])), OwnASN: 65000, Mode: world.PeerMode(keys["mode"])}
		if len(words) > 0 {
			p.Address = netip.MustParseAddr(words[0])
		}
		if keys["port"] != "" {
			p.Port = uint16(number(t, keys["port"]))
		}
		if names := split(keys["nodes"]); len(names) > 0 {
			p.NodeSelectors = []world.Selector{{Requirements: []world.Requirement{{Key: "name", Operator: world.In, Values: names}}}}
		}
		w.Peers = append(w.Peers, &p)
	case "advertisement":
		meta.Namespace = ""
		a := world.Advertisement{Meta: meta, Homed: home, Communities: split(keys["communities"]), Pools: split(keys["pools"])}
		a.Peers = split(keys["peers"])
		if keys["aggregate"] != "" {
			a.AggregationLength = uint8(number(t, keys["aggregate"]))
		}
		if names := split(keys["nodes"]); len(names) > 0 {
			a.NodeSelectors = []world.Selector{{Requirements: []world.Requirement{{Key: "name", Operator: world.In, Values: names}}}}
		}
		a.ServiceSelectors = selectorsOf(split(keys["only"]))
		w.Advertisements = append(w.Advertisements, &a)
	case "mistaken": // a BGPAdvertisement that cannot be used
		ref := world.Ref{Kind: world.KindAdvertisement, ID: world.ID{Name: meta.Name, Namespace: keys["in"]}}
		if slices.Contains(words, "l2") {
			ref.Kind = world.KindL2Advert
		}
		w.Problems = append(w.Problems, world.Problem{Severity: world.Failed, Object: ref, Why: "a mistake"})
	case "l2":
		meta.Namespace = ""
		a := world.L2Advertisement{Meta: meta, Homed: home, Pools: split(keys["pools"]), Interfaces: split(keys["on"])}
		if names := split(keys["nodes"]); len(names) > 0 {
			a.NodeSelectors = []world.Selector{{Requirements: []world.Requirement{{Key: "name", Operator: world.In, Values: names}}}}
		}
		w.L2Advertisements = append(w.L2Advertisements, &a)
	case "community":
		meta.Namespace = ""
		w.Communities = append(w.Communities, &world.Community{Meta: meta, Homed: home, Aliases: labels(words)})
	case "configmap":
		meta.Namespace = "kube-system"
		c := world.ConfigMap{Meta: meta}
		for k, v := range keys {
			c.Data = append(c.Data, world.KV{Key: k, Value: v})
		}
		w.ConfigMaps = append(w.ConfigMaps, &c)
	default:
		t.Fatalf("no kind %q", kind)
	}
}

// byName is the value of a name, zero if none has it.
func byName[T fmt.Stringer](name string, values ...T) (out T) {
	for _, v := range values {
		if v.String() == name {
			out = v
		}
	}
	return out
}

func scriptService(t failer, meta world.Meta, keys map[string]string, words []string) *world.Service {
	has := func(w string) bool { return slices.Contains(words, w) }
	o := &world.Service{
		Meta: meta, Type: world.LoadBalancer, ExternalIPs: addresses(keys["ip"]), Shown: addresses(keys["shown"]),
		Extra:                 &world.Extra{Requested: addresses(keys["request"]), Proxied: addresses(keys["proxied"]), Pool: keys["pool"], SharingKey: keys["share"], Selector: keys["selector"], Class: keys["class"]},
		FamilyPolicy:          byName(keys["policy"], world.SingleStack, world.PreferDualStack, world.RequireDualStack),
		ExternalTrafficPolicy: world.PolicyCluster, NextHops: world.NextHopsEndpoints, PublishNotReady: has("not-ready"), Foreign: has("foreign"),
		Headless: has("headless"), ClusterIPs: addresses(keys["cluster"]), InternalTrafficPolicy: world.PolicyCluster,
	}
	o.Shown = append(o.Shown, o.Extra.Proxied...)
	o.Labels = labels(split(keys["labels"]))
	o.Created, o.Deleting = uint32(number(t, keys["created"])), has("deleting")
	if keys["health"] != "" {
		o.HealthCheckNodePort = uint16(number(t, keys["health"]))
	}
	o.Extra.Choosing = &world.Choosing{}
	for _, text := range split(keys["weights"]) { // by:pattern:weight
		words := strings.SplitN(text, ":", 3)
		o.Extra.Choosing.Weights = append(o.Extra.Choosing.Weights, world.WeightRule{By: world.WeightBy(words[0]), Pattern: words[1], Weight: uint16(number(t, words[2]))})
	}
	if keys["probe"] != "" {
		o.Extra.Choosing.Probes = world.HealthCheck{Type: world.ProbeType(keys["probe"]), Interval: time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 3}
	}
	if has("local") {
		o.ExternalTrafficPolicy = world.PolicyLocal
	}
	if has("inside-local") {
		o.InternalTrafficPolicy = world.PolicyLocal
	}
	if has("all") {
		o.NextHops = world.NextHopsAll
	}
	if keys["type"] != "" {
		o.Type = byName(keys["type"], world.ClusterIP, world.NodePort, world.LoadBalancer, world.ExternalName)
	}
	for _, f := range split(keys["families"]) {
		o.Families = world.FamiliesOf(append(slices.Clone(o.Families.List()), world.Family("IPv"+f))...)
	}
	ports := split(keys["port"])
	if len(ports) == 0 {
		ports = []string{"80"}
	}
	for _, text := range ports {
		text, nodePort, _ := strings.Cut(text, ":")
		text, protocol, _ := strings.Cut(text, "/")
		p := world.ServicePort{Name: "p" + text, Protocol: world.TCP, Port: uint16(number(t, text))}
		if protocol == "udp" {
			p.Protocol = world.UDP
		}
		if nodePort != "" {
			p.NodePort = uint16(number(t, nodePort))
		}
		o.Ports = append(o.Ports, p)
	}
	return o
}

// labels reads key:value pairs.
func labels(pairs []string) (out []world.KV) {
	for _, pair := range pairs {
		k, v, _ := strings.Cut(pair, ":")
		out = append(out, world.KV{Key: k, Value: v})
	}
	return out
}

// selectorsOf reads a selector for each key:value pair.
func selectorsOf(pairs []string) (out []world.Selector) {
	for _, l := range labels(pairs) {
		out = append(out, world.Selector{Labels: []world.KV{l}})
	}
	return out
}

func scriptPolicy(t failer, meta world.Meta, keys map[string]string) *world.AddressPolicy {
	meta.Namespace = ""
	p := &world.AddressPolicy{Meta: meta, Namespaces: split(keys["for"]), NamespaceSelectors: selectorsOf(split(keys["of"]))}
	if keys["max"] != "" {
		p.HasQuota, p.MaxAddresses = true, int(number(t, keys["max"]))
	}
	if list := keys["external"]; list != "" {
		p.LimitsExternalIPs = true
		for _, text := range split(strings.TrimPrefix(list, "none")) {
			from, to, _ := strings.Cut(text, "-")
			p.ExternalIPs = append(p.ExternalIPs, world.Range{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)})
		}
	}
	return p
}

func scriptSlices(t failer, meta world.Meta, keys map[string]string, words []string) []*world.EndpointSlice {
	port := uint16(8080)
	if at := keys["at"]; at != "" {
		port = uint16(number(t, at))
	}
	byFamily := map[world.Family]*world.EndpointSlice{}
	for _, word := range words {
		node, rest, _ := strings.Cut(word, "/")
		rest, hints, _ := strings.Cut(rest, "@")
		text, state, _ := strings.Cut(rest, "~")
		a := netip.MustParseAddr(text)
		e := world.Endpoint{Address: a, Place: &world.Place{Node: strings.TrimPrefix(node, "-")}, Ready: true, Serving: true}
		for _, zone := range split(hints) {
			e.Place.Hints = append(e.Place.Hints, world.Hint{Zone: zone})
		}
		switch state {
		case "serving":
			e.Ready, e.Terminating = false, true
		case "no":
			e.Ready, e.Serving = false, false
		case "odd":
			e.Ready = false
		case "":
		default:
			t.Fatalf("no state %q", state)
		}
		f := world.FamilyOf(a)
		if byFamily[f] == nil {
			m := meta
			m.Name += "-" + strings.ToLower(string(f))
			byFamily[f] = &world.EndpointSlice{
				Meta: m, ServiceName: meta.Name, Ports: []world.EndpointPort{{Name: "p80", Protocol: world.TCP, Port: port}},
			}
		}
		byFamily[f].Endpoints = append(byFamily[f].Endpoints, e)
	}
	var out []*world.EndpointSlice
	for _, f := range sortedKeys(byFamily) {
		out = append(out, byFamily[f])
	}
	return out
}

func scriptNode(t failer, meta world.Meta, keys map[string]string, words []string) world.Node {
	meta.Namespace = ""
	n := world.Node{Meta: meta, Ready: true, Taints: split(keys["taint"])}
	for _, word := range words {
		switch word {
		case "notready":
			n.Ready = false
		case "unreachable":
			n.NetworkUnavailable = true
		case "excluded":
			n.Excluded = true
		case "cordoned":
			n.Unschedulable = true
		case "deleting":
			n.Deleting = true
		default:
			n.Addresses = append(n.Addresses, world.NodeAddress{Type: world.InternalIP, Address: netip.MustParseAddr(word)})
		}
	}
	if zone := keys["zone"]; zone != "" {
		n.Labels = []world.KV{{Key: labelZone, Value: zone}}
	}
	for _, text := range split(keys["pods"]) {
		n.PodCIDRs = append(n.PodCIDRs, netip.MustParsePrefix(text))
	}
	for _, a := range addresses(keys["external"]) {
		n.Addresses = append(n.Addresses, world.NodeAddress{Type: world.ExternalIP, Address: a})
	}
	return n
}

func scriptPool(t failer, meta world.Meta, keys map[string]string, words []string) *world.Pool {
	meta.Namespace = ""
	p := &world.Pool{Meta: meta, Homed: world.Homed{Home: keys["home"]}, AutoAssign: true, Priority: int(number(t, keys["priority"])), Namespaces: split(keys["for"])}
	p.NamespaceSelectors, p.ServiceSelectors = selectorsOf(split(keys["of"])), selectorsOf(split(keys["only"]))
	for _, word := range words {
		from, to, isRange := strings.Cut(word, "-")
		switch {
		case word == "manual":
			p.AutoAssign = false
		case word == "drain":
			p.Drain = true
		case word == "keeps":
			p.KeepAnswering = true
		case word == "metallb":
			p.OnlyAdvertised = true
		case word == "avoid":
			p.AvoidBuggyIPs = true
		case isRange:
			p.Ranges = append(p.Ranges, world.Range{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)})
		default:
			t.Fatalf("no range %q", word)
		}
	}
	return p
}

// show lists services, routes, nodes that are not eligible, and what waits.
func (s *scene) show() string {
	v := s.group.state.Read()
	var b strings.Builder
	for _, o := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		fmt.Fprintf(&b, "service %s:", strings.TrimPrefix(string(o.ID), "default/"))
		for _, a := range v.Addresses(o.ID) {
			fmt.Fprintf(&b, " %s", a.Address)
			if a.Releasing {
				b.WriteString(" (releasing)")
			}
		}
		if o.Deleting {
			b.WriteString(" deleting")
		}
		if o.Pending.Code != "" {
			fmt.Fprintf(&b, " pending %s", o.Pending.Code)
		}
		b.WriteString("\n")
	}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		fmt.Fprintf(&b, "route %s:", r.Prefix)
		for _, h := range r.NextHops {
			fmt.Fprintf(&b, " %s=%s", h.Node(), v.HopState(r, h))
		}
		b.WriteString("\n")
	}
	in := s.input()
	in.Record = v
	for _, e := range Plan(in).Waiting {
		fmt.Fprintf(&b, "waits: %s %s: %s: %s\n", e.Kind, e.Name, e.Code, e.Text)
	}
	return b.String()
}

func addresses(list string) []netip.Addr {
	var out []netip.Addr
	for _, text := range split(list) {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func number(t failer, text string) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%q is no number", text)
	}
	return n
}
