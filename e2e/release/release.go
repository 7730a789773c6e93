// SPDX-License-Identifier: Apache-2.0

// Package release builds the command as the release before this one had it, from the history of the checkout.
package release

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoHistory says that the checkout does not have what an older release is built from, as a shallow clone.
var ErrNoHistory = errors.New("the history of this checkout is needed for an older release")

// The older release is what was there before the newest commit that took a text out of a file: the last one of record format 1.
const (
	file = "fsm/group.go"
	text = "NewestFormat uint32 = 1"
)

// Build builds the older release in an empty folder, and gives the path of its command. What it is built from is fetched, unless it is there: it
// may need modules that this release does not.
//
// Errors: ErrNoHistory.
func Build(folder string) (string, error) {
	top, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	commit, err := git("-C", top, "log", "-1", "--format=%H", "-S", text, "--", file)
	if err != nil {
		return "", err
	}
	if commit == "" {
		return "", fmt.Errorf("%w: no commit took %q out of %s", ErrNoHistory, text, file)
	}
	archive, err := exec.Command("git", "-C", top, "archive", commit+"^").Output()
	if err != nil {
		return "", fmt.Errorf("%w: git archive: %w", ErrNoHistory, err)
	}
	unpack := exec.Command("tar", "-x", "-C", folder)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("unpack %s: %w: %s", commit, err, out)
	}
	path := filepath.Join(folder, "fairlead-released")
	build := exec.Command("go", "build", "-o", path, "./cmd/fairlead")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", commit, err, out)
	}
	return path, nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("%w: git %s: %w", ErrNoHistory, args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
