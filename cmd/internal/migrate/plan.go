// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/dataplane/bgp/legacy"
	"fairlead.io/fairlead/k8s/migrate"
)

// Options are an operator's choices.
type Options struct {
	// Members are names of nodes; empty takes up to three control-plane nodes.
	Members []string
	// AllowPending goes on although some Services will lose their address.
	AllowPending bool
	// Out is the folder that the files go to, as commands are to name it.
	Out string
}

// Plan is what a migration will do.
type Plan struct {
	Members    []Member    `json:"members"`    // in the order in which they begin
	Neighbours []Neighbour `json:"neighbours"` // what the switch must list
	Switches   []string    `json:"switches"`   // what members dial
	Replicas   int         `json:"replicas"`   // of the old controller
	// Addresses are those that are announced by both systems meanwhile; Losing are Services that will lose theirs.
	Addresses []netip.Addr `json:"addresses"`
	Losing    []string     `json:"losing"`
	Warnings  []string     `json:"warnings"`
	Steps     []Step       `json:"steps"`
}

// Member is a node that becomes a member.
type Member struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	// Frees is the pod of the old controller that must have gone before: both need the node's address and BGP port.
	Frees string `json:"frees,omitempty"`
}

// Neighbour is a BGP neighbour that the switch must have.
type Neighbour struct {
	Address netip.Addr `json:"address"`
	Port    uint16     `json:"port"` // where it listens; 0: it only dials
	ASN     uint32     `json:"asn"`
}

// usualVoters is how many members a group has: with three, one may be away.
const usualVoters = 3

// Decide plans the migration of an installation. The error is one line with a remedy: something does not fit, and nothing
// should be tried.
func Decide(in migrate.Installation, o Options) (Plan, error) {
	if !in.HasController {
		return Plan{}, fmt.Errorf("namespace %s has no StatefulSet %s: there is nothing to migrate from; see docs/install.md for a new installation", in.Namespace, migrate.Controller)
	}
	p := Plan{Replicas: in.Replicas, Addresses: []netip.Addr{}, Losing: []string{}, Warnings: []string{}}
	conf, err := readBGP(in)
	if err != nil {
		return Plan{}, err
	}
	if err := p.chooseMembers(in, o); err != nil {
		return Plan{}, err
	}
	p.readSpeaker(conf)
	if err := p.judgeServices(in, conf); err != nil {
		return Plan{}, err
	}
	if len(p.Losing) > 0 && !o.AllowPending {
		return Plan{}, fmt.Errorf("%d Services would lose their address: %s; change them first, or go on without them with --allow-pending", len(p.Losing), p.Losing[0])
	}
	p.warn(in)
	p.Steps = p.steps(in, o)
	return p, nil
}

// readBGP reads config_bgp.toml as members will.
func readBGP(in migrate.Installation) (legacy.Config, error) {
	text, err := value(in, migrate.ConfigMapBGP, migrate.KeyBGP)
	if err != nil {
		return legacy.Config{}, err
	}
	conf, err := legacy.Parse(migrate.KeyBGP, []byte(text))
	if err == nil {
		err = conf.Whole() // the old system announces to all of them
	}
	if err != nil {
		return legacy.Config{}, fmt.Errorf("ConfigMap %s: %w", migrate.ConfigMapBGP, err)
	}
	if len(conf.Peers) == 0 {
		return legacy.Config{}, fmt.Errorf("ConfigMap %s: %s lists no neighbour that is switched on; members would have nobody to announce to", migrate.ConfigMapBGP, migrate.KeyBGP)
	}
	return conf, nil
}

// value reads a key of one of the two config maps.
func value(in migrate.Installation, name, key string) (string, error) {
	for _, m := range in.World.ConfigMaps {
		if m.Name == name {
			if text, ok := m.Get(key); ok && strings.TrimSpace(text) != "" {
				return text, nil
			}
			return "", fmt.Errorf("ConfigMap %s: has no key %s; mend it first", name, key)
		}
	}
	return "", fmt.Errorf("namespace %s has no ConfigMap %s; the old system cannot run without it: is this the right cluster?", in.Namespace, name)
}

