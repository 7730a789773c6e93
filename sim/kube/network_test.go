// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/head"
	"fairlead.io/fairlead/sim/network/httpd"
)

// Over the simulated network a list is answered, and a watch is forgotten once its client has gone.
func TestServeAnswersOverTheNetwork(t *testing.T) {
	b := newCluster(t, 1)
	n := network.New(b.w, network.Options{})
	b.Serve(n, "kubernetes", "https")
	var list shown
	httpd.Call(b.w, n, "m1", "kubernetes", "https", head.Request{Method: "GET", Target: allServices}, nil, time.Minute,
		func(r httpd.Response, err error) {
			if err != nil || r.Status != 200 {
				t.Fatal(err, r.Status)
			}
			if err := json.Unmarshal(r.Body, &list); err != nil {
				t.Fatal(err)
			}
		})
	b.wait(t, time.Second)
	if len(list.Items) != 1 || list.Items[0].Metadata.Name != "kubernetes" {
		t.Errorf("%+v", list)
	}
	c := n.Dial("m1", "kubernetes", "https", head.Request{Method: "GET", Target: allServices + "?watch=true&resourceVersion=0"}.Encode())
	got := 0
	c.Handle(func(p []byte) { got += len(p) }, nil)
	c.End()
	b.wait(t, time.Second)
	first := got
	b.make(t, "web")
	b.wait(t, time.Second)
	if first == 0 || got == first {
		t.Errorf("%d bytes, then %d", first, got)
	}
	c.Reset()
	b.wait(t, time.Second)
	if open := b.Watches(); open != 0 {
		t.Errorf("%d watches are open", open)
	}
}

// BenchmarkLife is a minute of a cluster of 20 Services and 5 nodes with three members that watch.
func BenchmarkLife(b *testing.B) {
	for b.Loop() {
		life(b)
	}
}

func life(t *testing.B) {
	b := newCluster(t, 1)
	for n := range 20 {
		name := string(rune('a' + n))
		if _, err := b.Create("user", service(name, 80)); err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			if _, err := b.Create("kubelet", pod(name, fmt.Sprintf("%s-%d", name, k), "n1", fmt.Sprintf("192.0.2.%d", 3*n+k))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, path := range []string{allServices, "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/nodes"} {
		for range 3 {
			b.ask(t, "GET", path, "", "Accept", asProto)
			b.ask(t, "GET", path+"?watch=true&resourceVersion=0", "", "Accept", asProto)
		}
	}
	for second := range 60 {
		if err := b.w.Run(time.Duration(second) * time.Second); err != nil {
			t.Fatal(err)
		}
		b.ask(t, "GET", allServices, "", "Accept", asProto)
		if _, err := b.ChangeStatus("kubelet", "Node", "", "n1", func(o kube.Object) {
			o.(*corev1.Node).Status.NodeInfo.BootID = time.Duration(second).String()
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Change("user", "Service", "default", "a", func(o kube.Object) {
			o.(*corev1.Service).Spec.Ports[0].Port = int32(100 + second)
		}); err != nil {
			t.Fatal(err)
		}
	}
}
