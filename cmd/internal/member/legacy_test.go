// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/internal/testkit"
)

const oldNeighbour = `[global.config]
  as = 65000
[[neighbors]]
  [neighbors.config]
    neighbor-address = "192.0.2.4"
    peer-as = 65001
  [neighbors.ttl-security.config]
    enabled = true
`

// asConfigMap is config_bgp.toml as the old installation keeps it.
func asConfigMap(toml string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-gobgp-cfg, namespace: kube-system}\ndata:\n  config_bgp.toml: |\n    " +
		strings.ReplaceAll(strings.TrimSpace(toml), "\n", "\n    ") + "\n"
}

// Whoever writes something that has no effect is told once, not at every reading: in the config map as in a file.
func TestWhatHasNoEffectInTheOldConfigurationIsToldOnce(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		text   func(toml string) string
		config func(path string) (config.Sources, config.BGP)
	}{
		"config-map": {"bgp.yaml", asConfigMap, func(path string) (config.Sources, config.BGP) {
			return config.Sources{Manifests: []string{filepath.Dir(path)}}, config.BGP{ASN: 65000}
		}},
		"file": {"config_bgp.toml", func(toml string) string { return toml }, func(path string) (config.Sources, config.BGP) {
			return config.Sources{}, config.BGP{ASN: 65000, RouterID: netip.MustParseAddr("192.0.2.1"), ConfigFile: path}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), c.file)
			write := func(toml string) {
				if err := os.WriteFile(path, []byte(c.text(toml)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(oldNeighbour)
			log := &testkit.Log{}
			runMember(t, c.config, path, log)
			testkit.Until(t, "what is ignored is told", func() bool { return log.Count("neighbors[0].ttl-security: not known here") > 0 })
			write(oldNeighbour + "  [neighbors.timers.config]\n    hold-tiem = 9\n")
			testkit.Until(t, "the misspelt key is told", func() bool { return log.Count("neighbors[0].timers.config.hold-tiem: not known here") > 0 })
			write(oldNeighbour + "[[neighbors]]\n  [neighbors.config]\n    neighbor-address = \"192.0.2.5\"\n    peer-group = \"tor\"\n")
			testkit.Until(t, "the neighbour that cannot be used is told", func() bool {
				return log.Count("line 10: neighbors[1].config.peer-as: is missing: this neighbour stays as it was") > 0
			})
			write("[global.config]\n  as: 65000\n")
			testkit.Until(t, "the file that cannot be used is told", func() bool { return log.Count("nothing of the file is used") > 0 })
			if n := log.Count("neighbors[0].ttl-security"); n != 1 {
				t.Errorf("told %d times:\n%s", n, log)
			}
		})
	}
}

// runMember runs a member that founds a group of its own.
func runMember(t *testing.T, of func(string) (config.Sources, config.BGP), path string, log *testkit.Log) {
	const api, raftAt = "m1:7443", "m1:7444"
	w := &wire{apis: map[string]http.Handler{}}
	edges := w.member()
	edges.Speaker = func(config.BGP, *slog.Logger) (member.Speaker, error) {
		return &speaker{Gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: "speaker"})}, nil
	}
	c := config.Controller{
		Name: "m1", DataDir: filepath.Join(t.TempDir(), "m1"), BootstrapToken: "t",
		Advertise: config.Advertise{API: api, Raft: raftAt}, Members: []config.Member{{Name: "m1", API: api, Raft: raftAt}},
	}
	c.Listen, c.Log, c.TLS = config.Listen{API: api, Raft: raftAt}, "info", config.MemberTLS{TLS: config.TLS{CA: "ca.crt", Cert: "tls.crt", Key: "tls.key"}}
	c.Sources, c.BGP = of(path)
	m, err := member.Open(c, "test", edges, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	running(t, "member", m.Run)
}
