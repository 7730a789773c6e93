// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const (
	lb    = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}\n"
	node1 = "apiVersion: v1\nkind: Node\nmetadata: {name: node-a}\nstatus: {addresses: [{type: InternalIP, address: 192.0.2.11}]}\n"
)

func folder(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// An error is one line that says where, which field, why, and what to do.
func TestReadSaysWhatIsWrongInOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing there":     {map[string]string{"README.md": "x"}, "DIR: no manifests (*.yaml, *.yml, *.json) are there; name a folder that has some"},
		"no such service":   {map[string]string{"a.yaml": node1}, "DIR: no Service of type LoadBalancer, or with externalIPs, found among 0 Services; name the folder that has those whose addresses you want to know about"},
		"no YAML":           {map[string]string{"a.yaml": lb + "---\na: [1\n"}, "a.yaml, document 2: line 2: did not find expected ',' or ']'; mend the YAML"},
		"no object":         {map[string]string{"a.yaml": "kind: Service\n"}, "a.yaml, document 1: no Kubernetes object: apiVersion or kind is missing; a manifest has apiVersion, kind and metadata"},
		"template":          {map[string]string{"t.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Values.name }}\n"}, "t.yaml, document 1: a template, no manifest; render it first"},
		"wrong type":        {map[string]string{"a.yaml": strings.Replace(lb, "port: 80", "port: eighty", 1)}, "a.yaml, document 1: spec.ports.port: a text where a number belongs; write it as the API defines it"},
		"wrong type inside": {map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: [x]}\n"}, "a.yaml, document 1: items[0].metadata.name: a list where a text belongs"},
		"no name":           {map[string]string{"a.yaml": "apiVersion: v1\nkind: Node\nmetadata: {}\n"}, "a.yaml, document 1: metadata.name: empty; name the object"},
		"twice":             {map[string]string{"a.yaml": lb, "sub/b.yaml": "# other\n---\n" + lb}, "sub/b.yaml, document 1: Service default/web is in a.yaml, document 1 already; keep one; of overlays give the output of `kustomize build`"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(folder(c.files), "DIR")
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestReadRefusesWhatIsNoFolder(t *testing.T) {
	if _, err := Read("read_test.go"); err == nil || err.Error() != "read_test.go: not a folder; name the folder that the file is in" {
		t.Fatal(err)
	}
	if _, err := Read("nowhere"); err == nil || err.Error() != "nowhere: no such file or directory; name a folder with manifests" {
		t.Fatal(err)
	}
}

// What plays no part is counted, what the product would complain of is noted, hidden files are left out.
func TestReadTellsWhatItLeavesOut(t *testing.T) {
	c, err := read(folder(map[string]string{
		"a.yaml":             lb + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: b}}\n",
		"b.json":             `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"colour":1}]}`,
		"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
		"peer.yml":           "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: p}\nspec: {myASN: 64512, peerASN: 64513, peerAddress: 192.0.2.1, vrf: red}\n",
		"secret.yml":         "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: q, namespace: metallb-system}\nspec: {myASN: 64512, peerASN: 64513, peerAddress: 192.0.2.2, passwordSecret: {name: s}}\n",
		".hidden/x.yaml":     "nonsense",
		"values.yaml":        "replicas: 3\n",
	}), "DIR")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 Kustomization (kustomize.config.k8s.io/v1beta1)", "2 Secret (v1)"}; !slices.Equal(c.unused, want) {
		t.Errorf("%q", c.unused)
	}
	want := []string{
		`b.json, document 1: unknown field "colour": it is left out`,
		"kustomization.yaml is not applied: give the output of `kustomize build` where it changes something",
		"peer.yml, document 1: spec.vrf: VRFs are not supported; peer from the default VRF",
		"secret.yml, document 1: the password of q is left out: the simulated switch asks for none",
		"values.yaml, document 1: no Kubernetes object, it is left out",
	}
	if !slices.Equal(c.notes, want) || len(c.peers) != 1 {
		t.Errorf("%q, %d peers", c.notes, len(c.peers))
	}
}

// The repository's own examples are read.
func TestReadTakesTheExamples(t *testing.T) {
	c, err := Read("../../examples/quickstart")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.services) != 4 || len(c.nodes) != 3 || len(c.slices) != 4 || len(c.pools) != 1 || len(c.notes) != 0 || !c.own {
		t.Fatalf("%+v", c)
	}
}

