// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api"
)

// What whole manifests become is told by the scripts of package manifests. Here are the rules that hold for any input.

func number(a netip.Addr) *big.Int { return new(big.Int).SetBytes(a.AsSlice()) }

// A prefix is the range of the addresses it contains: both ends are in it, the neighbours of the ends are not.
func TestPropertyPrefixBecomesExactlyItsRange(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var a netip.Addr
		if rapid.Bool().Draw(t, "v6") {
			a = netip.AddrFrom16([16]byte(append([]byte{0x20, 1, 0xd, 0xb8}, rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "address")...)))
		} else {
			a = netip.AddrFrom4([4]byte(append([]byte{198}, rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, "address")...)))
		}
		bits := rapid.IntRange(8, a.BitLen()).Draw(t, "bits")
		p := netip.PrefixFrom(a, bits)
		pool, problems := Pool(&api.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: api.IPAddressPoolSpec{Addresses: []string{p.String()}}})
		if !Usable(problems) || len(pool.Ranges) != 1 {
			t.Fatalf("%s: %v %v", p, pool.Ranges, problems)
		}
		r := pool.Ranges[0]
		size := new(big.Int).Add(new(big.Int).Sub(number(r.To), number(r.From)), big.NewInt(1))
		if want := new(big.Int).Lsh(big.NewInt(1), uint(a.BitLen()-bits)); size.Cmp(want) != 0 {
			t.Fatalf("%s has %v addresses, want %v", p, size, want)
		}
		if !p.Contains(r.From) || !p.Contains(r.To) || p.Contains(r.From.Prev()) || p.Contains(r.To.Next()) || !r.Contains(a) {
			t.Fatalf("%s is not %s", p, r)
		}
	})
}

// What a pool gives out is what it lists without what it excludes, address by address, however the two overlap and whether
// a field says so or an annotation.
func TestPropertyExcludedAddressesAreNotInThePool(t *testing.T) {
	spans := rapid.SampledFrom([]string{
		"198.51.100.0/30", "198.51.100.2-198.51.100.9", "198.51.100.5", "198.51.100.8/29", "198.51.100.0-198.51.100.1", "2001:db8::/125", "2001:db8::3", "0.0.0.1",
		"255.255.255.0/31",
	})
	testkit.Check(t, func(t *rapid.T) {
		o := &api.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		o.Spec.Addresses = []string{"198.51.100.0/28", "2001:db8::/126"}
		excluded := rapid.SliceOfN(spans, 0, 3).Draw(t, "exclude")
		if rapid.Bool().Draw(t, "annotation") {
			o.Annotations = map[string]string{AnnotationExclude: strings.Join(excluded, ", ")}
		} else {
			o.Spec.Exclude = excluded
		}
		pool, problems := Pool(o)
		in := func(list []world.Range, a netip.Addr) bool {
			return slices.ContainsFunc(list, func(r world.Range) bool { return r.Contains(a) })
		}
		all, _ := Pool(&api.IPAddressPool{ObjectMeta: o.ObjectMeta, Spec: api.IPAddressPoolSpec{Addresses: o.Spec.Addresses}})
		if !Usable(problems) {
			if len(pool.Ranges) > 0 {
				t.Fatalf("%v", problems)
			}
			return
		}
		for _, start := range []string{"198.51.99.254", "2001:db7:ffff:ffff:ffff:ffff:ffff:fffe"} {
			for a, n := netip.MustParseAddr(start), 0; n < 24; a, n = a.Next(), n+1 {
				out := false
				for _, text := range excluded {
					p, err := netip.ParsePrefix(text)
					from, to, isRange := strings.Cut(text, "-")
					switch {
					case err == nil:
						out = out || p.Contains(a)
					case isRange:
						out = out || a.Is4() && !a.Less(netip.MustParseAddr(from)) && !netip.MustParseAddr(to).Less(a)
					default:
						out = out || a == netip.MustParseAddr(text)
					}
				}
				if want := in(plainRanges(o.Spec.Addresses), a) && !out; in(pool.Ranges, a) != want {
					t.Fatalf("%s in %v: %t, of %v without %v", a, pool.Ranges, !want, all.Ranges, excluded)
				}
			}
		}
	})
}

