// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// Namespaces are those from which objects are read that configure the fabric (world.Kind.Configures): only operators write there.
// None means all.
type Namespaces []string

// Read tells whether an object of a kind counts where it is. One without a namespace is of a file, or of a kind that has none: then
// it took the right to write either.
func (n Namespaces) Read(kind world.Kind, o metav1.Object) bool {
	return len(n) == 0 || !kind.Configures() || o.GetNamespace() == "" || slices.Contains(n, o.GetNamespace())
}

// Elsewhere is what its author is told of an object that does not count where it is.
func (n Namespaces) Elsewhere(ref world.Ref) world.Problem {
	return world.Problem{
		Severity: world.Failed, Object: ref, Field: "metadata.namespace",
		Why: fmt.Sprintf("objects of kind %s are read from %s alone; this one does not count, and one that the group has from before stays as it was",
			ref.Kind, n.text()),
		Remedy: "have an operator put it there, or name its namespace in sources.configNamespaces of all controllers",
	}
}

func (n Namespaces) text() string {
	if len(n) == 1 {
		return "namespace " + n[0]
	}
	return "namespaces " + strings.Join(n[:len(n)-1], ", ") + " and " + n[len(n)-1]
}

// ElsewhereRef names an object that does not count where it is: by its namespace, too, so that it is never taken for one of its
// name that counts.
func ElsewhereRef(kind world.Kind, o metav1.Object) world.Ref {
	return world.Ref{Kind: kind, ID: world.ID{Namespace: o.GetNamespace(), Name: o.GetName()}, UID: string(o.GetUID())}
}
