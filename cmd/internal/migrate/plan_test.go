// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/migrate"
)

const toml = `[global.config]
  as = 65000
  router-id = "192.0.2.11"
  port = 1790
[[neighbors]]
  [neighbors.config]
    neighbor-address = "192.0.2.1"
    peer-as = 65001
`

// installation is an old system with masters cp-1..., and its replicas on the named nodes, by ordinal.
func installation(masters int, podsOn ...string) migrate.Installation {
	in := migrate.Installation{Namespace: "kube-system", HasController: true, HasDaemon: true, Replicas: len(podsOn)}
	for i := range masters {
		name, a := fmt.Sprintf("cp-%d", i+1), netip.AddrFrom4([4]byte{192, 0, 2, byte(11 + i)})
		in.Nodes = append(in.Nodes, migrate.Node{Name: name, ControlPlane: true, Ready: true, Addresses: []netip.Addr{a}})
		in.World.Nodes = append(in.World.Nodes, &world.Node{Meta: world.Meta{ID: world.ID{Name: name}, UID: name}, Ready: true, Addresses: []world.NodeAddress{{Type: world.InternalIP, Address: a}}})
	}
	in.Nodes = append(in.Nodes, migrate.Node{Name: "worker", Ready: true, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.100")}})
	for i, node := range podsOn {
		in.Pods = append(in.Pods, migrate.Pod{Name: fmt.Sprintf("%s-%d", migrate.Controller, i), Node: node, Ready: true})
	}
	in.World.ConfigMaps = []*world.ConfigMap{
		{Meta: world.Meta{ID: world.ID{Namespace: "kube-system", Name: migrate.ConfigMapBGP}}, Data: []world.KV{{Key: migrate.KeyBGP, Value: toml}}},
		{Meta: world.Meta{ID: world.ID{Namespace: "kube-system", Name: migrate.ConfigMapRules}},
			Data: []world.KV{{Key: "DEPLOY_MODEL", Value: "barematel"}, {Key: "SWITCH", Value: "192.0.2.1"}}},
	}
	in.World.Services = []*world.Service{service("web", 80, "203.0.113.10")}
	in.Objects = []migrate.Object{{Kind: "StatefulSet", Name: migrate.Controller, Manifest: []byte("kind: StatefulSet\n")}}
	return in
}

func service(name string, port uint16, external ...string) *world.Service {
	s := &world.Service{Meta: world.Meta{ID: world.ID{Namespace: "default", Name: name}, UID: name}, Type: world.LoadBalancer,
		ExternalTrafficPolicy: world.PolicyCluster, Ports: []world.ServicePort{{Protocol: world.TCP, Port: port}}}
	for _, a := range external {
		s.ExternalIPs = append(s.ExternalIPs, netip.MustParseAddr(a))
	}
	return s
}

func names(p Plan) string {
	var out []string
	for _, m := range p.Members {
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

func warned(p Plan, text string) bool {
	return slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// kube-loadbalancer-controller §10: one or two replicas become three voters on the masters, or it is said what fewer cannot do.
func TestReplicasBecomeThreeVotersOrAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		in      migrate.Installation
		members []string
		want    string
		warning string
	}{
		"one-of-three":  {installation(3, "cp-2"), nil, "cp-1 cp-3 cp-2", ""},
		"two-of-three":  {installation(3, "cp-1", "cp-3"), nil, "cp-2 cp-3 cp-1", ""},
		"three":         {installation(3, "cp-3", "cp-1", "cp-2"), nil, "cp-2 cp-1 cp-3", ""},
		"of-five":       {installation(5, "cp-1", "cp-2"), nil, "cp-3 cp-4 cp-5", ""},
		"named-five":    {installation(5, "cp-1"), []string{"cp-1", "cp-2", "cp-3", "cp-4", "cp-5"}, "cp-2 cp-3 cp-4 cp-5 cp-1", ""},
		"two-masters":   {installation(2, "cp-1"), nil, "cp-2 cp-1", "two voters: addresses stay announced while one is away, but nothing can be changed"},
		"one-master":    {installation(1, "cp-1"), nil, "cp-1", "one voter"},
		"with-a-worker": {installation(2, "cp-1"), []string{"cp-1", "cp-2", "worker"}, "cp-2 worker cp-1", ""},
		"four":          {installation(4, "cp-1"), []string{"cp-1", "cp-2", "cp-3", "cp-4"}, "cp-2 cp-3 cp-4 cp-1", "4 voters"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Decide(c.in, Options{Members: c.members, Out: "out"})
			if err != nil {
				t.Fatal(err)
			}
			if names(p) != c.want {
				t.Errorf("members %s, want %s", names(p), c.want)
			}
			if c.warning != "" && !warned(p, c.warning) || c.warning == "" && warned(p, "voter") {
				t.Errorf("warnings %q", p.Warnings)
			}
			if got := p.Neighbours[0]; got.Port != 1790 || got.ASN != 65000 || got.Address != p.Members[0].Address {
				t.Errorf("neighbour %+v", got)
			}
		})
	}
	p, err := Decide(installation(1, "cp-1"), Options{})
	if err != nil || !warned(p, "the switch has no path") {
		t.Errorf("the gap of a single master is not told: %v %q", err, p.Warnings)
	}
}

func TestDecideRefusesWithOneLineAndARemedy(t *testing.T) {
	good := func(change func(*migrate.Installation)) migrate.Installation {
		in := installation(3, "cp-1")
		change(&in)
		return in
	}
	set := func(name int, value string) func(*migrate.Installation) {
		return func(in *migrate.Installation) {
			data := in.World.ConfigMaps[name].Data
			data[len(data)-1].Value = value
		}
	}
	for name, c := range map[string]struct {
		in   migrate.Installation
		o    Options
		want string
	}{
		"nothing-there": {migrate.Installation{Namespace: "kube-system"}, Options{}, "nothing to migrate from"},
		"no-bgp-map":    {good(func(in *migrate.Installation) { in.World.ConfigMaps = in.World.ConfigMaps[1:] }), Options{}, "no ConfigMap kube-gobgp-cfg"},
		"no-rules-map":  {good(func(in *migrate.Installation) { in.World.ConfigMaps = in.World.ConfigMaps[:1] }), Options{}, "no ConfigMap kube-iprule-cfg"},
		"bad-toml":      {good(set(0, "[global.config]\nas = 0\n")), Options{}, "config_bgp.toml:2: global.config.as"},
		"bad-neighbour": {good(set(0, "[global.config]\nas = 65000\n[[neighbors]]\n[neighbors.config]\nneighbor-address = \"192.0.2.1\"\npeer-as = 65001\n"+
			"[[neighbors]]\n[neighbors.config]\nneighbor-address = \"192.0.2.2\"\n")), Options{}, "config_bgp.toml:8: neighbors[1].config.peer-as"},
		"no-neighbour":   {good(set(0, "[global.config]\nas = 65000\n")), Options{}, "lists no neighbour"},
		"bad-switch":     {good(set(1, "192.0.2")), Options{}, `ConfigMap kube-iprule-cfg: SWITCH: "192.0.2" is no IP address`},
		"empty-switch":   {good(set(1, " ")), Options{}, "has no key SWITCH"},
		"unknown-member": {good(func(*migrate.Installation) {}), Options{Members: []string{"cp-9"}}, `no node "cp-9"`},
		"member-twice":   {good(func(*migrate.Installation) {}), Options{Members: []string{"cp-1", "cp-1"}}, "twice"},
		"no-masters": {good(func(in *migrate.Installation) {
			for i := range in.Nodes {
				in.Nodes[i].ControlPlane = false
			}
		}), Options{}, "--members"},
		"no-address":     {good(func(in *migrate.Installation) { in.Nodes[1].Addresses = nil }), Options{}, "node cp-2 has no InternalIP"},
		"node-not-ready": {good(func(in *migrate.Installation) { in.Nodes[2].Ready = false }), Options{}, "node cp-3 is not ready"},
		"losing-one": {good(func(in *migrate.Installation) {
			in.World.Services = append(in.World.Services, service("web2", 80, "203.0.113.10"))
		}), Options{}, "Service default/web2: 203.0.113.10 belongs to Service default/web"},
		"address-of-a-node": {good(func(in *migrate.Installation) {
			in.World.Services = append(in.World.Services, service("web2", 80, "192.0.2.12"))
		}), Options{}, "that is no node's own, as 192.0.2.12 is"},
		"address-of-the-switch": {good(func(in *migrate.Installation) {
			in.World.Services = append(in.World.Services, service("web2", 80, "192.0.2.1"))
		}), Options{}, "is the address of BGP peer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decide(c.in, c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	in := good(func(in *migrate.Installation) {
		in.World.Services = append(in.World.Services, service("web2", 80, "203.0.113.10"), service("web3", 81, "203.0.113.10"), service("none", 80))
	})
	p, err := Decide(in, Options{AllowPending: true})
	if err != nil || len(p.Losing) != 1 || len(p.Addresses) != 1 || !warned(p, "1 Services of type LoadBalancer have no externalIPs") {
		t.Errorf("going on all the same: %v, losing %q, addresses %v, %q", err, p.Losing, p.Addresses, p.Warnings)
	}
}

// rehearsal carries out steps on a model of the cluster.
type rehearsal struct {
	pods    []string // nodes by ordinal
	members map[string]bool
	group   bool
}

func (r *rehearsal) do(t *rapid.T, command string) {
	var node string
	var replicas int
	switch {
	case strings.HasPrefix(command, "kubectl label node "):
		if _, err := fmt.Sscanf(command, "kubectl label node %s fairlead.io/member=true", &node); err != nil {
			t.Fatalf("%q: %v", command, err)
		}
		if slices.Contains(r.pods, node) {
			t.Fatalf("a member begins on %s, where the old controller runs", node)
		}
		if len(r.members) > 0 && !r.group {
			t.Fatalf("a second member begins while the configuration lists one")
		}
		r.members[node] = true
	case strings.HasPrefix(command, "kubectl -n kube-system scale statefulset loadbalancer-controller --replicas="):
		if _, err := fmt.Sscanf(command[strings.LastIndex(command, "="):], "=%d", &replicas); err != nil {
			t.Fatalf("%q: %v", command, err)
		}
		if replicas != len(r.pods)-1 {
			t.Fatalf("%d replicas at once become %d", len(r.pods), replicas)
		}
		r.pods = r.pods[:replicas]
	case strings.Contains(command, "apply -k out/group"):
		r.group = true
	case strings.Contains(command, "delete statefulset"), strings.Contains(command, "delete daemonset"):
		if len(r.pods) > 0 {
			t.Fatalf("%q while old pods run", command)
		}
	}
}

// Whoever follows the steps never has two speakers on a node, and never none at all, unless told before.
func TestPropertyStepsNeverLeaveTheSwitchWithoutASpeaker(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		masters := rapid.IntRange(1, 6).Draw(t, "masters")
		var nodes []string
		for i := range masters {
			nodes = append(nodes, fmt.Sprintf("cp-%d", i+1))
		}
		pods := rapid.Permutation(nodes).Draw(t, "order")[:rapid.IntRange(0, masters).Draw(t, "replicas")]
		o := Options{Out: "out"}
		if rapid.Bool().Draw(t, "named") {
			o.Members = rapid.Permutation(nodes).Draw(t, "named order")[:rapid.IntRange(1, masters).Draw(t, "members")]
		}
		p, err := Decide(installation(masters, pods...), o)
		if err != nil {
			t.Fatal(err)
		}
		r := &rehearsal{pods: slices.Clone(pods), members: map[string]bool{}}
		for _, s := range p.Steps {
			for _, c := range s.Commands {
				r.do(t, c)
			}
			if s.Back == "" || s.Expect == "" {
				t.Fatalf("step %q has no way back or nothing to expect", s.Title)
			}
			if len(pods) > 0 && len(r.pods)+len(r.members) == 0 && !warned(p, "the switch has no path") {
				t.Fatalf("after %q nobody announces anything, and nobody was told", s.Title)
			}
		}
		if len(r.pods) > 0 || len(r.members) != len(p.Members) {
			t.Fatalf("in the end: old pods %v, members %v", r.pods, r.members)
		}
	})
}

