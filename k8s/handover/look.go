// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/client"
)

// Cluster sees what of LBCF runs. It needs the rights to list Deployments and pods of kube-system, and to get LBCF's Deployment.
type Cluster struct {
	deployments client.Collection[appsv1.Deployment, appsv1.DeploymentList, *appsv1.Deployment, *appsv1.DeploymentList]
	pods        client.Collection[corev1.Pod, corev1.PodList, *corev1.Pod, *corev1.PodList]
}

// In gives the cluster of an API server. It does not ask it anything.
func In(api *client.API) (*Cluster, error) {
	apps, err := api.Group(appsv1.SchemeGroupVersion, &appsv1.Deployment{}, &appsv1.DeploymentList{})
	if err != nil {
		return nil, err
	}
	core, err := api.Group(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	if err != nil {
		return nil, err
	}
	return &Cluster{
		deployments: client.CollectionOf[appsv1.Deployment, appsv1.DeploymentList](apps, "deployments", Namespace),
		pods:        client.CollectionOf[corev1.Pod, corev1.PodList](core, "pods", Namespace),
	}, nil
}

// Look lists Deployments, whose name may be another than LBCF's, and the pods that carry its label. That none is in the list is
// believed of LBCF's own name only if it is not found by it either: a server with empty caches answers lists, too. Errors: the
// API server did not answer.
func (c *Cluster) Look(ctx context.Context) (Sight, error) {
	var seen Sight
	deployments, err := c.deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		return Sight{}, fmt.Errorf("list deployments of %s: %w", Namespace, err)
	}
	for i := range deployments.Items {
		if d := &deployments.Items[i]; isController(d) {
			seen.Deployments = append(seen.Deployments, sightOf(d))
		}
	}
	if len(seen.Deployments) == 0 {
		if seen.Deployments, err = c.byName(ctx); err != nil {
			return Sight{}, err
		}
	}
	pods, err := c.pods.List(ctx, metav1.ListOptions{LabelSelector: LabelComponent + "=" + Component})
	if err != nil {
		return Sight{}, fmt.Errorf("list pods of %s: %w", Namespace, err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Labels[labelPartOf] == ours || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		one := Pod{Name: p.Name}
		if owner := metav1.GetControllerOf(p); owner != nil {
			one.Owner = owner.Kind + " " + owner.Name
		}
		seen.Pods = append(seen.Pods, one)
	}
	return seen, nil
}

// byName gives the Deployment that LBCF's own manifests make, if it is there and not ours.
func (c *Cluster) byName(ctx context.Context) ([]Deployment, error) {
	d, err := c.deployments.Get(ctx, DeploymentName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get deployment %s/%s: %w", Namespace, DeploymentName, err)
	case !isController(d):
		return nil, nil
	}
	return []Deployment{sightOf(d)}, nil
}

// isController tells whether a Deployment runs LBCF's controller: by its name, its label or that of its pods.
func isController(d *appsv1.Deployment) bool {
	if d.Labels[labelPartOf] == ours || d.Spec.Template.Labels[labelPartOf] == ours {
		return false
	}
	return d.Name == DeploymentName || d.Labels[LabelComponent] == Component || d.Spec.Template.Labels[LabelComponent] == Component
}

func sightOf(d *appsv1.Deployment) Deployment {
	out := Deployment{Name: d.Name, Wanted: 1, Ready: d.Status.ReadyReplicas}
	if d.Spec.Replicas != nil {
		out.Wanted = *d.Spec.Replicas
	}
	return out
}
