// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/k8s/client"
)

// server plays an API server: objects, one revision for all of them, lists and watches; and what can go wrong with it.
type server struct {
	*httptest.Server

	mu        sync.Mutex
	uid       string
	revision  uint64
	resources map[string]*resource // by path
	wake      chan struct{}        // closed at every change
	round     int                  // rises when all watches are cut off
	queries   []string
	// witnessed are the UIDs of the objects whose deletion was written to a watch.
	witnessed map[string]bool
	stale     map[string][]byte // lists to answer with instead of the truth
	forgetful bool              // lists are wrong, and what is asked for by name is given as it is
	instead   map[string]func(http.ResponseWriter, *http.Request)
}

type resource struct {
	apiVersion, kind string
	missing          bool // its definition is not installed
	objects          map[string]object
	log              []logged
	compacted        uint64 // watches from before are refused
}

type object = map[string]any

type logged struct {
	revision uint64
	event    string
	object   object
}

const (
	services   = "/api/v1/services"
	nodes      = "/api/v1/nodes"
	configMaps = "/api/v1/namespaces/kube-system/configmaps"
	endpoints  = "/apis/discovery.k8s.io/v1/endpointslices"
	pools      = "/apis/metallb.io/v1beta1/ipaddresspools"
	peers      = "/apis/metallb.io/v1beta2/bgppeers"
	pods       = "/api/v1/pods"
	drivers    = "/apis/lbcf.tkestack.io/v1beta1/loadbalancerdrivers"
	balancers  = "/apis/lbcf.tkestack.io/v1beta1/loadbalancers"
	groups     = "/apis/lbcf.tkestack.io/v1beta1/backendgroups"
	records    = "/apis/lbcf.tkestack.io/v1beta1/backendrecords"
	binds      = "/apis/lbcf.tkestack.io/v1/binds"
	policies   = "/apis/fairlead.io/v1alpha1/addresspolicies"
	balancing  = "/apis/balancing.elf.io/v1beta1/balancingpolicies"
	redirects  = "/apis/balancing.elf.io/v1beta1/localredirectpolicies"
	namespaces = "/api/v1/namespaces"
	namespace  = "/api/v1/namespaces/kube-system"
)

