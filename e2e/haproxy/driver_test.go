// SPDX-License-Identifier: Apache-2.0

package haproxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/testkit"
)

// binary builds the shipped command once for all tests of a process.
var binary = sync.OnceValues(func() (string, error) { return lab.Build("fairlead-driver-haproxy") })

func TestMain(m *testing.M) {
	if os.Getuid() == 0 { // others have no groups there to give files to
		if code, ran := lab.Isolate(); ran {
			os.Exit(code)
		}
	}
	os.Exit(m.Run())
}

// process is a running driver, and Fairlead's client of it.
type process struct {
	t      testing.TB
	args   []string
	url    string
	state  string
	as     *syscall.Credential // nil for the user of the test
	cmd    *exec.Cmd
	log    bytes.Buffer // of a process that has ended
	client *driver.Client
	fence  fsm.Revision
}

// startDriver runs the driver of p until the test ends.
func startDriver(t testing.TB, p *proxy, args ...string) *process {
	t.Helper()
	listen := fmt.Sprintf("127.0.0.1:%d", birdtest.FreePort(t, loopback))
	d := &process{t: t, url: "http://" + listen, state: filepath.Join(t.TempDir(), "state", "servers.json"), fence: fsm.Revision{Epoch: 1, Index: 100}}
	d.args = append([]string{"--listen", listen, "--socket", p.socket, "--state", d.state}, args...)
	transport, err := driver.NewTransport(driver.TransportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	began := time.Now()
	d.client, err = driver.New(driver.Options{
		Name: "haproxy", URL: d.url, HTTP: transport, Random: rand.NewChaCha8([32]byte{}), Log: slog.New(slog.DiscardHandler),
		Now: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	d.start()
	t.Cleanup(func() {
		d.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the driver's log:\n%s", d.log.String())
		}
	})
	return d
}

func (d *process) start() {
	d.t.Helper()
	path, err := binary()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(path, d.args...)
	cmd.Stderr = &d.log
	if d.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.as}
	}
	if err := lifeline.Start(cmd); err != nil {
		d.t.Fatal(err)
	}
	d.cmd = cmd
	testkit.Until(d.t, "the driver answers", func() bool {
		if slices.Contains(d.args, "--tls-cert") { // which d.client does not speak
			conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
			return err == nil && conn.Close() == nil
		}
		_, known, err := d.client.Healthz(d.t.Context(), driver.Call{})
		return err == nil && known
	})
}

// end ends the process by a signal and gives its exit code, -1 if the signal ended it.
func (d *process) end(signal syscall.Signal) int {
	if d.cmd == nil {
		return 0
	}
	_ = d.cmd.Process.Signal(signal)
	err := d.cmd.Wait()
	d.cmd = nil
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func (d *process) healthy() bool {
	healthy, _, err := d.client.Healthz(d.t.Context(), driver.Call{})
	return err == nil && healthy
}

// call is a call with a newer fence than the one before.
func (d *process) call() driver.Call {
	d.fence.Index++
	return driver.Call{Attempt: d.fence}
}

func about(address string, parameters webhook.Map) webhook.BackendRequest {
	return webhook.BackendRequest{
		Attempt: webhook.Attempt{RecordID: webhook.RecordID(webhook.EnsureBackend, address)}, LBInfo: webhook.Map{"backend": "web"},
		BackendAddr: address, Parameters: parameters,
	}
}

// ensure registers a backend, which has to succeed.
func (d *process) ensure(address string, parameters webhook.Map) webhook.EnsureBackendResponse {
	d.t.Helper()
	a, err := d.client.EnsureBackend(d.t.Context(), d.call(), about(address, parameters))
	if err != nil || a.Status != webhook.Succ {
		d.t.Fatalf("ensure %s: %+v, %v", address, a, err)
	}
	return a
}

// deregister deregisters a backend, once.
func (d *process) deregister(address string) webhook.Answer {
	d.t.Helper()
	a, err := d.client.DeregisterBackend(d.t.Context(), d.call(), about(address, nil))
	if err != nil || !a.Status.Valid() {
		d.t.Fatalf("deregister %s: %+v, %v", address, a, err)
	}
	return a
}

// gone deregisters a backend until that is done.
func (d *process) gone(address string) {
	d.t.Helper()
	testkit.Until(d.t, "the backend is deregistered", func() bool { return d.deregister(address).Status == webhook.Succ })
}
