// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/e2e/kubetest"
)

// Who watches sees each of them, too: none shares its version with another one of its kind.
func seededObjectsAreShownAndWatched(t *testing.T, c *kubetest.Cluster) {
	const namespace = "seeded" // no controller puts anything there
	maps := c.Client().CoreV1().ConfigMaps(namespace)
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	const n = 300
	var groups [][]kubetest.Seeded
	for i := range n {
		groups = append(groups, []kubetest.Seeded{{Key: fmt.Sprintf("configmaps/"+namespace+"/m%d", i), Object: &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("m%d", i), Namespace: namespace, UID: types.UID(fmt.Sprintf("u%d", i)), CreationTimestamp: metav1.Now(),
			},
		}}})
	}
	if err := c.Seed(t.Context(), groups); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	kubetest.Eventually(t, "all of them", func(ctx context.Context) error {
		for len(versions) < n {
			select {
			case e := <-watch.ResultChan():
				if m, ok := e.Object.(*corev1.ConfigMap); ok {
					versions[m.ResourceVersion] = m.Name
				}
			case <-ctx.Done():
				return fmt.Errorf("%d of %d were seen: %w", len(versions), n, ctx.Err())
			}
		}
		return nil
	})
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != n {
		t.Errorf("%d of %d are listed: %v", len(list.Items), n, err)
	}
}
