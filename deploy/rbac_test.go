// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/handover"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/servicecidrs"
	"fairlead.io/fairlead/k8s/status"
)

// The product does all that it does to an API server with the account that the manifests give it: nothing is refused,
// and each single right that is taken away has something refused that it did.
func TestMembersHaveTheRightsTheyNeedAndNoOther(t *testing.T) {
	t.Parallel()
	objects := kustomize(t, "base")
	c := kubetest.Start(t, kubetest.Options{NoControllers: true, Plugins: []string{"OwnerReferencesPermissionEnforcement"}})
	a := newApplier(t, c)
	for _, kind := range []string{"CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"} {
		for _, o := range objects {
			if o.GetKind() == kind {
				a.apply(t, o)
			}
		}
	}
	a.apply(t, manifests(t, "examples/config-maps.yaml")...)
	define(t, a, "metallb.io", "v1beta1", "IPAddressPool", "BGPAdvertisement", "L2Advertisement", "BFDProfile", "Community")
	define(t, a, "metallb.io", "v1beta2", "BGPPeer")
	config, err := c.ConfigForAccount(t.Context(), "kube-system", "fairlead-controller")
	if err != nil {
		t.Fatal(err)
	}
	var seen recorder
	var empty emptier
	recorded := rest.CopyConfig(config)
	recorded.Wrap(empty.wrap)
	recorded.Wrap(seen.wrap)
	work(t, c, recorded, func(source *informers.Source) {
		for _, o := range objects {
			if o.GetKind() == "CustomResourceDefinition" {
				established(t, a, o)
			}
		}
		a := newApplier(t, c) // that knows the definitions
		some(t, a, "fairlead.io/v1alpha1", "IPAddressPool", "BGPPeer", "BGPAdvertisement", "L2Advertisement", "BFDProfile", "Community")
		a.apply(t, &unstructured.Unstructured{Object: map[string]any{ // by which namespaces are read
			"apiVersion": "fairlead.io/v1alpha1", "kind": "AddressPolicy", "metadata": map[string]any{"name": "fairlead"},
			"spec": map[string]any{"maxAddresses": int64(9), "namespaceSelectors": []any{map[string]any{"matchLabels": map[string]any{"a": "b"}}}},
		}})
		some(t, a, "metallb.io/v1beta1", "IPAddressPool", "BGPAdvertisement", "L2Advertisement", "BFDProfile", "Community")
		some(t, a, "metallb.io/v1beta2", "BGPPeer")
		some(t, a, "lbcf.tkestack.io/v1beta1", "LoadBalancerDriver", "LoadBalancer", "BackendGroup", "BackendRecord")
		some(t, a, "lbcf.tkestack.io/v1", "Bind")
		if _, err := c.Pod(t.Context(), kubetest.PodSpec{Name: "web-0", Node: "n1"}); err != nil {
			t.Fatal(err)
		}
		askByName(t, source, &empty, &seen)
	})
	requests := seen.taken()
	for _, r := range requests {
		if r.status == http.StatusForbidden || r.status == http.StatusUnauthorized {
			t.Errorf("%s: refused with %d", r, r.status)
		}
	}
	if t.Failed() {
		return
	}
	replayer := rest.CopyConfig(config)
	caller, err := rest.HTTPClientFor(replayer)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(ctx context.Context) (all []string) {
		for _, r := range requests {
			if r.replay(ctx, t, caller) == http.StatusForbidden {
				all = append(all, r.String())
			}
		}
		return all
	}
	if some := refused(t.Context()); len(some) > 0 {
		t.Fatalf("refused when asked again: %v", some)
	}
	account, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range rolesIn(t, c) {
		for _, right := range role.rights() {
			t.Run(right.name(), func(t *testing.T) {
				role.write(t, c, right)
				role.allowed(t, account, right, false)
				of := right.first(requests)
				lacking := slices.IndexFunc(of, func(r *request) bool { return r.replay(t.Context(), t, caller) == http.StatusForbidden })
				if lacking < 0 {
					t.Fatal("everything still works")
				}
				role.write(t, c, nothing)
				role.allowed(t, account, right, true)
				if of[lacking].replay(t.Context(), t, caller) == http.StatusForbidden {
					t.Fatalf("%s is still refused", of[lacking])
				}
			})
		}
	}
	if some := refused(t.Context()); len(some) > 0 {
		t.Errorf("refused in the end: %v", some)
	}
}

// some writes an object of each kind. What they say makes no sense beyond what their definitions ask for, and is not needed.
func some(t *testing.T, a *applier, version string, kinds ...string) {
	t.Helper()
	name, _, _ := strings.Cut(version, ".")
	for _, kind := range kinds {
		spec := map[string]any{}
		switch kind {
		case "IPAddressPool":
			spec["addresses"] = []any{"x"}
		case "BGPPeer":
			spec["myASN"] = int64(0)
		}
		a.apply(t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "kube-system"}, "spec": spec,
		}})
	}
}

