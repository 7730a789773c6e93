// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"fairlead.io/fairlead/fsm/world"
)

// Annotations on Services. Each is also read as the systems spell it that we replace (spellings); ours wins.
const (
	// AnnotationAddresses asks for addresses, separated by commas.
	AnnotationAddresses = "fairlead.io/loadBalancerIPs"
	// AnnotationPool asks for an address of a pool.
	AnnotationPool = "fairlead.io/address-pool"
	// AnnotationSharing lets Services of a namespace with the same value share an address.
	AnnotationSharing = "fairlead.io/allow-shared-ip"
	// AnnotationAcross names the namespaces whose Services may share, too, with commas between, or "*" for all. Each of the
	// Services has to say so of the same namespaces, its own included or not.
	AnnotationAcross = "fairlead.io/sharing-cross-namespace"
	// AnnotationNextHops is "endpoints" (the default) or "all".
	AnnotationNextHops = "fairlead.io/nextHops"
	// AnnotationScheduler is how nodes choose among endpoints, by IPVS' names: "rr", "wrr", "sh", "dh", "mh", "lc", "wlc", "sed", "nq", "lblc" or
	// "lblcr"; else by chance.
	AnnotationScheduler = "fairlead.io/scheduler"
	// AnnotationEndpointWeights gives endpoints weights, by rules separated by commas: an address, pod/NAME, node/NAME or zone/NAME, =, and
	// a number. Names are patterns, and the first rule that names an endpoint counts.
	AnnotationEndpointWeights = "fairlead.io/endpoint-weights"
	// AnnotationHealthCheck has nodes probe endpoints: what healthCheck of a policy is, as YAML or JSON, such as {type: HTTP, path: /healthz}.
	AnnotationHealthCheck = "fairlead.io/health-check"
	// AnnotationSourceRanges is the old spelling of spec.loadBalancerSourceRanges.
	AnnotationSourceRanges = corev1.AnnotationLoadBalancerSourceRangesKey
)

const (
	ourPrefix     = "fairlead.io/"
	metalLBPrefix = "metallb.io/"
	metalLBOld    = "metallb.universe.tf/"

	labelServiceProxy = "service.kubernetes.io/service-proxy-name"

	defaultAffinitySeconds = 10800
	maxAffinitySeconds     = 86400
)

// kubeVIPAddresses is kube-vip's annotation for addresses. The unspecified address in it asks for one by DHCP.
const kubeVIPAddresses = "kube-vip.io/loadbalancerIPs"

// spellings are how kube-vip, Cilium (LB IPAM, with its older names) and PureLB call what is an annotation of ours. MetalLB
// has our names under its own prefixes.
func spellings(ours string) []string {
	name := strings.TrimPrefix(ours, ourPrefix)
	out := []string{ours, metalLBPrefix + name, metalLBOld + name}
	switch ours {
	case AnnotationAddresses:
		out = append(out, kubeVIPAddresses, "lbipam.cilium.io/ips", "io.cilium/lb-ipam-ips", "purelb.io/addresses")
	case AnnotationPool:
		out = append(out, "purelb.io/service-group")
	case AnnotationSharing:
		out = append(out, "lbipam.cilium.io/sharing-key", "io.cilium/lb-ipam-sharing-key", "purelb.io/allow-shared-ip")
	case AnnotationAcross:
		out = append(out, "lbipam.cilium.io/sharing-cross-namespace", "io.cilium/lb-ipam-sharing-cross-namespace")
	}
	return out
}

// annotation finds the value of one of our annotations under any of its spellings, and the key it was found under. Others
// that say something else are reported. An empty one says nothing: templates write it for what was not chosen.
func (r *report) annotation(all map[string]string, ours string) (key, value string) {
	key = ours
	found := false
	for _, k := range spellings(ours) {
		v := all[k]
		switch {
		case strings.TrimSpace(v) == "":
		case !found:
			key, value, found = k, v, true
		case v != value:
			r.degrade(annotationField(k), "remove one of them", "%q is passed over: %s says %q", v, key, value)
		}
	}
	return key, value
}

func annotationField(key string) string { return fmt.Sprintf("metadata.annotations[%s]", key) }

