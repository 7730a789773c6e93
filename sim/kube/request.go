// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/httpd"
)

// Answer is the way back to the client, as httpd has it. Respond is a whole answer; Begin, Write and End are a long
// one. Break ends it as a broken connection does. OnClose has f called once the client is gone.
type Answer interface {
	Respond(status int, header map[string]string, body []byte)
	Begin(status int, header map[string]string)
	Write([]byte)
	End()
	Break()
	OnClose(f func())
}

// model is the name under which refusals are published.
const model = "kubernetes"

// noResource is the resource of answers that concern none.
var noResource = schema.GroupResource{}

// call is one request on its way through the server.
type call struct {
	*httpd.Request
	Answer
	server      *Server
	store       *store
	encoding    *encoding
	resource    *resource
	key         key
	subresource string
	verb        string // as RBAC names them
	done        bool   // the client is gone
}

// Serve has the server answer at a port of a machine.
func (s *Server) Serve(n *network.Network, machine, port string) {
	httpd.Serve(n, machine, port, func(r *httpd.Request, a *httpd.Answer) { s.Handle(r, a) })
}

// Handle answers a request of one of our processes, now or later.
func (s *Server) Handle(r *httpd.Request, a Answer) {
	c := &call{Request: r, Answer: a, server: s, store: s.store}
	a.OnClose(func() { c.done = true })
	var f *failure
	if c.encoding, f = s.negotiate(r.Header, false); f == nil {
		f = c.route()
	}
	if f == nil && c.resource != nil && c.resource.custom {
		c.encoding, f = s.negotiate(r.Header, true)
	}
	s.meet(c, func() {
		if f == nil {
			f = c.serve()
		}
		if f != nil {
			c.fail(f)
		}
	})
}

// fail answers with a Status.
func (c *call) fail(f *failure) {
	if f.senseless {
		c.server.w.Publish(event.Refused{Model: model, By: c.From, What: c.Method + " " + c.Path + "?" + c.Query.Encode(), Why: f.Message})
	}
	c.status(f)
}

func (c *call) status(f *failure) {
	if f.plain {
		c.Respond(int(f.Code), map[string]string{"Content-Type": "text/plain; charset=utf-8"}, []byte(f.Message+"\n"))
		return
	}
	c.respond(int(f.Code), f.object())
}

func (c *call) respond(code int, o runtime.Object) {
	c.Respond(code, map[string]string{"Content-Type": c.encoding.media}, c.encoding.encode(o))
}

// route finds out what a request is about.
func (c *call) route() *failure {
	parts := strings.Split(strings.TrimPrefix(c.Path, "/"), "/")
	if !strings.HasPrefix(c.Path, "/") || slices.Contains(parts, "") {
		f := unknownPath()
		f.senseless = true
		return f
	}
	gv, rest := schema.GroupVersion{}, parts
	switch {
	case parts[0] == "api" && len(parts) > 2:
		gv, rest = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		gv, rest = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		c.verb = "discover"
		return nil
	}
	namespace := ""
	if rest[0] == "namespaces" && len(rest) > 2 && (gv.Group != "" || rest[2] != "status" && rest[2] != "finalize") {
		namespace, rest = rest[1], rest[2:]
	}
	if c.resource = c.server.find(gv, rest[0]); c.resource == nil {
		return c.unknown(gv)
	}
	if len(rest) > 1 {
		c.key = key{namespace, rest[1]}
	} else {
		c.key = key{namespace: namespace}
	}
	if len(rest) > 2 {
		c.subresource = rest[2]
	}
	if len(rest) > 3 || c.subresource != "" && (c.subresource != "status" || !c.resource.status) ||
		namespace != "" && !c.resource.namespaced || namespace == "" && c.resource.namespaced && c.key.name != "" {
		f := unknownPath()
		f.senseless = true
		c.within(gv, f)
		return f
	}
	return c.verbOf()
}

// unknown is the answer to a resource that is not there. To ask for one that may be installed is no mistake.
func (c *call) unknown(gv schema.GroupVersion) *failure {
	f := unknownPath()
	f.senseless = !slices.ContainsFunc(c.server.resources, func(r *resource) bool { return r.custom && r.Group == gv.Group })
	c.within(gv, f)
	return f
}

// within has a group that is served say what it lacks in its own way.
func (c *call) within(gv schema.GroupVersion, f *failure) {
	if slices.ContainsFunc(c.server.resources, func(r *resource) bool { return c.server.find(gv, r.name) != nil }) {
		f.plain, f.Message = false, "the server could not find the requested resource"
	}
}

func (c *call) verbOf() *failure {
	watch := c.Query.Get("watch") == "true" || c.Query.Get("watch") == "1"
	named := c.key.name != ""
	switch {
	case c.Method == http.MethodGet && watch && !c.resource.reviewed:
		c.verb = "watch"
	case c.Method == http.MethodGet && named && !c.resource.reviewed:
		c.verb = "get"
	case c.Method == http.MethodGet && !c.resource.reviewed:
		c.verb = "list"
	case c.Method == http.MethodPost && !named:
		c.verb = "create"
	case c.Method == http.MethodPut && named:
		c.verb = "update"
	case c.Method == http.MethodPatch && named:
		c.verb = "patch"
	case c.Method == http.MethodDelete && named && c.subresource == "":
		c.verb = "delete"
	default:
		f := senseless(apierrors.NewMethodNotSupported(c.resource.groupResource(), strings.ToLower(c.Method)))
		f.Details = nil
		return f
	}
	return nil
}

func (c *call) serve() *failure {
	switch c.verb {
	case "discover":
		return c.discover()
	case "list":
		return c.list()
	case "get":
		return c.get()
	case "watch":
		return c.watch()
	case "create":
		return c.create()
	case "update":
		return c.update()
	case "patch":
		return c.patch()
	}
	return c.delete()
}

// selection is what of a resource a request is about.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (c *call) selection() (selection, *failure) {
	sel := selection{namespace: c.key.namespace}
	var err error
	if sel.labels, err = labels.Parse(c.Query.Get("labelSelector")); err != nil {
		return sel, badRequest("unable to parse requirement: %v", err)
	}
	if sel.fields, err = fields.ParseSelector(c.Query.Get("fieldSelector")); err != nil {
		return sel, badRequest("%v", err)
	}
	for _, r := range sel.fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return sel, badRequest("Unable to find %q that match label selector %q, field selector %q: field label not supported: %s",
				c.resource.name, sel.labels, sel.fields, r.Field)
		}
	}
	return sel, nil
}

func (sel selection) matches(o Object) bool {
	return o != nil && (sel.namespace == "" || sel.namespace == o.GetNamespace()) && sel.labels.Matches(labels.Set(o.GetLabels())) &&
		sel.fields.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
}
