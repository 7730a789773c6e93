// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
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

// Spec §11: a controller replica dies, no effect while another announces; a pod moves, the path with it.
func TestRequestsSurviveLeaderKillAndPodMove(t *testing.T) {
	requireSandbox(t)
	testkit.Long(t, "takes a minute")
	if _, err := kubetest.Binaries(t.Context(), t.Output()); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	o := Options{
		Binary: lab.Binary(t), Only: []string{"steady", "leader-killed", "pod-moved", "node-drained"}, Shorter: true,
		JSON: filepath.Join(dir, "figures.json"), Dir: sandbox.Dir(), Logs: filepath.Join(dir, "log"),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var table bytes.Buffer
	if err := demonstrate(ctx, o, &table, t.Output()); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
	text, err := os.ReadFile(o.JSON)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Steps []struct {
			Name     string
			Requests int
			Failed   int
			Unjudged int
			Gap      *float64 `json:"longest_gap_ms"`
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range got.Steps {
		names = append(names, s.Name)
		if s.Requests < 1000 || s.Failed > 0 || s.Gap == nil {
			failures, _ := os.ReadFile(filepath.Join(o.Logs, "failures.log")) // absent if nothing failed
			t.Errorf("%s: %d of %d requests failed\n%s", s.Name, s.Failed, s.Requests, failures)
		}
		if s.Unjudged > s.Requests/100 {
			t.Errorf("%s: this machine stood still during %d of %d requests: too many to tell", s.Name, s.Unjudged, s.Requests)
		}
	}
	if !slices.Equal(names, o.Only) {
		t.Errorf("steps %v, want %v", names, o.Only)
	}
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
