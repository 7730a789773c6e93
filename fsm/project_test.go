// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
)

// facts are what model and record must agree on: what it is about, and how it stands.
type facts map[string]string

func (f facts) add(what, about any, how ...any) {
	f[fmt.Sprintf("%v %v", what, about)] = fmt.Sprintf("%+v", how)
}

func (f facts) compare(t *rapid.T, want facts) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if _, ok := f[k]; !ok {
			t.Fatalf("%s: not in the record, the model has %s", k, want[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if w, ok := want[k]; !ok {
			t.Fatalf("%s: the record has %s, the model nothing", k, f[k])
		} else if f[k] != w {
			t.Fatalf("%s: the record has %s, the model %s", k, f[k], w)
		}
	}
}

// facts of the model.
func (m *model) facts() facts {
	f := facts{}
	f.add("group", m.group, m.now.Epoch, m.format, m.settings, m.quarantine, m.checkpoint)
	for id, s := range m.members {
		f.add("member", id, s.format, s.run, s.announced, s.withdrawn, s.excused, s.sessions, s.away)
	}
	for name, ranges := range m.pools {
		f.add("pool", name, ranges)
	}
	for name, at := range m.peers {
		f.add("peer", name, !at.IsValid())
	}
	for name, pools := range m.l2 {
		f.add("l2 advertisement", name, pools)
	}
	for name := range m.adverts {
		f.add("advertisement", name)
	}
	for name := range m.configs {
		f.add("config", name)
	}
	for id, s := range m.services {
		f.add("service", id, s.uid, s.version, s.deleting, s.everywhere, s.since)
		for a, v := range s.verdicts {
			f.add("verdict on endpoint", fmt.Sprint(id, a), v)
		}
	}
	for address, owners := range m.owners {
		for s, o := range owners {
			f.add("owner", address, "of many", m.movedTo(address))
			f.add("allocation", fmt.Sprint(address, s), o.key, o.ports, o.releasing)
		}
	}
	for prefix, hops := range m.routes {
		for spec, h := range hops {
			f.add("hop", fmt.Sprint(prefix, spec), h.since, h.withdrawing, m.announced(prefix, spec))
		}
	}
	for a, ports := range m.givenUp {
		for given, since := range ports {
			f.add("given up", fmt.Sprint(a, given.port, given.service), since)
		}
	}
	for vip, l := range m.leases {
		f.add("lease", vip, l.holder, l.fence, l.kept)
	}
	for id, n := range m.nodes {
		f.add("node", id, n.uid, n.version, n.eligible, n.tunnels, n.zone, n.leaving, n.others, uint8(n.liveness), n.boot, n.acknowledged, n.failed)
		f.add("speaker", id, n.speaks, n.announced, n.withdrawn, n.excused, n.away, n.sessions)
	}
	for id, p := range m.registers {
		f.add("register", id, p.uid, p.version)
	}
	for id, h := range m.holds {
		f.add("hold", id, h.subjects, h.released)
	}
	for id, e := range m.enrolled {
		f.add("enrolment", id, e.node, e.used, e.outside)
	}
	for r, before := range m.revoked {
		f.add("revocation", fmt.Sprint(r.of, r.name), before)
	}
	for d, since := range m.drains {
		f.add("drain", fmt.Sprint(d.of, d.name), since, m.aside[d.name] && d.of == "member")
	}
	for id, to := range m.moves {
		f.add("move", id, to.node, to.since)
	}
	for id, r := range m.policies {
		f.add("policy", id, r.uid, r.version, r.number, r.since)
		for _, v := range r.verdicts {
			f.add("verdict", fmt.Sprint(id, v.Address, v.Port), v)
		}
		for pod, p := range r.pods {
			f.add("proxied", fmt.Sprint(id, pod), p.uid, p.ready, p.since)
		}
	}
	for id, h := range m.hosts {
		f.add("host", id, h.since, h.boot, h.addresses, h.acknowledged, h.tunnels)
	}
	f.add("numbered", m.group, m.numbered)
	f.add("mesh", m.group, m.mesh, m.given)
	for id, t := range m.tunnels {
		f.add("tunnel", id, t.number, t.underlay, t.since, t.leaving, m.reached(id))
	}
	for _, n := range m.numbers {
		f.add("number", fmt.Sprint(n.number, n.at), n.of)
	}
	for id, n := range m.nodes {
		f.add("node's number", id, n.number, n.carries)
	}
	for source, v := range m.views {
		f.add("view", source, v.cluster, v.versions, v.rewind)
	}
	for name, url := range m.drivers {
		f.add("driver", name, url)
	}
	for id, b := range m.balancers {
		f.add("balancer", id, b.driver, b.state, b.identity, b.ensure, b.asked, b.ensured, b.attempts)
		f.add("told of balancer", id, b.attributes, b.synced, b.message)
	}
	for id, b := range m.bindings {
		f.add("binding", id, b.balancer, b.identity, b.address, b.state, b.asked, b.attempts)
		f.add("told of binding", id, b.owner, b.params, b.ensure, b.backend, b.returned, b.registered, b.message)
	}
	for at, l := range m.lines {
		if l.open {
			f.add("call", at, l.action, l.attempt)
		}
		if l.unsettled != (rev{}) {
			f.add("unsettled", at, l.unsettled)
		}
	}
	return f
}

// factsOf the record.
func factsOf(v *fsm.View) facts {
	f := facts{}
	g := v.Group()
	f.add("group", g.ID, g.Epoch, g.Format, g.Settings, g.Quarantine, g.Checkpoint)
	for _, r := range fsm.List[*fsm.Member](v, fsm.TableMembers) {
		sessions := ""
		if r.Sessions.Told {
			sessions = fmt.Sprint("told", r.Sessions.Open)
		}
		f.add("member", r.Server, r.Format, r.Run, r.Announced, r.Withdrawn, r.Excused, sessions, r.Absence)
	}
	for _, r := range fsm.List[*fsm.Pool](v, fsm.TablePools) {
		f.add("pool", r.Name, r.Ranges)
	}
	for _, r := range fsm.List[*fsm.Peer](v, fsm.TablePeers) {
		f.add("peer", r.Name, r.Interface != "")
	}
	for _, r := range fsm.List[*fsm.L2Advertisement](v, fsm.TableL2Advertisements) {
		f.add("l2 advertisement", r.Name, fmt.Sprint(r.Pools))
	}
	for _, r := range fsm.List[*fsm.Advertisement](v, fsm.TableAdvertisements) {
		f.add("advertisement", r.Name)
	}
	for _, r := range fsm.List[*fsm.NodeConfig](v, fsm.TableNodeConfigs) {
		f.add("config", r.Name)
	}
	for _, r := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		f.add("service", r.ID, r.UID, r.Version, r.Deleting, r.AllNodes && !r.Local, r.ProbedSince())
		for _, v := range r.Verdicts() {
			f.add("verdict on endpoint", fmt.Sprint(r.ID, v.Address), v)
		}
		for _, a := range v.Addresses(r.ID) {
			f.add("owner", a.Address, "of many", v.MovedTo(a.Address.String()))
		}
	}
	for _, r := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
		f.add("allocation", fmt.Sprint(r.Address, r.Service), r.SharingKey(), r.Ports(), r.Releasing)
	}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		for _, h := range r.NextHops {
			n, _ := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(h.Node()))
			f.add("hop", fmt.Sprint(r.Prefix, fsm.HopSpec{Node: h.Node(), Address: h.Address()}), h.Since, h.Withdrawing,
				fsm.Announceable(r.Prefix, h, n, g.Settings))
		}
	}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		for _, c := range r.Closing {
			f.add("given up", fmt.Sprint(r.Prefix.Addr(), c.Port, c.Service), c.Since)
		}
	}
	for _, r := range fsm.List[*fsm.Lease](v, fsm.TableLeases) {
		f.add("lease", r.VIP, r.Holder, r.Fence, r.Keep)
	}
	for _, r := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		f.add("node", r.ID, r.UID, r.Version, r.Eligible, r.Tunnels, r.Zone, r.Leaving, r.Others, uint8(r.Liveness), r.Boot, r.Acknowledged, r.Failed)
		f.add("speaker", r.ID, r.Speaking.Speaks, r.Speaking.Announced, r.Speaking.Withdrawn, r.Speaking.Excused, r.Speaking.Absence, r.Speaking.Sessions)
	}
	for _, r := range fsm.List[*fsm.Register](v, fsm.TableRegisters) {
		f.add("register", r.ID, r.UID, r.Version)
	}
	for _, r := range fsm.List[*fsm.Hold](v, fsm.TableHolds) {
		f.add("hold", r.ID, fmt.Sprint(r.Subjects), r.Released)
	}
	for _, r := range fsm.List[*fsm.Enrolment](v, fsm.TableEnrolments) {
		f.add("enrolment", r.ID, r.Node, r.Used, r.Outside)
	}
	for _, r := range fsm.List[*fsm.Revocation](v, fsm.TableRevocations) {
		f.add("revocation", fmt.Sprint(r.Of, r.Name), r.Before)
	}
	for _, r := range fsm.List[*fsm.Drain](v, fsm.TableDrains) {
		f.add("drain", fmt.Sprint(r.Of, r.Name), r.Since, !r.Aside.IsZero())
	}
	for _, r := range fsm.List[*fsm.Move](v, fsm.TableMoves) {
		f.add("move", r.Service, r.Node, r.Since)
	}
	for _, r := range fsm.List[*fsm.Policy](v, fsm.TablePolicies) {
		f.add("policy", r.ID, r.UID, r.Version, r.Number, r.Since)
		for _, v := range r.Verdicts {
			f.add("verdict", fmt.Sprint(r.ID, v.Address, v.Port), v)
		}
		for _, p := range r.Proxied {
			f.add("proxied", fmt.Sprint(r.ID, p.Pod), p.UID, p.Ready, p.Since)
		}
	}
	for _, r := range fsm.List[*fsm.Host](v, fsm.TableHosts) {
		f.add("host", r.ID, r.Since, r.Boot, fmt.Sprint(r.Addresses), r.Acknowledged, r.Tunnels)
	}
	for _, r := range fsm.List[*fsm.Number](v, fsm.TableNumbers) {
		f.add("number", fmt.Sprint(r.Number, r.At), r.Of)
	}
	for _, r := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		f.add("node's number", r.ID, r.Number, r.Redirects)
	}
	f.add("numbered", g.ID, g.LastNumber)
	f.add("mesh", g.ID, g.Tunnels, g.LastTunnel)
	for _, r := range fsm.List[*fsm.Tunnel](v, fsm.TableTunnels) {
		_, ready := v.TunnelOf(r.Host)
		f.add("tunnel", r.Host, r.Number, r.Underlay, r.Since, r.Leaving, ready)
	}
	for _, r := range fsm.List[*fsm.SourceView](v, fsm.TableViews) {
		versions := map[string]uint64{}
		for _, k := range r.Versions {
			versions[k.Kind] = k.Version
		}
		f.add("view", r.Source, r.Cluster, versions, r.Rewind)
	}
	for _, r := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		f.add("balancer", r.ID, r.Driver, r.State, r.Identity, r.Ensure, r.Asked, r.Ensured, r.Attempts)
		f.add("told of balancer", r.ID, fmt.Sprint(r.Attributes), fmt.Sprint(r.Synced), r.Message)
	}
	for _, r := range fsm.List[*fsm.Driver](v, fsm.TableDrivers) {
		f.add("driver", r.Name, r.URL)
	}
	for _, r := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		f.add("binding", r.ID, r.Balancer, r.Identity, r.Address, r.State, r.Asked, r.Attempts)
		f.add("told of binding", r.ID, r.Owner, fmt.Sprint(r.Parameters, r.Attributes), r.Ensure, r.Backend, fmt.Sprint(r.Returned), r.Registered, r.Message)
	}
	for _, r := range fsm.List[*fsm.Operation](v, fsm.TableOperations) {
		if r.Open {
			f.add("call", r.Subject, r.Action, r.Attempt)
		}
		if !r.Unsettled.IsZero() {
			f.add("unsettled", r.Subject, r.Unsettled)
		}
	}
	return f
}
