// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/stage"
)

// ref names an object.
type ref struct{ kind, namespace, name string }

func (r ref) String() string {
	if r.namespace == "" {
		return r.kind + " " + r.name
	}
	return r.kind + " " + r.namespace + "/" + r.name
}

// head is what tells one object from another.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// object takes in one object, which stands at path in its document ("" or "items[3]").
func (r *reader) object(at origin, raw []byte, path string) error {
	var h head
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &h); err != nil {
		field, why := typeError(err)
		return at.problem(join(path, field), "a manifest has apiVersion, kind and metadata", "%s", why)
	}
	switch {
	case h.Kind == "" && h.APIVersion == "":
		r.cluster.note("%s: no Kubernetes object, it is left out", at)
		return nil
	case h.Kind == "" || h.APIVersion == "":
		return at.problem(path, "a manifest has apiVersion, kind and metadata; keep other files elsewhere", "no Kubernetes object: apiVersion or kind is missing")
	case strings.HasSuffix(h.Kind, "List") && h.Items != nil:
		for i, item := range h.Items {
			if err := r.object(at, item, fmt.Sprintf("items[%d]", i)); err != nil {
				return err
			}
		}
		return nil
	case r.objects == maxObjects:
		return at.problem("", "keep those of one cluster", "more than %d objects", maxObjects)
	}
	r.objects++
	return r.known(at, h, raw, path)
}

// known takes in an object of a kind that plays a part, and counts the others.
func (r *reader) known(at origin, h head, raw []byte, path string) error {
	c := r.cluster
	switch h.APIVersion + " " + h.Kind {
	case "v1 Service":
		return add(r, at, raw, path, true, &c.services, r.service)
	case "v1 Node":
		return add(r, at, raw, path, false, &c.nodes, problems(convert.Node))
	case "v1 Namespace":
		return add(r, at, raw, path, false, &c.namespaces, nil)
	case "v1 Pod":
		return add(r, at, raw, path, true, &c.pods, nil)
	case "apps/v1 Deployment":
		return addTo(r, at, raw, path, deployment)
	case "apps/v1 StatefulSet":
		return addTo(r, at, raw, path, statefulSet)
	case "apps/v1 DaemonSet":
		return addTo(r, at, raw, path, daemonSet)
	case "apps/v1 ReplicaSet":
		return addTo(r, at, raw, path, replicaSet)
	case "discovery.k8s.io/v1 EndpointSlice":
		return add(r, at, raw, path, true, &c.slices, problems(convert.EndpointSlice))
	case "v1 ConfigMap":
		if convert.ReadsConfigMap(h.Metadata.Name) {
			return add(r, at, raw, path, true, &c.configMaps, problems(convert.ConfigMap))
		}
	case api.GroupVersion + " IPAddressPool", api.MetalLBV1Beta1 + " IPAddressPool":
		return addCustom(r, at, h, raw, path, convert.Pool, &c.pools)
	case api.GroupVersion + " BGPPeer", api.MetalLBV1Beta1 + " BGPPeer", api.MetalLBV1Beta2 + " BGPPeer":
		return addCustom(r, at, h, raw, path, convert.Peer, &c.peers)
	case api.GroupVersion + " BGPAdvertisement", api.MetalLBV1Beta1 + " BGPAdvertisement":
		return addCustom(r, at, h, raw, path, convert.Advertisement, &c.advertisements)
	case api.GroupVersion + " L2Advertisement", api.MetalLBV1Beta1 + " L2Advertisement":
		return addCustom(r, at, h, raw, path, convert.L2Advertisement, nil)
	case api.GroupVersion + " AddressPolicy":
		return addCustom(r, at, h, raw, path, convert.Policy, nil)
	case api.GroupVersion + " BFDProfile", api.MetalLBV1Beta1 + " BFDProfile":
		return addCustom(r, at, h, raw, path, convert.BFDProfile, nil)
	case api.GroupVersion + " Community", api.MetalLBV1Beta1 + " Community":
		return addCustom(r, at, h, raw, path, convert.Community, &c.communities)
	}
	r.unused[h.Kind+" ("+h.APIVersion+")"]++
	if h.Kind == "Kustomization" {
		c.note("%s is not applied: give the output of `kustomize build` where it changes something", at.file)
	}
	return nil
}

// service is what is wrong with a Service in the eyes of the product, and keeps whether it can make anything of it.
func (r *reader) service(o *corev1.Service) []world.Problem {
	_, found := convert.Service(o)
	if !convert.Usable(found) {
		i := slices.IndexFunc(found, func(p world.Problem) bool { return p.Severity != world.Degraded })
		r.cluster.unusable[o.Namespace+"/"+o.Name] = fmt.Sprintf("%s: %s; %s", found[i].Field, found[i].Why, found[i].Remedy)
	}
	return found
}

// problems adapts a conversion of the product's to what is wrong with an object in its eyes.
func problems[K, V any](turn func(*K) (V, []world.Problem)) func(*K) []world.Problem {
	return func(o *K) []world.Problem {
		_, found := turn(o)
		return found
	}
}

