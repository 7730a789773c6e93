// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/api/balancing"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
	"fairlead.io/fairlead/k8s/convert"
)

const good = `
metadata: {name: a, annotations: {balancing.elf.io/serviceId: "7"}}
spec:
  config: {enableOutCluster: true}
  frontend: {addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: "80", protocol: TCP}]}}
  backend: {addressEndpoint: {addresses: [192.0.2.9], toPorts: [{name: p, port: "8080", protocol: TCP}]}}
`

// What an edit of the good policy replaces.
const (
	id       = `"7"`
	front    = `{addressMatcher: {ip: 169.254.77.1, toPorts: [{name: p, port: "80", protocol: TCP}]}}`
	ip       = "169.254.77.1"
	frontAll = `[{name: p, port: "80", protocol: TCP}]`
	back     = `{addressEndpoint: {addresses: [192.0.2.9], toPorts: [{name: p, port: "8080", protocol: TCP}]}}`
	backAll  = `[{name: p, port: "8080", protocol: TCP}]`
	listed   = "[192.0.2.9]"

	taken   = `{serviceMatcher: {namespace: shop, serviceName: taken, toPorts: [{name: p, port: "80", protocol: TCP}]}}`
	proxied = `{serviceEndpoint: {redirectMode: nodeProxy, endpointSelector: {matchLabels: {app: web}}, toPorts: [{name: p, port: "10080", protocol: TCP}]}}`
)

func edited(t testing.TB, manifest string, edits ...string) string {
	t.Helper()
	for i := 0; i < len(edits); i += 2 {
		if strings.Count(manifest, edits[i]) != 1 {
			t.Fatalf("%d times %q", strings.Count(manifest, edits[i]), edits[i])
		}
		manifest = strings.Replace(manifest, edits[i], edits[i+1], 1)
	}
	return manifest
}

