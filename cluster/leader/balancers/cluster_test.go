// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// cluster is what objects there are, and the record that follows them.
type cluster struct {
	t        failer
	record   *record
	drivers  []*world.Driver
	lbs      []*world.OutsideBalancer
	groups   []*world.BackendGroup
	binds    []*world.Bind
	records  []*world.BackendRecord
	pods     []*world.Pod
	services []*world.Service
	nodes    []*world.Node
	lost     map[string]bool // absent without evidence, as "Kind name"
	unlisted map[world.Kind]bool
	away     map[world.Kind]bool
	deleted  []world.Deletion
	judged   map[string]Judgement
	version  uint64 // of the newest object
}

func newCluster(t failer) *cluster {
	return &cluster{t: t, record: newRecord(t), lost: map[string]bool{}, unlisted: map[world.Kind]bool{}, away: map[world.Kind]bool{}, judged: map[string]Judgement{}}
}

func (c *cluster) input() Input {
	byID := func(a, b world.ID) int { return a.Compare(b) }
	slices.SortFunc(c.drivers, func(a, b *world.Driver) int { return byID(a.ID, b.ID) })
	slices.SortFunc(c.lbs, func(a, b *world.OutsideBalancer) int { return byID(a.ID, b.ID) })
	slices.SortFunc(c.groups, func(a, b *world.BackendGroup) int { return byID(a.ID, b.ID) })
	slices.SortFunc(c.binds, func(a, b *world.Bind) int { return byID(a.ID, b.ID) })
	slices.SortFunc(c.records, func(a, b *world.BackendRecord) int { return byID(a.ID, b.ID) })
	slices.SortFunc(c.pods, func(a, b *world.Pod) int { return byID(a.ID, b.ID) })
	slices.SortFunc(c.services, func(a, b *world.Service) int { return byID(a.ID, b.ID) })
	slices.SortFunc(c.nodes, func(a, b *world.Node) int { return byID(a.ID, b.ID) })
	return Input{
		Drivers: c.drivers, LoadBalancers: c.lbs, BackendGroups: c.groups, Binds: c.binds, BackendRecords: c.records,
		Pods: c.pods, Services: c.services, Nodes: c.nodes, Deleted: c.deleted, Judged: c.judged,
		MayRemove: func(kind world.Kind, id world.ID) bool { return !c.lost[string(kind)+" "+id.String()] },
		Listed:    func(kind world.Kind) bool { return !c.unlisted[kind] },
		Away:      func(kind world.Kind) bool { return c.away[kind] },
	}
}

func splitName(name string) world.ID {
	if !strings.Contains(name, "/") {
		return world.ID{Name: name}
	}
	return splitID(name)
}

// remove takes an object out of the cluster.
func (c *cluster) remove(kind world.Kind, id world.ID) {
	switch kind {
	case world.KindDriver:
		c.drivers = slices.DeleteFunc(c.drivers, func(o *world.Driver) bool { return o.ID == id })
	case world.KindLoadBalancer:
		c.lbs = slices.DeleteFunc(c.lbs, func(o *world.OutsideBalancer) bool { return o.ID == id })
	case world.KindBackendGroup:
		c.groups = slices.DeleteFunc(c.groups, func(o *world.BackendGroup) bool { return o.ID == id })
	case world.KindBind:
		c.binds = slices.DeleteFunc(c.binds, func(o *world.Bind) bool { return o.ID == id })
	case world.KindBackendRecord:
		c.records = slices.DeleteFunc(c.records, func(o *world.BackendRecord) bool { return o.ID == id })
	case world.KindPod:
		c.pods = slices.DeleteFunc(c.pods, func(o *world.Pod) bool { return o.ID == id })
	case world.KindService:
		c.services = slices.DeleteFunc(c.services, func(o *world.Service) bool { return o.ID == id })
	case world.KindNode:
		c.nodes = slices.DeleteFunc(c.nodes, func(o *world.Node) bool { return o.ID == id })
	default:
		c.t.Fatalf("no kind %q", kind)
	}
}

// deletion is the delete event of an object that is there.
func (c *cluster) deletion(kind world.Kind, name string) world.Deletion {
	id := splitName(name)
	d := world.Deletion{Ref: world.Ref{Kind: kind, ID: id, UID: name + "-uid"}, How: world.ByWatch}
	if kind != world.KindBackendRecord {
		d.UID = id.Name + "-uid"
		return d
	}
	for _, r := range c.records {
		if r.ID == id {
			d.UID, d.Mirror = r.UID, r.Mirror
		}
	}
	return d
}

