// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnknownNameIsAUsageErrorThatListsTheNames(t *testing.T) {
	var stderr bytes.Buffer
	if code := run([]string{"--only", "nonsense"}, io.Discard, &stderr); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	for _, b := range benchmarks() {
		if !strings.Contains(stderr.String(), b.name) {
			t.Errorf("%s is not listed in %q", b.name, stderr.String())
		}
	}
}

func TestReportHasTheDocumentedFields(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	one := benchmark{name: "one", unit: "ms", run: func(*bench) figures {
		return figures{samples: []float64{3, 1, 2}, detail: map[string]any{"a": 1}}
	}}
	if err := measure([]benchmark{one}, file, "", io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Machine map[string]any
		Results []result
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Machine["cores"] == nil || len(got.Results) != 1 {
		t.Fatalf("report %s", text)
	}
	r := got.Results[0]
	if r.Name != "one" || r.Unit != "ms" || r.N != 3 || r.Value != 2 || r.P50 != 2 || r.P99 != 3 || r.Detail["a"] != 1.0 {
		t.Errorf("result %+v", r)
	}
}

// One that fails costs neither the others' figures nor its own clean-up, and the run fails.
func TestFailureLeavesTheOtherFigures(t *testing.T) {
	var cleaned []string
	bad := benchmark{name: "bad", unit: "s", run: func(t *bench) figures {
		t.Cleanup(func() { cleaned = append(cleaned, "first") })
		t.Cleanup(func() { cleaned = append(cleaned, "second") })
		t.Fatal(errors.New("no luck"))
		return figures{}
	}}
	good := benchmark{name: "good", unit: "s", run: func(*bench) figures { return figures{samples: []float64{1}} }}
	var out bytes.Buffer
	err := measure([]benchmark{bad, good}, "", "", &out, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "bad: no luck") {
		t.Errorf("error %v", err)
	}
	if strings.Contains(out.String(), `"bad"`) || !strings.Contains(out.String(), `"good"`) {
		t.Errorf("report %s", out.String())
	}
	if strings.Join(cleaned, " ") != "second first" {
		t.Errorf("cleaned up %v", cleaned)
	}
}
