// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/testkit"
)

// browser is a headless Chromium, driven by the DevTools protocol over a pipe: JSON with a zero byte after each
// message, so that a test needs no library and no port.
type browser struct {
	t       *testing.T
	group   int // of its processes
	in      *os.File
	answers chan answer
	last    int
	session string
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

var browserNames = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// openBrowser starts a browser with one tab of that size, or skips the test where there is none.
func openBrowser(t *testing.T, width, height int) *browser {
	t.Helper()
	testkit.NotFast(t, "starts a browser")
	var path string
	for _, name := range browserNames {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no browser: hack/setup.sh installs chromium-headless-shell")
	}
	read, in := pipe(t)
	out, write := pipe(t)
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
		"--user-data-dir="+t.TempDir(), fmt.Sprintf("--window-size=%d,%d", width, height), "about:blank")
	cmd.ExtraFiles = []*os.File{read, write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = read.Close(), write.Close()
	b := &browser{t: t, group: cmd.Process.Pid, in: in, answers: make(chan answer, 64)}
	go b.listen(out)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and its own children, which write into its folder
		_ = cmd.Wait()
		_, _ = in.Close(), out.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	return b
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return read, write
}

func (b *browser) listen(out *os.File) {
	defer close(b.answers)
	r := bufio.NewReader(out)
	for {
		message, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(bytes.TrimSuffix(message, []byte{0}), &a) == nil && a.ID > 0 { // the rest are notices
			b.answers <- a
		}
	}
}

// call asks the browser for something and waits for its answer.
func (b *browser) call(method string, parameters map[string]any, result any) {
	b.t.Helper()
	b.last++
	request := map[string]any{"id": b.last, "method": method, "params": parameters}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case a, open := <-b.answers:
		switch {
		case !open:
			b.t.Fatalf("%s: the browser is gone", method)
		case a.Error != nil:
			b.t.Fatalf("%s: %s", method, a.Error.Message)
		case a.ID != b.last:
			b.t.Fatalf("%s: answer %d to request %d", method, a.ID, b.last)
		case result != nil:
			if err := json.Unmarshal(a.Result, result); err != nil {
				b.t.Fatalf("%s: %v in %s", method, err, a.Result)
			}
		}
	case <-time.After(2 * time.Minute):
		b.t.Fatalf("%s: no answer", method)
	}
}

// eval runs a script, waits for its promise, and gives what it returns as text.
func (b *browser) eval(script string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &r)
	if e := r.ExceptionDetails; e != nil {
		b.t.Fatalf("%s: %s %s", script, e.Text, e.Exception.Description)
	}
	if r.Result.Value == nil {
		return ""
	}
	return fmt.Sprint(r.Result.Value)
}

// cpu is how long its processes have computed so far: other than time, that is the same on a busy machine.
func (b *browser) cpu() (total time.Duration) {
	b.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(all) == 0 {
		b.t.Skipf("no /proc to read times from: %v", err)
	}
	const tick = 10 * time.Millisecond // of every Linux
	for _, file := range all {
		text, _ := os.ReadFile(file) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 12 && f[2] == strconv.Itoa(b.group) { // pgrp, utime, stime
			for _, ticks := range f[11:13] {
				n, _ := strconv.Atoi(ticks)
				total += time.Duration(n) * tick
			}
		}
	}
	return total
}

// open shows a page and waits until it has drawn something, or said why it cannot.
func (b *browser) open(page []byte, hash string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "page.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.call("Page.navigate", map[string]any{"url": "file://" + file + hash}, nil)
	b.wait("document.documentElement?.dataset.drawn")
}

// wait waits until an expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	b.eval(`new Promise((done, fail) => {
		const late = performance.now() + 120000;
		const look = () => {
			if (` + expression + `) done('');
			else if (performance.now() > late) fail(new Error('waited in vain'));
			else setTimeout(look, 5);
		};
		look();
	})`)
}

// frame waits until everything that was asked for has been drawn.
func (b *browser) frame() {
	b.t.Helper()
	b.eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(''))))`)
}

func (b *browser) click(x, y float64) {
	b.t.Helper()
	for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}, nil)
	}
	b.frame()
}

// key presses a key of one character, or a named one.
func (b *browser) key(key string) {
	b.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 {
		down["text"] = key
	}
	b.call("Input.dispatchKeyEvent", down, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
	b.frame()
}

// picture saves a screenshot where FAIRLEAD_SCREENSHOTS names a folder: for looking at the page.
func (b *browser) picture(name string) {
	b.t.Helper()
	folder := os.Getenv("FAIRLEAD_SCREENSHOTS")
	if folder == "" {
		return
	}
	b.frame()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	image, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), image, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