// Sections 2.2 and 3, row by row: what of a new policy is refused, and what is warned of.
func TestAdmissionOfNewPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		edits  []string
		by     Conflict
		denied string // a part of it; empty: allowed
		warned string // a part; "-": no warning but that nobody carries it out
	}{
		"good": {nil, "", "", "-"},

		"A1-missing":              {[]string{", annotations: {balancing.elf.io/serviceId: \"7\"}", ""}, "", "serviceId]: is missing", ""},
		"A1-no-number":            {[]string{id, "x"}, "", `"x" is no id`, ""},
		"A1-zero":                 {[]string{id, `"0"`}, "", `"0" is no id`, ""},
		"A1-of-another":           {[]string{id, `"9"`}, "", "9 is the id of BalancingPolicy other", ""},
		"A1-of-the-other-kind":    {[]string{id, `"4294967295"`}, "", "4294967295 is the id of LocalRedirectPolicy other", ""},
		"A1-any-32-bits":          {[]string{id, `"4294967294"`}, "", "", "-"},
		"A4-none":                 {[]string{front, "{}"}, "", "spec.frontend: neither is given", ""},
		"A4-both":                 {[]string{"{addressMatcher:", "{serviceMatcher: {namespace: a, serviceName: b}, addressMatcher:"}, "", "spec.frontend: both are given", ""},
		"A5-none":                 {[]string{back, "{}"}, "", "spec.backend: neither is given", ""},
		"A5-both":                 {[]string{"{addressEndpoint:", "{serviceEndpoint: {}, addressEndpoint:"}, "", "spec.backend: both are given", ""},
		"A6-names-in-front":       {[]string{frontAll, `[{name: p, port: "80", protocol: TCP}, {name: p, port: "81", protocol: TCP}]`}, "", "toPorts[1].name", ""},
		"A6-names-behind":         {[]string{backAll, `[{name: p, port: "80", protocol: TCP}, {name: p, port: "81", protocol: TCP}]`}, "", "toPorts[1].name", ""},
		"A6-unnamed-pair":         {[]string{frontAll, `[{port: "53", protocol: UDP}, {port: "53", protocol: TCP}]`, backAll, `[{port: "53", protocol: UDP}, {port: "53", protocol: TCP}]`}, "", "", "not all have a name"},
		"A6-one-unnamed":          {[]string{frontAll, `[{port: "53", protocol: UDP}]`, backAll, `[{port: "53", protocol: UDP}]`}, "", "", "-"},
		"A7":                      {[]string{frontAll, `[{name: p, port: "80", protocol: TCP}, {name: q, port: "0080", protocol: TCP}]`}, "", "80/TCP is captured before", ""},
		"A8-address":              {[]string{backAll, `[{name: q, port: "8080", protocol: TCP}]`}, "", `no port of the backend is named "p"`, ""},
		"A8-service":              {[]string{front, `{serviceMatcher: {namespace: a, serviceName: b, toPorts: [{name: q, port: "80", protocol: TCP}]}}`}, "", `no port of the backend is named "q"`, ""},
		"A8-all-ports":            {[]string{front, `{serviceMatcher: {namespace: a, serviceName: b}}`}, "", "", "only the Service tells"},
		"A9-front":                {[]string{frontAll, "[]"}, "", "spec.frontend.addressMatcher.toPorts: it is empty", ""},
		"A9-back":                 {[]string{backAll, "[]"}, "", "spec.backend.addressEndpoint.toPorts: it is empty", ""},
		"A9-addresses":            {[]string{listed, "[]"}, "", "it names no backend", ""},
		"A10-name":                {[]string{listed, "[192.0.2.9, db]"}, "", `"db" is no IP address`, ""},
		"A10-twice":               {[]string{listed, "[192.0.2.9, 192.0.2.9]"}, "", "", "is listed before"},
		"A10-itself":              {[]string{listed, "[192.0.2.9, 169.254.77.1]", `"8080"`, `"80"`}, "", "leads to itself", ""},
		"A10-itself-elsewhere":    {[]string{listed, "[192.0.2.9, 169.254.77.1]"}, "", "", "-"},
		"A11":                     {[]string{listed, `["2001:db8::9"]`}, "", "none leads on from 169.254.77.1", ""},
		"A12-unparsable":          {[]string{back, `{serviceEndpoint: {endpointSelector: {matchExpressions: [{key: a, operator: Near}]}, toPorts: [{name: p, port: "1", protocol: TCP}]}}`}, "", "endpointSelector: no selector", ""},
		"A12-unparsable-nodes":    {[]string{"enableOutCluster: true", "nodeLabelSelector: {matchLabels: {a b: c}}"}, "", "nodeLabelSelector: no selector", ""},
		"A12-empty":               {[]string{back, `{serviceEndpoint: {endpointSelector: {}, toPorts: [{name: p, port: "1", protocol: TCP}]}}`}, "", "", "every pod of the cluster"},
		"A13-service":             {[]string{front, taken}, "", "Service shop/taken is captured by BalancingPolicy other", ""},
		"A13-address":             {[]string{ip, "169.254.0.90"}, "", "169.254.0.90 is captured by LocalRedirectPolicy other", ""},
		"A13-warn":                {[]string{front, taken}, Warn, "", "Service shop/taken is captured by BalancingPolicy other, too, on node n1"},
		"A13-warn-nowhere":        {[]string{ip, "169.254.0.90", "enableOutCluster: true", "enableOutCluster: false, nodeLabelSelector: {matchLabels: {zone: b}}"}, Warn, "", "-"},
		"A13-warn-somewhere":      {[]string{ip, "169.254.0.90", "enableOutCluster: true", "enableOutCluster: false, nodeLabelSelector: {matchExpressions: [{key: zone, operator: Exists}]}"}, Warn, "", "on node n1"},
		"A13-other-namespace":     {[]string{front, strings.Replace(taken, "namespace: shop", "namespace: farm", 1)}, "", "", "-"},
		"A14-unmanaged":           {[]string{back, proxied}, "", "", "used by BalancingPolicy other"},
		"A14-another-port":        {[]string{back, strings.Replace(proxied, "10080", "10081", 1)}, "", "", "-"},
		"A14-another-protocol":    {[]string{back, strings.ReplaceAll(proxied, "TCP", "UDP"), frontAll, `[{name: p, port: "80", protocol: UDP}]`}, "", "", "-"},
		"A14-another-mode":        {[]string{back, strings.Replace(proxied, "nodeProxy", "hostPort", 1)}, "", "", "-"},
		"A15-loopback":            {[]string{ip, "127.0.0.53"}, "", "a loopback address", ""},
		"A15-unspecified":         {[]string{ip, `"::"`, listed, `["2001:db8::9"]`}, "", "the unspecified address", ""},
		"A15-multicast":           {[]string{ip, "239.1.2.3"}, "", "a multicast address", ""},
		"A15-node":                {[]string{ip, "192.0.2.12"}, "", "", "192.0.2.12 is an address of node n2"},
		"A15-apiserver":           {[]string{ip, "198.51.100.9", `"80"`, `"6443"`}, "", "", "an API server listens at 198.51.100.9:6443"},
		"A15-apiserver-elsewhere": {[]string{ip, "198.51.100.9"}, "", "", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Validate(asks(t, Balancing, edited(t, good, c.edits...), ""), town(t), Rules{Conflict: c.by})
			if (d.Denied == "") != (c.denied == "") || !strings.Contains(d.Denied, c.denied) {
				t.Errorf("denied %q, want %q", d.Denied, c.denied)
			}
			if d.Denied != "" && !strings.HasPrefix(d.Denied, "BalancingPolicy a: ") {
				t.Errorf("names nothing: %q", d.Denied)
			}
			said := strings.Join(d.Warnings, "\n")
			if !strings.Contains(said, "carried out only where") {
				t.Errorf("says nothing of what it does not do: %q", said)
			}
			if c.warned == "-" && len(d.Warnings) != 1 || c.warned != "-" && !strings.Contains(said, c.warned) {
				t.Errorf("warned %q, want %q", said, c.warned)
			}
		})
	}
}

