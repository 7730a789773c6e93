// SPDX-License-Identifier: Apache-2.0

// Package migrate reads what another load-balancer implementation left in a cluster: today kube-loadbalancer-controller,
// whose objects have fixed names. It only reads, and gives plain values; what to make of them is decided elsewhere.
// Start reading at Read.
package migrate

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/convert"
)

// The names of the old system's objects.
const (
	Controller      = "loadbalancer-controller" // StatefulSet
	Daemon          = "loadbalancer-daemonset"  // DaemonSet
	HeadlessService = "loadbalancer"            // Service
	ConfigMapBGP    = convert.ConfigMapGoBGP    // with config_bgp.toml
	KeyBGP          = convert.KeyGoBGP          // its key
	ConfigMapRules  = convert.ConfigMapIPRule   // with SWITCH
	controlPlane    = "node-role.kubernetes.io/control-plane"
	master          = "node-role.kubernetes.io/master" // before 1.20
)

// Installation is what was found.
type Installation struct {
	Namespace string
	// Replicas are what the controller asks for; zero, with Pods empty, if it is not there (see HasController).
	Replicas                 int
	HasController, HasDaemon bool
	// Pods are the controller's, by ordinal.
	Pods  []Pod
	Nodes []Node // by name
	// World holds Services, endpoints, Nodes and the two config maps as sources show them, with their problems.
	World world.World
	// Objects are the old system's own, ready to be applied again.
	Objects []Object
}

// Pod is one replica of the old controller.
type Pod struct {
	Name  string
	Node  string
	Ready bool
}

// Node is a machine that may carry a member.
type Node struct {
	Name         string
	ControlPlane bool
	Ready        bool
	Addresses    []netip.Addr // InternalIPs
}

// Object is a manifest. It may hold passwords.
type Object struct {
	Kind, Name string
	Manifest   []byte // YAML
}

// reader gathers an Installation.
type reader struct {
	ctx context.Context
	api *client.Groups
	// The kinds that nobody else reads.
	sets, pods *client.Group
	out        Installation
}

// Read reads the cluster once. Objects that are not there are no error.
func Read(ctx context.Context, api *client.API, namespace string) (Installation, error) {
	sets, err := api.Group(appsv1.SchemeGroupVersion, &appsv1.StatefulSet{}, &appsv1.DaemonSet{})
	if err != nil {
		return Installation{}, err
	}
	pods, err := api.Group(corev1.SchemeGroupVersion, &corev1.Pod{})
	if err != nil {
		return Installation{}, err
	}
	r := &reader{ctx: ctx, api: api.Client, sets: sets, pods: pods, out: Installation{Namespace: namespace}}
	r.out.World.Source = "kubernetes"
	for _, step := range []struct {
		what string
		read func() error
	}{
		{"StatefulSet " + Controller, r.controller}, {"DaemonSet " + Daemon, r.daemon}, {"Service " + HeadlessService, r.headless},
		{"the config maps", r.configMaps}, {"nodes", r.nodes}, {"services", r.services}, {"endpointslices", r.slices},
	} {
		if err := step.read(); err != nil {
			return Installation{}, fmt.Errorf("read %s: %w; the account needs to list and get it", step.what, err)
		}
	}
	r.out.World.Sort()
	return r.out, nil
}

// absent turns "not found" into false.
func absent(err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

func (r *reader) controller() error {
	set, err := client.ResourceOf[appsv1.StatefulSet](r.sets, "statefulsets", r.out.Namespace).Get(r.ctx, Controller, metav1.GetOptions{})
	if gone, err := absent(err); gone || err != nil {
		return err
	}
	r.out.HasController, r.out.Replicas = true, 1
	if set.Spec.Replicas != nil {
		r.out.Replicas = int(*set.Spec.Replicas)
	}
	for i := range r.out.Replicas {
		pod, err := client.ResourceOf[corev1.Pod](r.pods, "pods", r.out.Namespace).Get(r.ctx, fmt.Sprintf("%s-%d", Controller, i), metav1.GetOptions{})
		if gone, err := absent(err); err != nil {
			return err
		} else if gone {
			continue
		}
		r.out.Pods = append(r.out.Pods, Pod{Name: pod.Name, Node: pod.Spec.NodeName, Ready: podReady(pod)})
	}
	set.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"}
	return r.keep(set, &set.ObjectMeta, func() { set.Status = appsv1.StatefulSetStatus{} })
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (r *reader) daemon() error {
	set, err := client.ResourceOf[appsv1.DaemonSet](r.sets, "daemonsets", r.out.Namespace).Get(r.ctx, Daemon, metav1.GetOptions{})
	if gone, err := absent(err); gone || err != nil {
		return err
	}
	r.out.HasDaemon = true
	set.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet"}
	return r.keep(set, &set.ObjectMeta, func() { set.Status = appsv1.DaemonSetStatus{} })
}

func (r *reader) headless() error {
	s, err := r.api.CoreV1().Services(r.out.Namespace).Get(r.ctx, HeadlessService, metav1.GetOptions{})
	if gone, err := absent(err); gone || err != nil {
		return err
	}
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
	return r.keep(s, &s.ObjectMeta, func() { s.Status = corev1.ServiceStatus{} })
}

func (r *reader) configMaps() error {
	for _, name := range []string{ConfigMapBGP, ConfigMapRules} {
		m, err := r.api.CoreV1().ConfigMaps(r.out.Namespace).Get(r.ctx, name, metav1.GetOptions{})
		if gone, err := absent(err); err != nil {
			return err
		} else if gone {
			continue
		}
		value, problems := convert.ConfigMap(m)
		r.problems(problems)
		r.out.World.ConfigMaps = append(r.out.World.ConfigMaps, &value)
		m.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		if err := r.keep(m, &m.ObjectMeta, func() {}); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) nodes() error {
	list, err := r.api.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		o := &list.Items[i]
		value, problems := convert.Node(o)
		r.problems(problems)
		r.out.World.Nodes = append(r.out.World.Nodes, &value)
		n := Node{Name: o.Name, Ready: value.Ready}
		_, control := o.Labels[controlPlane]
		_, old := o.Labels[master]
		n.ControlPlane = control || old
		for _, a := range value.Addresses {
			if a.Type == world.InternalIP {
				n.Addresses = append(n.Addresses, a.Address)
			}
		}
		r.out.Nodes = append(r.out.Nodes, n)
	}
	slices.SortFunc(r.out.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func (r *reader) services() error {
	list, err := r.api.CoreV1().Services(metav1.NamespaceAll).List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		value, problems := convert.Service(&list.Items[i])
		r.out.World.Services = append(r.out.World.Services, &value)
		if value.Type == world.LoadBalancer {
			r.problems(problems)
		}
	}
	return nil
}

func (r *reader) slices() error {
	list, err := r.api.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		value, _ := convert.EndpointSlice(&list.Items[i]) // what is wrong with one is nobody's business here
		r.out.World.EndpointSlices = append(r.out.World.EndpointSlices, &value)
	}
	return nil
}

func (r *reader) problems(list []world.Problem) {
	r.out.World.Problems = append(r.out.World.Problems, list...)
}
