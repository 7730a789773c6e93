// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func secondsOf(n int64) time.Duration { return time.Duration(n) * time.Second }

// setDefaults fills in what a server fills in as it reads an object.
func setDefaults(o Object) {
	switch o := o.(type) {
	case *corev1.Service:
		defaultService(o)
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			setDefault(&o.Ports[i].Name, "")
			setDefault(&o.Ports[i].Protocol, corev1.ProtocolTCP)
		}
	case *corev1.Namespace:
		labels := map[string]string{corev1.LabelMetadataName: o.Name}
		for k, v := range o.Labels {
			labels[k] = v
		}
		o.Labels = labels
	case *corev1.Pod:
		if o.Status.Phase == "" {
			o.Status.Phase = corev1.PodPending
		}
	}
}

func setDefault[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

func defaultService(o *corev1.Service) {
	spec := &o.Spec
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP && spec.SessionAffinityConfig == nil {
		seconds := int32(10800)
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		setDefault(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if outside(o) && spec.ExternalTrafficPolicy == "" {
		spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		setDefault(&spec.AllocateLoadBalancerNodePorts, true)
		for i := range o.Status.LoadBalancer.Ingress {
			if in := &o.Status.LoadBalancer.Ingress[i]; in.IP != "" {
				setDefault(&in.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
}

// outside tells whether a Service is reached from outside of the cluster.
func outside(o *corev1.Service) bool {
	return o.Spec.Type == corev1.ServiceTypeLoadBalancer || o.Spec.Type == corev1.ServiceTypeNodePort
}

// allocate gives an object what only the server can, and takes what it must not keep.
func (s *Server) allocate(c *store, o, before Object) {
	switch o := o.(type) {
	case *corev1.Service:
		old, _ := before.(*corev1.Service)
		s.allocateService(c, o, old)
	case *corev1.Namespace:
		if before == nil {
			o.Status.Phase = corev1.NamespaceActive
			o.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
		}
	}
}

func (s *Server) allocateService(c *store, o, before *corev1.Service) {
	spec := &o.Spec
	if spec.Type != corev1.ServiceTypeExternalName {
		setDefault(&spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
		if len(spec.IPFamilies) == 0 {
			spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		}
	}
	if before != nil && !outside(o) {
		spec.ExternalTrafficPolicy = ""
	}
	if before != nil && spec.Type != corev1.ServiceTypeLoadBalancer && before.Spec.Type == corev1.ServiceTypeLoadBalancer {
		spec.AllocateLoadBalancerNodePorts, spec.LoadBalancerClass = nil, nil
		o.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
	s.clusterAddress(c, o, before)
	s.ports(c, o, before)
}

// clusterAddress gives a Service an address of the cluster, the next one that is free.
func (s *Server) clusterAddress(c *store, o, before *corev1.Service) {
	spec := &o.Spec
	switch {
	case spec.Type == corev1.ServiceTypeExternalName:
		return
	case spec.ClusterIP == "" && before != nil && before.Spec.ClusterIP != "":
		spec.ClusterIP, spec.ClusterIPs = before.Spec.ClusterIP, before.DeepCopy().Spec.ClusterIPs
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		spec.ClusterIP = spec.ClusterIPs[0]
	case spec.ClusterIP == "":
		taken := map[string]bool{}
		for _, other := range c.list(s.services) {
			taken[other.(*corev1.Service).Spec.ClusterIP] = true
		}
		for n := 10; spec.ClusterIP == ""; n++ {
			if a := fmt.Sprintf("10.96.%d.%d", n/256%256, n%256); !taken[a] {
				spec.ClusterIP = a
			}
		}
	}
	if len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
}

// ports gives the ports of a Service node ports where it has any.
func (s *Server) ports(c *store, o, before *corev1.Service) {
	spec := &o.Spec
	wants := spec.Type == corev1.ServiceTypeNodePort ||
		spec.Type == corev1.ServiceTypeLoadBalancer && *spec.AllocateLoadBalancerNodePorts
	var taken map[int32]bool
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if spec.Type == corev1.ServiceTypeClusterIP {
			p.NodePort = 0
		}
		if !wants || p.NodePort != 0 {
			continue
		}
		if p.NodePort = formerNodePort(before, p); p.NodePort != 0 {
			continue
		}
		if taken == nil {
			taken = s.nodePorts(c, o)
		}
		for p.NodePort == 0 || taken[p.NodePort] {
			p.NodePort = 30000 + s.w.Random(c.stream+"/ports").Int32N(2768)
		}
		taken[p.NodePort] = true
	}
}

func formerNodePort(before *corev1.Service, p *corev1.ServicePort) int32 {
	if before != nil {
		for _, old := range before.Spec.Ports {
			if old.Port == p.Port && old.Protocol == p.Protocol {
				return old.NodePort
			}
		}
	}
	return 0
}

// nodePorts lists those in use, by others and by o itself.
func (s *Server) nodePorts(c *store, o *corev1.Service) map[int32]bool {
	taken := map[int32]bool{}
	for _, p := range o.Spec.Ports {
		taken[p.NodePort] = true
	}
	for _, other := range c.list(s.services) {
		for _, p := range other.(*corev1.Service).Spec.Ports {
			taken[p.NodePort] = true
		}
	}
	return taken
}