func TestFilesAreWhatMembersAndAgentsTake(t *testing.T) {
	in := installation(3, "cp-1")
	p, err := Decide(in, Options{Out: "out"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	files := Files(p, in, Rendering{Base: "../../deploy/base", Image: "registry.example.com:5000/fairlead:v1", Token: "TOKEN"})
	if err := Write(dir, files); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, files); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("written over what was there: %v", err)
	}
	t.Setenv("NODE_NAME", "cp-2")
	t.Setenv("HOST_IP", "192.0.2.12")
	first, err := config.LoadController(filepath.Join(dir, "first/controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if first.BootstrapToken != "TOKEN" || len(first.Members) != 1 || first.Members[0].Name != "cp-2" || first.BGP.ConfigFile == "" || !first.Sources.Kubernetes.InCluster {
		t.Errorf("first: %+v", first)
	}
	t.Setenv("NODE_NAME", "cp-1")
	group, err := config.LoadController(filepath.Join(dir, "group/controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if group.BootstrapToken != "" || len(group.Members) != 3 || group.Members[0].API != "192.0.2.12:7443" {
		t.Errorf("group: %+v", group)
	}
	for _, folder := range []string{"first", "group"} {
		agent, err := config.LoadAgent(filepath.Join(dir, folder, "agent.yaml"), "worker")
		if err != nil || len(agent.Members) != 3 {
			t.Errorf("%s: %+v, %v", folder, agent, err)
		}
	}
	for name, want := range map[string][]string{
		"STEPS.md":                 {"1 replicas of the old controller become 3 voters", "kubectl label node cp-2 fairlead.io/member=true", "Back:"},
		"switch.txt":               {"neighbour 192.0.2.12, AS 65000, listens at port 1790", "Members dial 192.0.2.1"},
		"group/kustomization.yaml": {`newName: "registry.example.com:5000/fairlead", newTag: "v1"`, `"value": 2}`},
		"first/kustomization.yaml": {`"value": 1}`},
		"old/statefulset-loadbalancer-controller.yaml": {"kind: StatefulSet"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s lacks %q:\n%s", name, w, text)
			}
		}
	}
	info, err := os.Stat(filepath.Join(dir, "first/controller.yaml"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token may be read by everybody: %v %v", info.Mode(), err)
	}
}

// What is generated says the same as the overlay that people adapt by hand, but for who the members are.
func TestFilesSayWhatTheOverlaySays(t *testing.T) {
	in := installation(3, "cp-1")
	p, err := Decide(in, Options{Out: "out"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, Files(p, in, Rendering{Token: "TOKEN"})); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODE_NAME", "cp-1")
	t.Setenv("HOST_IP", "192.0.2.11")
	const overlay = "../../../deploy/overlays/three"
	ours, err := config.LoadController(filepath.Join(dir, "group/controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := config.LoadController(filepath.Join(overlay, "controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	theirs.BootstrapToken = ""
	theirs.ExternalIPs = config.ExternalIPsWarn // the Services of that installation name their addresses, and nobody wrote policies yet
	slices.SortFunc(ours.Members, func(a, b config.Member) int { return strings.Compare(a.Name, b.Name) })
	if !reflect.DeepEqual(ours, theirs) {
		t.Errorf("controller.yaml is\n%+v\nthe overlay's\n%+v", ours, theirs)
	}
	ourAgent, err := config.LoadAgent(filepath.Join(dir, "group/agent.yaml"), "n")
	if err != nil {
		t.Fatal(err)
	}
	theirAgent, err := config.LoadAgent(filepath.Join(overlay, "agent.yaml"), "n")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ourAgent.Members)
	if !reflect.DeepEqual(ourAgent, theirAgent) {
		t.Errorf("agent.yaml is\n%+v\nthe overlay's\n%+v", ourAgent, theirAgent)
	}
}