// Service converts a Service of any type.
func Service(o *corev1.Service) (world.Service, []world.Problem) {
	meta, r := open(world.KindService, &o.ObjectMeta, true)
	s := world.Service{
		Meta:                  meta,
		Type:                  numbered(r, "spec.type", o.Spec.Type, world.ClusterIP, world.NodePort, world.LoadBalancer, world.ExternalName),
		ExternalTrafficPolicy: numbered(r, "spec.externalTrafficPolicy", o.Spec.ExternalTrafficPolicy, world.PolicyCluster, world.PolicyLocal),
		PublishNotReady:       o.Spec.PublishNotReadyAddresses,
		NodePorts:             o.Spec.AllocateLoadBalancerNodePorts == nil || *o.Spec.AllocateLoadBalancerNodePorts,
		HealthCheckNodePort:   r.port("spec.healthCheckNodePort", o.Spec.HealthCheckNodePort, true),
		HasSelector:           len(o.Spec.Selector) > 0,
		Foreign:               o.Labels[labelServiceProxy] != "",
		Extra:                 &world.Extra{Class: value(o.Spec.LoadBalancerClass), Annotations: kvs(o.Annotations, annotationMatters)},
	}
	if s.Type == world.LoadBalancer || len(o.Spec.ExternalIPs) > 0 {
		s.Labels = kvs(o.Labels, all)
	}
	s.InternalTrafficPolicy = numbered(r, "spec.internalTrafficPolicy", value(o.Spec.InternalTrafficPolicy), world.PolicyCluster, world.PolicyLocal)
	var families []world.Family
	for i, f := range o.Spec.IPFamilies {
		families = append(families, oneOf(r, fmt.Sprintf("spec.ipFamilies[%d]", i), f, world.IPv4, world.IPv6))
	}
	s.Families = world.FamiliesOf(families...)
	r.unheededAnnotations(o)
	r.ports(&s, o)
	r.addresses(&s, o)
	r.options(&s, o)
	readStatus(&s, o)
	return s, r.problems
}

// readStatus reads the addresses that a status shows. It is not the user's: what cannot be read is nobody's to mend.
func readStatus(s *world.Service, o *corev1.Service) {
	var intercepted []netip.Addr
	for _, i := range o.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(i.IP); err == nil && a.Zone() == "" && unroutable(a.Unmap()) == "" {
			s.Shown = addTo(s.Shown, a.Unmap())
			if i.IPMode == nil || *i.IPMode == corev1.LoadBalancerIPModeVIP {
				intercepted = append(intercepted, a.Unmap())
			}
		}
	}
	for _, a := range s.Shown {
		if !slices.Contains(intercepted, a) {
			s.Extra.Proxied = append(s.Extra.Proxied, a)
		}
	}
}

func annotationMatters(key string) bool {
	if strings.HasPrefix(key, ourPrefix) || strings.HasPrefix(key, metalLBPrefix) || strings.HasPrefix(key, metalLBOld) || key == AnnotationSourceRanges {
		return true
	}
	for _, ours := range []string{AnnotationAddresses, AnnotationPool, AnnotationSharing, AnnotationAcross} {
		if slices.Contains(spellings(ours), key) {
			return true
		}
	}
	return false
}

func (r *report) ports(s *world.Service, o *corev1.Service) {
	type frontend struct {
		protocol world.Protocol
		port     uint16
	}
	s.Ports = slices.Grow(s.Ports, len(o.Spec.Ports))
	seen, names := map[frontend]bool{}, map[string]bool{}
	for i, p := range o.Spec.Ports {
		field := fmt.Sprintf("spec.ports[%d]", i)
		port := world.ServicePort{
			Name:        p.Name,
			Protocol:    oneOf(r, field+".protocol", p.Protocol, world.TCP, world.UDP, world.SCTP),
			Port:        r.port(field+".port", p.Port, false),
			NodePort:    r.port(field+".nodePort", p.NodePort, true),
			TargetPort:  p.TargetPort.String(),
			AppProtocol: value(p.AppProtocol),
		}
		if port.TargetPort == "0" || port.TargetPort == "" {
			port.TargetPort = fmt.Sprint(p.Port)
		}
		if key := (frontend{port.Protocol, port.Port}); port.Port != 0 && seen[key] {
			r.fail(field, "remove one of them", "%d/%s is there twice", port.Port, port.Protocol)
		} else {
			seen[key] = true
		}
		switch {
		case p.Name == "" && len(o.Spec.Ports) > 1:
			r.fail(field+".name", "name every port of a Service that has several", "empty")
		case p.Name != "" && names[p.Name]:
			r.fail(field+".name", "name each port differently", "%q is there twice", p.Name)
		}
		names[p.Name] = true
		s.Ports = append(s.Ports, port)
	}
	if len(s.Ports) == 0 && s.Type == world.LoadBalancer {
		r.fail("spec.ports", "list at least one port", "empty")
	}
}

