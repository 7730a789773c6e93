// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// longestManager is what a server takes for the name of a field manager.
const longestManager = 128

// writer says who writes by this request.
func (c *call) writer(verb string) (writer, *failure) {
	w := writer{by: c.From, subresource: c.subresource, verb: verb, manager: c.Query.Get("fieldManager")}
	if c.subresource == "status" {
		w.verb = "status"
	}
	if c.Query.Get("dryRun") != "" {
		return w, badRequest("dryRun is not modelled")
	}
	if len(w.manager) > longestManager {
		return w, invalid(c.resource, c.key.name, field.ErrorList{field.TooLong(field.NewPath("fieldManager"), "", longestManager)})
	}
	if w.manager == "" {
		agent := http.Header(c.Header).Get("User-Agent")
		w.manager, _, _ = strings.Cut(agent, "/")
		w.manager = w.manager[:min(len(w.manager), longestManager)]
	}
	return w, nil
}

func (c *call) create() *failure {
	w, f := c.writer("create")
	if f != nil {
		return f
	}
	o, f := c.server.decode(c.resource, c.Header, c.Body)
	if f != nil {
		return f
	}
	if c.resource.reviewed {
		c.review(o.(*authenticationv1.TokenReview))
		return nil
	}
	if f := c.inSpace(o); f != nil {
		return f
	}
	o, f = c.server.create(c.store, c.resource, o, w)
	if f == nil {
		c.respond(http.StatusCreated, c.resource.dress(o))
	}
	return f
}

