// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

// Section 2.4: the address of a database that moved.
func TestBalancingPolicyBecomesWhatAPlannerNeeds(t *testing.T) {
	got, problems := BalancingPolicy(read[v1beta1.BalancingPolicy](t, `
metadata: {name: legacy-db, annotations: {balancing.elf.io/serviceId: "31007", balancing.elf.io/onNoBackend: fallthrough}}
spec:
  frontend:
    addressMatcher: {ip: " 169.254.77.1 ", toPorts: [{name: pg, port: "05432", protocol: TCP}]}
  backend:
    addressEndpoint:
      addresses: ["10.20.0.11", "10.20.0.12"]
      toPorts: [{name: pg, port: "6432", protocol: TCP}, {name: unused, port: "1", protocol: UDP}]
`))
	same(t, got, problems, world.BalancingPolicy{Meta: meta("", "legacy-db"), Redirect: world.Redirect{
		ServiceID: 31007, Outside: true, FallThrough: true, Address: netip.MustParseAddr("169.254.77.1"),
		Ports: []world.RedirectPort{{Name: "pg", Protocol: world.TCP, Port: 5432, Target: 6432}},
		Mode:  world.ToAddresses, Addresses: []netip.Addr{netip.MustParseAddr("10.20.0.11"), netip.MustParseAddr("10.20.0.12")},
		Health: world.HealthCheck{Type: world.ProbeTCP, Interval: 10 * time.Second, Timeout: 2 * time.Second, Healthy: 1, Unhealthy: 3},
	}})
}

// Sections 2.4, 4: a node-local DNS cache; its ports are heeded.
func TestLocalRedirectPolicyBecomesWhatAPlannerNeeds(t *testing.T) {
	got, problems := LocalRedirectPolicy(read[v1beta1.LocalRedirectPolicy](t, `
metadata: {name: dns-local, annotations: {balancing.elf.io/skipRedirectFromBackend: "true"}}
spec:
  enabled: false
  config: {enableOutCluster: false, nodeLabelSelector: {matchLabels: {dns-cache: "on"}}}
  frontend:
    serviceMatcher:
      namespace: kube-system
      serviceName: kube-dns
      toPorts: [{name: q, port: "53", protocol: UDP}, {name: t, port: "53", protocol: TCP}]
  backend:
    endpointSelector: {matchLabels: {app: dns-cache}}
    toPorts: [{name: t, port: "5354", protocol: TCP}, {name: q, port: "5353", protocol: UDP}]
`))
	same(t, got, problems, world.LocalRedirectPolicy{Meta: meta("", "dns-local"), Redirect: world.Redirect{
		Disabled: true, SpareOwn: true, Nodes: world.Selector{Labels: []world.KV{{Key: "dns-cache", Value: "on"}}}, Service: id("kube-system", "kube-dns"),
		Ports: []world.RedirectPort{{Name: "q", Protocol: world.UDP, Port: 53, Target: 5353}, {Name: "t", Protocol: world.TCP, Port: 53, Target: 5354}},
		Mode:  world.ToLocalPods, Pods: world.Selector{Labels: []world.KV{{Key: "app", Value: "dns-cache"}}},
	}})
}