func newServer(t testing.TB) *server {
	s := &server{uid: "cluster-1", revision: 10, resources: map[string]*resource{}, wake: make(chan struct{}),
		witnessed: map[string]bool{}, stale: map[string][]byte{}, instead: map[string]func(http.ResponseWriter, *http.Request){}}
	for path, r := range map[string]*resource{
		services: {apiVersion: "v1", kind: "Service"}, nodes: {apiVersion: "v1", kind: "Node"},
		configMaps: {apiVersion: "v1", kind: "ConfigMap"}, endpoints: {apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice"},
		pools:    {apiVersion: "metallb.io/v1beta1", kind: "IPAddressPool", missing: true},
		peers:    {apiVersion: "metallb.io/v1beta2", kind: "BGPPeer", missing: true},
		policies: {apiVersion: "fairlead.io/v1alpha1", kind: "AddressPolicy", missing: true},
		pods:     {apiVersion: "v1", kind: "Pod"}, namespaces: {apiVersion: "v1", kind: "Namespace"},
		drivers:   {apiVersion: "lbcf.tkestack.io/v1beta1", kind: "LoadBalancerDriver", missing: true},
		balancers: {apiVersion: "lbcf.tkestack.io/v1beta1", kind: "LoadBalancer", missing: true},
		groups:    {apiVersion: "lbcf.tkestack.io/v1beta1", kind: "BackendGroup", missing: true},
		records:   {apiVersion: "lbcf.tkestack.io/v1beta1", kind: "BackendRecord", missing: true},
		binds:     {apiVersion: "lbcf.tkestack.io/v1", kind: "Bind", missing: true},
		balancing: {apiVersion: "balancing.elf.io/v1beta1", kind: "BalancingPolicy", missing: true},
		redirects: {apiVersion: "balancing.elf.io/v1beta1", kind: "LocalRedirectPolicy", missing: true},
	} {
		r.objects = map[string]object{}
		s.resources[path] = r
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) api(t testing.TB) *client.API {
	a, err := client.New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// put creates or updates an object and gives the revision.
func (s *server) put(path, ns, name string, body object) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	r := s.resources[path]
	key := ns + "/" + name
	event, uid := "ADDED", fmt.Sprintf("uid-%d", s.revision)
	if old, ok := r.objects[key]; ok {
		event, uid = "MODIFIED", old["metadata"].(object)["uid"].(string)
	}
	o := maps.Clone(body)
	m := object{}
	if given, ok := body["metadata"].(object); ok {
		m = maps.Clone(given)
	}
	m["name"], m["uid"], m["resourceVersion"] = name, uid, fmt.Sprint(s.revision)
	if ns != "" {
		m["namespace"] = ns
	}
	o["metadata"], o["apiVersion"], o["kind"] = m, r.apiVersion, r.kind
	r.objects[key] = o
	s.record(r, event, o)
	return s.revision
}

// remove deletes an object and gives its UID.
func (s *server) remove(path, ns, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[path]
	old, ok := r.objects[ns+"/"+name]
	if !ok {
		return ""
	}
	s.revision++
	delete(r.objects, ns+"/"+name)
	o, m := maps.Clone(old), maps.Clone(old["metadata"].(object))
	m["resourceVersion"] = fmt.Sprint(s.revision)
	o["metadata"] = m
	s.record(r, "DELETED", o)
	return m["uid"].(string)
}

func (s *server) record(r *resource, event string, o object) {
	r.log = append(r.log, logged{s.revision, event, o})
	s.changed()
}

func (s *server) changed() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// bookmark tells all watches of a resource how far the server is.
func (s *server) bookmark(path string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	r := s.resources[path]
	s.record(r, "BOOKMARK", object{"apiVersion": r.apiVersion, "kind": r.kind, "metadata": object{"resourceVersion": fmt.Sprint(s.revision)}})
	return s.revision
}

// cut ends all watches; with compact, none can be resumed.
func (s *server) cut(compact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round++
	if compact {
		s.revision++
		for _, r := range s.resources {
			r.compacted, r.log = s.revision, nil
		}
	}
	s.changed()
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed()
}

// answer has requests to a path answered otherwise; nil ends that. The watches that run are cut off.
func (s *server) answer(path string, with func(http.ResponseWriter, *http.Request)) {
	s.set(func() {
		s.round++
		s.instead[path] = with
	})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.queries = append(s.queries, r.URL.Path+"?"+r.URL.RawQuery)
	instead, round := s.instead[r.URL.Path], s.round
	s.mu.Unlock()
	switch {
	case instead != nil:
		instead(w, r)
	case r.URL.Path == namespace:
		s.mu.Lock()
		uid := s.uid
		s.mu.Unlock()
		reply(w, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "kube-system", "uid": uid, "resourceVersion": "1"}})
	case strings.Count(r.URL.Path, "/") == 3 && strings.HasPrefix(r.URL.Path, "/apis/"):
		s.discover(w, r)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r, round) // it ends at once if the round did meanwhile
	case s.single(r.URL.Path):
		s.get(w, r)
	default:
		s.list(w, r)
	}
}

// cutName separates the path of an object into that of its resource and its key.
func cutName(path string) (resource, key string) {
	resource, name := filepath.Split(path)
	resource = strings.TrimSuffix(resource, "/")
	if resource == configMaps {
		return resource, "kube-system/" + name
	}
	before, after, ok := strings.Cut(resource, "/namespaces/")
	if !ok {
		return resource, "/" + name
	}
	ns, plural, _ := strings.Cut(after, "/")
	return before + "/" + plural, ns + "/" + name
}

func (s *server) single(path string) bool {
	resource, _ := cutName(path)
	return s.resources[path] == nil && s.resources[resource] != nil
}

func (s *server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource, key := cutName(r.URL.Path)
	o, ok := s.resources[resource].objects[key]
	if old := s.stale[resource]; ok && old != nil && !s.forgetful {
		ok = bytes.Contains(old, fmt.Appendf(nil, `"uid":%q`, o["metadata"].(object)["uid"]))
	}
	if !ok {
		notFound(w, r)
		return
	}
	reply(w, o)
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// refusal is an answer with a Status.
func refusal(code int, reason, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message})
	}
}

