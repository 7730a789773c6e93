// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/testkit"
)

var today = time.Date(2026, 11, 28, 23, 0, 0, 0, time.UTC)

func day(text string) time.Time {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestWhatCanBeReachedIsAcceptedOrWrong(t *testing.T) {
	t.Parallel()
	found := []vulnerability{{id: "GO-2026-1", summary: "a server ends", module: "example.com/m", found: "v1.0.0", fixed: "v1.0.1", way: []string{"main.main (cmd/x.go:7)"}}}
	for _, c := range []struct {
		name     string
		found    []vulnerability
		accepted []acceptance
		wrong    string // a part of the first line; empty if all is well
		notes    int
	}{
		{"nothing", nil, nil, "", 0},
		{"found", found, nil, "GO-2026-1: error: a server ends (example.com/m v1.0.0, mended in v1.0.1;", 0},
		{"accepted", found, []acceptance{{"GO-2026-1", day("2027-06-30"), "why"}}, "", 0},
		{"another-is-accepted", found, []acceptance{{"GO-2026-11", day("2027-06-30"), "why"}}, "GO-2026-1: error: a server ends", 1},
		{"on-the-last-day", found, []acceptance{{"GO-2026-1", day("2026-11-28"), "why"}}, "", 0},
		{"the-day-after", found, []acceptance{{"GO-2026-1", day("2026-11-27"), "why"}}, "GO-2026-1: error: it was accepted until 2026-11-27", 0},
		{"over-and-not-reached", nil, []acceptance{{"GO-2026-1", day("2026-11-27"), "why"}}, "GO-2026-1: error: it was accepted until 2026-11-27", 0},
		{"for-ever", found, []acceptance{{"GO-2026-1", day("2099-01-01"), "why"}}, "GO-2026-1: error: it is accepted until 2099-01-01: a year at most", 0},
		{"needless", nil, []acceptance{{"GO-2026-1", day("2027-06-30"), "why"}}, "", 1},
	} {
		v := judge(c.found, c.accepted, today)
		first := strings.Join(v.wrong[:min(1, len(v.wrong))], "")
		if (c.wrong == "") != (first == "") || !strings.HasPrefix(first, c.wrong) || len(v.notes) != c.notes {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	if v := judge(found, nil, today); len(v.wrong) != 2 || v.wrong[1] != "    main.main (cmd/x.go:7)" {
		t.Errorf("without the way to it: %q", v.wrong)
	}
}

func TestAcceptedOnesHaveAnEndAndAReason(t *testing.T) {
	t.Parallel()
	got, err := readAccepted("# why\n\nGO-2026-1 2027-06-30 it is not reached from outside\n")
	if err != nil || len(got) != 1 || got[0] != (acceptance{"GO-2026-1", day("2027-06-30"), "it is not reached from outside"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{
		"GO-2026-1", "GO-2026-1 2027-06-30", "GO-2026-1 it is not reached", "GO-2026-1 2027-06-31 no such day", "CVE-2026-1 2027-06-30 another name",
		"GO-2026-1 2027-06-30 once\nGO-2026-1 2027-06-30 twice",
	} {
		if got, err := readAccepted(text); err == nil || !strings.Contains(err.Error(), "accepted.txt:") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	text, err := os.ReadFile("accepted.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readAccepted(string(text)); err != nil {
		t.Error(err)
	}
}

func TestADatabaseIsPinnedByItsChecksum(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("database.txt")
	if err != nil {
		t.Fatal(err)
	}
	db, err := readPin(string(text))
	if err != nil || db.pin(string(text)) != string(text) {
		t.Errorf("%+v, %v; written again:\n%s", db, err, db.pin(string(text)))
	}
	made, err := db.made()
	if err != nil || made.Year() < 2026 {
		t.Errorf("made %v, %v", made, err)
	}
	if db.old(made.Add(staleAfter)) != nil || db.old(made.Add(staleAfter+time.Hour)) == nil {
		t.Error("it says at another time that it is old")
	}
	for _, text := range []string{"", "# nothing", vulndb + " v1", vulndb + " v1 sum", "example.com/db v1 h1:x", vulndb + " v1 h1:x\n" + vulndb + " v2 h1:y"} {
		if db, err := readPin(text); err == nil {
			t.Errorf("%q: %+v", text, db)
		}
	}
}

// What is required or imported without being called is no finding; of several ways the shortest is told.
func TestOnlyWhatIsCalledIsFound(t *testing.T) {
	t.Parallel()
	const stream = `{"config":{"scan_level":"symbol"}} {"progress":{"message":"x"}}
		{"osv":{"id":"GO-2026-1","summary":"one"}} {"osv":{"id":"GO-2026-2","summary":"two"}}
		{"finding":{"osv":"GO-2026-1","fixed_version":"v1.1.0","trace":[{"module":"m","version":"v1.0.0"}]}}
		{"finding":{"osv":"GO-2026-1","fixed_version":"v1.1.0","trace":[{"module":"m","version":"v1.0.0","package":"m/p"}]}}
		{"finding":{"osv":"GO-2026-2","fixed_version":"v1.1.0","trace":[{"module":"m","version":"v1.0.0","package":"m/p"}]}}
		{"finding":{"osv":"GO-2026-1","fixed_version":"v1.1.0","trace":[{"module":"m","version":"v1.0.0","package":"m/p","function":"F","receiver":"*T"},
			{"module":"us","package":"us/b","function":"Between"},{"module":"us","package":"us","function":"main","position":{"filename":"main.go","line":3}}]}}
		{"finding":{"osv":"GO-2026-1","fixed_version":"v1.1.0","trace":[{"module":"m","version":"v1.0.0","package":"m/p","function":"F","receiver":"*T"},
			{"module":"us","package":"us","function":"main","position":{"filename":"main.go","line":4}}]}}`
	got, err := readFindings(strings.NewReader(stream))
	if err != nil || len(got) != 1 || got[0].id != "GO-2026-1" || got[0].summary != "one" || got[0].found != "v1.0.0" || got[0].fixed != "v1.1.0" {
		t.Fatalf("%+v, %v", got, err)
	}
	if way := strings.Join(got[0].way, " > "); way != "us.main (main.go:4) > m/p.(*T).F" {
		t.Error(way)
	}
}

// govulncheck ends with 0 also where it looked at nothing.
func TestAScanThatSawNothingIsNoScan(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"nothing": "", "no-entries": `{"config":{"scan_level":"symbol"}}`, "modules-alone": `{"config":{"scan_level":"module"}}{"osv":{"id":"GO-2026-1"}}`, "cut": `{"config":{"scan`,
	} {
		if got, err := readFindings(strings.NewReader(stream)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	db := database{Dir: t.TempDir()}
	if err := db.check(); err == nil {
		t.Error("an empty folder is a database")
	}
}

// The whole of it, with a program and a database of our own: of two functions with a hole one is called.
func TestGovulncheckFindsWhatIsCalled(t *testing.T) {
	testkit.NotFast(t, "builds govulncheck")
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(id, function string) {
		write("db/"+id+".json", `{"schema_version":"1.3.1","id":"`+id+`","modified":"2026-01-02T00:00:00Z","published":"2026-01-02T00:00:00Z","summary":"planted in `+function+`",
			"affected":[{"package":{"name":"stdlib","ecosystem":"Go"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}],
			"ecosystem_specific":{"imports":[{"path":"strings","symbols":["`+function+`"]}]}}]}`)
	}
	entry("GO-2026-1", "EqualFold")
	entry("GO-2026-2", "ToTitle")
	write("m/go.mod", "module example.com/m\n\ngo 1.26.0\n")
	write("m/main.go", "package main\n\nimport \"strings\"\n\nfunc main() { println(strings.EqualFold(\"a\", \"A\")) }\n")
	t.Chdir(filepath.Join("..", ".."))
	found, err := scan(t.Context(), filepath.Join(dir, "m"), filepath.Join(dir, "db"), "./...")
	if err != nil || len(found) != 1 || found[0].id != "GO-2026-1" || found[0].summary != "planted in EqualFold" || !strings.HasPrefix(found[0].way[0], "example.com/m.main (main.go:5)") {
		t.Fatalf("%+v, %v", found, err)
	}
}
