// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// database is a version of the module that has the vulnerability database, as it lies in Go's module cache.
type database struct{ Path, Version, Sum, Dir string }

// vulndb is that module.
const vulndb = "golang.org/x/vulndb"

// staleAfter is how old a database is when somebody should bring it up.
const staleAfter = 60 * 24 * time.Hour

// leastEntries is how many entries a database has that is one: of an empty folder govulncheck says that all is well.
const leastEntries = 1000

// openDatabase gets the database that a file pins, or the newest one; update has the file pin that.
func openDatabase(ctx context.Context, file string, newest, update bool) (database, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return database{}, err
	}
	pinned, err := readPin(string(text))
	if err != nil {
		return database{}, fmt.Errorf("%s: %w", file, err)
	}
	want := pinned.Version
	if newest {
		want = "latest"
	}
	db, err := download(ctx, want, !newest)
	if err != nil {
		return database{}, err
	}
	if !newest && db.Sum != pinned.Sum {
		return database{}, fmt.Errorf("%s %s has the checksum %s, not %s, which %s has: somebody changed it on its way", vulndb, db.Version, db.Sum, pinned.Sum, file)
	}
	if err := db.check(); err != nil {
		return database{}, err
	}
	if update {
		err = os.WriteFile(file, []byte(db.pin(string(text))), 0o644)
	}
	return db, err
}

// readPin reads the one line of a file that is no comment: path, version, checksum.
func readPin(text string) (database, error) {
	var pins []database
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(line, "#"):
		case len(fields) == 3 && fields[0] == vulndb && strings.HasPrefix(fields[2], "h1:"):
			pins = append(pins, database{Path: fields[0], Version: fields[1], Sum: fields[2]})
		default:
			return database{}, fmt.Errorf("%q is not %q", strings.TrimSpace(line), vulndb+" VERSION h1:CHECKSUM")
		}
	}
	if len(pins) != 1 {
		return database{}, fmt.Errorf("it pins %d databases, not one", len(pins))
	}
	return pins[0], nil
}

// pin gives the text of the file that pins this database, with the comments that it had.
func (d database) pin(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			out.WriteString(line)
		}
	}
	fmt.Fprintf(&out, "%s %s %s\n", d.Path, d.Version, d.Sum)
	return out.String()
}

// download gets a version of the database from the module proxy, unless it is there. The caller knows the checksum if it is pinned.
func download(ctx context.Context, version string, pinned bool) (database, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", vulndb+"@"+version)
	cmd.Dir = os.TempDir() // no module: the database is nothing that ours requires
	cmd.Env = append(cmd.Environ(), "GOFLAGS=")
	if pinned {
		cmd.Env = append(cmd.Env, "GONOSUMDB="+vulndb)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	answer, err := cmd.Output()
	var db struct {
		database
		Error string
	}
	if decoded := json.Unmarshal(answer, &db); err == nil {
		err = decoded
	}
	if db.Error != "" {
		err = errors.New(db.Error)
	}
	if err != nil {
		return database{}, fmt.Errorf("get %s@%s from the Go module proxy: %w", vulndb, version, joined(err, strings.TrimSpace(said.String())))
	}
	return db.database, nil
}

// osv is the folder that has a file for each vulnerability, which govulncheck reads as a database.
func (d database) osv() string { return filepath.Join(d.Dir, "data", "osv") }

// check tells why the folder cannot be the database.
func (d database) check() error {
	entries, err := filepath.Glob(filepath.Join(d.osv(), "GO-*.json"))
	if err == nil && len(entries) < leastEntries {
		err = fmt.Errorf("%s has %d entries, fewer than %d: does the module keep them elsewhere now?", d.osv(), len(entries), leastEntries)
	}
	return err
}

// made is when the database was made, as its pseudo-version says (v0.0.0-20260102150405-0123456789ab).
func (d database) made() (time.Time, error) {
	parts := strings.Split(d.Version, "-")
	return time.Parse("20060102150405", parts[max(0, len(parts)-2)])
}

// old is a word to say where the database should be brought up.
func (d database) old(now time.Time) []string {
	if made, err := d.made(); err == nil && now.Sub(made) > staleAfter {
		return []string{fmt.Sprintf("the database is %.0f days old; bring it up: make vuln ARGS=-update", now.Sub(made).Hours()/24)}
	}
	return nil
}

func (d database) String() string { return d.Path + " " + d.Version }