// object reads one line: kind, name, then words and key=value.
//
//	driver shop/d url=U draining
//	lb shop/edge driver=D spec=K:V,... attributes=K:V,... scope=N,... created=K:V,... synced ensure=Always deleting finalized
//	group shop/web lbs=L,... | service=S:80/TCP nodes=K:V,... | static=A,... | (as a Bind)
//	bind shop/b entries=E|D|K:V|K:V,... status=E|D|K:V|K:V,... deleting finalized
//	    and of both: select=K:V,... except=P,... names=P,... ports=80/TCP,... parameters=K:V ensure=P leave=POLICY judge=D failing=POLICY
//	record shop/N owner=Kind/NAME lb=L driver=D info=K:V attributes=K:V parameters=K:V pod=P | service=S node=N nodeport=N | static=A
//	    port=80/TCP address=A injected=K:V registered finalized mirror=M ensure=P deleting uid=U made=SECONDS
//	pod shop/web-0 ip=A labels=K:V,... notready stopped deleting uid=U
//	service shop/web type=NodePort ports=80/TCP/31080,... | node n1 ip=A,... labels=K:V,...
func (c *cluster) object(f []string) {
	l := line0{keys: map[string]string{}}
	for _, arg := range f[2:] {
		if k, v, ok := strings.Cut(arg, "="); ok {
			l.keys[k] = v
		} else {
			l.words = append(l.words, arg)
		}
	}
	id := splitName(f[1])
	c.version++
	m := world.Meta{ID: id, UID: id.Name + "-uid", Version: c.version, Deleting: l.has("deleting")}
	if uid := l.keys["uid"]; uid != "" {
		m.UID = uid
	}
	m.Created = uint32(numberOf(l.keys["made"]))
	kind := kindOf[f[0]]
	c.remove(kind, id)
	switch kind {
	case world.KindDriver:
		c.drivers = append(c.drivers, &world.Driver{Meta: m, URL: "http://" + id.Name + l.keys["url"], Draining: l.has("draining")})
	case world.KindLoadBalancer:
		c.lbs = append(c.lbs, l.balancer(m))
	case world.KindBackendGroup:
		c.groups = append(c.groups, l.group(m))
	case world.KindBind:
		c.binds = append(c.binds, l.bind(m))
	case world.KindBackendRecord:
		c.records = append(c.records, l.record(m))
	case world.KindPod:
		c.pods = append(c.pods, &world.Pod{Meta: m, IP: l.keys["ip"], Labels: l.kvs("labels"), Ready: !l.has("notready") && !l.has("stopped"), Running: !l.has("stopped")})
	case world.KindService:
		s := &world.Service{Meta: m}
		for _, of := range []world.ServiceType{world.ClusterIP, world.NodePort, world.LoadBalancer, world.ExternalName} {
			if of.String() == l.keys["type"] {
				s.Type = of
			}
		}
		for _, text := range l.list("ports") {
			port, nodePort, _ := cutLast(text)
			p := portOf(port)
			s.Ports = append(s.Ports, world.ServicePort{Port: p.Port, Protocol: world.Protocol(p.Protocol), NodePort: numberOf(nodePort)})
		}
		c.services = append(c.services, s)
	case world.KindNode:
		n := &world.Node{Meta: m, Labels: l.kvs("labels"), Ready: !l.has("notready"), Excluded: l.has("excluded")}
		for _, a := range l.list("ip") {
			n.Addresses = append(n.Addresses, world.NodeAddress{Type: world.InternalIP, Address: netip.MustParseAddr(a)})
		}
		c.nodes = append(c.nodes, n)
	}
}

// line0 is one line of a script, taken apart.
type line0 struct {
	keys  map[string]string
	words []string
}

func (l line0) has(word string) bool { return slices.Contains(l.words, word) }

func (l line0) list(key string) []string {
	if l.keys[key] == "" {
		return nil
	}
	return strings.Split(l.keys[key], ",")
}

func (l line0) kvs(key string) []world.KV { return kvsOf(l.keys[key]) }

func kvsOf(text string) []world.KV {
	var out []world.KV
	for _, pair := range strings.Split(text, ",") {
		if k, v, ok := strings.Cut(pair, ":"); ok {
			out = append(out, world.KV{Key: k, Value: v})
		}
	}
	return out
}

func (l line0) ports(key string) []world.BackendPort {
	var out []world.BackendPort
	for _, text := range l.list(key) {
		out = append(out, portOf(text))
	}
	return out
}

func portOf(text string) world.BackendPort {
	port, protocol, _ := strings.Cut(text, "/")
	return world.BackendPort{Port: numberOf(port), Protocol: protocol}
}

func numberOf(text string) uint16 {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil && text != "" {
		panic(err)
	}
	return uint16(n)
}

