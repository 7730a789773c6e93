// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

func TestWrongCommandLinesAreUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"unknown-flag":     {[]string{"--nope"}, "-nope"},
		"argument":         {[]string{"web"}, `"web": there are only flags`},
		"listen":           {[]string{"--listen", "7490"}, "give IP:PORT"},
		"listen-name":      {[]string{"--listen", "example.com:7490"}, "give IP:PORT"},
		"socket":           {[]string{"--socket", ""}, "--socket: it is empty"},
		"state":            {[]string{"--state", ""}, "--state: it is empty"},
		"mark":             {[]string{"--mark", "fl-"}, "give letters and digits"},
		"drain":            {[]string{"--drain", "-1s"}, "it is negative"},
		"drain-unit":       {[]string{"--drain", "30"}, "drain"},
		"cert-without-key": {[]string{"--tls-cert", "c"}, "give both"},
		"ca-without-cert":  {[]string{"--client-ca", "c"}, "--tls-cert and --tls-key, too"},
	} {
		var out, log bytes.Buffer
		code := run(t.Context(), c.args, &out, &log)
		if code != exitUsage || !strings.Contains(log.String(), c.says) || strings.Count(log.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("%s: exit %d, %q, %q", name, code, log.String(), out.String())
		}
	}
}

// The unit starts this program as its command line is, with a file for every proof, and its state where the default is.
func TestTheUnitsCommandLineIsTaken(t *testing.T) {
	text, err := os.ReadFile("../../deploy/systemd/fairlead-driver-haproxy.service")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/fairlead-driver-haproxy (.*)$`).FindSubmatch(text)
	listen := regexp.MustCompile(`(?m)^Environment=LISTEN=(.*)$`).FindSubmatch(text)
	if found == nil || listen == nil {
		t.Fatal("it starts another program, or at another address")
	}
	args := strings.Fields(strings.ReplaceAll(string(found[1]), "${LISTEN}", string(listen[1])))
	if c, err := parse(args, io.Discard); err != nil || c.token == "" || c.cert == "" || c.callers == "" || !c.loop {
		t.Errorf("%+v, %v", c, err)
	}
	folder := regexp.MustCompile(`(?m)^StateDirectory=(.*)$`).FindSubmatch(text)
	if c, err := parse(nil, io.Discard); err != nil || folder == nil || filepath.Dir(c.state) != "/var/lib/"+string(folder[1]) {
		t.Errorf("state is in %s, the unit's folder is %s: %v", c.state, folder, err)
	}
}

func TestHelpIsAsked(t *testing.T) {
	var out, log bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &out, &log); code != exitDone || !strings.Contains(out.String(), "-socket") || log.Len() > 0 {
		t.Errorf("exit %d, %q, %q", code, out.String(), log.String())
	}
}

func TestWhetherStrangersCanCallIsKnown(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:7490": true, "[::1]:7490": true, "localhost:0": true, ":7490": false, "0.0.0.0:7490": false, "[::]:7490": false, "192.0.2.1:7490": false,
	} {
		if c, err := parse([]string{"--listen", listen}, io.Discard); err != nil || c.loop != want {
			t.Errorf("%s: %v, %v", listen, c.loop, err)
		}
	}
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
}

func TestWhatCannotBeUsedFailsAtStart(t *testing.T) {
	dir := t.TempDir()
	empty, state := filepath.Join(dir, "empty"), filepath.Join(dir, "state", "servers.json")
	write(t, empty, "")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no-token":    {[]string{"--token-file", filepath.Join(dir, "none")}, "none: no such file"},
		"empty-token": {[]string{"--token-file", empty}, "it is empty; everybody could call"},
		"no-cert":     {[]string{"--tls-cert", empty, "--tls-key", empty}, "certificate "},
		"port":        {[]string{"--listen", "203.0.113.1:1"}, "name an address of this machine"},
		"state":       {[]string{"--state", filepath.Join(empty, "x")}, "name a folder that may be written to"},
	} {
		var log bytes.Buffer
		code := run(t.Context(), append([]string{"--listen", "127.0.0.1:0", "--state", state}, c.args...), io.Discard, &log)
		if code != exitFailed || !strings.Contains(log.String(), c.says) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, %q", name, code, log.String())
		}
	}
}

// running is a driver, beside no HAProxy.
type running struct {
	t    *testing.T
	end  context.CancelFunc
	code chan int
	log  *testkit.Log
	url  string
}

var serving = regexp.MustCompile(`"listen":"([^"]+)"`)

func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	r := &running{t: t, end: end, code: make(chan int, 1), log: &testkit.Log{}}
	dir := t.TempDir()
	args = append([]string{"--listen", "127.0.0.1:0", "--socket", filepath.Join(dir, "none"), "--state", filepath.Join(dir, "servers.json")}, args...)
	go func() { r.code <- run(ctx, args, io.Discard, r.log) }()
	testkit.Until(t, "it serves", func() bool {
		found := serving.FindStringSubmatch(r.log.String())
		if found != nil {
			r.url = "://" + found[1]
		}
		return found != nil
	})
	t.Cleanup(end)
	return r
}

// ask gives the HTTP status of healthz, or the error.
func (r *running) ask(client *http.Client, scheme, token string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequest(http.MethodPost, scheme+r.url+"/healthz", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func TestADriverServesUntilItIsToldToEnd(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "open sesame\n")
	r := start(t, "--token-file", token)
	if code, text := r.ask(http.DefaultClient, "http", "open sesame"); code != http.StatusOK || !strings.Contains(text, `"healthy":false`) {
		t.Errorf("%d, %s", code, text)
	}
	if code, _ := r.ask(http.DefaultClient, "http", "open"); code != http.StatusUnauthorized {
		t.Errorf("with a wrong token: %d", code)
	}
	r.end()
	if code := <-r.code; code != exitDone {
		t.Errorf("exit %d: %s", code, r.log)
	}
	if text := r.log.String(); !strings.Contains(text, "HAProxy cannot be reached") || strings.Contains(text, "sesame") {
		t.Errorf("its log: %s", text)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