func (r *report) addresses(s *world.Service, o *corev1.Service) {
	s.Headless = o.Spec.ClusterIP == corev1.ClusterIPNone
	clusterIPs := o.Spec.ClusterIPs
	if len(clusterIPs) == 0 && o.Spec.ClusterIP != "" {
		clusterIPs = []string{o.Spec.ClusterIP}
	}
	for i, text := range clusterIPs {
		if text == corev1.ClusterIPNone || text == "" {
			continue
		}
		if a, ok := r.address(fmt.Sprintf("spec.clusterIPs[%d]", i), text); ok {
			s.ClusterIPs = append(s.ClusterIPs, a)
		}
	}
	for i, text := range o.Spec.ExternalIPs {
		field := fmt.Sprintf("spec.externalIPs[%d]", i)
		if a, ok := r.dialled(field, text); ok {
			s.ExternalIPs = addTo(s.ExternalIPs, a)
			r.family(field, o, s, a)
		}
	}
	ask := func(field, text string) {
		a, ok := r.dialled(field, text)
		if ok && !slices.Contains(s.ExternalIPs, a) {
			s.Extra.Requested = addTo(s.Extra.Requested, a)
			r.family(field, o, s, a)
		}
	}
	if text := o.Spec.LoadBalancerIP; text != "" && !r.byDHCP("spec.loadBalancerIP", text) {
		ask("spec.loadBalancerIP", text)
	}
	if key, list := r.annotation(o.Annotations, AnnotationAddresses); strings.TrimSpace(list) != "" {
		for text := range strings.SplitSeq(list, ",") {
			if key != kubeVIPAddresses || !r.byDHCP(annotationField(key), text) {
				ask(annotationField(key), text)
			}
		}
	}
}

// family tells of an address that a Service names and that is of a family which it is not of: nothing leads there. A
// Service without a selector may have slices of that family by hand.
func (r *report) family(field string, o *corev1.Service, s *world.Service, a netip.Addr) {
	f, families := world.FamilyOf(a), s.Families.List()
	policy := value(o.Spec.IPFamilyPolicy)
	dual := policy == corev1.IPFamilyPolicyPreferDualStack || policy == corev1.IPFamilyPolicyRequireDualStack
	if len(families) == 0 || dual || !s.HasSelector || slices.Contains(families, f) {
		return
	}
	r.degrade(field, fmt.Sprintf("add %s to spec.ipFamilies with ipFamilyPolicy PreferDualStack, or name an address of %s", f, families[0]),
		"%s is of %s, and the Service is not (spec.ipFamilies): Kubernetes gives it no endpoints of that family, and the address is not announced", a, f)
}

// byDHCP tells whether a text asks for an address by DHCP, as kube-vip has it, and tells the user that a pool gives one.
func (r *report) byDHCP(field, text string) bool {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || !a.Unmap().IsUnspecified() {
		return false
	}
	r.degrade(field, "name an address there, or none", "addresses by DHCP are not supported; a pool gives one")
	return true
}