// No document of a file is left out in silence: objects of JSON behind each other count, and what else follows one is an error.
func TestAllDocumentsOfAFileCount(t *testing.T) {
	const one, two = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"}}`, `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "two"}}`
	var r reader
	r.cluster, r.seen, r.unused = &Cluster{}, map[ref]origin{}, map[string]int{}
	if err := r.file("a.json", []byte(one+"\n"+two)); err != nil || r.objects != 2 {
		t.Errorf("%d objects, %v", r.objects, err)
	}
	err := r.file("b.yaml", []byte("{apiVersion: v1, kind: Service, metadata: {name: three}}\n{apiVersion: v1}\n"))
	if err == nil || !strings.Contains(err.Error(), "another document begins") {
		t.Errorf("what follows: %v", err)
	}
}

// planned is what becomes of manifests, in words.
func planned(t *testing.T, files map[string]string) (*plan, string) {
	t.Helper()
	c, err := read(folder(files), "DIR")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.plan(3, 3)
	if err != nil {
		t.Fatal(err)
	}
	return p, p.words()
}

func (p *plan) words() string {
	var b strings.Builder
	for _, s := range p.stage.Switches {
		fmt.Fprintf(&b, "switch %s %s as %d, members as %d, hold %v\n", s.Name, s.Address, s.ASN, s.MemberASN, s.Hold)
	}
	for _, x := range p.pods {
		fmt.Fprintf(&b, "pod %s on %s ready %t\n", x.id(), x.node, x.ready)
	}
	for _, text := range p.made {
		fmt.Fprintf(&b, "made: %s\n", text)
	}
	for _, text := range p.notes {
		fmt.Fprintf(&b, "note: %s\n", text)
	}
	for _, text := range p.unused {
		fmt.Fprintf(&b, "unused: %s\n", text)
	}
	return b.String()
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever the manifests lack is made up, and that is said.
func TestWhatIsMissingIsMadeUp(t *testing.T) {
	_, words := planned(t, map[string]string{"a.yaml": lb})
	equal(t, words, `
switch tor 192.0.2.1 as 64513, members as 64512, hold 0s
pod default/web-made-1 on n1 ready true
pod default/web-made-2 on n2 ready true
made: no Node is in the manifests: 3 were made, n1 to n3; --nodes changes how many
made: no usable BGPPeer is in the manifests: one switch was made, tor at 192.0.2.1 in AS 64513
made: no usable IPAddressPool is in the manifests: one was made, of 203.0.113.0/24
made: Service default/web selects no pods of the manifests: two were made
`)
}

func TestRealWorldManifestsBecomeAWorld(t *testing.T) {
	text, err := os.ReadFile("testdata/real/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, words := planned(t, map[string]string{"shop.yaml": string(text)})
	equal(t, words, `
switch tor-a 192.0.2.253 as 64601, members as 64512, hold 30s
switch tor-b 192.0.2.254 as 64602, members as 64512, hold 0s
pod shop/front-1 on n1 ready true
pod shop/front-2 on n2 ready true
pod shop/front-3 on n3 ready true
pod shop/mail-0 on n1 ready true
made: no Node is in the manifests: 3 were made, n1 to n3; --nodes changes how many
unused: 1 Ingress (networking.k8s.io/v1)
unused: 2 Secret (v1)
unused: 1 Service of another type than LoadBalancer, without externalIPs
`)
	var ids []string
	for _, q := range p.questions() {
		ids = append(ids, q.id)
	}
	want := []string{
		"leader-killed", "member-cut-off", "members-stopped", "node-n1-dies", "node-n2-dies", "node-n3-dies", "switch-tor-a-restarts",
		"switch-tor-b-restarts", "kubernetes-away", "agent-restarts", "pods-move", "members-restarted",
	}
	if !slices.Equal(ids, want) {
		t.Errorf("%q", ids)
	}
}

// Pods go where Kubernetes would put them: not onto nodes that repel them or lack their labels; given pods stay.
func TestPodsGoWhereTheyMay(t *testing.T) {
	nodes := "apiVersion: v1\nkind: Node\nmetadata: {name: control}\nspec: {taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]}\n---\n" +
		"apiVersion: v1\nkind: Node\nmetadata: {name: disk, labels: {disk: ssd}}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: idle}\nspec: {unschedulable: true}\n"
	app := func(kind, name, spec string) string {
		return fmt.Sprintf("---\napiVersion: apps/v1\nkind: %s\nmetadata: {name: %s}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web, of: %s}}\n    spec: %s\n", kind, name, name, spec)
	}
	given := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: here, labels: {app: web, of: a}}\nspec: {nodeName: idle}\nstatus: {phase: Running, podIP: 10.9.9.9, conditions: [{type: Ready, status: 'False'}]}\n"
	_, words := planned(t, map[string]string{"a.yaml": lb + "---\n" + nodes + strings.Replace(app("Deployment", "a", "{}"), "{app: web}}\n  template", "{of: a}}\n  template", 1) +
		strings.Replace(app("DaemonSet", "b", "{tolerations: [{operator: Exists}]}"), "  replicas: 2\n", "", 1) + app("StatefulSet", "c", "{nodeSelector: {disk: hdd}}") + given})
	equal(t, words, `
switch tor 192.0.2.1 as 64513, members as 64512, hold 0s
pod default/here on idle ready false
pod default/a-2 on disk ready true
pod default/b-1 on control ready true
pod default/b-2 on disk ready true
made: Node control has no InternalIP: it is given 10.1.0.1
made: Node disk has no InternalIP: it is given 10.1.0.2
made: Node idle has no InternalIP: it is given 10.1.0.3
made: no usable BGPPeer is in the manifests: one switch was made, tor at 192.0.2.1 in AS 64513
made: no usable IPAddressPool is in the manifests: one was made, of 203.0.113.0/24
note: StatefulSet default/c: no node takes 2 of its 2 pods, for their nodeSelector or taints: they are left out
`)
}

// Neighbours of an old installation are switches, too, and passwords are not needed.
func TestNeighboursOfTheOldConfigMapAreSwitches(t *testing.T) {
	text, err := os.ReadFile("../../deploy/examples/config-maps.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, words := planned(t, map[string]string{"a.yaml": lb, "b.yaml": string(text), "n.yaml": node1})
	if !strings.HasPrefix(words, "switch bgp-192.0.2.1 192.0.2.1 as 65001, members as 65000, hold ") || p.stage.ASN != 65000 || len(p.stage.Switches) != 1 {
		t.Fatal(words)
	}
}

func TestWhatNoWorldTakesIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"node with a member's name": {strings.Replace(node1, "node-a", "m1", 1), "Node m1: a machine of the world has this name already"},
		"address twice":             {node1 + "---\n" + strings.Replace(node1, "node-a", "node-b", 1), "Node node-b: status.addresses: 192.0.2.11 is that of Node node-a as well"},
		"refused by the server":     {"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {type: LoadBalancer}\n", "DIR: an API server refuses it: Service \"x\" is invalid: spec.ports: Required value; mend the manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			c2, err := read(folder(map[string]string{"a.yaml": lb, "b.yaml": c.text}), "DIR")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = c2.plan(3, 3); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func service(name, spec string) string {
	return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {type: LoadBalancer, ports: [{port: 80}], " + spec + "}\n"
}

// Who scales to zero means it.
func TestNoPodsAreMadeForWorkloadsWithoutAny(t *testing.T) {
	zero := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}\n"
	p, words := planned(t, map[string]string{"a.yaml": service("web", "selector: {app: web}") + zero})
	if len(p.pods) != 0 || !strings.Contains(words, "Service default/web selects a workload without any pods: nothing is behind it") {
		t.Error(words)
	}
}

func TestNodesThatAreMadeHaveTheFamiliesThatServicesAskFor(t *testing.T) {
	for spec, want := range map[string]int{
		"selector: {app: web}":            1,
		"ipFamilies: [IPv6]":              2,
		`externalIPs: ["2001:db8::1"]`:    2,
		`loadBalancerIP: "2001:db8::1"`:   2,
		`externalIPs: ["198.51.100.300"]`: 1,
	} {
		p, _ := planned(t, map[string]string{"a.yaml": service("web", spec)})
		if got := len(p.stage.Nodes[0].Addresses); got != want {
			t.Errorf("%s: %d addresses", spec, got)
		}
	}
}

// Neighbours of the old installation take the family of their own address, unless they say otherwise.
func TestNeighboursExchangeTheFamiliesThatTheyName(t *testing.T) {
	toml := "[global.config]\n      as = 65000\n    [[neighbors]]\n      [neighbors.config]\n        neighbor-address = \"192.0.2.1\"\n        peer-as = 65001\n"
	old := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-gobgp-cfg, namespace: kube-system}\ndata:\n  config_bgp.toml: |\n    " + toml
	v4, v6 := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("2001:db8::1")
	p, _ := planned(t, map[string]string{"a.yaml": lb + old})
	if !p.exchanges("bgp-192.0.2.1", v4) || p.exchanges("bgp-192.0.2.1", v6) || p.reachable(v6) {
		t.Errorf("%v", p.families)
	}
	if p, _ := planned(t, map[string]string{"a.yaml": lb}); !p.reachable(v4) || !p.reachable(v6) {
		t.Errorf("%v", p.families)
	}
}

