// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// recorder keeps each kind of request that a client makes, with its answer's status.
type recorder struct {
	mu   sync.Mutex
	kept map[string]*request
	all  []*request
}

// request is one that was made, and can be made again.
type request struct {
	method, contentType string
	url                 url.URL
	body                []byte
	status              int
}

func (r *request) String() string {
	if r.url.Query().Get("watch") != "" {
		return "WATCH " + r.url.Path + " " + r.url.Query().Get("fieldSelector")
	}
	return r.method + " " + r.url.Path + " " + r.url.Query().Get("fieldSelector")
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper { return recording{r, next} }

type recording struct {
	*recorder
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r recording) RoundTrip(q *http.Request) (*http.Response, error) {
	made := &request{method: q.Method, contentType: q.Header.Get("Content-Type"), url: *q.URL}
	if q.Body != nil {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return nil, err
		}
		made.body = body
		q = q.Clone(q.Context())
		q.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := r.next.RoundTrip(q)
	if err == nil {
		made.status = answer.StatusCode
		r.keep(made)
	}
	return answer, err
}

// keep keeps the first request of each kind, and any that was refused.
func (r *recorder) keep(made *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[string]*request{}
	}
	if have := r.kept[made.String()]; have == nil {
		r.kept[made.String()] = made
		r.all = append(r.all, made)
	} else if made.status == http.StatusForbidden {
		have.status = made.status
	}
}

func (r *recorder) taken() []*request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*request(nil), r.all...)
}

// replay makes the request once more and gives the status of the answer, whatever comes after it.
func (r *request) replay(ctx context.Context, t *testing.T, caller *http.Client) int {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.contentType != "" {
		q.Header.Set("Content-Type", r.contentType)
	}
	answer, err := caller.Do(q)
	if err != nil {
		if ctx.Err() == nil {
			t.Fatalf("%s: %v", r, err)
		}
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// emptier answers, while it lies, requests for lists with empty ones.
type emptier struct{ lies atomic.Bool }

func (e *emptier) wrap(next http.RoundTripper) http.RoundTripper { return emptying{e, next} }

type emptying struct {
	*emptier
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (e emptying) RoundTrip(q *http.Request) (*http.Response, error) {
	query := q.URL.Query()
	answer, err := e.next.RoundTrip(q)
	resource := path.Base(q.URL.Path)
	list := q.Method == http.MethodGet && query.Get("watch") == "" && query.Get("limit") == "" && listKinds[resource] != ""
	if err != nil || answer.StatusCode != http.StatusOK || !e.lies.Load() || !list {
		return answer, err
	}
	_ = answer.Body.Close()
	version := strings.TrimPrefix(strings.Split(q.URL.Path, "/"+resource)[0], "/apis/")
	if strings.HasPrefix(version, "/api/v1") {
		version = "v1"
	}
	body := `{"apiVersion":"` + version + `","kind":"` + listKinds[resource] + `","metadata":{"resourceVersion":"900000000"},"items":[]}`
	answer.Header = http.Header{"Content-Type": {"application/json"}}
	answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return answer, nil
}

// listKinds are the lists that the product asks for.
var listKinds = map[string]string{
	"services": "ServiceList", "nodes": "NodeList", "endpointslices": "EndpointSliceList", "configmaps": "ConfigMapList",
	"pods": "PodList", "loadbalancerdrivers": "LoadBalancerDriverList", "loadbalancers": "LoadBalancerList", "backendgroups": "BackendGroupList",
	"backendrecords": "BackendRecordList", "binds": "BindList",
	"ipaddresspools": "IPAddressPoolList", "bgppeers": "BGPPeerList", "bgpadvertisements": "BGPAdvertisementList", "communities": "CommunityList",
	"l2advertisements": "L2AdvertisementList", "bfdprofiles": "BFDProfileList",
	"addresspolicies": "AddressPolicyList", "namespaces": "NamespaceList",
}
