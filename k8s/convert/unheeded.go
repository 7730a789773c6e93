// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// unheededAnnotation is one by which another load balancer would do something that is not done here.
type unheededAnnotation struct {
	key string
	// says is what is so here, and remedy what to do instead.
	says, remedy string
	// instead are annotations of ours that say what it means: where one of them is there, nothing is left to tell.
	instead []string
}

// unheeded are those of kube-vip and OpenELB. What these programs write themselves is not among them, nor what says something only beside
// another one (kube-vip.io/egress-ipv6), which is told of.
//
// kube-vip.io/ignore is told of and not heeded: it says that kube-vip is to leave the Service to somebody else, and whoever moves Services from
// kube-vip one by one, or has had MetalLB beside it, means us.
var unheeded = []unheededAnnotation{
	{
		key: "kube-vip.io/ignore", says: "it keeps kube-vip from the Service and nobody else: it is served here",
		remedy: "remove it, or, if the Service is to be left alone, make it anew with a spec.loadBalancerClass that is not ours",
	},
	{
		key: "kube-vip.io/egress", says: "there is no egress: what its pods send does not leave by the Service's address",
		remedy: "remove it, and have the CNI plugin do that",
	},
	{key: "kube-vip.io/serviceInterface", says: "a Service chooses no interface", remedy: atInterface},
	{key: "kube-vip.io/serviceVLAN", says: "a Service chooses no VLAN, and none is made", remedy: atInterface},
	{key: "kube-vip.io/loadbalancerHostname", says: byDHCPNot, remedy: fromPool},
	{key: "kube-vip.io/macvlanName", says: byDHCPNot, remedy: fromPool},
	{key: "kube-vip.io/dhcp-broadcast", says: byDHCPNot, remedy: fromPool},
	{key: "kube-vip.io/ddns", says: "no name is registered for the address", remedy: "remove it, and have a program such as ExternalDNS do that"},
	{key: "kube-vip.io/forwardUPNP", says: "no ports are forwarded by UPnP", remedy: "remove it, and forward them at the router"},
	{
		key: "kube-vip.io/leaseName", says: "Services do not choose which of them one node answers for together",
		remedy: "remove it; Services that share an address are answered for by one node",
	},
	{
		key: "kube-vip.io/ignore-service-security", says: "what comes for a port that the Service does not have is refused all the same",
		remedy: "remove it, and list all ports in spec.ports",
	},
	{
		key: "kube-vip.io/allow-reconcile-without-endpoints", says: "an address is announced only while the Service has an endpoint",
		remedy: "remove it",
	},
	{key: "eip.openelb.kubesphere.io/v1alpha1", says: "Eips are not read", remedy: ofEip, instead: []string{AnnotationAddresses, AnnotationPool}},
	{key: "eip.openelb.kubesphere.io/v1alpha2", says: "Eips are not read", remedy: ofEip, instead: []string{AnnotationAddresses, AnnotationPool}},
	{
		key: "protocol.openelb.kubesphere.io/v1alpha1", says: "how an address goes out is said by advertisements of its pool",
		remedy: "remove it, and have a BGPAdvertisement or an L2Advertisement name the pool",
	},
	{
		key: "node-proxy.openelb.kubesphere.io/type", says: "no proxies are started on nodes for a Service",
		remedy: "remove it; nodes take the connections to its address themselves",
	},
}

const (
	atInterface = "remove it, and name the interfaces in an L2Advertisement of its pool"
	byDHCPNot   = "addresses by DHCP are not supported; a pool gives one"
	fromPool    = "remove it, and name an address of a pool, or none"
	ofEip       = "make an IPAddressPool of the Eip's addresses, and name it in " + AnnotationPool + ", or the address in " + AnnotationAddresses
)

// theirClasses are the classes of load balancers that heed them.
var theirClasses = []string{"kube-vip.io/kube-vip-class", "openelb"}

// unheededAnnotations tells of annotations of a Service of type LoadBalancer that another load balancer would heed. An empty or a false one asks
// for nothing.
func (r *report) unheededAnnotations(o *corev1.Service) {
	if len(o.Annotations) == 0 || o.Spec.Type != corev1.ServiceTypeLoadBalancer || slices.Contains(theirClasses, value(o.Spec.LoadBalancerClass)) {
		return
	}
	for _, u := range unheeded {
		said := strings.ToLower(strings.TrimSpace(o.Annotations[u.key]))
		replaced := func(ours string) bool { return strings.TrimSpace(o.Annotations[ours]) != "" }
		if said == "" || said == "false" || slices.ContainsFunc(u.instead, replaced) {
			continue
		}
		r.degrade(annotationField(u.key), u.remedy, "%s", u.says)
	}
}
