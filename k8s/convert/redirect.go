// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/balancing"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

// BalancingPolicy converts a policy of client-side balancing. What fails or degrades it admission refuses in new objects (the
// A numbers below are its rules); what is only ignored it warns of.
func BalancingPolicy(o *v1beta1.BalancingPolicy) (world.BalancingPolicy, []world.Problem) {
	meta, r := open(world.KindBalancingPolicy, &o.ObjectMeta, false)
	out := world.Redirect{Generation: o.Generation, Disabled: o.Spec.Enabled != nil && !*o.Spec.Enabled}
	r.redirectConfig(&out, o.Spec.Config)
	r.redirectNotes(&out, o.Annotations)
	var err error
	if out.FallThrough, err = balancing.FallsThrough(o.Annotations); err != nil {
		r.degrade(annotationField(balancing.AnnotationOnNoBackend), "write fallthrough, or remove it", "%v", err)
	}
	ports := r.balancingBackend(&out, &o.Spec.Backend)
	r.frontend(&out, &o.Spec.Frontend, ports)
	r.leadsSomewhere(&out)
	r.proxyTargets(&out, o.Annotations, ports)
	return world.BalancingPolicy{Meta: meta, Homed: homed(&o.ObjectMeta), Redirect: out}, r.problems
}

// LocalRedirectPolicy converts a policy of local redirection, as BalancingPolicy does.
func LocalRedirectPolicy(o *v1beta1.LocalRedirectPolicy) (world.LocalRedirectPolicy, []world.Problem) {
	meta, r := open(world.KindLocalRedirect, &o.ObjectMeta, false)
	out := world.Redirect{Generation: o.Generation, Disabled: o.Spec.Enabled != nil && !*o.Spec.Enabled, Mode: world.ToLocalPods}
	r.redirectConfig(&out, o.Spec.Config)
	r.redirectNotes(&out, o.Annotations)
	if _, ok := o.Annotations[balancing.AnnotationOnNoBackend]; ok {
		r.add(world.Ignored, annotationField(balancing.AnnotationOnNoBackend), "remove it",
			"it has no meaning for a LocalRedirectPolicy, which always falls through")
	}
	out.Pods = r.podSelector("spec.backend.endpointSelector", &o.Spec.Backend.EndpointSelector)
	ports := r.redirectPorts("spec.backend.toPorts", o.Spec.Backend.ToPorts, "")
	r.frontend(&out, &o.Spec.Frontend, ports)
	r.proxyTargets(&out, o.Annotations, ports)
	return world.LocalRedirectPolicy{Meta: meta, Homed: homed(&o.ObjectMeta), Redirect: out}, r.problems
}

// OnlyIf is what has to be said of a policy that is taken in where nobody may carry it out.
func OnlyIf() world.Problem {
	return world.Problem{
		Severity: world.Degraded, Why: "it is carried out only where members have `balancingPolicies` and agents `sock`",
		Remedy: "connections of other hosts go where they went without it",
	}
}

// redirectConfig reads where a policy is effective (balancing §8).
func (r *report) redirectConfig(out *world.Redirect, c *v1beta1.PolicyConfig) {
	out.Outside = c == nil || c.EnableOutCluster == nil || *c.EnableOutCluster
	if c != nil && c.NodeLabelSelector != nil {
		out.Nodes = r.selector("spec.config.nodeLabelSelector", c.NodeLabelSelector)
	}
}

// redirectNotes reads the annotations that both kinds may have.
func (r *report) redirectNotes(out *world.Redirect, annotations map[string]string) {
	id, err := balancing.ServiceID(annotations)
	if err != nil { // A1
		r.degrade(annotationField(balancing.AnnotationServiceID), "remove it, and one is given", "%v", err)
	}
	out.ServiceID = uint32(id)
	if out.SpareOwn, err = balancing.SkipsOwnBackends(annotations); err != nil {
		r.degrade(annotationField(balancing.AnnotationSkipFromBackend), `write "true", or remove it`, "%v", err)
	}
}

func (r *report) selector(field string, s *metav1.LabelSelector) world.Selector {
	if one := r.selectors(field, []metav1.LabelSelector{*s}); len(one) == 1 {
		return one[0]
	}
	last := &r.problems[len(r.problems)-1]
	last.Field = field // it is no list
	return world.Selector{}
}

// podSelector reads which pods are backends (A12).
func (r *report) podSelector(field string, s *metav1.LabelSelector) world.Selector {
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		r.add(world.Ignored, field, "choose them by a label", "it is empty, and so chooses every pod of the cluster")
	}
	return r.selector(field, s)
}

