// SPDX-License-Identifier: Apache-2.0

// Package handover finds out whether an LBCF controller works on a cluster's objects, since only one of it and Fairlead
// may (lbcf §13): both would act on the same BackendRecords.
//
// It knows how LBCF is installed (lbcf §9) and how our own pods are told from its. It promises that until the first answer of
// the API server, and while LBCF could act, it says so; that an answer holds while there is no newer one; and that what
// Fairlead's manifests install never counts as LBCF. It decides by a pure function of what was seen. Start reading at Judge,
// then Check.
package handover

import (
	"fmt"
	"slices"
	"strings"

	"fairlead.io/fairlead/k8s/api/lbcf"
)

// How LBCF is installed (lbcf §9), and how what we install is told from it (deploy/base).
const (
	Namespace      = lbcf.SharedNamespace
	DeploymentName = "lbcf-controller"
	LabelComponent = "lbcf.tkestack.io/component"
	Component      = "lbcf-controller" // value of LabelComponent

	labelPartOf = "app.kubernetes.io/part-of"
	ours        = "fairlead" // value of labelPartOf
)

// Sight is what was seen of LBCF: what is named or labelled as its controller and is not ours.
type Sight struct {
	Deployments []Deployment
	Pods        []Pod
}

// Deployment is one that runs LBCF's controller.
type Deployment struct {
	Name string
	// Wanted is how many replicas it shall have, Ready how many are.
	Wanted, Ready int32
}

// Pod is one of LBCF's controller, whoever made it, that has not ended. One that is being deleted still acts.
type Pod struct {
	Name string
	// Owner made it, as kind and name; empty if it was made by hand.
	Owner string
}

// Busy tells whether the Deployment has a controller, or will have one again without anybody's doing: one whose only
// replica is not ready is about to come back.
func (d Deployment) Busy() bool { return d.Wanted > 0 || d.Ready > 0 }

// Judge tells whether an LBCF controller acts, or may any moment, with what to do about it.
func Judge(s Sight) (reason string, busy bool) {
	var found []string
	for _, d := range s.Deployments {
		if d.Busy() {
			found = append(found, fmt.Sprintf("deployment %s/%s wants %d replicas and has %d ready (remedy: kubectl -n %s scale deployment %s --replicas=0)",
				Namespace, d.Name, d.Wanted, d.Ready, Namespace, d.Name))
		}
	}
	if len(found) == 0 { // otherwise they are those of the Deployment
		for _, p := range s.Pods {
			found = append(found, p.reason())
		}
	}
	slices.Sort(found)
	return strings.Join(found, "; "), len(found) > 0
}

func (p Pod) reason() string {
	if p.Owner == "" {
		return fmt.Sprintf("pod %s/%s has not ended (remedy: kubectl -n %s delete pod %s)", Namespace, p.Name, Namespace, p.Name)
	}
	return fmt.Sprintf("pod %s/%s of %s has not ended; it goes once its owner is scaled to 0", Namespace, p.Name, p.Owner)
}