// Sections 6, 13, 14: modes, ports behind proxy ports, and probes.
func TestBackendsOfEachMode(t *testing.T) {
	front := "{addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: \"80\", protocol: TCP}]}}"
	convert := func(backend, annotations string) world.Redirect {
		t.Helper()
		p, problems := BalancingPolicy(read[v1beta1.BalancingPolicy](t, "metadata: {name: a, annotations: {"+annotations+"}}\nspec: {frontend: "+front+", backend: {"+backend+"}}"))
		if len(problems) > 0 {
			t.Errorf("%s: %v", backend, problems)
		}
		return p.Redirect
	}
	const pods = "serviceEndpoint: {endpointSelector: {matchLabels: {a: b}}, toPorts: [{name: p, port: \"10080\", protocol: TCP}]"
	for mode, want := range map[string]world.RedirectMode{
		"": world.ToPods, ", redirectMode: podEndpoint": world.ToPods, ", redirectMode: hostPort": world.ToHostPorts, ", redirectMode: nodeProxy": world.ToProxies,
	} {
		if r := convert(pods+mode+"}", ""); r.Mode != want || r.Pods.Labels[0].Key != "a" || r.Health.Type != "" {
			t.Errorf("%q: %+v", mode, r)
		}
	}
	if r := convert(pods+", redirectMode: nodeProxy}", "balancing.elf.io/nodeProxyTargetPort.p: web"); !slices.Equal(r.ProxyTargets, []world.KV{{Key: "p", Value: "web"}}) {
		t.Errorf("%+v", r)
	}
	r := convert(`addressEndpoint: {addresses: [192.0.2.9], toPorts: [{name: p, port: "80", protocol: TCP}],
	  healthCheck: {type: HTTPS, port: 8443, path: /ok, expectedStatuses: [200, 204], intervalSeconds: 5, timeoutSeconds: 1, healthyThreshold: 2, unhealthyThreshold: 4}}`, "")
	h := r.Health
	if h.Type != world.ProbeHTTPS || h.Port != 8443 || h.Path != "/ok" || !slices.Equal(h.Statuses, []int{200, 204}) ||
		h.Interval != 5*time.Second || h.Timeout != time.Second || h.Healthy != 2 || h.Unhealthy != 4 {
		t.Errorf("%+v", h)
	}
	for _, kind := range []world.ProbeType{world.ProbeTCP, world.ProbeHTTP, world.ProbeHTTPS, world.ProbeICMP, world.ProbeUDP, world.ProbeNone} {
		if r := convert(`addressEndpoint: {addresses: [192.0.2.9], toPorts: [{name: p, port: "80", protocol: TCP}], healthCheck: {type: `+string(kind)+`}}`, ""); r.Health.Type != kind {
			t.Errorf("type %s becomes %q", kind, r.Health.Type)
		}
	}
}

// edit changes one text of a good manifest.
func edit(t *testing.T, manifest, from, to string) string {
	t.Helper()
	if strings.Count(manifest, from) != 1 {
		t.Fatalf("%d times %q", strings.Count(manifest, from), from)
	}
	return strings.Replace(manifest, from, to, 1)
}

const goodPolicy = `
metadata: {name: a, annotations: {balancing.elf.io/serviceId: "7"}}
spec:
  frontend: {addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: "80", protocol: TCP}]}}
  backend: {addressEndpoint: {addresses: [192.0.2.9], toPorts: [{name: p, port: "8080", protocol: TCP}]}}
`