func cutLast(text string) (before, after string, ok bool) {
	at := strings.LastIndex(text, "/")
	return text[:at], text[at+1:], true
}

func driverAt(name, namespace string) world.ID {
	if name == "" {
		return world.ID{}
	}
	if strings.HasPrefix(name, "lbcf-") {
		namespace = "kube-system"
	}
	return world.ID{Namespace: namespace, Name: name}
}

func (l line0) ensure() world.EnsurePolicy {
	if l.keys["ensure"] == "Always" {
		return world.EnsurePolicy{Policy: "Always", Period: time.Minute}
	}
	return world.EnsurePolicy{Policy: l.keys["ensure"]}
}

func (l line0) balancer(m world.Meta) *world.OutsideBalancer {
	_, created := l.keys["created"]
	return &world.OutsideBalancer{
		Meta: m, Driver: l.keys["driver"], DriverID: driverAt(l.keys["driver"], m.Namespace), Spec: l.kvs("spec"), Attributes: l.kvs("attributes"),
		Ensure: l.ensure(), Scope: l.list("scope"), Finalizer: l.has("finalized"),
		Status: world.BalancerStatus{Info: l.kvs("created"), Created: created, Synced: l.has("synced")},
	}
}

func (l line0) balancing(namespace string) world.Balancing {
	b := world.Balancing{
		Parameters: l.kvs("parameters"), Ensure: l.ensure(),
		Leave: world.LeavePolicy{Policy: l.keys["leave"], Driver: driverAt(l.keys["judge"], namespace), Failing: l.keys["failing"]},
	}
	_, byLabel := l.keys["select"]
	_, byName := l.keys["names"]
	if byLabel || byName {
		b.Pods = &world.PodSelection{ByLabel: byLabel, Selector: l.kvs("select"), Except: l.list("except"), Names: l.list("names"), Ports: l.ports("ports")}
	}
	return b
}

func (l line0) group(m world.Meta) *world.BackendGroup {
	_, static := l.keys["static"]
	g := &world.BackendGroup{Meta: m, Balancing: l.balancing(m.Namespace), LoadBalancers: l.list("lbs"), IsStatic: static, Static: l.list("static")}
	if name, port, ok := strings.Cut(l.keys["service"], ":"); ok {
		g.Service = &world.ServiceBackends{
			Name: name, Port: portOf(port), NodeSelector: l.kvs("nodes"), OnlyReady: l.has("onlyready"), NotExcluded: l.has("notexcluded"),
		}
	}
	return g
}

func (l line0) bind(m world.Meta) *world.Bind {
	b := &world.Bind{Meta: m, Balancing: l.balancing(m.Namespace), Finalizer: l.has("finalized")}
	for _, text := range strings.Split(l.keys["entries"], ";") {
		if f := strings.Split(text, "|"); len(f) >= 3 {
			e := world.BindEntry{Name: f[0], Driver: f[1], DriverID: driverAt(f[1], m.Namespace), Spec: kvsOf(f[2])}
			if len(f) > 3 {
				e.Attributes = kvsOf(f[3])
			}
			b.Entries = append(b.Entries, e)
		}
	}
	for _, text := range strings.Split(l.keys["status"], ";") {
		if f := strings.Split(text, "|"); len(f) >= 4 {
			b.Statuses = append(b.Statuses, world.BalancerStatus{
				Name: f[0], DriverID: driverAt(f[1], m.Namespace), Info: kvsOf(f[2]), Created: f[2] != "", Synced: true, Attributes: kvsOf(f[3]),
			})
		}
	}
	return b
}

func (l line0) record(m world.Meta) *world.BackendRecord {
	kind, owner, _ := strings.Cut(l.keys["owner"], "/")
	r := &world.BackendRecord{
		Meta: m, OwnerKind: kind, Owner: owner, OwnerUID: owner + "-uid", LoadBalancer: l.keys["lb"], Driver: l.keys["driver"],
		DriverID: driverAt(l.keys["driver"], m.Namespace), Info: l.kvs("info"), Attributes: l.kvs("attributes"), Parameters: l.kvs("parameters"),
		Ensure: l.ensure(), Port: portOf(l.keys["port"]), NodePort: numberOf(l.keys["nodeport"]), Node: l.keys["node"], Static: l.keys["static"],
		Finalizer: l.has("finalized"), Address: l.keys["address"], Injected: l.kvs("injected"), Registered: l.has("registered"), Mirror: l.keys["mirror"],
	}
	switch {
	case l.keys["pod"] != "":
		r.Kind, r.Name = kindPod, l.keys["pod"]
	case l.keys["service"] != "":
		r.Kind, r.Name = kindService, l.keys["service"]
	default:
		r.Kind = kindStatic
	}
	return r
}
