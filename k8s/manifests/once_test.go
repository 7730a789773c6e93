// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
)

func onceOf(t *testing.T, review convert.Review, files map[string][]byte) world.World {
	t.Helper()
	w, err := Once(review, nil)(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestOnceTakesFilesAtTheirWord(t *testing.T) {
	t.Parallel()
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {type: LoadBalancer, externalIPs: [203.0.113.1], ports: [{port: 80}]}\n"
	w := onceOf(t, nil, map[string][]byte{"b.yaml": []byte(service), "a.yaml": []byte("kind: [\n"), "c.yaml": []byte("apiVersion: v1\nkind: Service\nmetadata: {name: odd}\nspec: {type: LoadBalancer, externalIPs: [nonsense]}\n")})
	if len(w.Services) == 0 || w.Services[len(w.Services)-1].ID != (world.ID{Namespace: "shop", Name: "web"}) {
		t.Errorf("services %+v", w.Services)
	}
	var all []string
	for _, p := range w.Problems {
		all = append(all, p.String())
	}
	for _, want := range []string{"a.yaml", "nonsense"} {
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("no problem names %s: %q", want, all)
		}
	}
	if w.Complete {
		t.Error("complete though a file cannot be read")
	}
	if w := onceOf(t, nil, map[string][]byte{"b.yaml": []byte(service), "notes.yaml": []byte("# none yet\n")}); !w.Complete || !w.Kinds[0].Listed || len(w.Problems) > 0 {
		t.Errorf("not whole: %+v", w)
	}
}

const gobgpMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-gobgp-cfg, namespace: kube-system}\ndata:\n  config_bgp.toml: %s\n"

// doubts a config map's contents, in one field of it.
func doubts(c *world.ConfigMap) []world.Problem {
	text, _ := c.Get("config_bgp.toml")
	return []world.Problem{{Severity: world.Degraded, Field: "data.config_bgp.toml", Why: text + " is odd", Remedy: "mend it"}}
}

// What a review finds is told with the place, of maps that can be used.
func TestReviewOfAConfigMapIsAmongTheProblems(t *testing.T) {
	t.Parallel()
	w := onceOf(t, doubts, map[string][]byte{"a.yaml": []byte(fmt.Sprintf(gobgpMap, "x")), "b.yaml": []byte(strings.Replace(fmt.Sprintf(gobgpMap, `""`), "kube-system", "other", 1))})
	var all []string
	for _, p := range w.Problems {
		all = append(all, p.String())
	}
	if len(w.ConfigMaps) != 1 || len(all) != 2 || all[1] != "a.yaml:5: ConfigMap kube-system/kube-gobgp-cfg: data.config_bgp.toml: x is odd (mend it)" {
		t.Errorf("%d config maps, %q", len(w.ConfigMaps), all)
	}
}

// Lines do not tell the forms of an object apart that stand on one.
func TestFormsOnOneLineAreToldApart(t *testing.T) {
	t.Parallel()
	const form = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"type": "LoadBalancer", "ports": [{"port": %d}]}}`
	list := `{"apiVersion": "v1", "kind": "List", "items": [` + fmt.Sprintf(form, 0) + ", " + fmt.Sprintf(form, 80) + `]}`
	w := onceOf(t, nil, map[string][]byte{"web.json": []byte(list)})
	if len(w.Services) != 1 || len(w.Problems) != 1 || w.Problems[0].Field != "spec.ports[0].port" {
		t.Fatalf("%d Services, %v", len(w.Services), w.Problems)
	}
}

// What a call may spend goes with how long its files are together, however they are cut.
func TestAliasesOfAllFilesShareABudget(t *testing.T) {
	t.Parallel()
	text := "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  annotations: {a: &a \"" + strings.Repeat("x", 1000) + "\"}\nspec: {externalIPs: [" + strings.Repeat("*a,", 300) + "]}\n"
	files := map[string][]byte{}
	for i := range 100 {
		files[fmt.Sprintf("%02d.yaml", i)] = []byte(text)
	}
	w, refused := onceOf(t, nil, files), 0
	for _, p := range w.Problems {
		if strings.Contains(p.Why, "aliases add more than") {
			refused++
		}
	}
	if refused < 90 || refused == 100 {
		t.Errorf("%d of 100 files of 300 KiB each were refused", refused)
	}
}

// Who does not wait any more has nothing read.
func TestOnceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Once(nil, nil)(ctx, map[string][]byte{"a.yaml": nil}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