// Each bad field is named, and what is made of the rest. The names say which rule of balancing §3 it is.
func TestBadFieldsOfPoliciesAreNamed(t *testing.T) {
	const front, back = "spec.frontend.addressMatcher", "spec.backend.addressEndpoint"
	for name, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"good":                               {"name: a,", "name: a,", nil},
		"A1 id of zero":                      {`"7"`, `"0"`, []string{"warning metadata.annotations[balancing.elf.io/serviceId]"}},
		"A1 no id":                           {`"7"`, `"4294967296"`, []string{"warning metadata.annotations[balancing.elf.io/serviceId]"}},
		"A4 none":                            {"{addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: \"80\", protocol: TCP}]}}", "{}", []string{"error spec.frontend"}},
		"A4 both":                            {"{addressMatcher:", "{serviceMatcher: {namespace: a, serviceName: b}, addressMatcher:", []string{"error spec.frontend"}},
		"A5 none":                            {"{addressEndpoint: {addresses: [192.0.2.9], toPorts: [{name: p, port: \"8080\", protocol: TCP}]}}", "{}", []string{"error spec.backend", "warning " + front + ".toPorts", "error " + front + ".toPorts"}},
		"A5 both":                            {"{addressEndpoint:", "{serviceEndpoint: {toPorts: []}, addressEndpoint:", []string{"error spec.backend", "warning " + front + ".toPorts", "error " + front + ".toPorts"}},
		"A6 same name at the back":           {`port: "8080", protocol: TCP}`, `port: "8080", protocol: TCP}, {name: p, port: "81", protocol: TCP}`, []string{"warning " + back + ".toPorts[1].name"}},
		"A6 same name in front":              {`port: "80", protocol: TCP}`, `port: "80", protocol: TCP}, {name: p, port: "81", protocol: TCP}`, []string{"warning " + front + ".toPorts[1].name"}},
		"A6 unnamed":                         {`port: "8080", protocol: TCP}`, `port: "8080", protocol: TCP}, {port: "53", protocol: UDP}`, []string{"info " + back + ".toPorts"}},
		"A7 port twice":                      {`port: "80", protocol: TCP}`, `port: "80", protocol: TCP}, {name: q, port: "080", protocol: TCP}`, []string{"warning " + front + ".toPorts[1]"}},
		"A8 no port of the name":             {`name: p, port: "8080"`, `name: q, port: "8080"`, []string{"warning " + front + ".toPorts", "error " + front + ".toPorts"}},
		"A8 no port of the protocol":         {`port: "8080", protocol: TCP`, `port: "8080", protocol: UDP`, []string{"warning " + front + ".toPorts", "error " + front + ".toPorts"}},
		"A8 all ports of a Service":          {"{addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: \"80\", protocol: TCP}]}}", "{serviceMatcher: {namespace: a, serviceName: b}}", []string{"info spec.frontend.serviceMatcher.toPorts"}},
		"A9 no captured port":                {`[{name: p, port: "80", protocol: TCP}]`, "[]", []string{"error " + front + ".toPorts"}},
		"A9 no backend port":                 {`[{name: p, port: "8080", protocol: TCP}]`, "[]", []string{"error " + back + ".toPorts", "warning " + front + ".toPorts", "error " + front + ".toPorts"}},
		"A9 no usable backend port":          {`port: "8080", protocol: TCP`, `port: "8080", protocol: SCTP`, []string{"warning " + back + ".toPorts[0].protocol", "error " + back + ".toPorts", "warning " + front + ".toPorts", "error " + front + ".toPorts"}},
		"A9 no address":                      {"[192.0.2.9]", "[]", []string{"error " + back + ".addresses"}},
		"A10 a name":                         {"[192.0.2.9]", "[192.0.2.9, db.example]", []string{"warning " + back + ".addresses[1]"}},
		"A10 a zone":                         {"[192.0.2.9]", "[192.0.2.9, \"fe80::1%eth0\"]", []string{"warning " + back + ".addresses[1]"}},
		"A10 names alone":                    {"[192.0.2.9]", "[db.example]", []string{"warning " + back + ".addresses[0]", "error " + back + ".addresses"}},
		"A10 twice":                          {"[192.0.2.9]", "[192.0.2.9, 192.0.2.9]", []string{"info " + back + ".addresses[1]"}},
		"A10 itself, elsewhere":              {"[192.0.2.9]", "[169.254.77.1]", nil},
		"A11 other family":                   {"[192.0.2.9]", "[\"2001:db8::9\"]", []string{"error " + back + ".addresses"}},
		"A11 one of another family":          {"[192.0.2.9]", "[192.0.2.9, \"2001:db8::9\"]", []string{"info " + back + ".addresses"}},
		"A15 loopback":                       {"169.254.77.1", "127.0.0.1", []string{"error " + front + ".ip"}},
		"A15 unspecified":                    {"169.254.77.1", "0.0.0.0", []string{"error " + front + ".ip"}},
		"A15 multicast":                      {"169.254.77.1", "224.0.0.1", []string{"error " + front + ".ip"}},
		"A15 loopback of IPv6":               {"169.254.77.1", `"::1"`, []string{"error " + front + ".ip"}},
		"balancing §17 link-local of IPv6":   {"169.254.77.1", `"fe80::1"`, []string{"error " + front + ".ip"}},
		"balancing §2.2 zone":                {"169.254.77.1", `"fe80::1%eth0"`, []string{"error " + front + ".ip"}},
		"balancing §2.2 no address":          {"169.254.77.1", "vip", []string{"error " + front + ".ip"}},
		"balancing §2.2 port 0":              {`port: "80"`, `port: "00"`, []string{"warning " + front + ".toPorts[0].port", "error " + front + ".toPorts"}},
		"balancing §2.2 odd name":            {`name: p, port: "80"`, `name: "a--b", port: "80"`, []string{"info " + front + ".toPorts[0].name", "warning " + front + ".toPorts", "error " + front + ".toPorts"}},
		"balancing §2.2 protocol":            {`port: "80", protocol: TCP`, `port: "80", protocol: SCTP`, []string{"warning " + front + ".toPorts[0].protocol", "error " + front + ".toPorts"}},
		"balancing §5 protocol in any case":  {`port: "80", protocol: TCP`, `port: "80", protocol: tcp`, nil},
		"balancing §4 no Service":            {"{addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: \"80\", protocol: TCP}]}}", "{serviceMatcher: {namespace: \"\", serviceName: B, toPorts: [{name: p, port: \"80\", protocol: TCP}]}}", []string{"error spec.frontend.serviceMatcher.namespace", "error spec.frontend.serviceMatcher.serviceName"}},
		"balancing §6 no truth":              {"name: a, annotations: {", "name: a, annotations: {balancing.elf.io/skipRedirectFromBackend: \"1\", ", []string{"warning metadata.annotations[balancing.elf.io/skipRedirectFromBackend]"}},
		"balancing §7 no choice":             {"name: a, annotations: {", "name: a, annotations: {balancing.elf.io/onNoBackend: retry, ", []string{"warning metadata.annotations[balancing.elf.io/onNoBackend]"}},
		"balancing §8 node selector":         {"spec:", "spec:\n  config: {nodeLabelSelector: {matchExpressions: [{key: a, operator: Near}]}}", []string{"error spec.config.nodeLabelSelector"}},
		"balancing §13 without a proxy port": {"name: a, annotations: {", "name: a, annotations: {balancing.elf.io/nodeProxyTargetPort.p: \"80\", ", []string{"info metadata.annotations[balancing.elf.io/nodeProxyTargetPort.p]"}},
		"balancing §14 type":                 {"{addresses:", "{healthCheck: {type: GRPC}, addresses:", []string{"warning " + back + ".healthCheck.type"}},
		"balancing §14 numbers":              {"{addresses:", "{healthCheck: {intervalSeconds: -1, timeoutSeconds: 9999, port: 65536}, addresses:", []string{"warning " + back + ".healthCheck.intervalSeconds", "warning " + back + ".healthCheck.timeoutSeconds", "warning " + back + ".healthCheck.port"}},
		"balancing §14 path of TCP":          {"{addresses:", "{healthCheck: {path: /x}, addresses:", []string{"info " + back + ".healthCheck"}},
		"balancing §14 path and status":      {"{addresses:", "{healthCheck: {type: HTTP, path: x, expectedStatuses: [99]}, addresses:", []string{"warning " + back + ".healthCheck.path", "warning " + back + ".healthCheck.expectedStatuses[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := BalancingPolicy(read[v1beta1.BalancingPolicy](t, edit(t, goodPolicy, c.from, c.to)))
			if got := fields(problems); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			for _, p := range problems {
				if p.Why == "" || p.Remedy == "" {
					t.Errorf("says too little: %+v", p)
				}
			}
		})
	}
}

