// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/cluster/leader/policies"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// wish is one Service on its way through a plan.
type wish struct {
	id   fsm.ServiceID
	seen *world.Service // nil when no source shows it as ours to serve
	have *fsm.Service   // nil when new
	// next is what the record shall hold, without what the record itself adds. It is have while that says the same: change is who
	// writes to it.
	next    *fsm.Service
	version uint64 // of the object that next is made from
	// going says that its routes and addresses are taken back. Otherwise a Service that no source shows is kept.
	going bool
	// part says that it is served for what it names alone: it gets no address from pools.
	part bool
	// atNodes are those in spec.externalIPs that are nodes' own: kube-proxy answers there, and nobody asks a load balancer for them.
	atNodes []netip.Addr
	claims  []*claim
	awaits  []netip.Addr // that its status shows, and that are being taken back from others
}

// announcedBy is the Service by whose labels members announce its addresses: as the record has it, or will first.
func (s *wish) announcedBy() *fsm.Service {
	if s.have != nil {
		return s.have
	}
	return s.next
}

// want sets what the record shall hold. In a plan of many Services few of them differ from it, and nothing is kept for the others.
func (s *wish) want(next fsm.Service) {
	s.version = next.Version
	if s.have != nil && sameService(s.have, &next) {
		s.next = s.have
		return
	}
	own := next
	s.next = &own
}

// change gives what the record shall hold, to write to.
func (s *wish) change() *fsm.Service {
	if s.next == s.have {
		own, rare := *s.have, s.have.Besides()
		own.Version, own.History, rare.Verdicts, rare.ProbedSince = s.version, nil, nil, fsm.Revision{}
		own.SetRare(rare)
		s.next = &own
	}
	return s.next
}

// gatherServices joins the Services that the sources show with those of the record, in order of their names.
func (p *planner) gatherServices() {
	have := fsm.List[*fsm.Service](p.in.Record, fsm.TableServices)
	known := make(map[fsm.ServiceID]*fsm.Service, len(have))
	for _, h := range have {
		known[h.ID] = h
	}
	shown := make(map[fsm.ServiceID]bool, len(p.seen.services))
	p.services = make([]*wish, 0, max(len(have), len(p.seen.services)))
	for _, w := range p.seen.services {
		id := fsm.ServiceID(w.ID.String())
		h := known[id]
		handled := p.handles(w)
		if h == nil && (!handled || w.Deleting) {
			continue
		}
		if w.Deleting && (h.Deleting || p.seen.mayRemove(world.KindService, w.ID)) {
			handled = false
		}
		shown[id] = true
		s := &wish{id: id, have: h}
		if handled {
			s.seen, s.part = w, p.refuses(w) != ""
			s.want(p.serviceOf(w, h))
			p.leaveToNodes(s)
		} else {
			s.next, s.going = going(h), true
		}
		p.services = append(p.services, s)
	}
	for _, h := range have {
		if shown[h.ID] {
			continue
		}
		s := &wish{id: h.ID, have: h, next: h, version: h.Version}
		switch {
		case h.Deleting || p.seen.mayRemove(world.KindService, idOf(h.ID)):
			s.next, s.going = going(h), true
		default:
			p.explainAbsent(fsm.TableServices, world.KindService, idOf(h.ID))
		}
		p.services = append(p.services, s)
	}
	slices.SortFunc(p.services, func(a, b *wish) int { return strings.Compare(string(a.id), string(b.id)) })
	if p.quarantined {
		p.postponeRemovals()
	}
}

// postponeRemovals keeps what would go: after a restore the outside may know more than the record.
func (p *planner) postponeRemovals() {
	for _, s := range p.services {
		if s.going && !s.have.Deleting {
			s.next, s.version, s.going = s.have, s.have.Version, false
			p.explain(fsm.TableServices, string(s.id), WaitsForQuarantine, quarantineText)
		}
	}
}

const quarantineText = "the group was recovered or restored: nothing is removed or given out until a complete view was read"

// handles tells whether a Service is ours to serve, as a load balancer or in part.
func (p *planner) handles(w *world.Service) bool { return p.refuses(w) == "" || p.inPart(w) }

// refuses tells why a Service is not ours to serve as a load balancer; empty if it is.
func (p *planner) refuses(w *world.Service) Code {
	switch {
	case w.Headless: // K6, also of type LoadBalancer, which only a folder of manifests can show
		return Headless
	case w.Type != world.LoadBalancer:
		return NotLoadBalancer
	case w.Foreign:
		return Foreign
	case w.Extras().Class == "" && p.in.Options.IgnoreUnclassed:
		return Unclassed
	case w.Extras().Class != "" && w.Extras().Class != p.in.Options.class():
		return OtherClass
	}
	return ""
}

