// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

// kube-loadbalancer-controller §6: config_bgp.toml of the old system is accepted as it is.
func TestOldConfigurationIsAcceptedAsItIs(t *testing.T) {
	l := started(t, lab.Options{ConfigBGP: configBGP})
	stop := l.NeverMissing(prefix(0))
	l.Member("m1").Kill()
	l.Manifests.Service(0, 2, 3)
	l.Bird.WaitNextHops(prefix(0), lab.NodeAddress(2), lab.NodeAddress(3))
	stop()
}

func configBGP(bird netip.AddrPort) string {
	return fmt.Sprintf(`[global.config]
  as = %d
  router-id = "192.0.2.1"
  port = 1790
[global.use-multiple-paths.config]
  enabled = true
[[neighbors]]
  [neighbors.config]
    neighbor-address = "%s"
    peer-as = 65001
  [neighbors.transport.config]
    remote-port = %d
  [neighbors.timers.config]
    hold-time = 3
    keepalive-interval = 1
  [neighbors.add-paths.config]
    send-max = 8
`, lab.ASN, bird.Addr(), bird.Port())
}

// A config_bgp.toml that cannot be used as a whole is one line with file, line, field and remedy. A neighbour that cannot be used is told of
// otherwise, since it costs no other one.
func TestBadOldConfigurationStartsNothing(t *testing.T) {
	l := lab.New(t, lab.Options{Stopped: true, ConfigBGP: func(bird netip.AddrPort) string {
		return strings.Replace(configBGP(bird), fmt.Sprintf("as = %d", lab.ASN), `as = "many"`, 1)
	}})
	_, stderr, code := l.CLI("controller", "--config", l.Member("m1").Config)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	oneLine(t, stderr, "config_bgp.toml:2", "global.config.as")
	if _, err := os.Stat(filepath.Join(l.Member("m1").DataDir, "identity.json")); err == nil {
		t.Error("a data folder was made")
	}
}