// A13: the kinds are one in this, whichever comes second.
func TestPoliciesOfBothKindsAreInEachOthersWay(t *testing.T) {
	local := `{metadata: {name: a, annotations: {balancing.elf.io/serviceId: "7"}}, spec: {frontend: ` + taken + `, backend: {endpointSelector: {matchLabels: {a: b}}, toPorts: [{name: p, port: "1", protocol: TCP}]}}}`
	if d := Validate(asks(t, LocalRedirect, local, ""), town(t), Rules{}); !strings.Contains(d.Denied, "captured by BalancingPolicy other") {
		t.Error(d)
	}
	same := strings.Replace(local, "name: a,", "name: other,", 1)
	if d := Validate(asks(t, LocalRedirect, same, ""), town(t), Rules{}); !strings.Contains(d.Denied, "captured by BalancingPolicy other") {
		t.Errorf("one of the same name: %+v", d)
	}
}

// A14: where a proxy address is ours, by its annotation or because it is the node's own, a port of it leads to one place.
func TestPortsOfManagedProxyAddressesLeadToOnePlace(t *testing.T) {
	for name, edit := range map[string]func(*corev1.Node){
		"annotated":  func(n *corev1.Node) { n.Annotations["balancing.elf.io/nodeProxyManaged"] = "true" },
		"the-node's": func(n *corev1.Node) { n.Annotations["balancing.elf.io/nodeProxyIpv4"] = "192.0.2.11" },
		"the-node's-6": func(n *corev1.Node) {
			n.Annotations["balancing.elf.io/nodeProxyIpv6"] = "2001:db8::11"
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "2001:db8::11"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := town(t)
			edit(&stored.Nodes[0])
			d := Validate(asks(t, Balancing, edited(t, good, back, proxied), ""), stored, Rules{})
			if !strings.Contains(d.Denied, "10080/TCP at the proxy address of node n1 leads to the pods of BalancingPolicy other") {
				t.Error(d)
			}
			same := strings.Replace(proxied, "app: web", "app: other", 1)
			stored.Balancing[0].Spec.Frontend.ServiceMatcher, stored.Balancing[0].Spec.Frontend.AddressMatcher = nil, &v1beta1.AddressMatcher{
				IP: "169.254.1.1", ToPorts: []v1beta1.PortInfo{{Name: "p", Port: "80", Protocol: "TCP"}}}
			if d := Validate(asks(t, Balancing, edited(t, good, back, same), ""), stored, Rules{}); d.Denied != "" {
				t.Errorf("the same pods: %s", d.Denied)
			}
		})
	}
}