// chooseMembers picks nodes, and the order in which they begin: those without a pod of the old controller first, then in
// the order in which a StatefulSet gives pods up, from the highest ordinal down.
func (p *Plan) chooseMembers(in migrate.Installation, o Options) error {
	nodes, err := candidates(in, o.Members)
	if err != nil {
		return err
	}
	podOn := map[string]string{}
	rank := map[string]int{}
	for i, pod := range in.Pods {
		podOn[pod.Node], rank[pod.Node] = pod.Name, len(in.Pods)-i
	}
	slices.SortStableFunc(nodes, func(a, b migrate.Node) int { return rank[a.Name] - rank[b.Name] })
	if len(o.Members) == 0 && len(nodes) > usualVoters {
		nodes = nodes[:usualVoters]
	}
	for _, n := range nodes {
		m, err := member(n, podOn[n.Name])
		if err != nil {
			return err
		}
		p.Members = append(p.Members, m)
	}
	return nil
}

func candidates(in migrate.Installation, names []string) ([]migrate.Node, error) {
	var out []migrate.Node
	if len(names) == 0 {
		for _, n := range in.Nodes {
			if n.ControlPlane {
				out = append(out, n)
			}
		}
		if len(out) == 0 {
			return nil, errors.New("no node is labelled node-role.kubernetes.io/control-plane; name the nodes of the members with --members")
		}
		return out, nil
	}
	for i, name := range names {
		at := slices.IndexFunc(in.Nodes, func(n migrate.Node) bool { return n.Name == name })
		switch {
		case at < 0:
			return nil, fmt.Errorf("--members: there is no node %q", name)
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("--members: %q is there twice", name)
		}
		out = append(out, in.Nodes[at])
	}
	return out, nil
}

func member(n migrate.Node, pod string) (Member, error) {
	switch {
	case len(n.Addresses) == 0:
		return Member{}, fmt.Errorf("node %s has no InternalIP, under which a member would be known to the switch; choose others with --members", n.Name)
	case !n.Ready:
		return Member{}, fmt.Errorf("node %s is not ready; mend it, or choose others with --members", n.Name)
	}
	return Member{Name: n.Name, Address: n.Addresses[0], Frees: pod}, nil
}

// readSpeaker says what the switch must know of members, and whom they dial.
func (p *Plan) readSpeaker(conf legacy.Config) {
	for _, m := range p.Members {
		p.Neighbours = append(p.Neighbours, Neighbour{Address: m.Address, Port: conf.Global.ListenPort, ASN: conf.Global.ASN})
	}
	for _, peer := range conf.Peers {
		p.Switches = append(p.Switches, peer.Address.String())
		if conf.Global.ListenPort == 0 && peer.Passive {
			p.Warnings = append(p.Warnings, fmt.Sprintf("neighbour %s: members neither listen nor dial; its session cannot come up", peer.Address))
		}
	}
	for _, w := range conf.Warnings {
		p.Warnings = append(p.Warnings, w.String())
	}
	if conf.Global.PortForward {
		p.Warnings = append(p.Warnings, fmt.Sprintf("porter-config.using-port-forward: nothing forwards port 179 to %d by itself; keep the rule that does, or have the switch dial %d", conf.Global.ListenPort, conf.Global.ListenPort))
	}
}

// warn tells what works, but not as well as it could.
func (p *Plan) warn(in migrate.Installation) {
	say := func(text string, args ...any) { p.Warnings = append(p.Warnings, fmt.Sprintf(text, args...)) }
	switch n := len(p.Members); {
	case n == 1:
		say("one voter: while its node is away, nothing is changed and only what the switch keeps of it is routed; have three, naming further nodes with --members once the switch lists them")
	case n == 2:
		say("two voters: addresses stay announced while one is away, but nothing can be changed until it is back, since both make the quorum; have three, naming a further node with --members once the switch lists it")
	case n%2 == 0:
		say("%d voters tolerate no more losses than %d; leave one out, or add one", n, n-1)
	}
	if p.Members[0].Frees == migrate.Controller+"-0" {
		say("the last replica of the old controller to go runs where the first member shall: from its end until the member's session is up, some seconds, the switch has no path; do that step when it may hurt, or name a node without a replica with --members")
	}
	if !in.HasDaemon {
		say("there is no DaemonSet %s: nothing steers packets on the nodes now, agents will", migrate.Daemon)
	}
	for _, pod := range in.Pods {
		if !pod.Ready {
			say("pod %s is not ready: it may announce nothing now; the step that relies on it says what to look at", pod.Name)
		}
	}
	if model, _ := value(in, migrate.ConfigMapRules, "DEPLOY_MODEL"); model == "test" {
		say("DEPLOY_MODEL is test: agents, too, make SWITCH each node's default gateway, and put the old one back when they are removed")
	}
}
