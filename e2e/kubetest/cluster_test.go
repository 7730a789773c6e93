// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"fairlead.io/fairlead/e2e/kubetest"
)

func rss(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func TestStoppedAndKilledServersKeepObjectsAndAddress(t *testing.T) {
	begin := time.Now()
	c := kubetest.Start(t, kubetest.Options{})
	t.Logf("started in %s", time.Since(begin))
	for name, pid := range c.Processes() {
		t.Logf("%s: %s", name, rss(t, pid))
	}
	ctx, maps := t.Context(), c.Client().CoreV1().ConfigMaps("default")
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	endpoint, controllers := c.Endpoint(), c.Processes()["kube-controller-manager"]
	for name, end := range map[string]func(){"stopped": c.Stop, "killed": c.Kill} {
		t.Run(name, func(t *testing.T) {
			end()
			if _, err := maps.Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
				t.Fatal("it still answers")
			}
			begin := time.Now()
			if err := c.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("started again in %s", time.Since(begin))
			got, err := maps.Get(t.Context(), "kept", metav1.GetOptions{})
			if err != nil || got.UID != made.UID {
				t.Fatalf("got %v, %v", got.UID, err)
			}
		})
	}
	if c.Endpoint() != endpoint {
		t.Errorf("moved from %s to %s", endpoint, c.Endpoint())
	}
	if now := c.Processes()["kube-controller-manager"]; now != controllers {
		t.Errorf("controllers ended with the API server: pid %d, then %d", controllers, now)
	}
}

// What every cluster does is tried at one: a start costs a second and a half of processor time. Each part has namespaces and Nodes of its own.
func TestOneCluster(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	t.Run("service-follows-its-pods", func(t *testing.T) { serviceFollowsItsPods(t, c) })
	t.Run("users-may-do-only-what-they-are-granted", func(t *testing.T) { usersMayDoOnlyWhatTheyAreGranted(t, c) })
	t.Run("token-for-an-audience-names-its-pod-and-node", func(t *testing.T) { tokenForAnAudienceNamesItsPodAndNode(t, c) })
	t.Run("seeded-objects-are-shown-and-watched", func(t *testing.T) { seededObjectsAreShownAndWatched(t, c) })
}

// Pods become endpoints by the real controller, through the states of their lives.
func serviceFollowsItsPods(t *testing.T, c *kubetest.Cluster) {
	ctx := t.Context()
	node, err := c.Node(ctx, "n1", map[string]string{"zone": "a"}, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"))
	if err != nil {
		t.Fatal(err)
	}
	pod, err := c.Pod(ctx, kubetest.PodSpec{
		Namespace: "shop", Name: "web", Node: node.Name, Labels: map[string]string{"app": "web"},
		Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8:1::7")},
		Ports:     map[string]uint16{"http": 8080},
	})
	if err != nil {
		t.Fatal(err)
	}
	dual := corev1.IPFamilyPolicyRequireDualStack
	_, err = c.Client().CoreV1().Services("shop").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"}, IPFamilyPolicy: &dual,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	is := func(ready, serving, terminating bool) func(context.Context) error {
		return func(ctx context.Context) error {
			slices, err := c.Client().DiscoveryV1().EndpointSlices("shop").List(ctx, metav1.ListOptions{
				LabelSelector: discoveryv1.LabelServiceName + "=web",
			})
			if err != nil {
				return err
			}
			if len(slices.Items) != 2 {
				return fmt.Errorf("%d slices", len(slices.Items))
			}
			for _, s := range slices.Items {
				if len(s.Endpoints) != 1 {
					return fmt.Errorf("%d endpoints in %s", len(s.Endpoints), s.Name)
				}
				e := s.Endpoints[0]
				if *e.Conditions.Ready != ready || *e.Conditions.Serving != serving || *e.Conditions.Terminating != terminating || *e.NodeName != "n1" {
					return fmt.Errorf("endpoint %s", e.String())
				}
			}
			return nil
		}
	}
	kubetest.Eventually(t, "ready endpoint in both families", is(true, true, false))
	for _, step := range []struct {
		name string
		do   func(context.Context) error
		then func(context.Context) error
	}{
		{"endpoint that is not ready", func(ctx context.Context) error { return pod.SetReady(ctx, false) }, is(false, false, false)},
		{"endpoint that is ready again", func(ctx context.Context) error { return pod.SetReady(ctx, true) }, is(true, true, false)},
		{"endpoint that serves to its end", pod.Terminate, is(false, true, true)},
	} {
		if err := step.do(ctx); err != nil {
			t.Fatal(err)
		}
		kubetest.Eventually(t, step.name, step.then)
	}
	if err := pod.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "end of the endpoint", func(ctx context.Context) error {
		list, err := c.Client().DiscoveryV1().EndpointSlices("shop").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, s := range list.Items {
			if len(s.Endpoints) > 0 {
				return errors.New("an endpoint is left")
			}
		}
		return nil
	})
}