// Section 3: A1 to A3 of updates, and that nothing stored is held against its owner.
func TestAdmissionOfChangedPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []string
		denied        string
	}{
		"nothing":                   {nil, nil, ""},
		"A3-config":                 {nil, []string{"enableOutCluster: true", "enableOutCluster: false, nodeLabelSelector: {matchLabels: {a: b}}"}, ""},
		"A3-enabled":                {nil, []string{"spec:", "spec:\n  enabled: false"}, ""},
		"A3-no-config":              {nil, []string{"\n  config: {enableOutCluster: true}", ""}, ""},
		"A3-labels":                 {nil, []string{"name: a,", "name: a, labels: {a: b},"}, ""},
		"A2-frontend":               {nil, []string{ip, "169.254.77.2"}, "spec.frontend: cannot change"},
		"A2-frontend-other-matcher": {nil, []string{front, taken}, "spec.frontend: cannot change"},
		"A2-backend":                {nil, []string{listed, "[192.0.2.10]"}, "spec.backend: cannot change"},
		"A2-backend-health":         {nil, []string{"{addresses:", "{healthCheck: {type: None}, addresses:"}, "spec.backend: cannot change"},
		"A1-other-id":               {nil, []string{id, `"8"`}, `is 7, and cannot become "8"`},
		"A1-no-id":                  {nil, []string{id, `""`}, `is 7, and cannot become ""`},
		"A1-of-another":             {[]string{id, `"0"`}, []string{id, `"9"`}, "9 is the id of BalancingPolicy other"},
		"A1-first-id":               {[]string{id, `"0"`}, []string{id, `"7"`}, ""},
		"A1-still-none":             {[]string{id, `"0"`}, []string{id, `"0"`, "name: a,", "name: a, labels: {a: b},"}, ""},
		"A12-new-selector":          {nil, []string{"enableOutCluster: true", "nodeLabelSelector: {matchLabels: {a b: c}}"}, "nodeLabelSelector: no selector"},
		"stored-A8":                 {[]string{`name: p, port: "80"`, `name: q, port: "80"`}, []string{`name: p, port: "80"`, `name: q, port: "80"`, "spec:", "spec:\n  enabled: false"}, ""},
		"stored-A13":                {[]string{front, taken}, []string{front, taken, "spec:", "spec:\n  enabled: false"}, ""},
		"stored-A15":                {[]string{ip, "127.0.0.1"}, []string{ip, "127.0.0.1", "spec:", "spec:\n  enabled: false"}, ""},
		"deleted":                   {nil, []string{"name: a,", `name: a, deletionTimestamp: "2024-01-01T00:00:00Z",`, ip, "127.0.0.1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Validate(asks(t, Balancing, edited(t, good, c.after...), edited(t, good, c.before...)), town(t), Rules{})
			if (d.Denied == "") != (c.denied == "") || !strings.Contains(d.Denied, c.denied) {
				t.Errorf("denied %q, want %q", d.Denied, c.denied)
			}
		})
	}
}

// Section 3: deletion is never refused, whatever is known.
func TestDeletionIsNeverRefused(t *testing.T) {
	r := admission.Request{Kind: Balancing, Operation: admissionv1.Delete, Name: "a"}
	if d := Validate(r, nowhere(), Rules{}); d.Denied != "" || len(d.Warnings) > 0 {
		t.Error(d)
	}
	if d := Mutate(r, nowhere(), 1); d.Denied != "" || len(d.Patch) > 0 {
		t.Error(d)
	}
}

