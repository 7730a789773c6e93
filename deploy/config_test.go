// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// The shipped command accepts each configuration as it is in a pod, up to the files that only a node has.
func TestConfigurationsAreUnderstood(t *testing.T) {
	fairlead := lab.Binary(t)
	for name := range overlays {
		for file, c := range map[string]struct{ command, wants string }{
			"controller.yaml": {"controller", "/etc/fairlead-gobgp/config_bgp.toml: cannot be read"},
			"agent.yaml":      {"agent", "/etc/fairlead-ca/ca.crt: no such file"},
			"agent.yaml+l2":   {"agent", "/etc/fairlead-ca/ca.crt: no such file"}, // as components/l2 wants it
		} {
			t.Run(name+"-"+file, func(t *testing.T) {
				file, l2 := strings.CutSuffix(file, "+l2")
				text, err := os.ReadFile("overlays/" + name + "/" + file)
				if err != nil {
					t.Fatal(err)
				}
				if l2 {
					text = append(text, "l2: true\n"...)
				}
				// Of this machine, nothing is to be touched.
				dir := t.TempDir()
				path := dir + "/" + file
				text = []byte(strings.NewReplacer("/var/lib/", dir+"/missing/", "/etc/", dir+"/etc/").Replace(string(text)))
				if err := os.WriteFile(path, text, 0o600); err != nil {
					t.Fatal(err)
				}
				args := []string{c.command, "--config", path}
				if c.command == "agent" {
					args = append(args, "--node", "cp-1")
				}
				cmd := exec.CommandContext(t.Context(), fairlead, args...)
				cmd.Env = append(os.Environ(), "NODE_NAME=cp-1", "HOST_IP=127.0.0.1")
				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), c.wants) || strings.Count(string(out), "\n") != 1 {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}
}
