// SPDX-License-Identifier: Apache-2.0

package frrtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/netnstest"
)

// StartUnnumbered runs zebra and bgpd inside a namespace until the test ends, expecting speakers of another AS, whoever they are, on
// interfaces. With zebra, routes come into the namespace's kernel, and next hops count only while they resolve. It keeps paths of a
// speaker that restarts for as long as that says, and then for a time of its own, whole seconds (RFC 9494); 0: no longer.
func StartUnnumbered(t testing.TB, in *netnstest.Namespace, longLived time.Duration, interfaces ...string) *FRR {
	t.Helper()
	zebra, bgpd := birdtest.Find(t, "zebra"), birdtest.Find(t, "bgpd")
	f := &FRR{t: t, vtysh: birdtest.Find(t, "vtysh")}
	dir, err := os.MkdirTemp("", "frr")
	if err != nil {
		t.Fatalf("start frr: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f.dir = dir
	own(t, dir)
	for name, text := range map[string]string{"conf": f.unnumbered(longLived, interfaces), "zebra": "log file " + f.file("log") + "\n"} {
		if err := os.WriteFile(f.file(name), []byte(text), 0o644); err != nil {
			t.Fatalf("start frr: %v", err)
		}
	}
	socket := f.file("zapi")
	common := []string{"--socket", socket, "--vty_port", "0", "--vty_socket", dir}
	f.run(in.Command(zebra, append(common, "--config_file", f.file("zebra"), "--pid_file", f.file("zpid"))...))
	f.Wait("zebra to answer", func() bool {
		_, err := f.ask("show interface brief")
		return err == nil
	})
	f.run(in.Command(bgpd, append(common, "--config_file", f.file("conf"), "--pid_file", f.file("pid"))...))
	f.Wait("bgpd to answer", func() bool {
		_, err := f.ask("show bgp summary")
		return err == nil
	})
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(f.file("log"))
			t.Logf("frr's log:\n%s", log)
		}
	})
	return f
}

// own gives a folder to the user that FRR was built for: zebra runs as no other.
func own(t testing.TB, dir string) {
	t.Helper()
	u, err := user.Lookup("frr")
	if err != nil {
		t.Fatalf("start frr: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatalf("start frr: %v", err)
	}
}

func (f *FRR) run(cmd *exec.Cmd) {
	f.t.Helper()
	if err := lifeline.Start(cmd); err != nil {
		f.t.Fatalf("start frr: %v", err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
}

func (f *FRR) unnumbered(longLived time.Duration, interfaces []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "log file %s\nrouter bgp %d\n bgp router-id 192.0.2.200\n no bgp ebgp-requires-policy\n", f.file("log"), ASN)
	b.WriteString(" bgp bestpath as-path multipath-relax\n")
	if longLived > 0 {
		fmt.Fprintf(&b, " bgp long-lived-graceful-restart stale-time %d\n", int(longLived.Seconds()))
	}
	for _, i := range interfaces {
		fmt.Fprintf(&b, " neighbor %s interface remote-as external\n neighbor %s timers 1 3\n neighbor %s timers connect 1\n", i, i, i)
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		fmt.Fprintf(&b, " address-family %s unicast\n  maximum-paths 16\n", family)
		for _, i := range interfaces {
			fmt.Fprintf(&b, "  neighbor %s activate\n", i)
		}
		b.WriteString(" exit-address-family\n")
	}
	return b.String()
}
