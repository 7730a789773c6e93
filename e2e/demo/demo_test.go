// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/demo/internal/load"
	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// noSandbox is why tests that need one are skipped.
var noSandbox error

// TestMain runs the tests in a sandbox where one can be made, and as a pod where the demo under test starts one.
func TestMain(m *testing.M) {
	if identity := os.Getenv(servePod); identity != "" {
		fmt.Fprintln(os.Stderr, serve(identity))
		os.Exit(exitFailed)
	}
	code, ran, err := sandbox.Enter()
	if ran && err == nil {
		os.Exit(code)
	}
	noSandbox = err
	os.Exit(m.Run())
}

// requireSandbox skips a test, with the reason, unless FAIRLEAD_REQUIRE_ROOT=1 makes that a failure.
func requireSandbox(t *testing.T) {
	t.Helper()
	if noSandbox == nil {
		return
	}
	if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
		t.Fatal(noSandbox)
	}
	t.Skip(noSandbox)
}

// kube-loadbalancer-controller §11: a controller replica dies, no effect while another announces; a pod moves, the path with it. Not one request is
// refused, reset, answered by somebody else or left without an answer, and none needs a packet to be sent again: how long it
// takes is up to the machine.
func TestRequestsSurviveLeaderKillAndPodMove(t *testing.T) {
	requireSandbox(t)
	testkit.Long(t, "takes a minute")
	if _, err := kubetest.Binaries(t.Context(), t.Output()); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	o := Options{
		Binary: lab.Binary(t), Only: []string{"steady", "leader-killed", "pod-moved", "node-drained"}, Shorter: true, Patient: true,
		JSON: filepath.Join(dir, "figures.json"), Dir: sandbox.Dir(), Logs: filepath.Join(t.ArtifactDir(), "log"), // which -artifacts keeps
	}
	var table bytes.Buffer
	err := demonstrate(t.Context(), o, &table, t.Output())
	t.Logf("\n%s", table.String())
	if err != nil {
		t.Error(err)
	}
	if lines := linesOf(t, filepath.Join(o.Logs, "failures.log"), ""); len(lines) > 0 {
		t.Errorf("%d requests failed:\n%s", len(lines), strings.Join(lines[:min(len(lines), 40)], "\n"))
	}
	pods, err := filepath.Glob(filepath.Join(o.Logs, "pod-*.log"))
	if err != nil || len(pods) == 0 {
		t.Errorf("logs of pods: %v, %v", pods, err)
	}
	for _, log := range pods {
		if lines := linesOf(t, log, sentAgain); len(lines) > 0 {
			t.Errorf("%s: packets of %d answers were lost:\n%s", filepath.Base(log), len(lines), strings.Join(lines[:min(len(lines), 40)], "\n"))
		}
	}
	text, err := os.ReadFile(o.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Steps []struct {
			Name     string
			Requests int
			Failed   int
			Gap      *float64 `json:"longest_gap_ms"`
			After    *struct{ Requests, Failed int }
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range got.Steps {
		names = append(names, s.Name)
		if s.Requests < 1000 || s.Failed > 0 || s.Gap == nil {
			t.Errorf("%s: %d of %d requests failed, want none of a thousand at least", s.Name, s.Failed, s.Requests)
		}
		if back := s.Name == "pod-moved" || s.Name == "node-drained"; back != (s.After != nil) {
			t.Errorf("%s: what was undone is told apart: %t, want %t", s.Name, s.After != nil, back)
		}
		if s.After != nil && (s.After.Requests < 100 || s.After.Failed > 0) {
			t.Errorf("%s: %d of %d requests failed while it was undone, want none of a hundred at least", s.Name, s.After.Failed, s.After.Requests)
		}
	}
	if !slices.Equal(names, o.Only) {
		t.Errorf("steps %v, want %v", names, o.Only)
	}
}

// linesOf are the lines of a log in which a text occurs; none if nobody wrote one.
func linesOf(t *testing.T, file, with string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, with) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestStepsHaveTheDocumentedNames(t *testing.T) {
	want := "steady leader-killed member-cut-off all-members-stopped pod-moved node-killed agent-restarted api-stopped switch-restarted"
	if got := strings.Join(stepNames(), " "); got != want {
		t.Errorf("steps are %s, want %s", got, want)
	}
}

func TestUnknownStepsAndArgumentsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"--only", "nonsense"}, {"--only", "steady,nonsense"}, {"more"}, {"--nonsense"}} {
		var stderr bytes.Buffer
		if code := run(args, io.Discard, &stderr); code != exitUsage {
			t.Errorf("%v: exit code %d, want %d", args, code, exitUsage)
		}
		if !strings.Contains(stderr.String(), "demo:") {
			t.Errorf("%v: said %q", args, stderr.String())
		}
	}
}

func TestReportTellsWhereAndWhyRequestsFailed(t *testing.T) {
	at := func(ms int, hop string, err error) load.Request {
		return load.Request{Start: time.UnixMilli(int64(1000 + ms)), Target: "web", Server: hop, Err: err}
	}
	r := newStepReport("node-killed", load.Count([]load.Request{
		at(0, "n1", nil), at(10, "n2", load.ErrTimeout), at(260, "n2", load.ErrTimeout), at(300, "n1", errors.New("reset")),
	}, func(r load.Request) string { return r.Server }))
	var out bytes.Buffer
	printHead(&out)
	r.print(&out)
	want := `STEP                  REQUESTS  FAILED  LONGEST GAP  FAILED BY NEXT HOP (GAP); CAUSES
node-killed                  4       3       290 ms  n1 1 (0 ms), n2 2 (250 ms); no answer in time: 2; reset: 1
`
	if out.String() != want {
		t.Errorf("table:\n%swant:\n%s", out.String(), want)
	}
	text, err := json.Marshal(report{Steps: []stepReport{r}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), `{"steps":[{"name":"node-killed","requests":4,"failed":3,"longest_gap_ms":290,`) {
		t.Errorf("JSON %s", text)
	}
}

func TestPathsOfLostSpeakersDoNotCount(t *testing.T) {
	answer := `BIRD 2.0.12 ready.
Table master4:
203.0.113.10/32      unicast [m1 2026-01-02 02:24:41.628] * (100) [AS65000?]
	via 192.0.2.11 on lan
                     unicast [m1 2026-01-02 02:24:41.628] (100) [AS65000?]
	via 192.0.2.12 on lan
                     unicast [m2 2026-01-02 02:24:41.628] (100s) [AS65000?]
	via 192.0.2.11 on lan
`
	got := countPaths(answer)
	if len(got) != 1 || got["m1"] != 2 {
		t.Errorf("paths %v, want two of m1", got)
	}
}

func TestAnswersOfOthersAreNotCorrect(t *testing.T) {
	if pod, err := checkAnswer("web", identityOf("web", "web-1", "n1")+"\n"); err != nil || pod != "web-1 on n1" {
		t.Errorf("own answer: %q, %v", pod, err)
	}
	for _, body := range []string{"", "hello", identityOf("app", "app-1", "n1"), "fairlead-demo web web-1"} {
		if _, err := checkAnswer("web", body); err == nil {
			t.Errorf("%q counts as an answer of web", body)
		}
	}
}