// balancingBackend reads where captured connections go, and gives the backends' ports.
func (r *report) balancingBackend(out *world.Redirect, b *v1beta1.BalancingBackend) []world.TargetPort {
	if (b.ServiceEndpoint != nil) == (b.AddressEndpoint != nil) { // A5
		r.fail("spec.backend", "give exactly one of serviceEndpoint and addressEndpoint", "%s", neitherOrBoth(b.ServiceEndpoint != nil))
		return nil
	}
	if s := b.ServiceEndpoint; s != nil {
		const field = "spec.backend.serviceEndpoint"
		out.Mode = oneOf(r, field+".redirectMode", s.RedirectMode, world.ToPods, world.ToHostPorts, world.ToProxies)
		out.Pods = r.podSelector(field+".endpointSelector", &s.EndpointSelector)
		return r.redirectPorts(field+".toPorts", s.ToPorts, "")
	}
	const field = "spec.backend.addressEndpoint"
	out.Mode = world.ToAddresses
	out.Addresses = r.backendAddresses(field+".addresses", b.AddressEndpoint.Addresses)
	out.Health = r.healthCheck(field+".healthCheck", b.AddressEndpoint.HealthCheck)
	return r.redirectPorts(field+".toPorts", b.AddressEndpoint.ToPorts, "")
}

func neitherOrBoth(both bool) string {
	if both {
		return "both are given"
	}
	return "neither is given"
}

// backendAddresses reads literal addresses (A9, A10). Those that are none are left out.
func (r *report) backendAddresses(field string, texts []string) []netip.Addr {
	var out []netip.Addr
	for i, text := range texts {
		at := fmt.Sprintf("%s[%d]", field, i)
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		switch {
		case err != nil:
			r.degrade(at, "write it like 192.0.2.10 or 2001:db8::10", "%q is no IP address", text)
			continue
		case a.Zone() != "":
			r.degrade(at, "leave out the part from % on", "%q has a zone", text)
			continue
		}
		if a = a.Unmap(); slices.Contains(out, a) {
			r.add(world.Ignored, at, "leave it out, unless it shall have more connections than others", "%s is listed before, and gets so much more", a)
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		r.fail(field, "list at least one address", "it names no backend")
	}
	return out
}

// redirectPorts reads the ports of one side. front is what a captured port needs to be unique for: number and protocol (A7); ports
// of backends are told apart by name and protocol (A6).
func (r *report) redirectPorts(field string, list []v1beta1.PortInfo, front string) []world.TargetPort {
	if len(list) == 0 { // A9
		r.fail(field, "list at least one port", "it is empty")
		return nil
	}
	type name struct {
		name     string
		protocol world.Protocol
	}
	type number struct {
		port     uint16
		protocol world.Protocol
	}
	names, numbers := map[name]bool{}, map[number]bool{}
	var out []world.TargetPort
	unnamed := false
	for i, p := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		n, err := balancing.ParsePort(p.Port)
		if err != nil {
			r.degrade(at+".port", "write a number from 1 to 65535 in quotes", "%v", err)
			continue
		}
		protocol := world.Protocol(strings.ToUpper(p.Protocol))
		if protocol != world.TCP && protocol != world.UDP {
			r.degrade(at+".protocol", "write TCP or UDP", "%q is neither", p.Protocol)
			continue
		}
		if front != "" && numbers[number{n, protocol}] {
			r.degrade(at, "list each once", "%d/%s is captured before", n, protocol)
			continue
		}
		if names[name{p.Name, protocol}] {
			if front == "" {
				r.degrade(at+".name", "give it a name of its own", "%s port %q is there before, and counts", protocol, p.Name)
				continue
			}
			r.degrade(at+".name", "give it a name of its own", "%s port %q is there before; both go to the same port", protocol, p.Name)
		}
		numbers[number{n, protocol}], names[name{p.Name, protocol}] = true, true
		if p.Name != "" && !balancing.IsPortName(p.Name) {
			r.add(world.Ignored, at+".name", "use letters, digits and single dashes inside, and at least one letter", "%q is an odd name; it is used as it is", p.Name)
		}
		unnamed = unnamed || p.Name == ""
		out = append(out, world.TargetPort{Name: p.Name, Protocol: protocol, Port: n})
	}
	if len(out) == 0 {
		r.fail(field, "give a port that can be used", "none of its ports can be")
	}
	if unnamed && len(list) > 1 { // A6
		r.add(world.Ignored, field, "name each of them", "it has several ports, and not all have a name to be joined by")
	}
	return out
}