// Without knowing what is stored nothing is created; what depends on nothing of it goes on.
func TestWhatIsNotKnownYetDeniesOnlyWhatDependsOnIt(t *testing.T) {
	const yet = "yet: the API server is away: try again in a moment"
	if d := Validate(asks(t, Balancing, good, ""), nowhere(), Rules{}); !strings.Contains(d.Denied, yet) {
		t.Error(d)
	}
	if d := Mutate(asks(t, Balancing, edited(t, good, ", annotations: {balancing.elf.io/serviceId: \"7\"}", ""), ""), nowhere(), 1); !strings.Contains(d.Denied, yet) {
		t.Error(d)
	}
	if d := Validate(asks(t, Balancing, edited(t, good, "spec:", "spec:\n  enabled: false"), good), nowhere(), Rules{}); d.Denied != "" {
		t.Error(d)
	}
}

func TestWhatIsNoPolicyIsDenied(t *testing.T) {
	for name, r := range map[string]admission.Request{
		"a-number": asks(t, Balancing, edited(t, good, `"80"`, "80"), ""), "nothing": {Kind: Balancing, Operation: admissionv1.Create, Name: "a"},
		"no-before": {Kind: Balancing, Operation: admissionv1.Update, Name: "a", Object: raw(t, good)},
		"no-kind":   {Kind: "Service", Operation: admissionv1.Create, Name: "a", Object: raw(t, good)},
	} {
		if d := Validate(r, town(t), Rules{}); !strings.Contains(d.Denied, "cannot read the") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Sections 2.4 and 24.18: manifests of the predecessor are stored, with what is odd in them.
func TestManifestsOfThePredecessorAreAccepted(t *testing.T) {
	requests := accepted(t)
	if len(requests) != 7 {
		t.Fatalf("%d manifests", len(requests))
	}
	stored := &Stored{}
	for _, r := range requests {
		if d := Validate(r, stored, Rules{}); d.Denied != "" {
			t.Error(d.Denied)
		}
		if r.Kind == Balancing {
			stored.Balancing = append(stored.Balancing, of[v1beta1.BalancingPolicy](t, string(r.Object)))
		} else {
			stored.LocalRedirects = append(stored.LocalRedirects, of[v1beta1.LocalRedirectPolicy](t, string(r.Object)))
		}
	}
}

// Whatever somebody writes: nothing panics, what is allowed converts without a part left out, and the order of what is stored
// makes no difference.
func TestPropertyWhatIsAcceptedConverts(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		ports := rapid.Custom(func(t *rapid.T) []v1beta1.PortInfo {
			if rapid.IntRange(0, 4).Draw(t, "good") > 0 { // most policies would be taken
				return []v1beta1.PortInfo{{Name: "a", Port: "80", Protocol: "TCP"}}
			}
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1beta1.PortInfo {
				return v1beta1.PortInfo{Name: rapid.SampledFrom([]string{"a", "a", "a", ""}).Draw(t, "name"), Port: rapid.SampledFrom([]string{"80", "80", "443", "0"}).Draw(t, "port"),
					Protocol: rapid.SampledFrom([]string{"TCP", "TCP", "UDP"}).Draw(t, "protocol")}
			}), 1, 2).Draw(t, "ports")
		})
		policy := rapid.Custom(func(t *rapid.T) v1beta1.BalancingPolicy {
			var o v1beta1.BalancingPolicy
			o.Name = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			o.Annotations = map[string]string{"balancing.elf.io/serviceId": rapid.SampledFrom([]string{"1", "2", "3", "4", "0"}).Draw(t, "id")}
			if rapid.Bool().Draw(t, "by service") {
				o.Spec.Frontend.ServiceMatcher = &v1beta1.ServiceMatcher{Namespace: "shop", ServiceName: rapid.SampledFrom([]string{"web", "api", "dns", ""}).Draw(t, "service"), ToPorts: ports.Draw(t, "front")}
			} else {
				o.Spec.Frontend.AddressMatcher = &v1beta1.AddressMatcher{IP: rapid.SampledFrom([]string{"169.254.0.1", "169.254.0.2", "169.254.0.3", "2001:db8::1", "x"}).Draw(t, "ip"), ToPorts: ports.Draw(t, "front")}
			}
			if rapid.Bool().Draw(t, "pods") {
				o.Spec.Backend.ServiceEndpoint = &v1beta1.ServiceEndpoint{RedirectMode: v1beta1.NodeProxy, ToPorts: ports.Draw(t, "back"),
					EndpointSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")}}}
			} else {
				o.Spec.Backend.AddressEndpoint = &v1beta1.AddressEndpoint{Addresses: rapid.SliceOfN(rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::2", "x"}), 1, 2).Draw(t, "addresses"), ToPorts: ports.Draw(t, "back")}
			}
			return o
		})
		o := policy.Draw(t, "policy")
		stored := &Stored{Balancing: rapid.SliceOfN(policy, 0, 3).Draw(t, "stored"), Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1",
			Annotations: map[string]string{"balancing.elf.io/nodeProxyIpv4": "192.0.2.1", "balancing.elf.io/nodeProxyManaged": "true"}}}}}
		object, err := json.Marshal(&o)
		if err != nil {
			t.Fatal(err)
		}
		r := admission.Request{Kind: Balancing, Operation: admissionv1.Create, Name: o.Name, Object: object}
		d := Validate(r, stored, Rules{})
		shuffled := *stored
		shuffled.Balancing = rapid.Permutation(stored.Balancing).Draw(t, "order")
		if again := Validate(r, &shuffled, Rules{}); (again.Denied == "") != (d.Denied == "") {
			t.Fatalf("%q, in another order %q", d.Denied, again.Denied)
		}
		if d.Denied != "" {
			return
		}
		if _, problems := convert.BalancingPolicy(&o); !convert.Usable(problems) {
			t.Fatalf("accepted, and of no use: %v", problems)
		}
		for _, other := range stored.Balancing { // by a plainer account
			a, b := o.Spec.Frontend, other.Spec.Frontend
			same := a.ServiceMatcher != nil && b.ServiceMatcher != nil && a.ServiceMatcher.ServiceName == b.ServiceMatcher.ServiceName ||
				a.AddressMatcher != nil && b.AddressMatcher != nil && a.AddressMatcher.IP == b.AddressMatcher.IP
			if other.Name != o.Name && (same || other.Annotations["balancing.elf.io/serviceId"] == o.Annotations["balancing.elf.io/serviceId"]) {
				t.Fatalf("accepted beside %+v", other)
			}
		}
	})
}