func (r *report) options(s *world.Service, o *corev1.Service) {
	x := s.Extra
	_, x.Pool = r.annotation(o.Annotations, AnnotationPool)
	x.SharingKey = r.sharing(s.Namespace, o.Annotations)
	if s.ExternalTrafficPolicy == world.PolicyLocal && (x.SharingKey != "" || len(s.ExternalIPs) > 0) {
		x.Selector = labels.Set(o.Spec.Selector).String()
	}
	key, hops := r.annotation(o.Annotations, AnnotationNextHops)
	s.NextHops = numbered(r, annotationField(key), hops, world.NextHopsEndpoints, world.NextHopsAll)
	if s.NextHops == world.NextHopsAll && s.ExternalTrafficPolicy == world.PolicyLocal {
		r.degrade(annotationField(key), "remove the annotation or use externalTrafficPolicy: Cluster",
			"nodes without an endpoint drop traffic under externalTrafficPolicy: Local; only nodes with one are used")
		s.NextHops = world.NextHopsEndpoints
	}

	x.Choosing = r.choosing(o.Annotations)
	ranges, field := o.Spec.LoadBalancerSourceRanges, "spec.loadBalancerSourceRanges"
	if text := strings.TrimSpace(o.Annotations[AnnotationSourceRanges]); len(ranges) == 0 && text != "" {
		ranges, field = strings.Split(text, ","), annotationField(AnnotationSourceRanges)
	}
	for i, text := range ranges {
		if p, ok := r.prefix(fmt.Sprintf("%s[%d]", field, i), text); ok {
			x.SourceRanges = addTo(x.SourceRanges, p)
		}
	}

	if oneOf(r, "spec.sessionAffinity", o.Spec.SessionAffinity, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP) == corev1.ServiceAffinityClientIP {
		seconds := int32(defaultAffinitySeconds)
		if c := o.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			seconds = *c.ClientIP.TimeoutSeconds
		}
		if seconds < 1 || seconds > maxAffinitySeconds {
			r.fail("spec.sessionAffinityConfig.clientIP.timeoutSeconds", fmt.Sprintf("use 1 to %d", maxAffinitySeconds), "%d is out of range", seconds)
		}
		x.Affinity = time.Duration(seconds) * time.Second
	}
	if p := value(o.Spec.IPFamilyPolicy); p != "" {
		s.FamilyPolicy = numbered(r, "spec.ipFamilyPolicy", p, world.SingleStack, world.PreferDualStack, world.RequireDualStack)
	}
}

// choosing reads how nodes are to choose among endpoints; nil if nothing is asked for that can be had.
func (r *report) choosing(annotations map[string]string) *world.Choosing {
	c := world.Choosing{
		Scheduler: r.scheduler(annotations[AnnotationScheduler]),
		Probes:    r.probes(annotations[AnnotationHealthCheck]),
		Weights:   r.weights(annotations[AnnotationEndpointWeights]),
	}
	if c.Scheduler == "" && c.Probes.Type == "" && len(c.Weights) == 0 {
		return nil
	}
	return &c
}

// scheduler reads the name of one.
func (r *report) scheduler(name string) world.Scheduler {
	known := []world.Scheduler{world.RoundRobin, world.WeightedRoundRobin, world.SourceHash, world.DestinationHash, world.ConsistentHash,
		world.LeastConnections, world.WeightedLeastConnections, world.ShortestExpectedDelay, world.NeverQueue,
		world.LocalityLeastConnections, world.LocalityLeastConnectionsReplicated}
	switch {
	case name == "":
		return ""
	case slices.Contains(known, world.Scheduler(name)):
		return world.Scheduler(name)
	}
	r.degrade(annotationField(AnnotationScheduler), "use rr, wrr, sh, dh, mh, lc, wlc, sed, nq, lblc or lblcr, or remove the annotation",
		"%q is unknown; endpoints are chosen by chance, and by their weights", name)
	return ""
}

// sharing is the key under which a Service shares an address: that of its annotation, and the namespaces whose Services it
// consents to share with, its own among them. Who consented to the same namespaces has the same key, and nobody else; the
// record compares no more than that.
func (r *report) sharing(namespace string, annotations map[string]string) string {
	_, key := r.annotation(annotations, AnnotationSharing)
	where, list := r.annotation(annotations, AnnotationAcross)
	namespaces := []string{namespace}
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if name != "*" && len(validation.IsDNS1123Label(name)) > 0 {
			r.fail(annotationField(where), `name namespaces with commas between, or "*" for all`, "%q is no name of a namespace", name)
		}
		namespaces = append(namespaces, name)
	}
	if list != "" && key == "" {
		r.degrade(annotationField(where), "add "+AnnotationSharing, "without a key nothing is shared")
	}
	if key == "" {
		return ""
	}
	slices.Sort(namespaces)
	among := strings.Join(slices.Compact(namespaces), ",")
	if slices.Contains(namespaces, "*") {
		among = "*"
	}
	whole := among + "/" + key
	if len(whole) > maxSharing {
		r.fail(annotationField(AnnotationSharing), fmt.Sprintf("use a key that has, with its namespaces, %d bytes at most", maxSharing), "%d bytes", len(whole))
		return ""
	}
	return whole
}

// maxSharing bounds a sharing key with its namespaces: the record has it once for each address.
const maxSharing = 4096

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func addTo[T netip.Addr | netip.Prefix | world.Range](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
