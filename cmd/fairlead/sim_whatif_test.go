// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/whatif"
)

// asked runs what ships on the repository's own example.
func asked(t *testing.T, ctx context.Context, load loadSimulator, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := &cli{in: strings.NewReader(""), out: &stdout, err: &stderr, getenv: os.Getenv}
	args = append([]string{"sim", "run", "--manifests", "../../examples/quickstart", "--duration", "20s"}, args...)
	code := execute(ctx, newRoot(c, newSim(c, load)), args, &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

// A user's manifests are answered in JSON, with a page beside it; a page that cannot be written costs no answer; and who
// interrupts is told so.
func TestSimAnswersWhatWouldHappen(t *testing.T) {
	testkit.Long(t, "runs worlds")
	loaded, err := shipped(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.close()
	load := func(context.Context, string) (simulator, error) {
		return simulator{program: loaded.program, play: loaded.play, close: func() {}}, nil
	}
	file := filepath.Join(t.TempDir(), "page.html")
	var got ran
	untested := []string{"L1", "S8", "S9"} // L1 is that of the end
	for seed := 1; len(untested) > 0; seed++ {
		if seed > 4 { // not every world has something for each
			t.Fatalf("%v were not put to the test", untested)
		}
		got = asked(t, t.Context(), load, "--what-if", "agent-restarts", "--seeds", fmt.Sprintf("%d..%[1]d", seed), "--json", "--html", file)
		if got.code != exitDone {
			t.Fatalf("exit %d: %s", got.code, got.stderr)
		}
		var report whatif.Report
		if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || len(report.Answers) != 1 || report.Answers[0].ID != "agent-restarts" {
			t.Fatalf("%v: %s", err, got.stdout)
		}
		untested = slices.DeleteFunc(untested, func(rule string) bool { return report.Checks[rule] > 0 })
	}
	if strings.Contains(got.stdout, ": null") {
		t.Errorf("null in %s", got.stdout)
	}
	if page, err := os.ReadFile(file); err != nil || !bytes.Contains(page, []byte("agent-restarts")) {
		t.Errorf("the page: %v, %d bytes", err, len(page))
	}

	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, stop)
	asked(t, ctx, load, "--html", file).mustFail(t, exitFailed, "interrupted: 0 questions had been answered")
	if left, _ := filepath.Glob(filepath.Dir(file) + "/.*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
