// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"fairlead.io/fairlead/sim/network/httpd"
)

// reply is an answer that is kept, in the one goroutine of a world.
type reply struct {
	status int
	body   strings.Builder
	ended  bool
	broken bool
	closed []func()
	taken  int // of body, by events

}

func (r *reply) Respond(status int, header map[string]string, body []byte) {
	r.Begin(status, header)
	r.Write(body)
	r.End()
}

func (r *reply) Begin(status int, _ map[string]string) { r.status = status }
func (r *reply) Write(b []byte)                        { r.body.Write(b) }
func (r *reply) End()                                  { r.ended = true }
func (r *reply) Break()                                { r.broken = true }
func (r *reply) OnClose(f func())                      { r.closed = append(r.closed, f) }

// leave is the client going away.
func (r *reply) leave() {
	for _, f := range r.closed {
		f()
	}
}

// tb is what *testing.T and *rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(string, ...any)
}

// ask sends a request as a process of ours, in JSON.
func (b *bench) ask(t tb, method, target, body string, header ...string) *reply {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatalf("%v", err)
	}
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	r := &reply{}
	b.Handle(&httpd.Request{From: "m1", Method: method, Path: u.Path, Query: u.Query(), Header: h, Body: []byte(body)}, r)
	return r
}

// shown is an object as a client sees it.
type shown struct {
	Kind       string
	APIVersion string
	Metadata   struct {
		Name, Namespace, UID, ResourceVersion, Continue string
		Annotations                                     map[string]string
	}
	Spec    json.RawMessage
	Status  json.RawMessage
	Code    int
	Reason  string
	Message string
	Items   []shown
}

func (s shown) text() string {
	return fmt.Sprintf("%s/%s %s@%s %s %s", s.Metadata.Namespace, s.Metadata.Name, s.Metadata.UID, s.Metadata.ResourceVersion, s.Spec, s.Status)
}

// object is a whole answer.
func (r *reply) object(t tb) (s shown) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body.String()), &s); err != nil {
		t.Fatalf("%v in %s", err, r.body.String())
	}
	return s
}

// happened is an event of a watch.
type happened struct {
	Type   string
	Object shown
}

// events are those that have come since it was called last.
func (r *reply) events(t tb) (out []happened) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.body.String()[r.taken:]))
	for d.More() {
		var e happened
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v in %s", err, r.body.String())
		}
		out = append(out, e)
	}
	r.taken = r.body.Len()
	return out
}

// view is what a client makes of a list and a watch.
type view map[string]shown

func viewOf(list shown) view {
	v := view{}
	for _, o := range list.Items {
		v[o.Metadata.Namespace+"/"+o.Metadata.Name] = o
	}
	return v
}

// take takes events in as informers do.
func (v view) take(t tb, events []happened) {
	t.Helper()
	for _, e := range events {
		k := e.Object.Metadata.Namespace + "/" + e.Object.Metadata.Name
		switch e.Type {
		case "ADDED", "MODIFIED":
			v[k] = e.Object
		case "DELETED":
			delete(v, k)
		case "BOOKMARK":
		default:
			t.Fatalf("event %+v", e)
		}
	}
}

func (v view) text() string {
	m := map[string]string{}
	for k, o := range v {
		m[k] = o.text()
	}
	b, _ := json.Marshal(m) // of strings, in order
	return string(b)
}

var _ tb = (*testing.T)(nil)