// plainRanges reads prefixes.
func plainRanges(prefixes []string) (out []world.Range) {
	for _, text := range prefixes {
		p := netip.MustParsePrefix(text)
		last := p.Addr()
		for p.Contains(last.Next()) {
			last = last.Next()
		}
		out = append(out, world.Range{From: p.Addr(), To: last})
	}
	return out
}

func TestPoolsThatCannotBeReadAreNotUsed(t *testing.T) {
	for name, change := range map[string]func(*api.IPAddressPool){
		"exclude":            func(o *api.IPAddressPool) { o.Spec.Exclude = []string{"203.0.113.1", "x"} },
		"exclude-annotation": func(o *api.IPAddressPool) { o.Annotations = map[string]string{AnnotationExclude: "203.0.113.300"} },
		"exclude-all":        func(o *api.IPAddressPool) { o.Spec.Exclude = []string{"203.0.113.0/24"} },
		"drain":              func(o *api.IPAddressPool) { o.Annotations = map[string]string{AnnotationDrain: "yes"} },
	} {
		t.Run(name, func(t *testing.T) {
			o := &api.IPAddressPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: api.IPAddressPoolSpec{Addresses: []string{"203.0.113.0/28"}}}
			if pool, problems := Pool(o); !Usable(problems) || pool.Drain {
				t.Fatalf("%v %v", pool, problems)
			}
			if change(o); name == "drain" {
				o.Annotations[AnnotationDrain] = "true"
				if pool, problems := Pool(o); !Usable(problems) || !pool.Drain {
					t.Fatalf("%v %v", pool, problems)
				}
				change(o)
			}
			if _, problems := Pool(o); Usable(problems) {
				t.Error("it is used")
			}
		})
	}
}

// What nodes do that are cut off is a word of two; another one is told of, and the pool is used.
func TestPoolsSayWhatNodesDoThatAreCutOff(t *testing.T) {
	for word, want := range map[string]struct{ keeps, told bool }{
		"": {}, "silent": {}, "answer": {keeps: true}, "Answer": {told: true}, "yes": {told: true},
	} {
		o := &api.IPAddressPool{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{AnnotationCutOff: word}},
			Spec:       api.IPAddressPoolSpec{Addresses: []string{"203.0.113.0/28"}},
		}
		pool, problems := Pool(o)
		if pool.KeepAnswering != want.keeps || !Usable(problems) || (len(problems) == 1) != want.told {
			t.Errorf("%q: keeps %t, problems %v", word, pool.KeepAnswering, problems)
		}
		if want.told && (!strings.Contains(problems[0].Field, AnnotationCutOff) || problems[0].Remedy == "") {
			t.Errorf("%q: %+v", word, problems[0])
		}
	}
}

// However often and however an address is asked for, it is asked for once; and nothing that no client could be routed
// to ever passes.
func TestPropertyAddressesAreAskedForOnce(t *testing.T) {
	texts := []string{"203.0.113.1", "203.0.113.2", "::ffff:203.0.113.1", "2001:db8::1", "2001:DB8:0::1", "127.0.0.1", "::", "ff02::1", "x", "", "203.0.113.1 "}
	testkit.Check(t, func(t *rapid.T) {
		draw := func(what string) []string {
			return rapid.SliceOfN(rapid.SampledFrom(texts), 0, 4).Draw(t, what)
		}
		annotated := draw("annotation")
		o := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{AnnotationAddresses: strings.Join(annotated, ",")}},
			Spec:       corev1.ServiceSpec{ExternalIPs: draw("externalIPs"), LoadBalancerIP: rapid.SampledFrom(texts).Draw(t, "loadBalancerIP")},
		}
		s, problems := Service(o)
		all := append(slices.Clone(s.ExternalIPs), s.Extras().Requested...)
		for i, a := range all {
			if slices.Contains(all[:i], a) {
				t.Fatalf("%s twice in %v and %v", a, s.ExternalIPs, s.Extras().Requested)
			}
			if a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a.Is4In6() {
				t.Fatalf("%s passed", a)
			}
		}
		bad := func(text string) bool {
			return slices.Contains([]string{"127.0.0.1", "::", "ff02::1", "x", ""}, strings.TrimSpace(text))
		}
		single := o.Spec.LoadBalancerIP
		wrong := single != "" && single != "::" && bad(single) || slices.ContainsFunc(o.Spec.ExternalIPs, bad)
		if strings.TrimSpace(strings.Join(annotated, ",")) != "" {
			wrong = wrong || slices.ContainsFunc(annotated, bad)
		}
		if Usable(problems) == wrong {
			t.Fatalf("wrong %t, but usable %t: %v", wrong, Usable(problems), problems)
		}
	})
}

