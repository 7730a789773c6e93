// SPDX-License-Identifier: Apache-2.0

package outside_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/e2e/kubetest"
)

// wicked is a way of a driver to answer one webhook; it does well at all others.
type wicked struct {
	at    webhook.Name
	serve http.HandlerFunc // nil for well
	// says is what the condition of the object says that the webhook is about, and the Event.
	says string
	// secret is the Secret that the driver asks for, which there is none of.
	secret string
}

// lbcf §3.1, design §8: whatever a driver does, the object that it is about says what is wrong, in its condition and in an Event,
// and the backends of all other drivers are bound as if it did well. So are those of objects that an older client wrote,
// with null wherever it had nothing to say.
func TestWickedDriversHarmOnlyThemselves(t *testing.T) {
	const create = webhook.CreateLoadBalancer
	says := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	wickeds := map[string]wicked{
		"no-json":     {at: ensure, serve: says("<html>out of order</html>"), says: "invalid character '<'"},
		"wrong-types": {at: ensure, serve: says(`{"status":"Succ","injectedInfo":{"weight":50}}`), says: "injectedInfo"},
		"ten-mb":      {at: ensure, serve: says(`{"status":"Succ","msg":"` + strings.Repeat("x", 10<<20) + `"}`), says: "longer than"},
		"http-500":    {at: ensure, serve: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hunter2", 500) }, says: "500 Internal Server Error"},
		"never":       {at: ensure, serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, says: "no answer in time"},
		"creates-500": {at: create, serve: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hunter2", 500) }, says: "500 Internal Server Error"},
		"no-secret":   {at: create, secret: "not-there", says: "not-there"},
		"slow":        {},
	}
	s := newStage(t, kubetest.Options{NoControllers: true})
	asked := serveWicked(t, s.driver.URL, wickeds)
	for name, w := range wickeds {
		s.wicked(name, asked.url+"/"+name, w)
	}
	s.old()
	s.balance("2s")
	began := time.Now()
	s.run(0, 1)
	s.bound(0, 1)
	for _, well := range []string{"old", "slow"} {
		s.Eventually("the backends on "+well, func() error { return atLeast(len(s.driver.On(well)), 2) })
	}
	t.Logf("others were bound after %v", time.Since(began))
	for name, w := range wickeds {
		if w.says != "" {
			s.Eventually(name+" is said", func() error { return s.said(name, w) })
		}
	}
	if n := asked.of("no-secret"); n > 0 {
		t.Errorf("the driver whose Secret is missing was called %d times", n)
	}
	s.run(2) // and so it goes on
	s.bound(0, 1, 2)
	s.lawful()
}

// wickedServer is the drivers of a test, below a path of their own each, in front of one that does well.
type wickedServer struct {
	url   string
	mu    sync.Mutex
	calls map[string]int
}

func (s *wickedServer) of(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

func serveWicked(t *testing.T, behind string, wickeds map[string]wicked) *wickedServer {
	t.Helper()
	target, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	s := &wickedServer{calls: map[string]int{}}
	well := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = "/" + path.Base(r.In.URL.Path)
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, call, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		s.mu.Lock()
		s.calls[name]++
		s.mu.Unlock()
		if name == "slow" {
			time.Sleep(500 * time.Millisecond)
		}
		if wicked := wickeds[name]; wicked.serve != nil && string(wicked.at) == call {
			_, _ = io.Copy(io.Discard, r.Body) // so that it hears when its caller goes
			wicked.serve(w, r)
			return
		}
		well.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	s.url = server.URL
	return s
}

// wicked makes a driver, a load balancer and a group of all pods, each called by the driver's name.
func (s *stage) wicked(name, url string, w wicked) {
	s.t.Helper()
	annotations := "{}"
	if w.secret != "" {
		annotations = fmt.Sprintf("{fairlead.io/credentials-secret: %s}", w.secret)
	}
	s.apply(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancerDriver
metadata: {name: %[2]s, namespace: %[1]s, annotations: %[4]s}
spec:
  driverType: Webhook
  url: %[3]s
  webhooks: [{name: createLoadBalancer, timeout: 2s}, {name: ensureBackend, timeout: 2s}, {name: generateBackendAddr, timeout: 2s}]
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: %[2]s, namespace: %[1]s}
spec: {lbDriver: %[2]s, lbSpec: {id: %[2]s}}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  loadBalancers: [%[2]s]
  pods: {ports: [{port: 8080, protocol: TCP}], byLabel: {selector: {app: web}}}
`, namespace, name, url, annotations)
}

// old makes a load balancer and a group as LBCF's older clients wrote them (lbcf §2.2, §2.3).
func (s *stage) old() {
	s.t.Helper()
	s.apply(`
apiVersion: lbcf.tkestack.io/v1beta1
kind: LoadBalancer
metadata: {name: old, namespace: %[1]s, labels: null, annotations: null}
spec: {lbDriver: theatre, lbSpec: {id: old}, attributes: null, ensurePolicy: null}
status: {lbInfo: null, conditions: null}
---
apiVersion: lbcf.tkestack.io/v1beta1
kind: BackendGroup
metadata: {name: old, namespace: %[1]s}
spec:
  lbName: old
  loadBalancers: null
  service: null
  static: null
  pods: {port: {portNumber: 8080, protocol: TCP}, ports: null, byLabel: {selector: {app: web}, except: null}, byName: null}
  parameters: null
  deregisterPolicy: null
  deregisterWebhook: null
  ensurePolicy: null
status: null
`, namespace)
}

// said looks for the words of a driver's failure in a condition and in an Event of the object that it is about.
func (s *stage) said(name string, w wicked) error {
	kind, object, reason := "BackendRecord", "", "FailedEnsureBackend"
	var shown *unstructured.Unstructured
	if w.at == ensure {
		list, err := s.objects(backendRecords).List(s.t.Context(), metav1.ListOptions{LabelSelector: "lbcf.tkestack.io/lb-name=" + name})
		if err != nil || len(list.Items) == 0 {
			return fmt.Errorf("no BackendRecord: %w", err)
		}
		shown = &list.Items[0]
	} else {
		var err error
		kind, reason = "LoadBalancer", "FailedCreateLoadBalancer"
		if shown, err = s.objects(loadBalancers).Get(s.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	object = shown.GetName()
	if status := fmt.Sprint(shown.Object["status"]); !strings.Contains(status, w.says) || strings.Contains(status, "hunter2") || len(status) > 4000 {
		return fmt.Errorf("status is %.1000s", status)
	}
	events, err := s.kube.Client().CoreV1().Events(namespace).List(s.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
	if err != nil {
		return err
	}
	seen := errors.New("no Event")
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == kind && e.Reason == reason && strings.Contains(e.Message, w.says) {
			return nil
		}
		seen = fmt.Errorf("%w, but %s %s: %.300s", seen, e.InvolvedObject.Kind, e.Reason, e.Message)
	}
	return seen
}
