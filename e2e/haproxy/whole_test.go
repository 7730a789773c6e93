// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// whole is everything: a cluster with pods that serve, a group, the driver and HAProxy, and somebody who makes requests.
//
//	API server ──▶ group ──▶ gate ──▶ driver ──▶ HAProxy ◀── requests
//	                                                └──▶ "static", pods
type whole struct {
	*lab.Lab
	t      *testing.T
	kube   *kubetest.Cluster
	proxy  *proxy
	driver *process
	gate   *gate
	pods   map[int]*kubetest.Pod
	static string // how HAProxy has the server that is not ours
}

const shop = "shop"

func startWhole(t *testing.T) *whole {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
			t.Fatal("it takes root to run a group beside HAProxy")
		}
		t.Skip("it takes root to run a group beside HAProxy")
	}
	w := &whole{t: t, kube: kubetest.Start(t, kubetest.Options{NoControllers: true}), pods: map[int]*kubetest.Pod{}}
	w.must(w.kube.ApplyFiles(t.Context(), "../../deploy/crds/lbcf.*.yaml"))
	w.must(w.kube.EnsureNamespace(t.Context(), shop))
	_, err := w.kube.Node(t.Context(), "n1", nil, lab.NodeAddress(1))
	w.must(err)
	w.proxy = startProxy(t, startPod(t, "static"))
	w.static = w.proxy.servers()["static"]
	w.driver = startDriver(t, w.proxy)
	w.gate = startGate(t, w.driver.url)
	w.Lab = lab.New(t, lab.Options{Kubeconfig: w.kube.Kubeconfig()})
	timeouts := ""
	for _, call := range []webhook.Name{
		webhook.Healthz, webhook.ValidateLoadBalancer, webhook.CreateLoadBalancer, webhook.EnsureLoadBalancer, webhook.DeleteLoadBalancer,
		webhook.ValidateBackend, webhook.GenerateBackendAddr, webhook.EnsureBackend, webhook.DeregisterBackend,
	} {
		timeouts += fmt.Sprintf("  - {name: %s, timeout: 2s}\n", call)
	}
	w.must(w.kube.Apply(t.Context(), fmt.Sprintf(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancerDriver
metadata: {name: haproxy, namespace: %s}
spec:
  driverType: Webhook
  url: %s
  webhooks:
%s`, shop, w.gate.url, timeouts)))
	return w
}

func (w *whole) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// own has HAProxy's backend be a load balancer, with all pods of the app web.
func (w *whole) own() {
	w.t.Helper()
	w.must(w.kube.Apply(w.t.Context(), fmt.Sprintf(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: edge, namespace: %[1]s, finalizers: [lbcf.tkestack.io/delete-load-loadbalancer]}
spec: {lbDriver: haproxy, lbSpec: {backend: web}}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: web, namespace: %[1]s}
spec:
  loadBalancers: [edge]
  pods: {ports: [{port: 8080, protocol: TCP}], byLabel: {selector: {app: web}}}
`, shop)))
}

func (w *whole) lbcf(resource string) dynamic.ResourceInterface {
	w.t.Helper()
	client, err := dynamic.NewForConfig(w.kube.Config())
	w.must(err)
	return client.Resource(schema.GroupVersionResource{Group: "lbcf.tkestack.io", Version: "v1beta1", Resource: resource}).Namespace(shop)
}

// run makes ready pods, each of which answers its number at an address of its own. They serve until the test ends, as pods do
// that end in good order.
func (w *whole) run(numbers ...int) {
	w.t.Helper()
	for _, i := range numbers {
		ip := netip.AddrFrom4([4]byte{127, 44, 0, byte(i)})
		serveAt(w.t, netip.AddrPortFrom(ip, 8080), fmt.Sprint(i))
		pod, err := w.kube.Pod(w.t.Context(), kubetest.PodSpec{
			Namespace: shop, Name: fmt.Sprintf("web-%d-%d", i, time.Now().UnixNano()), Node: "n1", Labels: map[string]string{"app": "web"}, Addresses: []netip.Addr{ip},
		})
		w.must(err)
		w.pods[i] = pod
	}
}

func (w *whole) remove(numbers ...int) {
	w.t.Helper()
	for _, i := range numbers {
		w.must(w.pods[i].Remove(w.t.Context()))
		delete(w.pods, i)
	}
}

