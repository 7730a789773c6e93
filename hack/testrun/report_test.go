// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const pkg = module + "/cluster"

// reported is a report that has read some events, and what it prints in the end.
func reported(t *testing.T, only string, events ...string) (r *report, text string, failed bool) {
	t.Helper()
	var out bytes.Buffer
	r, err := newReport(&out, filepath.Join(t.TempDir(), "events"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.read(strings.NewReader(strings.Join(events, "\n")+"\n"), only); err != nil {
		t.Fatal(err)
	}
	failed = r.close(t.TempDir())
	return r, out.String(), failed
}

func is(action, test string) string {
	return `{"Action":"` + action + `","Package":"` + pkg + `","Test":"` + test + `","Elapsed":0.1}`
}

func says(test, words string) string {
	return `{"Action":"output","Package":"` + pkg + `","Test":"` + test + `","Output":"` + words + `\n"}`
}

func ends(action string) string {
	return `{"Action":"` + action + `","Package":"` + pkg + `","Elapsed":1}`
}

func TestReportCountsAndNamesWhatFailedWithTheCommandThatRepeatsIt(t *testing.T) {
	_, text, failed := reported(t, "",
		is("run", "TestA"), is("pass", "TestA"),
		says("TestB/one row", "=== RUN   TestB/one row"), says("TestB/one row", "    b_test.go:7: no leader"), is("fail", "TestB/one row"), is("fail", "TestB"),
		says("TestC", "    c_test.go:9: no disk"), is("skip", "TestC"), ends("fail"))
	if !failed {
		t.Error("a failed test is no failure")
	}
	for _, want := range []string{
		"failed: " + pkg + " TestB/one row: b_test.go:7: no leader",
		"again: go test -count=1 -run '^TestB$/^one row$' ./cluster\n",
		"skipped: " + pkg + " TestC: c_test.go:9: no disk",
		"1 passed, 2 failed, 1 skipped\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// What programs and loggers say beforehand is not what is wrong.
func TestFailureIsToldInTheWordsOfTheTest(t *testing.T) {
	for output, want := range map[string]string{
		"=== RUN   TestA\n{\"level\":\"info\"}\n    a_test.go:7: no leader\n--- FAIL: TestA\n": "a_test.go:7: no leader",
		"2026-01-02 no route\npanic: boom\n":                                                   "panic: boom",
		"=== RUN   TestA\nsignal: killed\n":                                                    "signal: killed",
		"    testkit.go:9: [rapid] OK, passed\n":                                               "see above",
		"":                                                                                     "see above",
	} {
		if got := firstWords(output); got != want {
			t.Errorf("of %q: %q, want %q", output, got, want)
		}
	}
}

func TestPackageThatDoesNotBuildFails(t *testing.T) {
	_, text, failed := reported(t, "", `{"Action":"build-output","ImportPath":"x","Output":"x.go:1: undefined: y\n"}`, ends("fail"))
	if !failed || !strings.Contains(text, "x.go:1: undefined: y") || !strings.Contains(text, "again: go test -count=1 ./cluster") {
		t.Errorf("failed %t:\n%s", failed, text)
	}
}

func TestNoTestAtAllIsAFailure(t *testing.T) {
	if _, text, failed := reported(t, "", ends("pass")); !failed {
		t.Errorf("it passed:\n%s", text)
	}
}

// A process that runs one test may die of a panic, of its time limit or of a signal before it has said how the test ended.
func TestProcessThatEndsBeforeItsTestFailsTheTest(t *testing.T) {
	_, text, failed := reported(t, "TestA", is("run", "TestA"), `{"Action":"output","Package":"`+pkg+`","Output":"panic: boom\n"}`, ends("fail"))
	if !failed || !strings.Contains(text, "failed: "+pkg+" TestA: panic: boom") {
		t.Errorf("failed %t:\n%s", failed, text)
	}
	_, text, failed = reported(t, "TestA", is("run", "TestA"), is("fail", "TestA"), ends("fail"))
	if !failed || !strings.Contains(text, "0 passed, 1 failed") {
		t.Errorf("failed %t, counted twice:\n%s", failed, text)
	}
}

// A package of many tests that hangs is told by the test that hangs.
func TestTestInWhichAPackageEndsIsNamed(t *testing.T) {
	_, text, failed := reported(t, "", is("run", "TestA"), says("TestA", "waits"),
		is("run", "TestB"), is("run", "TestB/row"), says("TestB/row", "panic: test timed out after 10m0s"), ends("fail"))
	if !failed || !strings.Contains(text, "failed: "+pkg+" TestB/row: panic: test timed out after 10m0s") ||
		!strings.Contains(text, "0 passed, 1 failed") {
		t.Errorf("failed %t:\n%s", failed, text)
	}
}

// What the fast tests leave out runs among the rest: whole tests, by package.
func TestLeftOutTestsAreHandedOn(t *testing.T) {
	r, text, failed := reported(t, "", is("pass", "TestA"),
		says("TestB/deep/row", "    testkit.go:1: "+notFast+": it starts bird"), is("skip", "TestB/deep/row"), is("pass", "TestB"),
		says("TestC", "    c_test.go:9: no disk"), is("skip", "TestC"), ends("pass"))
	if failed || strings.Contains(text, "starts bird") || !strings.Contains(text, "left out of the fast tests: 1;") {
		t.Errorf("failed %t:\n%s", failed, text)
	}
	path := filepath.Join(t.TempDir(), "left")
	if err := writeLeft(path, r.leftOut()); err != nil {
		t.Fatal(err)
	}
	got, err := readLeft(path)
	if want := map[string][]string{pkg: {"TestB", "TestC"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

// What passed as a whole under the race detector is not left, unless it is a property, of which it draws less.
func TestWhatPassedElsewhereIsNotLeft(t *testing.T) {
	r, _, _ := reported(t, "", is("pass", "TestA"), is("pass", "TestB/row"), is("pass", "TestB"), is("pass", "TestC"),
		is("skip", "TestD/row"), is("pass", "TestD"), is("fail", "TestE"), is("skip", "TestF"), ends("fail"))
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "1"), []byte(pkg+"_test TestC/part#1 20 ab\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	drew, err := drawn(folder)
	if err != nil {
		t.Fatal(err)
	}
	got := r.stillLeft(map[string][]string{pkg: {"TestA", "TestB", "TestC", "TestD", "TestE", "TestF", "TestG"}, "other": {"TestA"}}, drew)
	if want := map[string][]string{pkg: {"TestC", "TestD", "TestE", "TestF", "TestG"}, "other": {"TestA"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

func TestDigestOfDrawsDoesNotDependOnTheOrderOfTests(t *testing.T) {
	digest := func(files ...string) string {
		dir := t.TempDir()
		for i, text := range files {
			if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d, n, err := drawsDigest(dir)
		if err != nil || n != 3 {
			t.Fatalf("%d properties, %v", n, err)
		}
		return d
	}
	one, other, changed := digest("p A 1\np B 2\n", "q C 3\n"), digest("q C 3\np B 2\n", "p A 1\n"), digest("p A 1\np B 9\n", "q C 3\n")
	if one != other || one == changed {
		t.Errorf("%s, %s, with another draw %s", one, other, changed)
	}
}

// A test that is called otherwise by now has no budget, and would start last however long it takes.
func TestEveryBudgetIsOfATestThatIsThere(t *testing.T) {
	for key := range budgets() {
		folder, name, _ := strings.Cut(key, " ")
		files, _ := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go")) // the pattern is well-formed
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(text, []byte("func "+name+"("))
		}
		if !found {
			t.Errorf("budgets.txt names %s, which is not there", key)
		}
	}
	if len(budgets()) < 50 {
		t.Errorf("budgets.txt has %d budgets", len(budgets()))
	}
}

func TestPackagesWithGoroutinesAreFound(t *testing.T) {
	t.Chdir(t.TempDir())
	var all []string
	for name, text := range map[string]string{
		"starts": "package p\n\nfunc f() {\n\tgo g()\n}\n", "channel": "package p\n\nvar c chan int\n", "imports": "package p\n\nimport \"sync/atomic\"\n",
		"tests": "package p\n\nfunc f(t *T) { t.Parallel() }\n", "plain": "package p\n\n// let it go on\nvar algo = 1\n", "deploy": "package p\n\nvar c chan int\n",
	} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(name, "a_test.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		all = append(all, module+"/"+name)
	}
	got, err := withGoroutines(all)
	slices.Sort(got)
	if want := []string{module + "/channel", module + "/imports", module + "/starts", module + "/tests"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWrongCallsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"-set", "some"}, {"-set", "rest"}, {"-lanes", "0"}, {"-what"}} {
		var out, errOut bytes.Buffer
		if code := run(t.Context(), args, &out, &errOut); code != 2 || errOut.Len() == 0 {
			t.Errorf("%v: %d, %q", args, code, errOut.String())
		}
	}
}
