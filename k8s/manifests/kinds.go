// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/spelling"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/api/balancing"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/convert"
)

// reader decodes an object of one kind, which stands at path in its document.
type reader func(d *decoder, raw []byte, path string, h head)

// Versions of kinds that are not ours.
const (
	balancingV1Beta1 = balancing.Group + "/v1beta1"

	lbcfV1Beta1 = lbcf.Group + "/v1beta1"
	lbcfV1      = lbcf.Group + "/v1"
)

// kinds are those that are read, by apiVersion and kind.
var kinds = func() map[string]reader {
	all := map[string]reader{
		"v1 Service":                        of(world.KindService, true, one(convert.Service)),
		"v1 Node":                           of(world.KindNode, false, one(convert.Node)),
		"v1 Endpoints":                      of(kindEndpoints, true, endpoints),
		"v1 Namespace":                      of(world.KindNamespace, false, one(convert.Namespace)),
		"v1 ConfigMap":                      configMap,
		"discovery.k8s.io/v1 EndpointSlice": of(world.KindEndpointSlice, true, one(convert.EndpointSlice)),

		api.GroupVersion + " AddressPolicy": of(world.KindPolicy, false, one(convert.Policy)),

		balancingV1Beta1 + " BalancingPolicy":     of(world.KindBalancingPolicy, false, one(onlyIf(convert.BalancingPolicy))),
		balancingV1Beta1 + " LocalRedirectPolicy": of(world.KindLocalRedirect, false, one(onlyIf(convert.LocalRedirectPolicy))),

		// What outside load balancers are made of.
		"v1 Pod":                            of(world.KindPod, true, one(convert.Pod)),
		lbcfV1Beta1 + " LoadBalancerDriver": of(world.KindDriver, true, one(convert.Driver)),
		lbcfV1Beta1 + " LoadBalancer":       of(world.KindLoadBalancer, true, one(convert.OutsideBalancer)),
		lbcfV1Beta1 + " BackendGroup":       ofBackends(world.KindBackendGroup, convert.BackendGroup, func(g *world.BackendGroup) bool { return !g.IsStatic }),
		lbcfV1Beta1 + " BackendRecord":      of(world.KindBackendRecord, true, one(convert.BackendRecord)),
		lbcfV1 + " Bind":                    ofBackends(world.KindBind, convert.Bind, func(*world.Bind) bool { return true }),
	}
	for _, version := range []string{api.GroupVersion, api.MetalLBV1Beta1} {
		all[version+" IPAddressPool"] = of(world.KindPool, false, one(convert.Pool))
		all[version+" BGPPeer"] = of(world.KindPeer, false, one(convert.Peer))
		all[version+" BGPAdvertisement"] = of(world.KindAdvertisement, false, one(convert.Advertisement))
		all[version+" L2Advertisement"] = of(world.KindL2Advert, false, one(convert.L2Advertisement))
		all[version+" BFDProfile"] = of(world.KindBFDProfile, false, one(convert.BFDProfile))
		all[version+" Community"] = of(world.KindCommunity, false, one(convert.Community))
	}
	all[api.MetalLBV1Beta2+" BGPPeer"] = all[api.MetalLBV1Beta1+" BGPPeer"]
	return all
}()

// statusKinds are kinds in which MetalLB says how things are.
var statusKinds = []string{"ServiceL2Status", "ServiceBGPStatus", "ConfigurationState", "BGPSessionState"}

// of reads objects of type K.
func of[K any](kind world.Kind, namespaced bool, turn func(*K) (any, []world.Problem)) reader {
	return func(d *decoder, raw []byte, path string, h head) { add(d, raw, path, h, kind, namespaced, turn) }
}

// ofBackends reads objects that ask for backends, and tells of those for which nobody can call a driver: it is told of pods and of the nodes of a
// Service what the API server has of them, and a folder has not.
func ofBackends[K, V any](kind world.Kind, turn func(*K) (V, []world.Problem), asks func(*V) bool) reader {
	return func(d *decoder, raw []byte, path string, h head) {
		add(d, raw, path, h, kind, true, one(func(o *K) (V, []world.Problem) {
			v, problems := turn(o)
			if d.noCluster && asks(&v) {
				problems = append(problems, world.Problem{
					Severity: world.Degraded, Field: "spec", Why: "its pods or nodes are registered nowhere: drivers are told what an API server has of them, and none is read",
					Remedy: "list addresses in spec.static of a BackendGroup, or have members read an API server",
				})
			}
			return v, problems
		}))
	}
}

func configMap(d *decoder, raw []byte, path string, h head) {
	if convert.ReadsConfigMap(h.Metadata.Name) {
		add(d, raw, path, h, world.KindConfigMap, true, one(d.review.ConfigMap))
		return
	}
	var o corev1.ConfigMap
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &o); err != nil {
		return // nothing of ours
	}
	if is, remedy := convert.OthersConfigMap(&o); is != "" {
		d.fileProblem(world.Degraded, path, remedy, "ConfigMap %s/%s is %s, and nothing comes of it", cmp.Or(o.Namespace, metav1.NamespaceDefault), o.Name, is)
	}
}

// one adapts a conversion to one value.
func one[K, V any](turn func(*K) (V, []world.Problem)) func(*K) (any, []world.Problem) {
	return func(o *K) (any, []world.Problem) {
		v, problems := turn(o)
		return &v, problems
	}
}

// onlyIf adapts the conversion of what may not be carried out, so that it is not taken in without a word.
func onlyIf[K, V any](turn func(*K) (V, []world.Problem)) func(*K) (V, []world.Problem) {
	return func(o *K) (V, []world.Problem) {
		v, problems := turn(o)
		return v, append(problems, convert.OnlyIf())
	}
}

func endpoints(o *corev1.Endpoints) (any, []world.Problem) { return convert.Endpoints(o) }

// kind decodes an object of a kind that is read. Others are noted once each: one of a group of which kinds are read may be misspelt, or of a release
// that has gone, and whoever wrote it counts on it.
func (d *decoder) kind(h head, raw []byte, path string) {
	kind := h.APIVersion + " " + h.Kind
	if read := kinds[kind]; read != nil {
		read(d, raw, path, h)
		return
	}
	if d.ignored[kind] {
		return
	}
	d.ignored[kind] = true
	group, _, named := strings.Cut(h.APIVersion, "/")
	if read := kindsOf(group); named && len(read) > 0 && !slices.Contains(statusKinds, h.Kind) {
		hint, remedy := meant(kind, read), ""
		if hint == "" {
			remedy = "of this group are read: " + strings.Join(read, ", ")
		}
		d.fileProblem(world.Degraded, path, remedy, "there is no kind %s, and nothing comes of it%s", kind, hint)
		return
	}
	d.fileProblem(world.Ignored, path, "", "objects of %s are not used", kind)
}

// kindsOf lists the kinds that are read of a group.
func kindsOf(group string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(kind string) bool { return !strings.HasPrefix(kind, group+"/") })
}

// meant is what to say of which kind may be meant by one that is not read.
func meant(kind string, read []string) string {
	_, name, _ := strings.Cut(kind, " ")
	var names []string
	for _, k := range read {
		_, n, _ := strings.Cut(k, " ")
		names = append(names, n)
	}
	if i := slices.Index(names, name); i >= 0 {
		return "; did you mean " + read[i] + "?"
	}
	return spelling.Meant(name, names)
}
