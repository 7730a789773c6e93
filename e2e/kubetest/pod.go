// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// PodSpec says what a Pod is like.
type PodSpec struct {
	Namespace string // default
	Name      string
	Node      string
	Labels    map[string]string
	// Addresses are the Pod's, the first of which is the one of the cluster's first family.
	Addresses []netip.Addr
	// Ports are named ports, for Services whose target port is a name.
	Ports map[string]uint16
	// Account is the Pod's ServiceAccount; default.
	Account string
	// NotReady leaves the Pod running but not ready.
	NotReady bool
}

// Pod is the object of a pod, with the life that a kubelet would give it.
type Pod struct {
	Namespace, Name string
	UID             types.UID

	cluster *Cluster
}

// Pod makes a Pod that runs on a node; the namespace is made too if it is missing.
func (c *Cluster) Pod(ctx context.Context, s PodSpec) (*Pod, error) {
	if s.Namespace == "" {
		s.Namespace = metav1.NamespaceDefault
	}
	if err := c.EnsureNamespace(ctx, s.Namespace); err != nil {
		return nil, err
	}
	var ports []corev1.ContainerPort
	for name, port := range s.Ports {
		ports = append(ports, corev1.ContainerPort{Name: name, ContainerPort: int32(port)})
	}
	made, err := c.client.CoreV1().Pods(s.Namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: s.Labels},
		Spec: corev1.PodSpec{
			NodeName: s.Node, ServiceAccountName: s.Account,
			Containers: []corev1.Container{{Name: "main", Image: "none", Ports: ports}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make Pod %s/%s: %w", s.Namespace, s.Name, err)
	}
	p := &Pod{Namespace: s.Namespace, Name: s.Name, UID: made.UID, cluster: c}
	return p, p.updateStatus(ctx, func(status *corev1.PodStatus) {
		status.Phase = corev1.PodRunning
		for i, a := range s.Addresses {
			if i == 0 {
				status.PodIP = a.String()
			}
			status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: a.String()})
		}
		setReady(status, !s.NotReady)
	})
}

// SetReady writes the Pod's condition Ready. A terminating Pod that is ready still serves.
func (p *Pod) SetReady(ctx context.Context, ready bool) error {
	return p.updateStatus(ctx, func(s *corev1.PodStatus) { setReady(s, ready) })
}

// Terminate begins the Pod's end: it has a deletionTimestamp and stays, as ready as it is, until Remove.
func (p *Pod) Terminate(ctx context.Context) error { return p.delete(ctx, 3600) }

// Remove takes the Pod's object away at once.
func (p *Pod) Remove(ctx context.Context) error { return p.delete(ctx, 0) }

func (p *Pod) delete(ctx context.Context, grace int64) error {
	err := p.cluster.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if err != nil {
		return fmt.Errorf("delete Pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

func (p *Pod) updateStatus(ctx context.Context, change func(*corev1.PodStatus)) error {
	err := retry.RetryOnConflict(Conflicts(), func() error {
		pods := p.cluster.client.CoreV1().Pods(p.Namespace)
		pod, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&pod.Status)
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("write status of Pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

func setReady(s *corev1.PodStatus, ready bool) {
	now := metav1.Now()
	s.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodScheduled, corev1.ContainersReady, corev1.PodReady} {
		holds := ready || kind == corev1.PodInitialized || kind == corev1.PodScheduled
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: statusOf(holds), LastTransitionTime: now})
	}
}