func serveAt(t *testing.T, at netip.AddrPort, answer string) {
	t.Helper()
	listener, err := net.Listen("tcp", at.String())
	if err != nil {
		if strings.Contains(err.Error(), "in use") {
			return // it serves already
		}
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
}

// served waits until requests are answered by "static" and just the pods that there are.
func (w *whole) served(what string) {
	w.t.Helper()
	want := map[string]bool{"static": true}
	for i := range w.pods {
		want[fmt.Sprint(i)] = true
	}
	w.Eventually(what, func() error {
		got := map[string]bool{}
		for range 4 * len(want) {
			got[get(w.proxy.url)] = true
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("answers come from %v, not from %v", got, want)
		}
		return nil
	})
	if have := w.proxy.servers()["static"]; have != w.static {
		w.t.Errorf("%s: the server that is not ours was %s, and is %s", what, w.static, have)
	}
}

// met waits until a call is at the gate.
func (w *whole) met(hit <-chan struct{}, call webhook.Name) {
	w.t.Helper()
	select {
	case <-hit:
	case <-time.After(testkit.Patience):
		w.t.Fatalf("no %s within %s", call, testkit.Patience)
	}
}

func (w *whole) killAll() {
	for _, m := range w.Members {
		m.Kill()
	}
}

func (w *whole) startAll() {
	for _, m := range w.Members {
		m.Start()
	}
}

// gate is between group and driver. It can stop the world at the next call of a webhook, before or after the driver has it.
type gate struct {
	url string

	mu    sync.Mutex
	at    webhook.Name // none if empty
	after bool
	hit   chan struct{}
}

func startGate(t *testing.T, driver string) *gate {
	t.Helper()
	to, err := url.Parse(driver)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{}
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hit, after := g.take(r.URL.Path)
		if hit != nil && !after {
			_, _ = io.Copy(io.Discard, r.Body) // else nobody sees that the caller has gone
			close(hit)
			<-r.Context().Done() // the caller is killed, and the driver never hears of it
			return
		}
		if hit != nil {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			close(hit)
			<-r.Context().Done() // done, and nobody is told
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	g.url = server.URL
	return g
}

// stop is closed once the next call of a webhook is there.
func (g *gate) stop(at webhook.Name, after bool) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at, g.after, g.hit = at, after, make(chan struct{})
	return g.hit
}

func (g *gate) take(path string) (hit chan struct{}, after bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at == "" || !strings.HasSuffix(path, "/"+string(g.at)) {
		return nil, false
	}
	g.at = ""
	return g.hit, g.after
}

// askAllAlong makes requests until stopped, and gives those that were not answered.
func askAllAlong(url string) (stop func() []string) {
	ended, failed := make(chan struct{}), []string{}
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
			answer := get(url)
			if _, err := strconv.Atoi(answer); err != nil && answer != "static" {
				failed = append(failed, answer)
			}
		}
	})
	return func() []string {
		close(ended)
		asking.Wait()
		return failed
	}
}

// An app is made, scaled and rolled, the driver and then the whole group are killed while it changes, and not one request of
// all that time is lost; nor is the server of the proxy's own configuration ever touched.
func TestRequestsAreServedWhileTheAppChangesAndTheGroupDies(t *testing.T) {
	w := startWhole(t)
	stop := askAllAlong(w.proxy.url)
	w.own()
	w.run(1, 2, 3)
	w.served("made")
	w.run(4, 5, 6)
	w.served("scaled up")
	for i := 1; i <= 6; i++ {
		w.run(10 + i)
		w.remove(i)
	}
	w.served("rolled")

	w.driver.end(syscall.SIGKILL)
	w.run(21, 22)
	w.remove(11)
	w.driver.start()
	w.served("changed while the driver was dead")

	w.killAll()
	w.run(23, 11)
	w.remove(12, 13, 21)
	w.startAll()
	w.served("changed while the group was dead")

	if failed := stop(); len(failed) > 0 {
		t.Errorf("%d requests were lost, the first: %s", len(failed), failed[0])
	}
}

// The whole group is killed in the middle of every call of a backend's and a load balancer's life, before the driver has it
// and after it did it, with HAProxy behind: everything ends right (INV-4).
func TestGroupKilledInEveryCallLeavesHAProxyRight(t *testing.T) {
	w := startWhole(t)
	for round, after := range []bool{false, true} {
		pod := 30 + 10*round
		for _, step := range []struct {
			call webhook.Name
			act  func()
		}{
			{webhook.CreateLoadBalancer, w.own},
			{webhook.GenerateBackendAddr, func() { w.run(pod) }},
			{webhook.EnsureBackend, func() { w.run(pod + 1) }},
			{webhook.DeregisterBackend, func() { w.remove(pod) }},
		} {
			hit := w.gate.stop(step.call, after)
			step.act()
			w.met(hit, step.call)
			w.killAll()
			w.startAll()
			w.served(fmt.Sprintf("killed in %s, after it was done: %v", step.call, after))
		}
		hit := w.gate.stop(webhook.DeleteLoadBalancer, after)
		w.must(w.lbcf("backendgroups").Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.must(w.lbcf("loadbalancers").Delete(t.Context(), "edge", metav1.DeleteOptions{}))
		w.met(hit, webhook.DeleteLoadBalancer)
		w.killAll()
		w.startAll()
		w.remove(pod + 1)
		w.served("killed in deleteLoadBalancer")
		w.Eventually("the load balancer goes", func() error {
			if _, err := w.lbcf("loadbalancers").Get(t.Context(), "edge", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
}
