// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
)

func TestSwitchExamplesLoad(t *testing.T) {
	for name, load := range map[string][]string{
		"bird2.conf": {"bird", "-p", "-c"},
		"frr.conf":   {"vtysh", "-C", "-f"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("switch", name))
			if err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(birdtest.Find(t, load[0]), append(load[1:], path)...).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// An example that lists other members than its siblings is one that somebody forgot. It is also all that can be asked of
// h3c.cfg, which nothing here loads.
func TestSwitchExamplesNameTheSameNeighbours(t *testing.T) {
	neighbour := map[string]*regexp.Regexp{
		"bird2.conf": regexp.MustCompile(`(?m)^protocol bgp .*neighbor ([0-9.]+) as 65000`),
		"frr.conf":   regexp.MustCompile(`(?m)^ neighbor ([0-9.]+) peer-group`),
		"h3c.cfg":    regexp.MustCompile(`(?m)^ peer ([0-9.]+) as-number 65000`),
	}
	want := []string{"192.0.2.11", "192.0.2.12", "192.0.2.13"}
	for name, expression := range neighbour {
		text, err := os.ReadFile(filepath.Join("switch", name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range expression.FindAllStringSubmatch(string(text), -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s names %v, not %v", name, got, want)
		}
	}
}

// Who takes the examples together, pools and a switch, sees an address announced: its filter has it.
func TestSwitchExamplesTakeTheAddressesOfTheExamplePools(t *testing.T) {
	var wanted []netip.Prefix
	for _, o := range manifests(t, "examples/addresses.yaml") {
		for _, field := range []string{"addresses", "externalIPs"} {
			list, _, err := unstructured.NestedStringSlice(o.Object, "spec", field)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range list {
				wanted = append(wanted, netip.MustParsePrefix(text))
			}
		}
	}
	if len(wanted) < 3 {
		t.Fatalf("the examples have %v only", wanted)
	}
	prefixes := regexp.MustCompile(`[0-9a-f.:]+[/ ][0-9]{2,3}\b`)
	for _, name := range []string{"bird2.conf", "frr.conf", "h3c.cfg"} {
		text, err := os.ReadFile(filepath.Join("switch", name))
		if err != nil {
			t.Fatal(err)
		}
		var takes []netip.Prefix
		for _, found := range prefixes.FindAllString(string(text), -1) {
			if p, err := netip.ParsePrefix(strings.Replace(found, " ", "/", 1)); err == nil {
				takes = append(takes, p)
			}
		}
		for _, w := range wanted {
			if w.Addr().Is6() && name == "h3c.cfg" {
				continue // it has no IPv6 at all
			}
			if !slices.ContainsFunc(takes, func(p netip.Prefix) bool { return p.Bits() <= w.Bits() && p.Contains(w.Addr()) }) {
				t.Errorf("%s takes %v, and not %s of examples/addresses.yaml", name, takes, w)
			}
		}
	}
}

// systemd understands every line, and finds little that the units would still let a process do.
func TestUnitsAreUnderstoodAndHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		missing(t, errors.New("systemd-analyze is not installed on this machine"))
	}
	program := regexp.MustCompile(`/usr/local/bin/\S+`)
	for _, unit := range []string{"fairlead-controller.service", "fairlead-agent.service", "fairlead-driver-haproxy.service"} {
		t.Run(unit, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("systemd", unit))
			if err != nil {
				t.Fatal(err)
			}
			// It asks whether the program is there.
			path := filepath.Join(t.TempDir(), unit)
			if err := os.WriteFile(path, program.ReplaceAll(text, []byte("/bin/true")), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), unit) {
				t.Errorf("verify: %v: %s", err, out)
			}
			// Exposure from 0.0 to 10.0, here in tenths; systemd calls up to 4.0 "OK".
			if out, err := exec.Command(analyze, "security", "--no-pager", "--offline=true", "--threshold=40", path).CombinedOutput(); err != nil {
				t.Errorf("security: %v: %s", err, out)
			}
		})
	}
}