// Clients ask for an address where advertisements have it sent.
func TestSwitchesLearnWhatAdvertisementsSendThem(t *testing.T) {
	const peers = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: %[1]s}\nspec: {myASN: 65000, peerASN: 65001, peerAddress: %[2]s}\n---\n"
	const pool = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\nmetadata: {name: %[1]s, labels: {name: %[1]s}}\nspec: {addresses: [%[2]s]}\n---\n"
	const ad = "apiVersion: metallb.io/v1beta1\nkind: BGPAdvertisement\nmetadata: {name: %s}\nspec: {%s}\n---\n"
	base := fmt.Sprintf(peers, "s1", "192.0.2.251") + fmt.Sprintf(peers, "s2", "192.0.2.252") + fmt.Sprintf(pool, "p", "203.0.113.0/28") + fmt.Sprintf(pool, "q", "198.51.100.0/28")
	of := map[string]netip.Addr{"p": netip.MustParseAddr("203.0.113.1"), "q": netip.MustParseAddr("198.51.100.1"), "none": netip.MustParseAddr("192.0.2.77")}
	for _, c := range []struct {
		ads  []string
		want string // who learns what
	}{
		{nil, "s1:p s1:q s1:none s2:p s2:q s2:none"},
		{[]string{"ipAddressPools: [p], peers: [s1]"}, "s1:p s1:q s1:none s2:q s2:none"},
		{[]string{"ipAddressPools: [p], peers: [s1]", "ipAddressPoolSelectors: [{matchLabels: {name: q}}], peers: [s2]"}, "s1:p s1:none s2:q s2:none"},
		{[]string{"peers: [s1]", "ipAddressPools: [q]"}, "s1:p s1:q s1:none s2:q"},
		{[]string{"peers: [s1], serviceSelectors: [{matchLabels: {a: b}}]"}, "s1:p s1:q s1:none s2:p s2:q s2:none"},
		{[]string{"peers: [s3]"}, ""},
	} {
		text := base
		for i, spec := range c.ads {
			text += fmt.Sprintf(ad, fmt.Sprint("a", i), spec)
		}
		p, _ := planned(t, map[string]string{"a.yaml": text + lb})
		var got []string
		for _, s := range []string{"s1", "s2"} {
			for _, pool := range []string{"p", "q", "none"} {
				if p.learns(s, of[pool]) {
					got = append(got, s+":"+pool)
				}
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %v, want %s", c.ads, got, c.want)
		}
	}
}

