// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/k8s/informers"
)

// each decodes and converts what the server holds under a path: the model, which knows nothing of lists and watches.
func each[K, T any](s *server, path string, turn func(*K) (T, []world.Problem)) (all []*T) {
	if s.resources[path].missing {
		return nil
	}
	for _, o := range s.resources[path].objects {
		raw, _ := json.Marshal(o)
		var k K
		if json.Unmarshal(raw, &k) != nil {
			continue
		}
		if v, problems := turn(&k); convert.Usable(problems) {
			all = append(all, &v)
		}
	}
	return all
}

// truth is what a World must show once all is quiet.
func (s *server) truth() world.World {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := world.World{
		Services: each(s, services, convert.Service), EndpointSlices: each(s, endpoints, convert.EndpointSlice),
		Nodes: each(s, nodes, convert.Node), ConfigMaps: each(s, configMaps, convert.ConfigMap), Pools: each(s, pools, convert.Pool),
	}
	w.Sort()
	return w
}

var (
	_ func(*corev1.Service) (world.Service, []world.Problem)                  = convert.Service
	_ func(*discoveryv1.EndpointSlice) (world.EndpointSlice, []world.Problem) = convert.EndpointSlice
	_ func(*api.IPAddressPool) (world.Pool, []world.Problem)                  = convert.Pool
)

func sameObjects(a, b world.World) bool {
	return reflect.DeepEqual(a.Services, b.Services) && reflect.DeepEqual(a.EndpointSlices, b.EndpointSlices) &&
		reflect.DeepEqual(a.Nodes, b.Nodes) && reflect.DeepEqual(a.ConfigMaps, b.ConfigMaps) && reflect.DeepEqual(a.Pools, b.Pools)
}

// Whatever happens to objects, watches and lists: once quiet the World shows what the server holds; only deletions that
// a watch was told are evidence; lists and versions never run back; and a World that was handed out never changes.
func TestPropertyTheWorldEndsAsTheServerIs(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(rt *rapid.T) {
		s := newServer(t)
		defer s.Close()
		defer s.CloseClientConnections()
		s.put(services, "default", "kubernetes", service(443))
		src, err := informers.New(informers.Options{API: s.api(t), Logger: slog.New(slog.DiscardHandler), Timing: informers.Timing{
			Spacing: 2 * time.Millisecond, Absent: 6 * time.Millisecond, Retry: time.Millisecond, RetryCap: 4 * time.Millisecond, Housekeeping: 3 * time.Millisecond,
		}})
		if err != nil {
			rt.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = src.Run(ctx) }()
		defer func() { cancel(); <-done }()

		o := &observer{s: s, src: src}
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		paths := rapid.SampledFrom([]string{services, services, endpoints, nodes, configMaps, pools})
		change := func(rt *rapid.T) {
			path, name, n := paths.Draw(rt, "path"), names.Draw(rt, "name"), rapid.IntRange(1, 4).Draw(rt, "n")
			if rapid.Bool().Draw(rt, "delete") {
				s.remove(path, spaceOf(path), nameOf(path, name))
				return
			}
			s.put(path, spaceOf(path), nameOf(path, name), bodyOf(path, n))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"change": change, "change2": change, "change3": change,
			"relist": func(*rapid.T) {
				src.Relist(world.KindService, world.KindEndpointSlice, world.KindPool)
			},
			"disconnect": func(*rapid.T) { s.cut(false) },
			"compact":    func(*rapid.T) { s.cut(true) },
			"bookmark":   func(rt *rapid.T) { s.bookmark(paths.Draw(rt, "path")) },
			"break": func(rt *rapid.T) {
				s.answer(paths.Draw(rt, "path"), refusal(rapid.SampledFrom([]int{403, 500}).Draw(rt, "code"), "Forbidden", "no"))
			},
			"mend": func(rt *rapid.T) { s.answer(paths.Draw(rt, "path"), nil) },
			"install": func(rt *rapid.T) {
				missing := rapid.Bool().Draw(rt, "missing")
				s.set(func() { s.resources[pools].missing = missing })
			},
			"quiet": func(rt *rapid.T) { o.settle(rt) },
			"":      o.look,
		})
		o.settle(rt)
		for i := range o.kept {
			if !reflect.DeepEqual(o.kept[i], o.clones[i]) {
				rt.Fatalf("a World that was handed out changed:\n%+v\n%+v", o.kept[i], o.clones[i])
			}
		}
	})
}

// observer looks at a source all along.
type observer struct {
	s            *server
	src          *informers.Source
	before       map[world.Kind]world.KindView
	kept, clones []world.World
}

func (o *observer) look(rt *rapid.T) {
	w := o.src.World()
	now := map[world.Kind]world.KindView{}
	for _, v := range w.Kinds {
		now[v.Kind] = v
		b := o.before[v.Kind]
		if v.Lists < b.Lists || v.Version < b.Version && v.Kind != world.KindPool || b.Listed && !v.Listed {
			rt.Fatalf("%s ran back: %+v after %+v", v.Kind, v, b)
		}
	}
	o.before = now
	o.s.mu.Lock()
	for _, d := range w.Deleted {
		if !o.s.witnessed[d.UID] || d.How != world.ByWatch {
			rt.Fatalf("nobody was told of %+v", d)
		}
	}
	o.s.mu.Unlock()
	sorted := w.Clone()
	sorted.Sort()
	if !reflect.DeepEqual(w, sorted) {
		rt.Fatalf("not sorted: %+v", w)
	}
	if len(o.kept) < 8 {
		o.kept, o.clones = append(o.kept, w), append(o.clones, sorted)
	}
}

// settle mends everything and waits until all is quiet.
func (o *observer) settle(rt *rapid.T) {
	for _, path := range []string{services, endpoints, nodes, configMaps, pools} {
		o.s.mu.Lock()
		broken := o.s.instead[path] != nil
		o.s.mu.Unlock()
		if broken {
			o.s.answer(path, nil)
		}
	}
	deadline := time.Now().Add(testkit.Patience)
	for {
		o.look(rt)
		w, truth := o.src.World(), o.s.truth()
		if w.Complete && sameObjects(w, truth) {
			return
		}
		if time.Now().After(deadline) {
			rt.Fatalf("the World shows %+v\nthe server holds %+v", w, truth)
		}
		select {
		case <-o.src.Changed():
		case <-time.After(time.Millisecond):
		}
	}
}

func spaceOf(path string) string {
	switch path {
	case nodes:
		return ""
	case configMaps:
		return "kube-system"
	}
	return "default"
}

func nameOf(path, name string) string {
	if path == configMaps {
		return map[string]string{"a": "kube-gobgp-cfg", "b": "kube-iprule-cfg", "c": "kube-gobgp-cfg"}[name]
	}
	return name
}

func bodyOf(path string, n int) object {
	switch path {
	case services:
		return service(80 + n)
	case endpoints: // it may come to belong to another Service
		return slice([]string{"a", "b"}[n%2], fmt.Sprintf("192.0.2.%d", n))
	case nodes:
		return node(fmt.Sprintf("192.0.2.%d", n))
	case configMaps:
		return object{"data": object{"config_bgp.toml": fmt.Sprint(n), "SWITCH": fmt.Sprint(n)}}
	}
	return pool(fmt.Sprintf("203.0.113.%d", n))
}