// Every problem tells field, reason and remedy, and names the object.
func TestPropertyProblemsAreWhole(t *testing.T) {
	words := rapid.SampledFrom([]string{"", "x", "203.0.113.1", "-1", "Local", "IPv4", "none", "a/b"})
	testkit.Check(t, func(t *rapid.T) {
		policy := corev1.ServiceInternalTrafficPolicy(words.Draw(t, "internal policy"))
		o := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: words.Draw(t, "name"), Namespace: words.Draw(t, "namespace"), ResourceVersion: words.Draw(t, "version"),
				Annotations: map[string]string{AnnotationNextHops: words.Draw(t, "next hops"), AnnotationSourceRanges: words.Draw(t, "ranges")}},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceType(words.Draw(t, "type")), ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicy(words.Draw(t, "policy")),
				InternalTrafficPolicy: &policy, SessionAffinity: corev1.ServiceAffinity(words.Draw(t, "affinity")),
				Ports: []corev1.ServicePort{{Port: int32(rapid.IntRange(-1, 70000).Draw(t, "port")), Protocol: corev1.Protocol(words.Draw(t, "protocol"))}}},
		}
		_, problems := Service(o)
		for _, p := range problems {
			if p.Field == "" || p.Why == "" || p.Remedy == "" || p.Object.Kind != world.KindService {
				t.Fatalf("half a problem: %+v", p)
			}
		}
	})
}

func TestOverlapNamesBothPools(t *testing.T) {
	a := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	pool := func(name, from, to string) *world.Pool {
		return &world.Pool{Meta: world.Meta{ID: world.ID{Name: name}}, Ranges: []world.Range{{From: a(from), To: a(to)}}}
	}
	got := Overlaps([]*world.Pool{
		pool("a", "203.0.113.0", "203.0.113.10"), pool("b", "203.0.113.11", "203.0.113.20"), pool("c", "203.0.113.20", "203.0.113.30"), pool("d", "2001:db8::", "2001:db8::ff"),
	})
	if len(got) != 1 || got[0].Object.Name != "c" || !strings.Contains(got[0].Why, "pool b") {
		t.Fatalf("%v", got)
	}
}

// Services have one sharing key if they have one annotation for it, whichever system's it is, and consent to the same
// namespaces: their own is always one.
func TestPropertySharingTakesConsent(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		type wish struct {
			namespace, key string
			across         []string
			made           string
		}
		draw := func(who string) wish {
			w := wish{
				namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, who+" namespace"), key: rapid.SampledFrom([]string{"", "k", "b/k"}).Draw(t, who+" key"),
				across: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "*"}), 0, 3).Draw(t, who+" across"),
			}
			sharing := rapid.SampledFrom(spellings(AnnotationSharing)).Draw(t, who+" sharing")
			across := rapid.SampledFrom(spellings(AnnotationAcross)).Draw(t, who+" spelling")
			s, problems := Service(&corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "s", Annotations: map[string]string{sharing: w.key, across: strings.Join(w.across, ", ")}},
			})
			if !Usable(problems) {
				t.Fatalf("%v", problems)
			}
			w.made = s.Extras().SharingKey
			return w
		}
		x, y := draw("x"), draw("y")
		consents := func(w, other wish) bool {
			return slices.Contains(w.across, "*") || other.namespace == w.namespace || slices.Contains(w.across, other.namespace)
		}
		if x.made != "" && x.made == y.made && (x.key != y.key || !consents(x, y) || !consents(y, x)) {
			t.Fatalf("%+v and %+v share, and did not agree to", x, y)
		}
		alone := len(x.across)+len(y.across) == 0 && x.namespace == y.namespace
		everywhere := slices.Contains(x.across, "*") && slices.Contains(y.across, "*")
		if x.key != "" && x.key == y.key && (alone || everywhere) && x.made != y.made {
			t.Fatalf("%+v and %+v agreed, and do not share", x, y)
		}
		if x.key == "" != (x.made == "") {
			t.Fatalf("%+v", x)
		}
	})
}

