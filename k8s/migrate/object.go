// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// keep adds an object as a manifest that can be applied again, without what the server filled in for this life of it.
// It changes the object.
func (r *reader) keep(o runtime.Object, m *metav1.ObjectMeta, clear func()) error {
	clear()
	*m = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations}
	delete(m.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	delete(fields, "status") // of all that is zero, marshalling leaves only this
	manifest, err := yaml.Marshal(fields)
	if err != nil {
		return err
	}
	r.out.Objects = append(r.out.Objects, Object{Kind: o.GetObjectKind().GroupVersionKind().Kind, Name: m.Name, Manifest: manifest})
	return nil
}
