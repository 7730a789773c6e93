// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// Every annotation under our prefix that nobody reads is told of with its name, and none that is read.
func TestPropertyUnknownAnnotationsOfOursAreToldOf(t *testing.T) {
	kinds := []world.Kind{
		world.KindService, world.KindPool, world.KindPeer, world.KindAdvertisement, world.KindDriver, world.KindBackendGroup, world.KindNode, world.KindPod,
		world.KindL2Advert, world.KindBind, world.KindEndpointSlice,
	}
	var names []string
	for _, known := range annotations {
		names = append(names, known...)
	}
	slices.Sort(names)
	testkit.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		key := rapid.OneOf(rapid.SampledFrom(names), rapid.StringMatching(`fairlead\.io/[a-zA-Z-]{0,12}`), rapid.StringMatching(`[a-z]{1,4}\.io/[a-z]{1,8}`)).Draw(t, "annotation")
		_, r := open(kind, &metav1.ObjectMeta{Name: "x", Namespace: "y", Annotations: map[string]string{key: "z"}}, true)
		read := !strings.HasPrefix(key, "fairlead.io/") || slices.Contains(annotations[kind], key) || kind == world.KindEndpointSlice
		if told := len(r.problems) > 0; told == read {
			t.Fatalf("%s on %s: %v", key, kind, r.problems)
		}
		for _, p := range r.problems {
			if p.Severity != world.Degraded || p.Field != "metadata.annotations["+key+"]" || p.Remedy == "" {
				t.Fatalf("%s on %s: %+v", key, kind, p)
			}
		}
	})
}

// What was meant is offered: by its spelling, or by a word of its name; and whose kind is another one is told which.
func TestUnknownAnnotationsSayWhatWasMeant(t *testing.T) {
	for _, c := range []struct {
		kind      world.Kind
		key, want string
	}{
		{world.KindService, "fairlead.io/loadBalancerIp", "did you mean fairlead.io/loadBalancerIPs?"},
		{world.KindService, "fairlead.io/pool", "did you mean fairlead.io/address-pool?"},
		{world.KindPool, "fairlead.io/l2-when-cutoff", "did you mean fairlead.io/l2-when-cut-off?"},
		{world.KindService, "fairlead.io/med", "it is read on objects of kind BGPAdvertisement"},
		{world.KindNode, "fairlead.io/lb", "there is no such annotation"},
	} {
		_, r := open(c.kind, &metav1.ObjectMeta{Name: "x", Annotations: map[string]string{c.key: "z"}}, false)
		if len(r.problems) != 1 || !strings.Contains(r.problems[0].Why, c.want) {
			t.Errorf("%s on %s: %+v", c.key, c.kind, r.problems)
		}
	}
}

// Every annotation that this package names is one that is read from some kind: who adds one enters it there.
func TestEveryAnnotationOfOursHasAKind(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Annotation") {
				return true
			}
			name := ""
			switch v := spec.Values[0].(type) {
			case *ast.BasicLit:
				name = strings.Trim(v.Value, `"`)
			case *ast.BinaryExpr: // ourPrefix + "name"
				if lit, ok := v.Y.(*ast.BasicLit); ok {
					name = ourPrefix + strings.Trim(lit.Value, `"`)
				}
			}
			if strings.HasPrefix(name, ourPrefix) {
				if found++; len(kindsOf(name)) == 0 {
					t.Errorf("%s in %s is read from no kind", spec.Names[0].Name, file.Name())
				}
			}
			return true
		})
	}
	if found < 10 {
		t.Errorf("only %d were found", found)
	}
}

// What another load balancer would do for an annotation, and is not done here, is told of a Service of type LoadBalancer, once for each annotation and
// with what to do; what asks for nothing is not, nor what that load balancer serves itself. It changes nothing of what the Service asks for.
func TestAnnotationsThatOnlyOthersHeedAreToldOf(t *testing.T) {
	balancer, cluster := corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeClusterIP
	all := []string{
		"kube-vip.io/ignore", "kube-vip.io/egress", "kube-vip.io/serviceInterface", "kube-vip.io/serviceVLAN", "kube-vip.io/forwardUPNP",
		"kube-vip.io/loadbalancerHostname", "eip.openelb.kubesphere.io/v1alpha1", "eip.openelb.kubesphere.io/v1alpha2", "protocol.openelb.kubesphere.io/v1alpha1",
	}
	for _, u := range unheeded {
		if !slices.Contains(all, u.key) {
			all = append(all, u.key)
		}
	}
	theirs, ours := "kube-vip.io/kube-vip-class", "fairlead.io/fairlead"
	for _, key := range all {
		for _, c := range []struct {
			kind   corev1.ServiceType
			value  string
			class  *string
			beside map[string]string
			told   int
		}{
			{kind: balancer, value: "true", told: 1}, {kind: balancer, value: "eth1", told: 1}, {kind: balancer, value: "true", class: &ours, told: 1},
			{kind: balancer, value: "False"}, {kind: balancer, value: " "}, {kind: cluster, value: "true"}, {kind: balancer, value: "true", class: &theirs},
			{kind: balancer, value: "true", told: 1, beside: map[string]string{"kube-vip.io/vipHost": "n1", "lb.kubesphere.io/v1alpha1": "openelb"}},
		} {
			with := map[string]string{key: c.value}
			maps.Copy(with, c.beside)
			made := func(annotations map[string]string) (world.Service, []world.Problem) {
				return Service(&corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Annotations: annotations},
					Spec:       corev1.ServiceSpec{Type: c.kind, LoadBalancerClass: c.class, Ports: []corev1.ServicePort{{Port: 80}}},
				})
			}
			is, problems := made(with)
			plain, none := made(nil)
			if len(problems) != c.told || len(none) != 0 || !reflect.DeepEqual(is, plain) {
				t.Errorf("%s: %q on a Service of type %s and class %q: %v", key, c.value, c.kind, value(c.class), problems)
			}
			for _, p := range problems {
				if p.Field != annotationField(key) || p.Severity != world.Degraded || p.Why == "" || p.Remedy == "" {
					t.Errorf("%s: told as %+v", key, p)
				}
			}
		}
	}
}

// Who has said by an annotation of ours what an Eip stood for is told nothing any more.
func TestAnEipThatAPoolStandsForIsNotToldOf(t *testing.T) {
	for _, ours := range []string{AnnotationPool, AnnotationAddresses} {
		_, problems := Service(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"eip.openelb.kubesphere.io/v1alpha2": "eip", ours: "192.0.2.1"}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
		})
		if len(problems) != 0 {
			t.Errorf("%s: %v", ours, problems)
		}
	}
}