// notOurs is why a Service is not served, in words; zero if it is.
func (p *planner) notOurs(w *world.Service) Reason {
	if p.inPart(w) {
		return Reason{}
	}
	r := Reason{Code: p.refuses(w)}
	switch r.Code {
	case Headless:
		r.Text = "it is headless (clusterIP: None): clients dial its endpoints, and it gets no address"
	case NotLoadBalancer:
		r.Text = "it is of type " + w.Type.String() + ", not LoadBalancer"
	case Foreign:
		r.Text = "it is left to another service proxy by label"
	case Unclassed:
		r.Text = "it has no spec.loadBalancerClass, and this group serves only those of class " + p.in.Options.class()
	case OtherClass:
		r.Text = "its spec.loadBalancerClass is " + w.Extras().Class + "; this group serves " + p.in.Options.class()
	}
	return r
}

// going is a Service of which only the deletion is left. It serves nothing any more.
func going(h *fsm.Service) *fsm.Service {
	next, rare := *h, h.Besides()
	next.Deleting, next.Pending = true, fsm.Pending{}
	next.ClusterIPs, next.InternalLocal = nil, false // the API server may give them to another
	rare.ByOthers = nil
	next.SetRare(rare)
	return &next
}

// serviceOf says what the record shall hold of a Service that is served. The version never runs back: what may be
// acted on is the guard's decision, and it was made for the whole view.
func (p *planner) serviceOf(w *world.Service, have *fsm.Service) fsm.Service {
	next := fsm.Service{
		ID: fsm.ServiceID(w.ID.String()), UID: w.UID, Version: w.Version, Frontends: make([]fsm.Frontend, 0, len(w.Ports)),
		Local: w.ExternalTrafficPolicy == world.PolicyLocal, PublishNotReady: w.PublishNotReady, AllNodes: w.NextHops == world.NextHopsAll,
	}
	if have != nil && have.UID == w.UID {
		next.Version = max(next.Version, have.Version)
	}
	for _, port := range w.Ports {
		if port.Port == 0 {
			continue // a port that could not be read
		}
		next.Frontends = append(next.Frontends, fsm.Frontend{
			Name: port.Name, NodePort: nodePortOf(w, port), Port: fsm.Port{Protocol: protocolOf(port.Protocol), Number: port.Port},
		})
	}
	next.Endpoints = p.endpointsOf(w, have)
	if p.format >= formatTranslation && next.Local { // it means nothing otherwise, whatever it says
		next.HealthCheckNodePort = w.HealthCheckNodePort
	}
	if p.servesNodePorts(w) {
		next.NodePortsIPv4, next.NodePortsIPv6 = nodePortFamilies(w)
	}
	if p.servesInside(w) {
		next.ClusterIPs, next.InternalLocal = w.ClusterIPs, w.InternalTrafficPolicy == world.PolicyLocal
	}
	rare := p.rareOf(w, have)
	if p.refuses(w) != "" {
		servedInPart(w, &next, &rare)
	}
	if have != nil && have.Rare != nil && have.ProbedSince().IsZero() && sameRare(&rare, have.Rare) {
		next.Rare = have.Rare // as with endpoints
	} else {
		next.SetRare(rare)
	}
	return next
}

func (p *planner) rareOf(w *world.Service, have *fsm.Service) fsm.Rare {
	extras := w.Extras()
	out := fsm.Rare{Requested: extras.Requested, External: w.ExternalIPs, SharingKey: extras.SharingKey, ByOthers: p.byOthers(w)}
	if p.format >= formatTranslation {
		choice := w.Choice()
		out.Probe, out.Scheduler = policies.ProbeOf(choice.Probes), string(choice.Scheduler)
		out.Affinity, out.SourceRanges = extras.Affinity, extras.SourceRanges
		out.Advertisements = p.advertisementsOf(w, have)
	}
	if p.quarantined {
		out.ByOthers = nil // what was ours is not all in the record yet
		if have != nil {
			out.ByOthers = have.ByOthers()
		}
	}
	return out
}

// formatTranslation is the first format of the record that holds what only nodes that translate need; members
// before it would stop at the fields.
const formatTranslation = 2

// endpointsOf merges the slices of a Service. Recorded endpoints that no slice lists stay while their absence is no
// evidence: the slices may only be late. What is as the record has it is the record's own list, so that a plan of many Services, of
// which few changed, needs little memory.
func (p *planner) endpointsOf(w *world.Service, have *fsm.Service) []fsm.Endpoint {
	listed := p.listEndpoints(w)
	p.leaveOut(listed, have, w)
	if have != nil && len(listed) > 0 && slices.EqualFunc(listed, have.Endpoints, sameEndpoint) {
		return have.Endpoints
	}
	out := slices.Clone(listed)
	if have == nil || len(have.Endpoints) == 0 || p.seen.mayRemove(world.KindEndpointSlice, w.ID) {
		return out
	}
	kept := keepEndpoints(restReady(out), have.Endpoints)
	if len(kept) == len(out) {
		return out
	}
	p.leaveOut(kept, have, w)
	p.explainAbsent(fsm.TableServices, world.KindEndpointSlice, w.ID)
	return kept
}

// listEndpoints gives the endpoints that the slices of a Service list, in order of address, until it is called again.
func (p *planner) listEndpoints(w *world.Service) []fsm.Endpoint {
	p.listed = p.listed[:0]
	for _, slice := range p.seen.slicesOf(w.ID) {
		p.listed = p.appendEndpoints(p.listed, w, slice)
	}
	return mergeEndpoints(p.listed)
}