// askByName has a source be shown empty lists, so that it asks for everything by name.
func askByName(t *testing.T, source *informers.Source, empty *emptier, seen *recorder) {
	t.Helper()
	kubetest.Eventually(t, "knowledge of every object", func(context.Context) error {
		w := source.World()
		outside := len(w.Drivers) + len(w.LoadBalancers) + len(w.BackendGroups) + len(w.BackendRecords) + len(w.Binds) + len(w.Pods)
		if len(w.Unusable)+len(w.Pools)+len(w.Peers)+len(w.Advertisements)+len(w.Communities)+len(w.L2Advertisements)+len(w.BFDProfiles)+len(w.AddressPolicies)+min(1, len(w.Namespaces))+outside < 20 {
			return fmt.Errorf("%d unusable, %d of outside load balancers", len(w.Unusable), outside)
		}
		return nil
	})
	empty.lies.Store(true)
	kubetest.Eventually(t, "requests by name", func(context.Context) error {
		source.Relist(world.Kinds()...)
		for _, resource := range []string{"/services/", "/nodes/", "/endpointslices/", "/kube-gobgp-cfg", "/kube-iprule-cfg",
			"/ipaddresspools/fairlead", "/bgppeers/fairlead", "/bgpadvertisements/fairlead", "/communities/fairlead",
			"/addresspolicies/fairlead", "/namespaces/default", "/l2advertisements/fairlead", "/bfdprofiles/fairlead", "/l2advertisements/metallb", "/bfdprofiles/metallb",
			"/ipaddresspools/metallb", "/bgppeers/metallb", "/bgpadvertisements/metallb", "/communities/metallb",
			"/pods/web-0", "/loadbalancerdrivers/lbcf", "/loadbalancers/lbcf", "/backendgroups/lbcf", "/backendrecords/lbcf", "/binds/lbcf"} {
			if !slices.ContainsFunc(seen.taken(), func(r *request) bool { return strings.Contains(r.url.Path, resource) }) {
				return fmt.Errorf("none for %s", resource)
			}
		}
		return nil
	})
}

// work has the product do once all that it asks of an API server.
func work(t *testing.T, c *kubetest.Cluster, config *rest.Config, more func(*informers.Source)) {
	t.Helper()
	if _, err := c.Node(t.Context(), "n1", nil); err != nil {
		t.Fatal(err)
	}
	service, err := c.Client().CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Client().DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	source, err := informers.New(informers.Options{API: api, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = source.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	kubetest.Eventually(t, "complete view", func(context.Context) error {
		w := source.World()
		if len(w.Problems) > 0 || !w.Complete || len(w.Services) < 2 || len(w.Nodes) != 1 || len(w.ConfigMaps) != 2 {
			return fmt.Errorf("problems %v, complete %v, %d services, %d nodes, %d config maps",
				w.Problems, w.Complete, len(w.Services), len(w.Nodes), len(w.ConfigMaps))
		}
		return nil
	})
	more(source)
	shown := status.Kubernetes{Services: api.Client.CoreV1(), Events: api.Client.EventsV1()}
	_, err = shown.Write(t.Context(), status.Write{
		ID: "default/web", UID: string(service.UID), Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.80"}},
	})
	if err != nil {
		t.Error(err)
	}
	old, err := handover.In(api)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Look(t.Context()); err != nil {
		t.Error(err)
	}
	now := metav1.NowMicro()
	err = shown.Tell(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "web.1", Namespace: "default"}, EventTime: now,
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "web", UID: service.UID},
		ReportingController: "fairlead.io/controller", ReportingInstance: "m1", Action: "Announce", Reason: "Announced", Type: "Normal",
	})
	if err != nil {
		t.Error(err)
	}
	showOutside(t, api)
	cidrs := &servicecidrs.Follower{API: api, Clock: wallClock{}, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	asking, stop := context.WithCancel(t.Context())
	asked := make(chan struct{})
	go func() { defer close(asked); _ = cidrs.Run(asking) }()
	kubetest.Eventually(t, "prefixes of ClusterIPs", func(context.Context) error {
		if len(cidrs.Prefixes()) == 0 {
			return errors.New("none")
		}
		return nil
	})
	stop()
	<-asked
	trust(t, c, api)
	token, err := c.Token(t.Context(), "kube-system", "fairlead-agent", "fairlead")
	if err != nil {
		t.Fatal(err)
	}
	review, err := api.Client.AuthenticationV1().TokenReviews().Create(t.Context(), &authv1.TokenReview{
		Spec: authv1.TokenReviewSpec{Token: token, Audiences: []string{"fairlead"}},
	}, metav1.CreateOptions{})
	if err != nil || review.Status.User.Username != "system:serviceaccount:kube-system:fairlead-agent" {
		t.Errorf("review of an agent's token: %+v, %v", review.Status, err)
	}
}

// wallClock is time as the machine has it.
type wallClock struct{}