// What MetalLB, kube-vip, Cilium and PureLB are asked for by annotation is asked of us.
func TestAnnotationsOfOtherSystemsAreRead(t *testing.T) {
	for key, want := range map[string]string{
		"fairlead.io/loadBalancerIPs": "[203.0.113.1 2001:db8::1]", "metallb.io/loadBalancerIPs": "[203.0.113.1 2001:db8::1]",
		"metallb.universe.tf/loadBalancerIPs": "[203.0.113.1 2001:db8::1]", "kube-vip.io/loadbalancerIPs": "[203.0.113.1 2001:db8::1]",
		"lbipam.cilium.io/ips": "[203.0.113.1 2001:db8::1]", "io.cilium/lb-ipam-ips": "[203.0.113.1 2001:db8::1]", "purelb.io/addresses": "[203.0.113.1 2001:db8::1]",
		"example.com/loadBalancerIPs": "[]",
	} {
		s, problems := Service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{key: "203.0.113.1,2001:db8::1"}}})
		if got := fmt.Sprint(s.Extras().Requested); got != want || len(problems) > 0 || len(s.Extras().Annotations) > 0 != (want != "[]") {
			t.Errorf("%s: %s, %v, %v", key, got, problems, s.Extras().Annotations)
		}
	}
	for _, key := range []string{"fairlead.io/address-pool", "metallb.io/address-pool", "metallb.universe.tf/address-pool", "purelb.io/service-group"} {
		if s, _ := Service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{key: "gold"}}}); s.Extras().Pool != "gold" {
			t.Errorf("%s: pool %q", key, s.Extras().Pool)
		}
	}
	for name, annotations := range map[string]map[string]string{
		"two-opinions":  {"purelb.io/service-group": "silver", "fairlead.io/address-pool": "gold"},
		"consent-alone": {"lbipam.cilium.io/sharing-cross-namespace": "*"},
	} {
		s, problems := Service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: annotations}})
		if len(s.Extras().Requested) > 0 || len(problems) != 1 || problems[0].Severity != world.Degraded || problems[0].Remedy == "" {
			t.Errorf("%s: %v, %v", name, s.Extras().Requested, problems)
		}
	}
	bad := map[string]string{"fairlead.io/allow-shared-ip": "k", "fairlead.io/sharing-cross-namespace": "No Namespace"}
	if _, problems := Service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: bad}}); Usable(problems) {
		t.Error("consent with what is no namespace is used")
	}
}

