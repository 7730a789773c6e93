// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *call) get() *failure {
	o := c.store.get(c.resource, c.key)
	if o == nil || c.server.concealed(c) {
		return notFound(c.resource, c.key.name)
	}
	c.respond(http.StatusOK, c.resource.dress(o))
	return nil
}

// listOptions and patchOptions are what the options of requests are called in answers.
var (
	listOptions  = &resource{GroupVersion: metaGroup, kind: "ListOptions"}
	patchOptions = &resource{GroupVersion: metaGroup, kind: "PatchOptions"}
	metaGroup    = schema.GroupVersion{Group: metav1.GroupName, Version: "v1"}
)

// page is what a continue token says.
type page struct {
	Version uint64 `json:"rv"`
	After   key    `json:"-"`
	Space   string `json:"namespace"`
	Name    string `json:"start"`
}

// list answers with all objects at one version.
func (c *call) list() *failure {
	sel, f := c.selection()
	if f != nil {
		return f
	}
	limit, err := strconv.ParseInt(orZero(c.Query.Get("limit")), 10, 64)
	if err != nil || limit < 0 {
		return badRequest("limit %q is no number", c.Query.Get("limit"))
	}
	version, from, f := c.versionOfList()
	if f != nil {
		return f
	}
	objects, version := c.server.view(c, version)
	objects = slices.DeleteFunc(slices.Clone(objects), func(o Object) bool {
		return !sel.matches(o) || from != (key{}) && keyOf(o).compare(from) <= 0
	})
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}
	if rest := int64(len(objects)) - limit; limit > 0 && rest > 0 {
		objects = objects[:limit]
		last := keyOf(objects[limit-1])
		token, _ := json.Marshal(page{Version: version, Space: last.namespace, Name: last.name}) // numbers and strings
		meta.Continue = base64.RawURLEncoding.EncodeToString(token)
		if c.Query.Get("labelSelector") == "" && c.Query.Get("fieldSelector") == "" {
			meta.RemainingItemCount = &rest
		}
	}
	c.respond(http.StatusOK, c.resource.list(objects, meta))
	return nil
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

// versionOfList is the version that a list is to show, and the key after which it goes on.
func (c *call) versionOfList() (uint64, key, *failure) {
	match, text, token := c.Query.Get("resourceVersionMatch"), c.Query.Get("resourceVersion"), c.Query.Get("continue")
	path := field.NewPath("resourceVersionMatch")
	wrong := func(e *field.Error) (uint64, key, *failure) {
		f := invalid(listOptions, "", field.ErrorList{e})
		return 0, key{}, f
	}
	asked, err := strconv.ParseUint(orZero(text), 10, 64)
	switch {
	case err != nil:
		return 0, key{}, badRequest("invalid resource version %q: %v", text, err)
	case match != "" && text == "":
		return wrong(field.Forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
	case match != "" && match != "Exact" && match != "NotOlderThan":
		return wrong(field.NotSupported(path, match, []string{"Exact", "NotOlderThan", ""}))
	case match == "Exact" && asked == 0:
		return wrong(field.Forbidden(path, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`))
	case token != "":
		return c.continued(token, match, text)
	}
	switch {
	case asked > c.store.version:
		return 0, key{}, normal(tooLarge(asked, c.store.version))
	case match == "Exact" || match == "" && asked > 0 && c.Query.Get("limit") != "":
		if asked < c.store.compacted {
			return 0, key{}, expired("The provided resource version %q is too old", text)
		}
		return asked, key{}, nil
	case text != "":
		return max(asked, c.server.cached(c)), key{}, nil
	}
	return c.store.version, key{}, nil
}

func (c *call) continued(token, match, text string) (uint64, key, *failure) {
	if match != "" {
		f := invalid(listOptions, "", field.ErrorList{field.Forbidden(field.NewPath("resourceVersionMatch"), "resourceVersionMatch is forbidden when continue is provided")})
		return 0, key{}, f
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	var p page
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	switch {
	case err != nil:
		return 0, key{}, badRequest("continue key is not valid: %v", err)
	case text != "" && text != "0":
		return 0, key{}, badRequest("specifying resource version is not allowed when using continue")
	case p.Version < c.store.compacted:
		return 0, key{}, expired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.")
	}
	return p.Version, key{p.Space, p.Name}, nil
}

// tooLarge is said of versions that are still to come.
func tooLarge(asked, now uint64) *apierrors.StatusError {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, now), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}