// Descriptions are free text: neighbours with the same one are switches of their own.
func TestNeighboursOfOneDescriptionAreSeveralSwitches(t *testing.T) {
	old := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-gobgp-cfg, namespace: kube-system}\ndata:\n  config_bgp.toml: |\n    [global.config]\n    as = 65000\n"
	for i := 1; i <= 3; i++ {
		old += fmt.Sprintf("    [[neighbors]]\n    [neighbors.config]\n    neighbor-address = \"192.0.2.%d\"\n    peer-as = 65001\n    description = \"leaf\"\n", i)
	}
	p, _ := planned(t, map[string]string{"a.yaml": lb + old})
	if !slices.Equal(p.cast.Switches, []string{"leaf", "switch-leaf", "switch-switch-leaf"}) {
		t.Errorf("switches %q", p.cast.Switches)
	}
}

func TestANeighbourAtTheAddressOfANodeIsPointedOut(t *testing.T) {
	node := "---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {addresses: [{type: InternalIP, address: 192.0.2.7}]}\n"
	peer := "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: m1, namespace: metallb-system}\nspec: {myASN: 64512, peerASN: 64601, peerAddress: 192.0.2.7}\n"
	_, words := planned(t, map[string]string{"a.yaml": lb + node + peer})
	if !strings.Contains(words, "m1 has the address of a Node, 192.0.2.7") || !strings.Contains(words, "switch switch-m1") {
		t.Error(words)
	}
}

// What members can make nothing of is not held against them.
func TestServicesThatMembersCannotUseAreKnown(t *testing.T) {
	p, words := planned(t, map[string]string{"a.yaml": lb + service("odd", `externalIPs: ["198.51.100.300"]`)})
	if why := p.unusable["default/odd"]; !strings.Contains(why, "spec.externalIPs[0]") || p.unusable["default/web"] != "" {
		t.Errorf("%q; %s", why, words)
	}
}
