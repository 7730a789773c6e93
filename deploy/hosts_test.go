// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/e2e/lab"
)

// Balancing §15: the shipped command accepts the configuration of a host outside the cluster, up to the files that only that has,
// as it is and with what containers need.
// Rule: balancing §15.
func TestConfigurationOfHostsOutsideIsUnderstood(t *testing.T) {
	fairlead := lab.Binary(t)
	example, err := os.ReadFile("outside/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	inContainer := strings.Replace(string(example), "# sock: {", "sock: {", 1)
	if inContainer == string(example) {
		t.Fatal("the line for containers is not there")
	}
	for name, text := range map[string]string{"host": string(example) + "sock: {}\n", "container": inContainer} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() // of this machine, nothing is to be touched
			path := dir + "/agent.yaml"
			text := strings.NewReplacer(
				"/var/lib/", dir+"/missing/", "/etc/", dir+"/etc/", "sock: {cgroup: /host/sys/fs/cgroup", "sock: {pins: "+dir, "sock: {", "sock: {pins: "+dir,
			).Replace(text)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), fairlead, "agent", "--config", path)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), dir+" is not on a bpffs") || strings.Count(string(out), "\n") != 1 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// Both containers have what resolution takes, and nothing else of what root may.
// Rule: balancing §15.
func TestContainersOfHostsOutsideHaveWhatItTakes(t *testing.T) {
	var pod corev1.Pod
	read := func(path string, into any) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	read("outside/pod.yaml", &pod)
	c := pod.Spec.Containers[0]
	var mounts []string
	for _, m := range c.VolumeMounts {
		for _, v := range pod.Spec.Volumes {
			if v.Name == m.Name {
				mounts = append(mounts, v.HostPath.Path+":"+m.MountPath)
			}
		}
	}
	want := []string{"/etc/fairlead:/etc/fairlead", "/var/lib/fairlead-agent:/var/lib/fairlead-agent", "/sys/fs/bpf:/sys/fs/bpf", "/sys/fs/cgroup:/host/sys/fs/cgroup"}
	if !slices.Equal(mounts, want) || !pod.Spec.HostNetwork || *c.SecurityContext.RunAsUser != 0 || *c.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("pod.yaml mounts %v, %+v", mounts, c.SecurityContext)
	}
	if have := c.SecurityContext.Capabilities.Add; !slices.Equal(have, []corev1.Capability{"NET_ADMIN", "BPF", "PERFMON"}) {
		t.Errorf("pod.yaml has capabilities %v", have)
	}
	var compose struct {
		Services map[string]struct {
			Image       string   `json:"image"`
			Entrypoint  []string `json:"entrypoint"`
			NetworkMode string   `json:"network_mode"`
			Cgroup      string   `json:"cgroup"`
			User        string   `json:"user"`
			Restart     string   `json:"restart"`
			ReadOnly    bool     `json:"read_only"`
			CapDrop     []string `json:"cap_drop"`
			CapAdd      []string `json:"cap_add"`
			SecurityOpt []string `json:"security_opt"`
			Stop        string   `json:"stop_grace_period"`
			Volumes     []string `json:"volumes"`
		} `json:"services"`
	}
	read("outside/compose.yaml", &compose)
	s := compose.Services["fairlead-agent"]
	for i, v := range s.Volumes {
		s.Volumes[i] = strings.TrimSuffix(v, ":ro")
	}
	if !slices.Equal(s.Volumes, want) || s.NetworkMode != "host" || s.Cgroup != "host" || !slices.Equal(s.CapAdd, []string{"NET_ADMIN", "BPF", "PERFMON"}) || !slices.Equal(s.CapDrop, []string{"ALL"}) {
		t.Errorf("compose.yaml: %+v", s)
	}
	if s.Image != c.Image || !slices.Equal(s.Entrypoint, []string{c.Command[0], "agent"}) {
		t.Errorf("compose.yaml runs %v of %s, pod.yaml %v of %s", s.Entrypoint, s.Image, c.Command, c.Image)
	}
}