// inSpace puts an object into the namespace of the path.
func (c *call) inSpace(o Object) *failure {
	if space := o.GetNamespace(); space != "" && space != c.key.namespace {
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if c.resource.namespaced && c.key.namespace == "" {
		return badRequest("namespace is required")
	}
	o.SetNamespace(c.key.namespace)
	return nil
}

func (c *call) update() *failure {
	w, f := c.writer("update")
	if f != nil {
		return f
	}
	o, f := c.server.decode(c.resource, c.Header, c.Body)
	if f == nil {
		f = c.inSpace(o)
	}
	if f == nil {
		o, f = c.server.update(c.store, c.resource, c.key, w, func(Object) (Object, *failure) { return o, nil })
	}
	if f == nil {
		c.respond(http.StatusOK, c.resource.dress(o))
	}
	return f
}

func (c *call) patch() *failure {
	w, f := c.writer("update")
	if f != nil {
		return f
	}
	w.patched = true
	media, _, _ := mime.ParseMediaType(http.Header(c.Header).Get("Content-Type"))
	force := c.Query.Get("force")
	if types.PatchType(media) == types.ApplyYAMLPatchType {
		return c.apply(w, force == "true")
	}
	if force != "" {
		return invalid(patchOptions, "", field.ErrorList{field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch")})
	}
	o, f := c.server.update(c.store, c.resource, c.key, w, func(o Object) (Object, *failure) { return c.patched(types.PatchType(media), o) })
	if f == nil {
		c.respond(http.StatusOK, c.resource.dress(o))
	}
	return f
}

// patched merges the body of a request into an object.
func (c *call) patched(how types.PatchType, o Object) (Object, *failure) {
	before, err := json.Marshal(c.resource.dress(o))
	if err != nil {
		return nil, badRequest("%v", err)
	}
	var after []byte
	switch {
	case how == types.MergePatchType:
		var doc, patch any
		if err = json.Unmarshal(before, &doc); err == nil {
			err = json.Unmarshal(c.Body, &patch)
		}
		if err == nil {
			after, err = json.Marshal(merge(doc, patch))
		}
	case how == types.StrategicMergePatchType && !c.resource.custom:
		after, err = strategicpatch.StrategicMergePatch(before, c.Body, c.resource.blank())
	default:
		return nil, unsupported(string(how))
	}
	if err != nil {
		return nil, badRequest("%v", err)
	}
	return c.server.decode(c.resource, map[string][]string{"Content-Type": {mediaJSON}}, after)
}

// merge is a JSON merge patch (RFC 7396).
func merge(doc, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	fields, ok := doc.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	for name, v := range changes {
		if v == nil {
			delete(fields, name)
		} else {
			fields[name] = merge(fields[name], v)
		}
	}
	return fields
}

// apply is server-side apply.
func (c *call) apply(w writer, force bool) *failure {
	if c.Query.Get("fieldManager") == "" {
		return invalid(patchOptions, "", field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	alone := c.resource.custom && c.subresource == "status" // one manager has all of it
	if !c.resource.tracked && !c.resource.applied && !alone {
		return badRequest("apply to %s is not modelled", c.resource.name)
	}
	patch := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(c.Body), &patch.Object); err != nil {
		return badRequest("error decoding YAML: %v", err)
	}
	if patch.GetManagedFields() != nil {
		return badRequest("metadata.managedFields must be nil")
	}
	if patch.GroupVersionKind() != c.resource.gvk() {
		return badRequest("the object provided is a %s, not a %s", patch.GroupVersionKind(), c.resource.gvk())
	}
	if space := patch.GetNamespace(); patch.GetName() != c.key.name || space != "" && space != c.key.namespace {
		return badRequest("name in URL does not match name in object")
	}
	if c.store.get(c.resource, c.key) == nil {
		return c.nothingToApplyTo(patch)
	}
	w.applied = true
	if alone {
		return c.applyStatus(w, patch)
	}
	o, f := c.server.update(c.store, c.resource, c.key, w, func(o Object) (Object, *failure) {
		return c.server.owners.apply(c.resource, o, patch, w, force, c.store.now())
	})
	if f == nil {
		c.respond(http.StatusOK, c.resource.dress(o))
	}
	return f
}

// applyStatus is server-side apply to the status of a custom resource by the only one who writes there: what it does not name goes.
func (c *call) applyStatus(w writer, patch *unstructured.Unstructured) *failure {
	o, f := c.server.update(c.store, c.resource, c.key, w, func(o Object) (Object, *failure) {
		if uid := patch.GetUID(); uid != "" && uid != o.GetUID() {
			return nil, conflict(c.resource, c.key.name, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, o.GetUID()))
		}
		next := o.DeepCopyObject().(*unstructured.Unstructured)
		next.Object["status"] = patch.Object["status"]
		return next, nil
	})
	if f == nil {
		c.respond(http.StatusOK, c.resource.dress(o))
	}
	return f
}

// nothingToApplyTo is the answer where the object is gone. A server goes on as if it were to make one.
func (c *call) nothingToApplyTo(patch *unstructured.Unstructured) *failure {
	if uid := patch.GetUID(); uid != "" {
		return conflict(c.resource, c.key.name, fmt.Sprintf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	f := invalid(c.resource, c.key.name, field.ErrorList{field.Required(field.NewPath("spec", "ports"), "")})
	f.senseless = false
	return f
}

func (c *call) delete() *failure {
	options := &metav1.DeleteOptions{}
	if len(c.Body) > 0 {
		media, _, _ := mime.ParseMediaType(http.Header(c.Header).Get("Content-Type"))
		e := c.server.encodings[media]
		if e == nil {
			return unsupported(media)
		}
		if err := e.deleteOptions(c.Body, options); err != nil {
			return badRequest("%v", err)
		}
	}
	conditions := metav1.Preconditions{}
	if options.Preconditions != nil {
		conditions = *options.Preconditions
	}
	grace := int64(0)
	if g := options.GracePeriodSeconds; g != nil && c.resource.kind == "Pod" {
		grace = *g
	} else if c.resource.kind == "Pod" {
		grace = podGrace
	}
	o, f := c.server.remove(c.store, c.resource, c.key, c.From, conditions, grace)
	if f == nil {
		c.respond(http.StatusOK, c.resource.dress(o))
	}
	return f
}

// review answers whose a token is.
func (c *call) review(o *authenticationv1.TokenReview) {
	o.Status = authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}
	if known, ok := c.server.tokens[o.Spec.Token]; ok {
		o.Status = *known.DeepCopy()
		if len(o.Spec.Audiences) > 0 {
			o.Status.Audiences = both(o.Spec.Audiences, known.Audiences)
			if len(o.Status.Audiences) == 0 {
				o.Status = authenticationv1.TokenReviewStatus{Error: "token audiences do not match"}
			}
		}
	}
	c.respond(http.StatusCreated, c.resource.dress(o))
}

func both(a, b []string) (out []string) {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				out = append(out, x)
			}
		}
	}
	return out
}
