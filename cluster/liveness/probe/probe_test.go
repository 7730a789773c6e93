// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/liveness/probe"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// The tests run in a network namespace of their own. All machines are on its loopback; rules take their answers away:
//
//	192.0.2.1, 2001:db8::1   answers echoes and refuses connections
//	192.0.2.2, 2001:db8::2   answers echoes only
//	192.0.2.3, 2001:db8::3   refuses connections only
//	192.0.2.4, 2001:db8::4   says nothing
//	192.0.2.5                is nowhere: a router says so
func TestMain(m *testing.M) { lab.Main(m) }

func setUp(t *testing.T) {
	t.Helper()
	testkit.NotFast(t, "needs a network namespace")
	if os.Getenv("FAIRLEAD_LAB_NETNS") == "" {
		if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
			t.Fatal("no network namespace could be made")
		}
		t.Skip("no network namespace could be made")
	}
	for _, n := range []string{"1", "2", "3", "4"} {
		run(t, "", "ip", "addr", "replace", "192.0.2."+n+"/32", "dev", "lo")
		run(t, "", "ip", "addr", "replace", "2001:db8::"+n+"/128", "dev", "lo", "nodad")
	}
	testkit.Until(t, "the kernel's way to the last address", func() bool { // it makes one some time after the address
		out, err := exec.Command("ip", "-6", "route", "get", "2001:db8::4").CombinedOutput()
		return err == nil && strings.HasPrefix(string(out), "local ")
	})
	run(t, "", "ip", "route", "replace", "unreachable", "192.0.2.5/32")
	run(t, `table inet probetest {}
delete table inet probetest
table inet probetest {
	chain in {
		type filter hook input priority 0;
		ip daddr { 192.0.2.2, 192.0.2.4 } tcp flags syn drop
		ip6 daddr { 2001:db8::2, 2001:db8::4 } tcp flags syn drop
		ip daddr { 192.0.2.3, 192.0.2.4 } icmp type echo-request drop
		ip6 daddr { 2001:db8::3, 2001:db8::4 } icmpv6 type echo-request drop
	}
}`, "nft", "-f", "-")
}

func run(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// within is how long silence is waited for. What answers does so at once, but on a busy machine, and has more.
const within = 150 * time.Millisecond

func answers(t *testing.T, p *probe.Prober, addresses ...string) bool {
	t.Helper()
	return answersWithin(t, p, testkit.Patience, addresses...)
}

func answersWithin(t *testing.T, p *probe.Prober, within time.Duration, addresses ...string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var list []netip.Addr
	for _, a := range addresses {
		list = append(list, netip.MustParseAddr(a))
	}
	return p.Answers(ctx, list)
}

func TestEverySignOfAKernelIsAnAnswer(t *testing.T) {
	setUp(t)
	for _, pings := range []struct{ name, allowed string }{{"raw", "1 0"}, {"unprivileged", "0 2147483647"}} {
		t.Run(pings.name, func(t *testing.T) {
			run(t, "", "sysctl", "-q", "-w", "net.ipv4.ping_group_range="+pings.allowed)
			p := probe.New(0, slog.New(slog.DiscardHandler))
			for _, a := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8::2", "2001:db8::3"} {
				if !answers(t, p, a) {
					t.Errorf("%s did not answer", a)
				}
			}
			if !answers(t, p, "192.0.2.4", "2001:db8::2") {
				t.Error("the second address of a node does not count")
			}
		})
	}
}

func TestSilenceTakesAsLongAsItMayAndIsNoAnswer(t *testing.T) {
	setUp(t)
	p := probe.New(0, slog.New(slog.DiscardHandler))
	begin := time.Now()
	if answersWithin(t, p, within, "192.0.2.4", "2001:db8::4") {
		t.Error("silence is an answer")
	}
	// A connection is given up by the kernel after more than two minutes, and an echo never.
	if took := time.Since(begin); took < within || took > testkit.Patience {
		t.Errorf("silence was noticed after %s", took)
	}
	if answersWithin(t, p, within, "192.0.2.5") {
		t.Error("what a router says is an answer of the node")
	}
	if p.Answers(context.Background(), nil) {
		t.Error("a node without addresses answered")
	}
}

// Without the privilege for echoes connections are all there is, and that is told once.
func TestProbeWithoutPrivilegeUsesTCPAlone(t *testing.T) {
	setUp(t)
	if os.Getenv(unprivileged) == "" { // once more, as a process that may not
		run(t, "", "sysctl", "-q", "-w", "net.ipv4.ping_group_range=1 0")
		cmd := exec.Command("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), unprivileged+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Fatalf("without privileges: %v: %s", err, out)
		}
		return
	}
	var log bytes.Buffer
	p := probe.New(0, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		if !answers(t, p, "192.0.2.3") || answersWithin(t, p, within, "192.0.2.2") {
			t.Error("want an answer of who refuses connections, and none of who answers echoes only")
		}
	}
	if n := strings.Count(log.String(), "no ICMP probes"); n != 1 || !strings.Contains(log.String(), "CAP_NET_RAW") {
		t.Errorf("told %d times: %s", n, log.String())
	}
}

const unprivileged = "FAIRLEAD_PROBE_UNPRIVILEGED"