// frontend reads what is captured, and joins its ports to those of backends (sections 4 and 5).
func (r *report) frontend(out *world.Redirect, f *v1beta1.Frontend, targets []world.TargetPort) {
	if (f.ServiceMatcher != nil) == (f.AddressMatcher != nil) { // A4
		r.fail("spec.frontend", "give exactly one of serviceMatcher and addressMatcher", "%s", neitherOrBoth(f.ServiceMatcher != nil))
		return
	}
	if m := f.AddressMatcher; m != nil {
		out.Address = r.virtualAddress("spec.frontend.addressMatcher.ip", m.IP)
		out.Ports = r.join("spec.frontend.addressMatcher.toPorts", m.ToPorts, targets)
		return
	}
	m := f.ServiceMatcher
	const field = "spec.frontend.serviceMatcher"
	if len(validation.IsDNS1123Label(m.Namespace)) > 0 {
		r.fail(field+".namespace", "name the namespace of a Service", "%q is no namespace", m.Namespace)
	}
	if len(validation.IsDNS1123Label(m.ServiceName)) > 0 {
		r.fail(field+".serviceName", "name a Service", "%q is no name of a Service", m.ServiceName)
	}
	out.Service = world.ID{Namespace: m.Namespace, Name: m.ServiceName}
	if len(m.ToPorts) > 0 {
		out.Ports = r.join(field+".toPorts", m.ToPorts, targets)
		return
	}
	out.AllPorts, out.Targets = true, targets
	r.add(world.Ignored, field+".toPorts", "list the ports, to be sure", // A8
		"all ports of the Service are captured that have its name, or else its protocol alone, among those of the backend; which, only the Service tells")
}

// virtualAddress reads the address of a frontend (A15). It need not exist, and may be of a range that is not routed.
func (r *report) virtualAddress(field, text string) netip.Addr {
	a, ok := r.address(field, text)
	if !ok {
		return netip.Addr{}
	}
	what := ""
	switch {
	case a.IsUnspecified():
		what = "the unspecified address"
	case a.IsLoopback():
		what = "a loopback address"
	case a.IsMulticast():
		what = "a multicast address"
	case a.Is6() && a.IsLinkLocalUnicast(): // balancing §17
		what = "a link-local address, which means another host on every link"
	}
	if what != "" {
		r.fail(field, "choose another address; none of 169.254.0.0/16 needs to be routed", "%s is %s", a, what)
		return netip.Addr{}
	}
	return a
}

// join gives each captured port the backends' port of its name and protocol (A8).
func (r *report) join(field string, list []v1beta1.PortInfo, targets []world.TargetPort) []world.RedirectPort {
	ports := r.redirectPorts(field, list, "front")
	var out []world.RedirectPort
	for _, p := range ports {
		i := slices.IndexFunc(targets, func(t world.TargetPort) bool { return t.Name == p.Name && t.Protocol == p.Protocol })
		if i < 0 {
			r.degrade(field, "list it in toPorts of the backend", "%d/%s: no port of the backend is named %q and %s", p.Port, p.Protocol, p.Name, p.Protocol)
			continue
		}
		out = append(out, world.RedirectPort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, Target: targets[i].Port})
	}
	if len(out) == 0 && len(ports) > 0 {
		r.fail(field, "give one a name that a port of the backend has", "none of its ports leads to a backend")
	}
	return out
}

// leadsSomewhere checks listed addresses against the virtual one (A10, A11).
func (r *report) leadsSomewhere(out *world.Redirect) {
	const field = "spec.backend.addressEndpoint.addresses"
	if !out.Address.IsValid() || len(out.Addresses) == 0 {
		return
	}
	loops := slices.ContainsFunc(out.Ports, func(p world.RedirectPort) bool { return p.Port == p.Target })
	if loops && slices.Contains(out.Addresses, out.Address) {
		out.Addresses = slices.DeleteFunc(out.Addresses, func(a netip.Addr) bool { return a == out.Address })
		r.degrade(field, "remove it, or have it listen at another port", "%s is what is captured, and leads to itself", out.Address)
	}
	family := world.FamilyOf(out.Address)
	other := 0
	for _, a := range out.Addresses {
		if world.FamilyOf(a) != family {
			other++
		}
	}
	switch {
	case other == len(out.Addresses):
		r.fail(field, "list one of the family of "+out.Address.String(), "none leads on from %s", out.Address)
	case other > 0:
		r.add(world.Ignored, field, "leave them out", "%d are of another family than %s, and never used", other, out.Address)
	}
}

// proxyTargets reads which ports of pods are behind proxy ports (balancing §13).
func (r *report) proxyTargets(out *world.Redirect, annotations map[string]string, ports []world.TargetPort) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, balancing.AnnotationTargetPort)
		if !ok {
			continue
		}
		field := annotationField(key)
		named := slices.ContainsFunc(ports, func(p world.TargetPort) bool { return p.Name == name })
		if out.Mode != world.ToProxies || !named {
			r.add(world.Ignored, field, "remove it", "it is about no proxy port of this policy")
			continue
		}
		if err := balancing.CheckTargetPort(annotations[key]); err != nil {
			r.degrade(field, "write a number, or the name of a port of a container", "%v", err)
			continue
		}
		out.ProxyTargets = append(out.ProxyTargets, world.KV{Key: name, Value: annotations[key]})
	}
}
