// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"time"
)

// groupRestores is how often a group of processes has its record replaced.
const groupRestores = 3

// groupRestoreSeconds replaces the record of a group of three by a backup of the large one: from the command's start until all members have it.
func groupRestoreSeconds(t *bench) figures {
	file := filepath.Join(t.TempDir(), "backup")
	writeSnapshot(t, filled(t, largeRecord).Freeze(), file)
	g := startGroup(t)
	var f figures
	var answered []float64
	for range groupRestores {
		begin := time.Now()
		if out, stderr, code := g.CLI("raft", "restore", file, "--force"); code != 0 {
			t.Fatalf("raft restore: %d %s%s", code, out, stderr)
		}
		answered = append(answered, time.Since(begin).Seconds())
		g.Agreed()
		f.samples = append(f.samples, time.Since(begin).Seconds())
	}
	f.detail = map[string]any{"answered_s": slices.Clone(answered), "processes": g.usages()}
	return f
}
