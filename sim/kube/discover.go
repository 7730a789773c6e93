// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// find gives the resource of a path, nil if there is none or its definition is not installed.
func (s *Server) find(gv schema.GroupVersion, name string) *resource {
	for _, r := range s.resources {
		if r.GroupVersion == gv && r.name == name && (!r.custom || s.installed[r.GroupVersion.String()+"/"+r.name]) {
			return r
		}
	}
	return nil
}

// byKind gives the resource of a kind. Of kinds that are in several groups, the one whose definition is installed
// comes first.
func (s *Server) byKind(kind string) *resource {
	for _, r := range s.resources {
		if r.kind == kind && !r.reviewed && !r.other && (!r.custom || s.installed[r.GroupVersion.String()+"/"+r.name]) {
			return r
		}
	}
	return nil
}

// discover answers which resources there are in a group and version.
func (c *call) discover() *failure {
	if c.Method != http.MethodGet {
		return unknownPath()
	}
	text := strings.TrimPrefix(strings.TrimPrefix(c.Path, "/apis/"), "/api/")
	gv, err := schema.ParseGroupVersion(text)
	if err != nil || text == c.Path || (gv.Group == "") != strings.HasPrefix(c.Path, "/api/") {
		f := unknownPath()
		f.senseless = true
		return f
	}
	all := &metav1.APIResourceList{GroupVersion: text}
	all.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "APIResourceList"})
	for _, r := range c.server.resources {
		if r.GroupVersion != gv || c.server.find(gv, r.name) == nil {
			continue
		}
		verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
		if r.reviewed {
			verbs = metav1.Verbs{"create"}
		}
		all.APIResources = append(all.APIResources, metav1.APIResource{Name: r.name, SingularName: r.singular, Kind: r.kind, Namespaced: r.namespaced, Verbs: verbs})
		if r.status {
			all.APIResources = append(all.APIResources, metav1.APIResource{Name: r.name + "/status", Kind: r.kind, Namespaced: r.namespaced,
				Verbs: metav1.Verbs{"get", "patch", "update"}})
		}
	}
	if all.APIResources == nil {
		return c.unknown(gv)
	}
	c.respond(http.StatusOK, all)
	return nil
}