// An annotation that is empty says nothing, before and behind one that does, whosever they are.
func TestEmptyAnnotationsAreAsIfNotThere(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"ours":   {"fairlead.io/loadBalancerIPs": "", "fairlead.io/address-pool": "", "fairlead.io/allow-shared-ip": "", "fairlead.io/sharing-cross-namespace": ""},
		"theirs": {"metallb.io/loadBalancerIPs": " ", "metallb.io/address-pool": "", "metallb.io/allow-shared-ip": "", "lbipam.cilium.io/sharing-cross-namespace": ""},
		"behind": {"purelb.io/addresses": "", "purelb.io/service-group": "", "purelb.io/allow-shared-ip": ""},
	} {
		read := func(filled map[string]string) world.Service {
			all := maps.Clone(annotations)
			maps.Copy(all, filled)
			s, problems := Service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "shop", Annotations: all}})
			if len(problems) > 0 {
				t.Errorf("%s: %v", name, problems)
			}
			return s
		}
		if s := read(nil); len(s.Extras().Requested) > 0 || s.Extras().Pool != "" || s.Extras().SharingKey != "" {
			t.Errorf("%s alone: %+v", name, s)
		}
		filled := map[string]string{
			"kube-vip.io/loadbalancerIPs": "203.0.113.1", "metallb.universe.tf/address-pool": "gold", "lbipam.cilium.io/sharing-key": "k",
			"io.cilium/lb-ipam-sharing-cross-namespace": "web",
		}
		s := read(filled)
		want, _ := Service(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "shop", Annotations: filled}})
		if fmt.Sprint(s.Extras().Requested) != "[203.0.113.1]" || s.Extras().Pool != "gold" || s.Extras().SharingKey != want.Extras().SharingKey || s.Extras().SharingKey == "" {
			t.Errorf("%s: requests %v, pool %q, key %q", name, s.Extras().Requested, s.Extras().Pool, s.Extras().SharingKey)
		}
	}
}

// The selector of a Service is kept where it says with whom an address may be shared, in one form whatever its order, and nowhere else: it would keep
// Services from sharing what else they have in common.
func TestTheSelectorIsKeptWhereAnAddressMayBeShared(t *testing.T) {
	local, cluster := corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster
	key := map[string]string{"metallb.io/allow-shared-ip": "dns"}
	selector := map[string]string{"b": "2", "a": "1"}
	for name, c := range map[string]struct {
		policy      corev1.ServiceExternalTrafficPolicy
		annotations map[string]string
		external    []string
		selector    map[string]string
		want        string
	}{
		"key":          {policy: local, annotations: key, selector: selector, want: "a=1,b=2"},
		"externalIPs":  {policy: local, external: []string{"203.0.113.1"}, selector: selector, want: "a=1,b=2"},
		"no selector":  {policy: local, annotations: key},
		"nothing asks": {policy: local, selector: selector},
		"Cluster":      {policy: cluster, annotations: key, external: []string{"203.0.113.1"}, selector: selector},
	} {
		s, _ := Service(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "dns", Annotations: c.annotations},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 53}}, Selector: c.selector, ExternalIPs: c.external, ExternalTrafficPolicy: c.policy,
			},
		})
		if got := s.Extras().Selector; got != c.want {
			t.Errorf("%s: selector %q, want %q", name, got, c.want)
		}
	}
}

// kube-vip asks for an address by DHCP with the unspecified one, by annotation and, in its guides, by spec.loadBalancerIP.
func TestAddressesByDHCPAreOfAPool(t *testing.T) {
	for name, o := range map[string]*corev1.Service{
		"annotation":   {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kube-vip.io/loadbalancerIPs": "0.0.0.0"}}},
		"annotation6":  {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kube-vip.io/loadbalancerIPs": "::"}}},
		"spec":         {Spec: corev1.ServiceSpec{LoadBalancerIP: "0.0.0.0"}},
		"spec6":        {Spec: corev1.ServiceSpec{LoadBalancerIP: "::"}},
		"spec4-mapped": {Spec: corev1.ServiceSpec{LoadBalancerIP: "::ffff:0.0.0.0"}},
	} {
		o.Name = "s"
		s, problems := Service(o)
		if len(s.Extras().Requested) > 0 || len(problems) != 1 || problems[0].Severity != world.Degraded || !Usable(problems) ||
			problems[0].Why != "addresses by DHCP are not supported; a pool gives one" {
			t.Errorf("%s: %v, %+v", name, s.Extras().Requested, problems)
		}
	}
	own := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"fairlead.io/loadBalancerIPs": "0.0.0.0"}}}
	if _, problems := Service(own); Usable(problems) {
		t.Error("an annotation that is not kube-vip's asks for DHCP")
	}
}

