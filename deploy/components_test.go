// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The components of layer 2 and of peers by interface give agents one more right, and change nothing else, in overlays of every size.
func TestComponentsGiveAgentsRawSocketsAlone(t *testing.T) {
	for name, component := range map[string]string{"one": "l2", "three": "l2", "five": "l2", "three-unnumbered": "unnumbered"} {
		t.Run(name, func(t *testing.T) {
			name := strings.TrimSuffix(name, "-unnumbered")
			folder := t.TempDir()
			text := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", from(t, folder, "overlays/"+name), from(t, folder, "components/"+component))
			if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			with, without := kustomize(t, folder), kustomize(t, "overlays/"+name)
			changed := 0
			for i, o := range with {
				if reflect.DeepEqual(o, without[i]) {
					continue
				}
				changed++
				if o.GetName() != "fairlead-agent" || o.GetKind() != "DaemonSet" {
					t.Fatalf("%s %s is another", o.GetKind(), o.GetName())
				}
				if got := rights(t, o); !slices.Equal(got, []any{"NET_ADMIN", "NET_RAW"}) {
					t.Errorf("capabilities %v", got)
				}
				setRights(t, o, "NET_ADMIN")
				if !reflect.DeepEqual(o, without[i]) {
					t.Errorf("more than a capability is another:\n%v\n%v", o, without[i])
				}
			}
			if changed != 1 || len(with) != len(without) {
				t.Errorf("%d objects are others", changed)
			}
		})
	}
}

// from is the way from a folder to one of this folder.
func from(t *testing.T, folder, to string) string {
	t.Helper()
	to, err := filepath.Abs(to)
	if err != nil {
		t.Fatal(err)
	}
	way, err := filepath.Rel(folder, to)
	if err != nil {
		t.Fatal(err)
	}
	return way
}

func rights(t *testing.T, o *unstructured.Unstructured) []any {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	added, _, err := unstructured.NestedSlice(containers[0].(map[string]any), "securityContext", "capabilities", "add")
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func setRights(t *testing.T, o *unstructured.Unstructured, names ...any) {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(containers[0].(map[string]any), names, "securityContext", "capabilities", "add"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}

// So does the component of resolution at sockets: rights, and two folders of the host.
func TestTheComponentOfSocketsGivesAgentsProgramsAlone(t *testing.T) {
	folder := t.TempDir()
	text := fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", from(t, folder, "overlays/three"), from(t, folder, "components/sock"))
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	with, without := kustomize(t, folder), kustomize(t, "overlays/three")
	if len(with) != len(without) {
		t.Fatalf("%d objects, without the component %d", len(with), len(without))
	}
	for i, o := range with {
		if o.GetName() != "fairlead-agent" || o.GetKind() != "DaemonSet" {
			if !reflect.DeepEqual(o, without[i]) {
				t.Errorf("%s %s is another", o.GetKind(), o.GetName())
			}
			continue
		}
		if got := rights(t, o); !slices.Equal(got, []any{"NET_ADMIN", "BPF", "PERFMON"}) {
			t.Errorf("capabilities %v", got)
		}
		volumes, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(fmt.Sprint(volumes), "path:/sys/fs/bpf") || !strings.Contains(fmt.Sprint(volumes), "path:/sys/fs/cgroup") {
			t.Errorf("volumes %v", volumes)
		}
	}
}

// Who wants sockets of pods be ended, too, adds the component that lets agents into their namespaces.
func TestTheComponentOfNamespacesLetsAgentsIn(t *testing.T) {
	folder := t.TempDir()
	text := fmt.Sprintf("resources: [%s]\ncomponents: [%s, %s]\n", from(t, folder, "overlays/three"), from(t, folder, "components/sock"), from(t, folder, "components/sock-namespaces"))
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, o := range kustomize(t, folder) {
		if o.GetName() != "fairlead-agent" || o.GetKind() != "DaemonSet" {
			continue
		}
		seen = true
		if got := rights(t, o); !slices.Equal(got, []any{"NET_ADMIN", "BPF", "PERFMON", "SYS_ADMIN"}) {
			t.Errorf("capabilities %v", got)
		}
		volumes, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
		if err != nil || !strings.Contains(fmt.Sprint(volumes), "path:/run/netns") {
			t.Errorf("volumes %v (%v)", volumes, err)
		}
	}
	if !seen {
		t.Error("there are no agents")
	}
}

// systemd adds the drop-ins to what the unit allows, and takes nothing away.
func TestTheDropInsAreUnderstood(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		missing(t, fmt.Errorf("no systemd-analyze: %w", err))
	}
	folder := t.TempDir()
	for _, name := range []string{"fairlead-agent.service", "fairlead-agent.service.d/l2.conf", "fairlead-agent.service.d/sock.conf", "fairlead-agent.service.d/unnumbered.conf"} {
		text, err := os.ReadFile(filepath.Join("systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/fairlead", "/bin/true")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	unit := filepath.Join(folder, "fairlead-agent.service")
	if out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput(); err != nil || strings.Contains(string(out), "fairlead-agent") {
		t.Errorf("verify: %v: %s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--no-pager", "--offline=true", "--json=short", unit).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("security: %v", err)
	}
	// It lists what a unit is still allowed.
	for _, want := range []string{
		`"set":false,"name":"CapabilityBoundingSet=~CAP_NET_ADMIN"`, `"set":false,"name":"CapabilityBoundingSet=~CAP_NET_(BIND_SERVICE|BROADCAST|RAW)"`,
		`"set":false,"name":"RestrictAddressFamilies=~AF_PACKET"`, `"set":false,"name":"CapabilityBoundingSet=~CAP_BPF"`, `"set":true,"name":"CapabilityBoundingSet=~CAP_SYS_ADMIN"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}