func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// An agent's account may do what every account may, and its token for members opens nothing at the API server.
func TestAgentsAreGrantedNothing(t *testing.T) {
	t.Parallel()
	objects := kustomize(t, "base")
	c := kubetest.Start(t, kubetest.Options{NoControllers: true})
	a := newApplier(t, c)
	for _, o := range objects {
		if strings.HasSuffix(o.GetKind(), "Role") || strings.HasSuffix(o.GetKind(), "Binding") || o.GetKind() == "ServiceAccount" {
			a.apply(t, o)
		}
	}
	if err := c.EnsureNamespace(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	rules := func(namespace, name string) (all []string) {
		config, err := c.ConfigForAccount(t.Context(), namespace, name)
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authzv1.SelfSubjectRulesReview{Spec: authzv1.SelfSubjectRulesReviewSpec{Namespace: "kube-system"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range review.Status.ResourceRules {
			all = append(all, fmt.Sprint(r))
		}
		slices.Sort(all) // the API server has them in any order
		return all
	}
	anybody := rules("default", "default")
	if agent := rules("kube-system", "fairlead-agent"); !slices.Equal(agent, anybody) {
		t.Errorf("the agent may\n%v\nanybody may\n%v", agent, anybody)
	}
	if member := rules("kube-system", "fairlead-controller"); len(member) <= len(anybody) {
		t.Errorf("the review does not show what a member may: %v", member)
	}
	token, err := c.Token(t.Context(), "kube-system", "fairlead-agent", "fairlead")
	if err != nil {
		t.Fatal(err)
	}
	config := c.Config()
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData, config.BearerToken = nil, nil, token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerVersion(); err == nil {
		t.Error("a token for members is a token for the API server")
	}
}

// define installs definitions of kinds whose content nobody checks.
func define(t *testing.T, a *applier, group, version string, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		singular := strings.ToLower(kind)
		plural := strings.Replace(singular+"s", "ys", "ies", 1)
		crd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + "." + group},
			"spec": map[string]any{
				"group": group, "scope": "Namespaced",
				"names": map[string]any{"kind": kind, "plural": plural, "singular": singular},
				"versions": []any{map[string]any{
					"name": version, "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}}
		a.apply(t, crd)
		established(t, a, crd)
	}
}

// established waits until a definition is in force.
func established(t *testing.T, a *applier, crd *unstructured.Unstructured) {
	t.Helper()
	kubetest.Eventually(t, "definition of "+crd.GetName(), func(ctx context.Context) error {
		got, err := a.resource(t, crd).Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", conditions)
	})
}

// role is a role of the members, namespaced or not.
type role struct {
	namespace string
	meta      metav1.ObjectMeta
	rules     []rbacv1.PolicyRule
}

// right is one verb on one resource of one group, by one name if any.
type right struct{ group, resource, object, verb string }

// nothing is no right at all.
var nothing right

func (r right) name() string {
	return strings.Join([]string{r.verb, strings.ReplaceAll(r.resource, "/", "."), r.group, r.object}, "-")
}

func rolesIn(t *testing.T, c *kubetest.Cluster) []*role {
	t.Helper()
	wide, err := c.Client().RbacV1().ClusterRoles().Get(t.Context(), "fairlead-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := c.Client().RbacV1().Roles("kube-system").Get(t.Context(), "fairlead-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return []*role{{"", wide.ObjectMeta, wide.Rules}, {"kube-system", narrow.ObjectMeta, narrow.Rules}}
}

// rights takes rules apart.
func (r *role) rights() (all []right) {
	for _, rule := range r.rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						all = append(all, right{group, resource, name, verb})
					}
				}
			}
		}
	}
	return all
}

// first puts the requests in front that name the resource: of them, one is refused most likely.
func (r right) first(requests []*request) []*request {
	resource, _, _ := strings.Cut(r.resource, "/")
	about, others := []*request{}, []*request{}
	for _, one := range requests {
		if strings.Contains(one.url.Path, "/"+resource) {
			about = append(about, one)
		} else {
			others = append(others, one)
		}
	}
	return append(about, others...)
}

// allowed waits until the API server knows whether an account has a right of the role. It learns of roles by a watch.
func (r *role) allowed(t *testing.T, account kubernetes.Interface, one right, want bool) {
	t.Helper()
	resource, sub, _ := strings.Cut(one.resource, "/")
	review := &authzv1.SelfSubjectAccessReview{Spec: authzv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authzv1.ResourceAttributes{
		Namespace: r.namespace, Verb: one.verb, Group: one.group, Resource: resource, Subresource: sub, Name: one.object,
	}}}
	kubetest.Eventually(t, fmt.Sprintf("review that says %t", want), func(ctx context.Context) error {
		got, err := account.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && got.Status.Allowed != want {
			return errors.New(got.Status.Reason)
		}
		return err
	})
}

// write replaces the role by one that lacks a right.
func (r *role) write(t *testing.T, c *kubetest.Cluster, without right) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, one := range r.rights() {
		if one == without {
			continue
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{one.group}, Resources: []string{one.resource}, Verbs: []string{one.verb}}
		if one.object != "" {
			rule.ResourceNames = []string{one.object}
		}
		rules = append(rules, rule)
	}
	meta := metav1.ObjectMeta{Name: r.meta.Name}
	var err error
	if r.namespace == "" {
		_, err = c.Client().RbacV1().ClusterRoles().Update(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.UpdateOptions{})
	} else {
		_, err = c.Client().RbacV1().Roles(r.namespace).Update(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
