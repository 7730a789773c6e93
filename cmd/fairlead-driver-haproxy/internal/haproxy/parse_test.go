// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// recorded is what a real HAProxy said.
func recorded(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRealServersAreRead(t *testing.T) {
	t.Parallel()
	words, table := splitState(recorded(t, "servers-2.6.txt"))
	if words != "No such server." {
		t.Errorf("the commands before said %q", words)
	}
	got, err := parseServers(table)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].Since = 0 // as long as the recording took
	}
	want := []Server{
		{Backend: "web", Name: "static", Address: netip.MustParseAddrPort("192.0.2.200:80"), Weight: 10, Check: 7},
		{Backend: "web", Name: "named", Weight: 1, Admin: 0x20}, // its name is not resolved yet
		{Backend: "web", Name: "off", Address: netip.MustParseAddrPort("192.0.2.201:80"), Weight: 1, Admin: 0x05, Check: 8},
		{Backend: "web", Name: "fl-192.0.2.1_80", Address: netip.MustParseAddrPort("192.0.2.1:80"), Weight: 3},
		{Backend: "web", Name: "fl-2001:db8::1_8080", Address: netip.MustParseAddrPort("[2001:db8::1]:8080"), Admin: forcedDrain},
		{Backend: "web", Name: "fl-192.0.2.2_80", Address: netip.MustParseAddrPort("192.0.2.2:80"), Weight: 1, Admin: forcedMaintenance},
	}
	if !slices.Equal(got, want) {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
}

// Columns have names since newer releases add some.
func TestServersOfOtherReleasesAreRead(t *testing.T) {
	t.Parallel()
	const header = "1\n# be_id be_name srv_name srv_addr srv_port srv_uweight srv_new srv_admin_state srv_check_state srv_agent_port srv_time_since_last_change\n"
	got, err := parseServers(header + "3 web a 192.0.2.1 80 7 ? 1 6 25 65\n\n")
	want := Server{Backend: "web", Name: "a", Address: netip.MustParseAddrPort("192.0.2.1:80"), Weight: 7, Admin: 1, Check: 6, Interval: 2500 * time.Millisecond, Since: 65 * time.Second}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v", got, err)
	}
	for name, table := range map[string]string{
		"no-table":       "Permission denied\n",
		"another-format": "2\n# be_id be_name\n",
		"lacks-a-column": "1\n# be_id be_name srv_name\n3 web a\n",
		"short-line":     header + "3 web a 192.0.2.1 80\n",
		"no-number":      header + "3 web a 192.0.2.1 80 seven ? 1 6 25 65\n",
	} {
		if got, err := parseServers(table); err == nil {
			t.Errorf("%s was read as %+v", name, got)
		}
	}
}

func TestRealBackendsAndProcessesAreRead(t *testing.T) {
	t.Parallel()
	if got, err := parseBackends(recorded(t, "backends-2.6.txt")); err != nil || !slices.Equal(got, []string{"web", "empty"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := parseBackends("Permission denied\n"); err == nil {
		t.Errorf("no table was read as %q", got)
	}
	info := recorded(t, "info-2.6.txt")
	if got, err := parseInfo(info); err != nil || got != (Process{PID: 24567, Started: 1795298338}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, broken := range []string{"", "Pid: 7\n", strings.Replace(info, "Pid: ", "Pid: x", 1)} {
		if got, err := parseInfo(broken); err == nil {
			t.Errorf("%.20q was read as %+v", broken, got)
		}
	}
}

// HAProxy's answers are read, or refused: there is nothing that ends the driver.
func TestPropertyWhateverHAProxySaysIsReadOrRefused(t *testing.T) {
	t.Parallel()
	real := recorded(t, "servers-2.6.txt")
	testkit.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, len(real)).Draw(t, "from")
		to := rapid.IntRange(from, len(real)).Draw(t, "to")
		text := real[:from] + rapid.StringOfN(rapid.SampledFrom([]rune("1 #\nweb-./:x\x00")), 0, 20, -1).Draw(t, "inserted") + real[to:]
		_, table := splitState(text)
		servers, err := parseServers(table)
		if err == nil && slices.ContainsFunc(servers, func(s Server) bool { return s.Backend == "" || s.Name == "" }) {
			t.Fatalf("a server without a name: %+v", servers)
		}
		_, _ = parseBackends(text)
		_, _ = parseInfo(text)
	})
}
