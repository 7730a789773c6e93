// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// A user of its own whose group may open HAProxy's socket is all that the driver needs; another one hears what to do.
func TestTheGroupOfTheSocketIsEnough(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may run programs as somebody else")
	}
	const user, stranger = 61491, 61492
	static := startPod(t, "static")
	p := startProxy(t, static)
	if err := os.Chmod(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := startDriver(t, p)
	run := func(group uint32) {
		t.Helper()
		d.end(syscall.SIGTERM)
		d.as = &syscall.Credential{Uid: user, Gid: group}
		d.start()
	}
	home := filepath.Join(p.dir, "state")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, user, -1); err != nil {
		t.Fatal(err)
	}
	d.args = append(d.args, "--state", filepath.Join(home, "servers.json"))
	run(uint32(socketGroup()))
	d.ensure("192.0.2.1:80", nil)
	d.gone("192.0.2.1:80")
	if !d.healthy() {
		t.Error("it is not healthy")
	}
	run(stranger)
	testkit.Until(t, "it is not healthy", func() bool { return !d.healthy() })
	d.end(syscall.SIGTERM)
	if log := d.log.String(); !strings.Contains(log, "mode 660 group GROUP") {
		t.Errorf("nobody says what to do: %s", log)
	}
}
