// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fairlead.io/fairlead/cluster"
)

const (
	// groupRestores is how often a group of processes has its record replaced.
	groupRestores = 5
	// groupRecord is how many bindings the backup has. With a million, three processes on two cores have so much to do that their group loses
	// its leader.
	groupRecord = smallRecord
)

// groupRestoreSeconds replaces the record of a group of three by a backup: from the command's start until all members have it.
func groupRestoreSeconds(t *bench) figures {
	file := filepath.Join(t.TempDir(), "backup")
	writeLargeBackup(t, file)
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
	f.detail = map[string]any{"bindings": groupRecord, "answered_s": slices.Clone(answered), "processes": g.usages()}
	return f
}

func writeLargeBackup(t *bench, file string) {
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	err = cluster.WriteBackup(w, cluster.BackupHeader{Index: groupRecord, Term: 1, ServerID: "m1"}, filled(t, groupRecord).Freeze())
	if err := errors.Join(err, w.Flush(), f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