func TestSilentNodeBecomesNotReadyWhereThatIsWatched(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Controllers: []string{"node-lifecycle-controller"}, NodeGrace: 5 * time.Second})
	node, err := c.Node(t.Context(), "n1", nil, netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	node.Silence()
	kubetest.Eventually(t, "Node that is not ready", func(ctx context.Context) error {
		n, err := c.Client().CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", n.Status.Conditions)
	})
}

func usersMayDoOnlyWhatTheyAreGranted(t *testing.T, c *kubetest.Cluster) {
	ctx := t.Context()
	if err := c.EnsureNamespace(ctx, "users"); err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"administrator": c.Kubeconfig()}
	for name, make := range map[string]func() (string, error){
		"user":           func() (string, error) { return c.KubeconfigFor("jane", "viewers") },
		"ServiceAccount": func() (string, error) { return c.KubeconfigForAccount(ctx, "users", "default") },
	} {
		path, err := make()
		if err != nil {
			t.Fatal(err)
		}
		paths[name] = path
	}
	who := map[string]string{"administrator": "admin", "user": "jane", "ServiceAccount": "system:serviceaccount:users:default"}
	for name, path := range paths {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil || review.Status.UserInfo.Username != who[name] {
			t.Errorf("%s is %q, %v", name, review.Status.UserInfo.Username, err)
		}
		_, err = client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
		if allowed := name == "administrator"; allowed != (err == nil) || !allowed && !apierrors.IsForbidden(err) {
			t.Errorf("%s lists Services: %v", name, err)
		}
	}
}

// A token for another audience proves to that audience who its Pod is, and opens nothing at the API server.
func tokenForAnAudienceNamesItsPodAndNode(t *testing.T, c *kubetest.Cluster) {
	ctx := t.Context()
	if _, err := c.Node(ctx, "n2", nil); err != nil {
		t.Fatal(err)
	}
	pod, err := c.Pod(ctx, kubetest.PodSpec{Namespace: "apps", Name: "agent", Node: "n2"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.PodToken(ctx, pod, "default", "fairlead")
	if err != nil {
		t.Fatal(err)
	}
	for audience, valid := range map[string]bool{"fairlead": true, "other": false, "": false} {
		review := &authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token}}
		if audience != "" {
			review.Spec.Audiences = []string{audience}
		}
		got, err := c.Client().AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Status.Authenticated != valid {
			t.Errorf("audience %q: %+v", audience, got.Status)
		}
		if node := got.Status.User.Extra["authentication.kubernetes.io/node-name"]; valid && !slices.Equal(node, authv1.ExtraValue{"n2"}) {
			t.Errorf("node %v in %+v", node, got.Status.User)
		}
	}
}

func TestCloseEndsEverythingAndLeavesNothing(t *testing.T) {
	binaries(t)
	c, err := kubetest.New(t.Context(), kubetest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pids := c.Processes()
	if len(pids) != 3 {
		t.Errorf("processes %v", pids)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("%s still runs", name)
		}
	}
	if _, err := os.Stat(c.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", c.Dir(), err)
	}
}
