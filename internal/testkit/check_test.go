// SPDX-License-Identifier: Apache-2.0

package testkit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// play runs a subject in a process of its own, and returns its output and the lines of draws.
func play(t *testing.T, subject string, environment []string, args ...string) (output string, lines []string, passed bool) {
	t.Helper()
	draws := t.TempDir()
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestSubject$", "-test.v"}, args...)...)
	cmd.Dir = t.TempDir()
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "RAPID_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, "TESTKIT_SUBJECT="+subject, "FAIRLEAD_DRAWS="+draws), environment...)
	out, err := cmd.CombinedOutput()
	files, globErr := filepath.Glob(filepath.Join(draws, "*"))
	if globErr != nil {
		t.Fatal(globErr)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(data)), "\n")...)
	}
	slices.Sort(lines)
	if left, _ := filepath.Glob(filepath.Join(cmd.Dir, "*")); len(left) > 0 {
		t.Errorf("%s left files: %s", subject, left)
	}
	return string(out), lines, err == nil
}

func TestEqualRunsDrawEqualValues(t *testing.T) {
	for _, subject := range []string{"passes", "pointers", "several", "bubble", "rounds"} {
		_, first, passed := play(t, subject, nil)
		_, second, _ := play(t, subject, nil)
		if !passed || len(first) == 0 || !slices.Equal(first, second) {
			t.Errorf("%s: passed %t, drew\n%s\nthen\n%s", subject, passed, strings.Join(first, "\n"), strings.Join(second, "\n"))
		}
	}
}

func TestSeedThatWasChosenCounts(t *testing.T) {
	_, fixed, _ := play(t, "passes", nil)
	_, named, _ := play(t, "passes", nil, "-rapid.seed=1")
	if !slices.Equal(fixed, named) {
		t.Errorf("seed 1 draws %s, none %s", named, fixed)
	}
	_, flagged, _ := play(t, "passes", nil, "-rapid.seed=7")
	_, env, _ := play(t, "passes", []string{"RAPID_SEED=7"})
	_, both, _ := play(t, "passes", []string{"RAPID_SEED=8"}, "-rapid.seed=7")
	if slices.Equal(flagged, fixed) || !slices.Equal(flagged, env) || !slices.Equal(flagged, both) {
		t.Errorf("seed 7 draws %s by the flag, %s by the environment, %s by the flag beside another, and seed 1 %s", flagged, env, both, fixed)
	}
	for _, random := range [][]string{{"-rapid.seed=0"}, nil} {
		environment := []string{}
		if random == nil {
			environment = []string{"RAPID_SEED=0"}
		}
		_, one, _ := play(t, "passes", environment, random...)
		_, other, _ := play(t, "passes", environment, random...)
		if slices.Equal(one, other) {
			t.Errorf("%v %v: two runs with seed 0 draw equal values", environment, random)
		}
	}
}

// The bits of a stream are equal however a map's order turns them into values.
func TestDigestIsOfValues(t *testing.T) {
	_, first, _ := play(t, "maps", nil)
	_, second, _ := play(t, "maps", nil)
	if slices.Equal(first, second) {
		t.Errorf("draws that depend on the order of a map have one digest: %s", first)
	}
}

func TestEachCallOfCheckHasALine(t *testing.T) {
	const pkg = "fairlead.io/fairlead/internal/testkit "
	for subject, want := range map[string][]string{
		"passes":  {"TestSubject#1 100"},
		"several": {"TestSubject/an_other#1 100", "TestSubject/an_other#2 100", "TestSubject/one#1 100", "TestSubject/one#2 100"},
		"bubble":  {"TestSubject#1 100"},
		"rounds": {
			"TestSubject/parallel/a#1 100", "TestSubject/parallel/a#2 100", "TestSubject/parallel/a#3 100", "TestSubject/parallel/a#4 100",
			"TestSubject/parallel/b#1 100", "TestSubject/parallel/b#2 100", "TestSubject/parallel/b#3 100", "TestSubject/parallel/b#4 100",
		},
	} {
		output, lines, _ := play(t, subject, nil)
		var have []string
		digests := map[string]bool{}
		for _, line := range lines {
			at := strings.LastIndex(line, " ")
			have = append(have, strings.TrimPrefix(line[:at], pkg))
			digests[line[at:]] = true
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s: lines\n%s\nwant\n%s\noutput\n%s", subject, strings.Join(have, "\n"), strings.Join(want, "\n"), output)
		}
		if subject == "rounds" && len(digests) != 4 { // of equal rounds of two tests
			t.Errorf("%d digests in\n%s", len(digests), strings.Join(lines, "\n"))
		}
		if strings.Contains(output, "[rapid] draw") {
			t.Errorf("%s: draws are in the output:\n%s", subject, output)
		}
	}
}

func TestFailureNamesTheCommandThatRepeatsIt(t *testing.T) {
	output, lines, passed := play(t, "fails", nil, "-rapid.checks=300")
	for _, want := range []string{
		"go test fairlead.io/fairlead/internal/testkit -run '^TestSubject$/^a_number$' -rapid.checks=300\n", "-rapid.seed=", "[rapid] draw number: 901", "901 is too large",
	} {
		if passed || !strings.Contains(output, want) {
			t.Errorf("passed %t, and %q is not in\n%s", passed, want, output)
		}
	}
	if len(lines) > 0 {
		t.Errorf("draws of a failure are recorded: %s", lines)
	}
	seed := output[strings.Index(output, "-rapid.seed=")+len("-rapid.seed="):]
	seed = seed[:strings.IndexFunc(seed, func(r rune) bool { return r < '0' || r > '9' })]
	if output, _, _ := play(t, "fails", nil, "-rapid.seed="+seed); !strings.Contains(output, "failed after 0 tests: 901 is too large") || !strings.Contains(output, "-rapid.seed="+seed+"\n") {
		t.Errorf("seed %s does not repeat it:\n%s", seed, output)
	}
	// As it is when nobody records what is drawn.
	if output, _, passed := play(t, "fails", []string{"FAIRLEAD_DRAWS="}); passed || !strings.Contains(output, "901 is too large") {
		t.Errorf("passed %t:\n%s", passed, output)
	}
}

func TestRoundsEnd(t *testing.T) {
	output, lines, passed := play(t, "too few", nil)
	if passed || !strings.Contains(output, "after 10 rounds of draws: 1000 of 5000 values were drawn") || len(lines) != 10 {
		t.Errorf("passed %t, %d rounds:\n%s", passed, len(lines), output)
	}
}

func TestRandomNumbersAreThoseOfATestAndASeed(t *testing.T) {
	drew := func(environment []string, args ...string) string {
		output, _, _ := play(t, "random", environment, args...)
		_, number, _ := strings.Cut(output, "drew ")
		number, _, _ = strings.Cut(number, "\n")
		return number
	}
	fixed := drew(nil)
	if fixed == "" || fixed != drew(nil) || fixed != drew([]string{"RAPID_SEED=1"}) || fixed == drew(nil, "-rapid.seed=7") {
		t.Errorf("drew %q, then %q, with seed 1 %q, with another %q", fixed, drew(nil), drew([]string{"RAPID_SEED=1"}), drew(nil, "-rapid.seed=7"))
	}
	if one, other := drew(nil, "-rapid.seed=0"), drew(nil, "-rapid.seed=0"); one == other {
		t.Error("two runs with seed 0 drew equal numbers")
	}
	mine := testkit.Random(t).Uint64()
	t.Run("another", func(t *testing.T) {
		if testkit.Random(t).Uint64() == mine {
			t.Error("two tests draw equal numbers")
		}
	})
}
