// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/network/httpd"
)

// bench is a model whose world runs beside the goroutines of real clients, some times as fast as the wall clock.
type bench struct {
	*kube.Server
	w     *engine.World
	clock *clocktesting.FakeClock // shows the world's time to real clients

	mu      sync.Mutex
	refused []event.Refused
	viewed  map[string]int
	heard   []event.Object
}

// speed is how many virtual seconds pass in one of the machine's.
const speed = 50

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newBench(seed uint64, o kube.Options) *bench {
	b := &bench{w: engine.New(seed), clock: clocktesting.NewFakeClock(epoch), viewed: map[string]int{}}
	b.w.Hear(func(e event.Stamped) {
		switch e := e.Event.(type) {
		case event.Refused:
			b.refused = append(b.refused, e)
		case event.Viewed:
			b.viewed[e.How]++
		case event.Object:
			b.heard = append(b.heard, e)
		}
	})
	b.Server = kube.New(b.w, o)
	return b
}

// run lets the world run until the test ends.
func (b *bench) run(t testing.TB) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		began := time.Now()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				b.do(func() {
					if err := b.w.Run(speed * now.Sub(began)); err != nil {
						t.Error(err)
					}
				})
				b.clock.SetTime(epoch.Add(speed * now.Sub(began)))
			}
		}
	}()
	t.Cleanup(func() { close(done); <-stopped })
}

// pass waits until the world is older.
func (b *bench) pass(d time.Duration) { <-b.clock.After(d) }

// do has f done while the world stands still.
func (b *bench) do(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// api gives clients whose requests come from a machine.
func (b *bench) api(t testing.TB, from string) *client.API {
	a, err := client.New(&rest.Config{Host: "http://kubernetes", Transport: transport{b, from}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// transport brings requests of real clients to the model.
type transport struct {
	b    *bench
	from string
}

// RoundTrip implements http.RoundTripper.
func (x transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	a := &answer{ready: make(chan struct{}), wake: sync.NewCond(&x.b.mu)}
	x.b.do(func() {
		x.b.Handle(&httpd.Request{From: x.from, Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header, Body: body}, a)
	})
	stop := func() { x.b.do(a.gone) }
	select {
	case <-r.Context().Done():
		stop()
		return nil, r.Context().Err()
	case <-a.ready:
	}
	x.b.mu.Lock()
	defer x.b.mu.Unlock()
	if a.status == 0 {
		return nil, errBroken
	}
	go func() {
		<-r.Context().Done()
		stop()
	}()
	return &http.Response{StatusCode: a.status, Header: a.header, Body: a, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

var errBroken = errors.New("connection reset")

// answer is an answer under way. Its fields are guarded by the bench.
type answer struct {
	ready  chan struct{}
	wake   *sync.Cond
	status int
	header http.Header
	body   []byte
	err    error // after the body
	closed []func()
}

func (a *answer) Respond(status int, header map[string]string, body []byte) {
	a.Begin(status, header)
	a.Write(body)
	a.End()
}

func (a *answer) Begin(status int, header map[string]string) {
	if a.err != nil {
		return
	}
	a.status, a.header = status, http.Header{}
	for k, v := range header {
		a.header.Set(k, v)
	}
	close(a.ready)
}

func (a *answer) Write(b []byte) {
	a.body = append(a.body, b...)
	a.wake.Broadcast()
}

func (a *answer) End() { a.finish(io.EOF) }

func (a *answer) Break() {
	if a.status == 0 && a.err == nil {
		close(a.ready)
	}
	a.finish(errBroken)
}

func (a *answer) finish(err error) {
	if a.err == nil {
		a.err = err
	}
	a.wake.Broadcast()
}

func (a *answer) OnClose(f func()) { a.closed = append(a.closed, f) }

// gone is the client's end of the connection.
func (a *answer) gone() {
	if a.err != nil {
		return
	}
	a.finish(errBroken)
	for _, f := range a.closed {
		f()
	}
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	a.wake.L.Lock()
	defer a.wake.L.Unlock()
	for len(a.body) == 0 && a.err == nil {
		a.wake.Wait()
	}
	if len(a.body) == 0 {
		return 0, a.err
	}
	n := copy(p, a.body)
	a.body = a.body[n:]
	return n, nil
}

// Close implements io.Closer.
func (a *answer) Close() error {
	a.wake.L.Lock()
	defer a.wake.L.Unlock()
	a.gone()
	return nil
}

var discard = slog.New(slog.DiscardHandler)

// service is a Service of type LoadBalancer with a port.
func service(name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: port}}, Selector: map[string]string{"app": name}}}
}

// pod is one of a Service, on a node.
func pod(of, name, node, address string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": of}},
		Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
}

func node(name, address string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}