var notFound = refusal(http.StatusNotFound, "NotFound", "the server could not find the requested resource")

func (s *server) discover(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []any
	for path, known := range s.resources {
		if name, ok := strings.CutPrefix(path, r.URL.Path+"/"); ok && !known.missing {
			found = append(found, object{"name": name, "kind": known.kind, "namespaced": true, "verbs": []string{"list", "watch"}})
		}
	}
	if found == nil {
		notFound(w, r)
		return
	}
	reply(w, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": strings.TrimPrefix(r.URL.Path, "/apis/"), "resources": found})
}

// selected tells whether a request is about an object.
func selected(r *http.Request, o object) bool {
	name, narrow := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	return !narrow || o["metadata"].(object)["name"] == name
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.resources[r.URL.Path]
	if known == nil || known.missing {
		notFound(w, r)
		return
	}
	if old, ok := s.stale[r.URL.Path]; ok {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(old)
		return
	}
	_, _ = w.Write(s.listing(w, r, known))
}

func (s *server) listing(w http.ResponseWriter, r *http.Request, known *resource) []byte {
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(known.objects)) {
		if o := known.objects[key]; selected(r, o) {
			items = append(items, o)
		}
	}
	m := object{"resourceVersion": fmt.Sprint(s.revision)}
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && len(items) > limit {
		items, m["continue"] = items[:limit], "more"
	}
	b, _ := json.Marshal(object{"apiVersion": known.apiVersion, "kind": known.kind + "List", "metadata": m, "items": items})
	w.Header().Set("Content-Type", "application/json")
	return b
}

// freeze has lists of a path answered from now on as they would be now.
func (s *server) freeze(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, _ := http.NewRequest(http.MethodGet, path, nil)
	s.stale[path] = s.listing(httptest.NewRecorder(), r, s.resources[path])
}

func (s *server) watch(w http.ResponseWriter, r *http.Request, round int) {
	s.mu.Lock()
	known := s.resources[r.URL.Path]
	from, err := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	gone := known == nil || known.missing
	expired := err != nil || !gone && from < known.compacted
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	switch {
	case gone:
		notFound(w, r)
		return
	case expired:
		_ = out.Encode(object{"type": "ERROR", "object": object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old resource version"}})
		return
	}
	w.WriteHeader(http.StatusOK)
	for {
		s.mu.Lock()
		var due []logged
		for _, l := range known.log {
			if l.revision > from && (l.event == "BOOKMARK" || selected(r, l.object)) {
				due = append(due, l)
			}
		}
		over, wake := s.round != round || known.missing, s.wake
		if !over {
			for _, l := range due {
				if l.event == "DELETED" {
					s.witnessed[l.object["metadata"].(object)["uid"].(string)] = true
				}
			}
		}
		s.mu.Unlock()
		if over {
			return
		}
		for _, l := range due {
			from = l.revision
			if out.Encode(object{"type": l.event, "object": l.object}) != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-wake:
		}
	}
}

// service is a Service of type LoadBalancer with a port.
func service(port int) object {
	return object{"spec": object{"type": "LoadBalancer", "clusterIP": "10.96.0.1", "ports": []any{object{"port": port, "protocol": "TCP"}}}}
}

func slice(of string, addresses ...string) object {
	var all []any
	for _, a := range addresses {
		all = append(all, object{"addresses": []string{a}, "nodeName": "n1", "conditions": object{"ready": true}})
	}
	return object{"metadata": object{"labels": object{"kubernetes.io/service-name": of}}, "addressType": "IPv4",
		"ports": []any{object{"name": "", "port": 80, "protocol": "TCP"}}, "endpoints": all}
}

func node(address string) object {
	return object{"status": object{"addresses": []any{object{"type": "InternalIP", "address": address}},
		"conditions": []any{object{"type": "Ready", "status": "True"}}}}
}

func pool(addresses ...string) object { return object{"spec": object{"addresses": addresses}} }