// Who names an address of a family that the Service is not of gets it, and is told that nobody answers there, whichever way it is named.
func TestAddressesOfAnotherFamilyAreTold(t *testing.T) {
	for _, c := range []struct {
		families string
		policy   corev1.IPFamilyPolicy
		selector bool
		address  string
		told     bool
	}{
		{"IPv4", corev1.IPFamilyPolicySingleStack, true, "2001:db8::7", true},
		{"IPv4", "", true, "2001:db8::7", true},
		{"IPv6", corev1.IPFamilyPolicySingleStack, true, "203.0.113.7", true},
		{"IPv4", corev1.IPFamilyPolicySingleStack, true, "203.0.113.7", false},
		{"IPv4", corev1.IPFamilyPolicySingleStack, false, "2001:db8::7", false}, // slices by hand
		{"IPv4", corev1.IPFamilyPolicyPreferDualStack, true, "2001:db8::7", false},
		{"IPv4,IPv6", corev1.IPFamilyPolicyRequireDualStack, true, "2001:db8::7", false},
		{"", "", true, "2001:db8::7", false},
	} {
		for _, by := range []string{"external", "spec", "lbipam.cilium.io/ips", "metallb.io/loadBalancerIPs"} {
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			o.Spec.Type, o.Spec.Ports = corev1.ServiceTypeLoadBalancer, []corev1.ServicePort{{Port: 80}}
			if c.selector {
				o.Spec.Selector = map[string]string{"app": "web"}
			}
			if c.policy != "" {
				o.Spec.IPFamilyPolicy = &c.policy
			}
			for f := range strings.SplitSeq(c.families, ",") {
				if f != "" {
					o.Spec.IPFamilies = append(o.Spec.IPFamilies, corev1.IPFamily(f))
				}
			}
			switch by {
			case "external":
				o.Spec.ExternalIPs = []string{c.address}
			case "spec":
				o.Spec.LoadBalancerIP = c.address
			default:
				o.Annotations = map[string]string{by: c.address}
			}
			s, problems := Service(o)
			if !Usable(problems) || len(s.Extras().Requested)+len(s.ExternalIPs) != 1 || len(problems) > 0 != c.told {
				t.Errorf("%+v by %s: %v, %v, %+v", c, by, s.Extras().Requested, s.ExternalIPs, problems)
			}
		}
	}
}

// What a status says is not the user's to mend: what can be an address is read, the rest passed over.
func TestStatusTellsWhatUsersKnow(t *testing.T) {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	for _, ip := range []string{"203.0.113.1", "", "x", "::ffff:203.0.113.1", "2001:db8::1", "127.0.0.1", "2001:db8::2%eth0"} {
		o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip, Hostname: "lb.example.com"})
	}
	s, problems := Service(o)
	if got := fmt.Sprint(s.Shown); got != "[203.0.113.1 2001:db8::1]" || len(problems) > 0 {
		t.Errorf("%s, %v", got, problems)
	}
}

// K32: what a status shows is for nodes to intercept, unless it says that it is to be sent where the address is.
// Rule: K32.
func TestModesOfAddressesInTheStatusAreRead(t *testing.T) {
	proxy, vip, other := corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP, corev1.LoadBalancerIPMode("Other")
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
		{IP: "203.0.113.1"}, {IP: "203.0.113.2", IPMode: &proxy}, {IP: "203.0.113.3", IPMode: &vip}, {IP: "203.0.113.4", IPMode: &other}, {Hostname: "lb.example.com"},
	}
	s, problems := Service(o)
	if got := fmt.Sprint(s.Intercepted(), s.Shown); got != "[203.0.113.1 203.0.113.3] [203.0.113.1 203.0.113.2 203.0.113.3 203.0.113.4]" || len(problems) > 0 {
		t.Errorf("%s, %v", got, problems)
	}
}

func TestVersionOfAnObjectIsKept(t *testing.T) {
	n, problems := Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "18446744073709551615"}})
	if n.Version != 1<<64-1 || len(problems) > 0 {
		t.Fatal(fmt.Sprint(n.Version, problems))
	}
}