// addTo takes in an object that becomes pods.
func addTo[K any, P interface {
	*K
	kube.Object
}](r *reader, at origin, raw []byte, path string, turn func(P) *workload) error {
	var all []P
	err := add(r, at, raw, path, true, &all, nil)
	for _, o := range all {
		// What another object in the cluster makes comes with that object.
		if metav1.GetControllerOf(o) == nil {
			r.cluster.workloads = append(r.cluster.workloads, turn(o))
		}
	}
	return err
}

// add decodes an object and takes it in.
func add[K any, P interface {
	*K
	kube.Object
}](r *reader, at origin, raw []byte, path string, namespaced bool, to *[]P, judge func(*K) []world.Problem) error {
	o := P(new(K))
	if err := r.decode(at, raw, path, o); err != nil {
		return err
	}
	if err := r.admit(at, reflect.TypeFor[K]().Name(), o, path, namespaced); err != nil {
		return err
	}
	if judge != nil {
		r.doubts(at, path, judge((*K)(o)))
	}
	*to = append(*to, o)
	return nil
}

// addCustom takes in an object of a custom resource, in the version that the world has, and gives what the product makes
// of it, unless that can make nothing of it or nobody asks.
func addCustom[K, V any, P interface {
	*K
	metav1.Object
	GetObjectKind() schema.ObjectKind
}](r *reader, at origin, h head, raw []byte, path string, turn func(*K) (V, []world.Problem), usable *[]*V) error {
	o := P(new(K))
	if err := r.decode(at, raw, path, o); err != nil {
		return err
	}
	if err := r.admit(at, h.Kind, o, path, h.Kind != "AddressPolicy"); err != nil {
		return err
	}
	v, found := turn((*K)(o))
	r.doubts(at, path, found)
	if usable != nil && convert.Usable(found) {
		*usable = append(*usable, &v)
	}
	version, own := h.APIVersion, h.APIVersion == api.GroupVersion
	if peer, ok := any(o).(*api.BGPPeer); ok && peer.Spec.PasswordSecret.Name != "" {
		peer.Spec.PasswordSecret = corev1.SecretReference{}
		r.cluster.note("%s: the password of %s is left out: the simulated switch asks for none", at, h.Metadata.Name)
	}
	if h.Kind == "BGPPeer" && !own {
		version = api.MetalLBV1Beta2 // the one that the world serves
	}
	o.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(version, h.Kind))
	r.cluster.own = r.cluster.own || own
	r.cluster.custom = append(r.cluster.custom, stage.Custom(o))
	return nil
}

// decode reads an object. Fields that there are not are noted, as kubectl warns of them.
func (r *reader) decode(at origin, raw []byte, path string, into any) error {
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		field, why := typeError(err)
		return at.problem(join(path, field), "write it as the API defines it, a number without quotes and a text with", "%s", why)
	}
	for _, s := range strict {
		r.cluster.note("%s: %s: it is left out", at, s)
	}
	return nil
}

// admit gives an object its namespace, takes off what only a server writes, and refuses a second one of its name.
func (r *reader) admit(at origin, kind string, o metav1.Object, path string, namespaced bool) error {
	name := ref{kind: kind, name: o.GetName()}
	if name.name == "" {
		return at.problem(join(path, "metadata.name"), "name the object", "empty")
	}
	if namespaced {
		if o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
		name.namespace = o.GetNamespace()
	}
	if first, twice := r.seen[name]; twice {
		return at.problem("", "keep one; of overlays give the output of `kustomize build`", "%s is in %s already", name, first)
	}
	r.seen[name] = at
	o.SetResourceVersion("")
	o.SetUID("")
	o.SetGeneration(0)
	o.SetManagedFields(nil)
	o.SetFinalizers(nil)
	return nil
}

// doubts notes what the product would say of an object. It is brought into the world all the same, where the shipped code
// deals with it.
func (r *reader) doubts(at origin, path string, found []world.Problem) {
	for _, p := range found {
		r.cluster.note("%s", at.problem(join(path, p.Field), p.Remedy, "%s", p.Why))
	}
}

// finish sums up what is not used.
func (r *reader) finish() {
	for _, kind := range slices.Sorted(maps.Keys(r.unused)) {
		r.cluster.unused = append(r.cluster.unused, fmt.Sprintf("%d %s", r.unused[kind], kind))
	}
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}

// typeError turns what the decoder says into the field and the reason.
func typeError(err error) (field, why string) {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return "", strings.TrimPrefix(err.Error(), "json: ")
	}
	found, _, _ := strings.Cut(wrong.Value, " ")
	return wrong.Field, fmt.Sprintf("%s where %s belongs", article(found), article(shapeOf(wrong.Type)))
}

// shapeOf tells the JSON shape that a Go type is read from.
func shapeOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	}
	return "number"
}

func article(shape string) string {
	switch shape {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "string":
		return "a text"
	case "bool":
		return "a truth value"
	}
	return "a number"
}
