// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const (
	leaseSeconds  = 40 // as a kubelet's
	leaseRenewal  = 10 * time.Second
	leaseDeadline = 5 * time.Second
)

// Node is the object of a node, with the life that its kubelet would give it.
type Node struct {
	Name string

	cluster *Cluster
	silence context.CancelFunc
}

// Node makes a ready Node with these InternalIPs, and renews its lease until Silence, Delete or the cluster's end.
// Labels may be nil.
func (c *Cluster) Node(ctx context.Context, name string, labels map[string]string, addresses ...netip.Addr) (*Node, error) {
	return c.NodeWith(ctx, metav1.ObjectMeta{Name: name, Labels: labels}, addresses...)
}

// NodeWith is Node of one that has these metadata, annotations with them, from the start.
func (c *Cluster) NodeWith(ctx context.Context, meta metav1.ObjectMeta, addresses ...netip.Addr) (*Node, error) {
	_, err := c.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make Node %s: %w", meta.Name, err)
	}
	n := &Node{Name: meta.Name, cluster: c}
	if err := n.SetAddresses(ctx, addresses...); err != nil {
		return nil, err
	}
	if err := n.SetReady(ctx, true); err != nil {
		return nil, err
	}
	if err := c.EnsureNamespace(ctx, corev1.NamespaceNodeLease); err != nil {
		return nil, err
	}
	if err := n.renew(ctx); err != nil {
		return nil, fmt.Errorf("make Lease of Node %s: %w", meta.Name, err)
	}
	beating, silence := context.WithCancel(c.ctx)
	n.silence = silence
	c.beats.Go(func() { n.beat(beating) })
	return n, nil
}

// SetAddresses replaces the Node's InternalIPs.
func (n *Node) SetAddresses(ctx context.Context, addresses ...netip.Addr) error {
	return n.updateStatus(ctx, func(s *corev1.NodeStatus) {
		s.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.Name}}
		for _, a := range addresses {
			s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
		}
	})
}

// SetReady writes the Node's condition Ready.
func (n *Node) SetReady(ctx context.Context, ready bool) error {
	return n.SetCondition(ctx, corev1.NodeReady, ready)
}

// SetCondition writes one of the Node's conditions.
func (n *Node) SetCondition(ctx context.Context, kind corev1.NodeConditionType, holds bool) error {
	return n.updateStatus(ctx, func(s *corev1.NodeStatus) {
		now := metav1.Now()
		want := corev1.NodeCondition{
			Type: kind, Status: statusOf(holds), Reason: "Kubetest", LastHeartbeatTime: now, LastTransitionTime: now,
		}
		for i := range s.Conditions {
			if s.Conditions[i].Type == kind {
				s.Conditions[i] = want
				return
			}
		}
		s.Conditions = append(s.Conditions, want)
	})
}

// Silence stops the renewal of the Node's lease, as the death of the machine does.
func (n *Node) Silence() { n.silence() }

// Delete removes the Node and its lease.
func (n *Node) Delete(ctx context.Context) error {
	n.silence()
	if err := n.cluster.client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete Node %s: %w", n.Name, err)
	}
	err := n.cluster.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, n.Name, metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("delete Lease of Node %s: %w", n.Name, err)
	}
	return nil
}

// beat renews the lease until ctx ends. What fails is tried again at the next beat, as a kubelet does.
func (n *Node) beat(ctx context.Context) {
	ticker := time.NewTicker(leaseRenewal)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			call, cancel := context.WithTimeout(ctx, leaseDeadline)
			_ = n.renew(call)
			cancel()
		}
	}
}

func (n *Node) renew(ctx context.Context) error {
	leases := n.cluster.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, seconds := metav1.NowMicro(), int32(leaseSeconds)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	have, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	if err == nil {
		have.Spec = spec
		_, err = leases.Update(ctx, have, metav1.UpdateOptions{})
		return err
	}
	_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: spec}, metav1.CreateOptions{})
	return err
}

func (n *Node) updateStatus(ctx context.Context, change func(*corev1.NodeStatus)) error {
	err := retry.RetryOnConflict(Conflicts(), func() error {
		nodes := n.cluster.client.CoreV1().Nodes()
		node, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&node.Status)
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("write status of Node %s: %w", n.Name, err)
	}
	return nil
}

func statusOf(holds bool) corev1.ConditionStatus {
	if holds {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