// restReady counts the listed endpoints of a family that end and still serve as ready, as long as none that is listed is.
// It is for when others are kept that nobody lists any more: these may be gone, and must not be a reason to send nobody
// to those that are there.
func restReady(listed []fsm.Endpoint) []fsm.Endpoint {
	out := slices.Clone(listed)
	for i := range out {
		ready := func(e fsm.Endpoint) bool {
			return e.Ready && !e.Quiesced && e.Address.BitLen() == out[i].Address.BitLen()
		}
		if out[i].Terminating && out[i].Serving && !slices.ContainsFunc(listed, ready) {
			out[i].Ready = true
		}
	}
	return out
}

func (p *planner) appendEndpoints(out []fsm.Endpoint, w *world.Service, slice *world.EndpointSlice) []fsm.Endpoint {
	var ports []fsm.EndpointPort // shared by all of the slice: nobody writes to a record
	for _, port := range slice.Ports {
		ports = append(ports, fsm.EndpointPort{
			Name: port.Name, Port: fsm.Port{Protocol: protocolOf(port.Protocol), Number: port.Port},
		})
	}
	offer := &fsm.Offer{Ports: ports}
	for i := range slice.Endpoints {
		e := &slice.Endpoints[i]
		at := e.At()
		next := fsm.Endpoint{Address: e.Address, Node: fsm.NodeID(at.Node), Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating}
		if p.format >= formatTranslation {
			if weight := w.WeightOf(e); weight != world.DefaultWeight {
				next.Weight, next.Quiesced = weight, weight == 0
			}
			if hints := hintsOf(at); !slices.Equal(hints, offer.Hints) {
				offer = &fsm.Offer{Ports: ports, Hints: hints}
			}
		}
		next.Offer = offer
		out = append(out, next)
	}
	return out
}

func hintsOf(at world.Place) (out []fsm.Hint) {
	for _, h := range at.Hints {
		out = append(out, fsm.Hint{Node: fsm.NodeID(h.Node), Zone: h.Zone})
	}
	return out
}

// keepEndpoints adds the recorded endpoints that a list lacks. Both are in order of address.
func keepEndpoints(listed, recorded []fsm.Endpoint) []fsm.Endpoint {
	byAddress := func(a, b fsm.Endpoint) int { return a.Address.Compare(b.Address) }
	out := slices.Clip(listed)
	for _, e := range recorded {
		if _, listed := slices.BinarySearchFunc(listed, e, byAddress); !listed {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, byAddress)
	return out
}

func protocolOf(p world.Protocol) fsm.Protocol {
	switch p {
	case world.UDP:
		return fsm.UDP
	case world.SCTP:
		return fsm.SCTP
	}
	return fsm.TCP
}

// sameService compares all but version and history.
func sameService(a, b *fsm.Service) bool {
	return a.UID == b.UID && a.Local == b.Local && a.PublishNotReady == b.PublishNotReady && a.Pending == b.Pending && a.Deleting == b.Deleting &&
		a.AllNodes == b.AllNodes && a.NodePortsIPv4 == b.NodePortsIPv4 && a.NodePortsIPv6 == b.NodePortsIPv6 &&
		a.HealthCheckNodePort == b.HealthCheckNodePort && a.InternalLocal == b.InternalLocal && slices.Equal(a.ClusterIPs, b.ClusterIPs) &&
		slices.Equal(a.Frontends, b.Frontends) && slices.EqualFunc(a.Endpoints, b.Endpoints, sameEndpoint) &&
		(a.Rare == b.Rare || sameBesides(a, b))
}

func sameBesides(a, b *fsm.Service) bool {
	x, y := a.Besides(), b.Besides()
	return sameRare(&x, &y)
}

// sameRare leaves out what nodes think of endpoints.
func sameRare(a, b *fsm.Rare) bool {
	return a.SharingKey == b.SharingKey && a.Affinity == b.Affinity && a.Scheduler == b.Scheduler && a.Probe.Equal(b.Probe) &&
		slices.Equal(a.ByOthers, b.ByOthers) && slices.Equal(a.SourceRanges, b.SourceRanges) &&
		slices.Equal(a.Advertisements, b.Advertisements) && slices.Equal(a.Requested, b.Requested) && slices.Equal(a.External, b.External)
}

func sameEndpoint(a, b fsm.Endpoint) bool {
	return a.Address == b.Address && a.Node == b.Node && a.Ready == b.Ready && a.Failing == b.Failing && a.Serving == b.Serving &&
		a.Terminating == b.Terminating && a.Weight == b.Weight && a.Quiesced == b.Quiesced &&
		(a.Offer == b.Offer || slices.Equal(a.Ports(), b.Ports()) && slices.Equal(a.Hints(), b.Hints()))
}

// portsOf lists what a Service answers on, in one order.
func portsOf(s *fsm.Service) []fsm.Port {
	ports := s.Ports()
	slices.SortStableFunc(ports, func(a, b fsm.Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
	return slices.Compact(ports)
}