// numbered is a record of one policy that has an id, and one that had it.
type numbered map[balancing.ID]Holder

func (n numbered) Holder(id balancing.ID) (Holder, bool) {
	h, ok := n[id]
	return h, ok
}

// Section 2.3: an id that the record knows of is nobody else's, also while only hosts may still hold it. Its own name may have it again.
// Rule: balancing §2.
func TestIDsOfTheRecordAreHeld(t *testing.T) {
	stored := &Stored{Numbers: numbered{31007: {Balancing, "other", false}, 31008: {LocalRedirect, "gone", true}, 31009: {Balancing, "legacy-db", true}}}
	for id, want := range map[string]string{
		"31007": "31007 is the id of BalancingPolicy other", "31008": "31008 was the id of LocalRedirectPolicy gone, and a host may still hold it", "31009": "", "31010": "", "0": "0",
	} {
		r := accepted(t)[1]
		r.Object = []byte(strings.ReplaceAll(string(r.Object), "31007", id))
		d := Validate(r, stored, Rules{CarriedOut: true})
		if (d.Denied == "") != (want == "") || !strings.Contains(d.Denied, want) || want != "" && len(d.Rules) == 0 {
			t.Errorf("%s: %q by %v, want %q", id, d.Denied, d.Rules, want)
		}
	}
	r := accepted(t)[1]
	r.Object = []byte(strings.ReplaceAll(string(r.Object), `"balancing.elf.io/serviceId":"31007"`, ""))
	if d := Mutate(r, stored, 31007); len(d.Patch) != 1 || !strings.Contains(fmt.Sprint(d.Patch[0].Value), "31010") {
		t.Errorf("given %+v", d)
	}
}