// A10: a backend that is what is captured would lead to itself, and is left out.
func TestABackendThatIsItsOwnFrontendIsLeftOut(t *testing.T) {
	text := edit(t, edit(t, goodPolicy, "[192.0.2.9]", "[169.254.77.1, 192.0.2.9]"), `"8080"`, `"80"`)
	got, problems := BalancingPolicy(read[v1beta1.BalancingPolicy](t, text))
	if len(got.Addresses) != 1 || !slices.Equal(fields(problems), []string{"warning spec.backend.addressEndpoint.addresses"}) {
		t.Errorf("%v: %v", got.Addresses, problems)
	}
}

// A12: a selector that cannot be read fails, an empty one is warned of.
func TestSelectorsOfPodsThatChooseNothingOrAll(t *testing.T) {
	for text, want := range map[string]string{
		"{}": "info spec.backend.endpointSelector", "{matchExpressions: [{key: a, operator: Near}]}": "error spec.backend.endpointSelector",
		"{matchLabels: {a b: c}}": "error spec.backend.endpointSelector",
	} {
		_, problems := LocalRedirectPolicy(read[v1beta1.LocalRedirectPolicy](t, `
metadata: {name: a}
spec:
  frontend: {addressMatcher: {ip: 169.254.77.1, toPorts: [{port: "80", protocol: TCP}]}}
  backend: {endpointSelector: `+text+`, toPorts: [{port: "80", protocol: TCP}]}
`))
		if got := fields(problems); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// Sections 2.4 and 24.18: manifests that were written for elf-io's balancing are used as they are, all of them.
func TestManifestsOfThePredecessorConvertWhole(t *testing.T) {
	text, err := os.ReadFile("../api/balancing/testdata/accepted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != 7 {
		t.Fatalf("%d documents", len(documents))
	}
	for _, d := range documents {
		var problems []world.Problem
		if strings.Contains(d, "kind: LocalRedirectPolicy") {
			_, problems = LocalRedirectPolicy(read[v1beta1.LocalRedirectPolicy](t, d))
		} else {
			_, problems = BalancingPolicy(read[v1beta1.BalancingPolicy](t, d))
		}
		for _, p := range problems {
			if p.Severity != world.Ignored {
				t.Error(p)
			}
		}
	}
}

// drawPolicy draws objects that are mostly nearly right.
func drawPolicy(t *rapid.T) *v1beta1.BalancingPolicy {
	port := rapid.Custom(func(t *rapid.T) v1beta1.PortInfo {
		return v1beta1.PortInfo{
			Name: rapid.SampledFrom([]string{"a", "a", "a", "b", "", "a--"}).Draw(t, "name"), Port: rapid.SampledFrom([]string{"80", "081", "443", "8080", "0", "x"}).Draw(t, "port"),
			Protocol: rapid.SampledFrom([]string{"TCP", "TCP", "TCP", "UDP", "tcp", "SCTP"}).Draw(t, "protocol"),
		}
	})
	ports := rapid.SliceOfN(port, 0, 3)
	address := rapid.SampledFrom([]string{"169.254.77.1", "192.0.2.1", "192.0.2.3", "192.0.2.4", "192.0.2.5", "2001:db8::1", " 192.0.2.2 ", "fe80::1%a", "::ffff:192.0.2.1", "127.0.0.1", "x", ""})
	selector := rapid.Custom(func(t *rapid.T) metav1.LabelSelector {
		return rapid.SampledFrom([]metav1.LabelSelector{{}, {}, {MatchLabels: map[string]string{"a": "b"}}, {MatchLabels: map[string]string{"a": "c"}}, {MatchLabels: map[string]string{"a b": ""}},
			{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}).Draw(t, "selector")
	})
	o := &v1beta1.BalancingPolicy{}
	o.Name = rapid.SampledFrom([]string{"a", "b", "c", "d", ""}).Draw(t, "object")
	o.Annotations = rapid.MapOfN(rapid.SampledFrom([]string{"balancing.elf.io/serviceId", "balancing.elf.io/onNoBackend", "balancing.elf.io/nodeProxyTargetPort.a"}),
		rapid.SampledFrom([]string{"1", "0", "fallthrough", "x y"}), 0, 3).Draw(t, "annotations")
	if rapid.Bool().Draw(t, "config") {
		s := selector.Draw(t, "nodes")
		o.Spec.Config = &v1beta1.PolicyConfig{NodeLabelSelector: &s}
	}
	fronts := rapid.SampledFrom([]string{"s", "a", "a", "a", "sa", ""}).Draw(t, "fronts")
	if strings.Contains(fronts, "s") {
		o.Spec.Frontend.ServiceMatcher = &v1beta1.ServiceMatcher{Namespace: "shop", ServiceName: rapid.SampledFrom([]string{"web", ""}).Draw(t, "name"), ToPorts: ports.Draw(t, "front")}
	}
	if strings.Contains(fronts, "a") {
		o.Spec.Frontend.AddressMatcher = &v1beta1.AddressMatcher{IP: address.Draw(t, "ip"), ToPorts: ports.Draw(t, "front")}
	}
	backs := rapid.SampledFrom([]string{"p", "p", "a", "a", "pa", ""}).Draw(t, "backs")
	if strings.Contains(backs, "p") {
		o.Spec.Backend.ServiceEndpoint = &v1beta1.ServiceEndpoint{EndpointSelector: selector.Draw(t, "selector"), ToPorts: ports.Draw(t, "back"),
			RedirectMode: rapid.SampledFrom([]v1beta1.RedirectMode{"", v1beta1.HostPort, v1beta1.NodeProxy, "x"}).Draw(t, "mode")}
	}
	if strings.Contains(backs, "a") {
		o.Spec.Backend.AddressEndpoint = &v1beta1.AddressEndpoint{Addresses: rapid.SliceOfN(address, 0, 3).Draw(t, "list"), ToPorts: ports.Draw(t, "back")}
	}
	return o
}

// What can be used is whole: it captures something, and has ports and backends that connections can go to.
func TestPropertyUsablePoliciesAreWhole(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		p, problems := BalancingPolicy(drawPolicy(t))
		if !Usable(problems) {
			return
		}
		if (p.Service == world.ID{}) != p.Address.IsValid() || p.AllPorts != (len(p.Ports) == 0) || p.AllPorts && p.Service == (world.ID{}) {
			t.Fatalf("captures nothing: %+v", p)
		}
		if p.AllPorts && len(p.Targets) == 0 || (p.Mode == world.ToAddresses) != (len(p.Addresses) > 0) || p.Mode == "" {
			t.Fatalf("leads nowhere: %+v", p)
		}
		for _, q := range p.Ports {
			if q.Port == 0 || q.Target == 0 {
				t.Fatalf("port %+v", q)
			}
		}
	})
}
