// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// full is a member's disk without any room. The member ends with a line that says so, and is started when there is room again.
var full = kind{name: "full", weight: 2, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom := r.victim(rng)
	var m *lab.Member
	return []step{
		{begin, func() {
			m = whom()
			r.trace.act("full", "disk of %s until +%v", m.Name, end-begin)
			r.troupe.roles[m].excused = "its disk is full"
			r.troupe.roles[m].full++
			m.Fill()
		}},
		{end, func() {
			if r.troupe.roles[m].full--; r.troupe.roles[m].full > 0 {
				return
			}
			m.Drain()
			r.troupe.roles[m].room = time.Now()
			r.troupe.count()
			r.trace.note("%s has room again", m.Name)
			r.troupe.start(m)
		}},
	}
}}

// flipped is a bit of what a member keeps, changed while it does not run. The member ends with a line that says so, then or when it reads
// that, or does not need it; it is replaced when the round is over.
var flipped = kind{name: "flip", weight: 2, takes: true, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom, where, which := r.victim(rng), rng.Uint64(), rng.IntN(8)
	var m *lab.Member
	return []step{
		{begin, func() {
			m = whom()
			r.troupe.down(m)
			file, at := aByte(m.DataDir, where)
			if file == "" {
				r.trace.note("nothing to flip at %s yet", m.Name)
				return
			}
			r.trace.act("flip", "bit %d of byte %d of %s of %s", which, at, file, m.Name)
			change(r, filepath.Join(m.DataDir, file), at, which)
			r.troupe.roles[m].excused, r.troupe.roles[m].damaged = "a bit of it was flipped", true
		}},
		{end, func() {
			r.trace.note("%s comes back", m.Name)
			r.troupe.up(m)
		}},
	}
}}

// aByte chooses one that is not zero, in one of the files of a folder: pages that nothing was written to say nothing.
func aByte(folder string, where uint64) (file string, at int) {
	var files []string
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // what is not there is not chosen
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	})
	slices.Sort(files)
	for range files {
		path := files[where%uint64(len(files))]
		text, _ := os.ReadFile(path)
		for i := range text {
			if at := (int(where>>8&0xffffffff) + i) % len(text); text[at] != 0 {
				file, _ = filepath.Rel(folder, path)
				return file, at
			}
		}
		where++ // an empty one
	}
	return "", 0
}

// change flips one bit in place: there may be no room for a whole file.
func change(r *run, path string, at, bit int) {
	r.t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	var one [1]byte
	if _, err := f.ReadAt(one[:], int64(at)); err != nil {
		r.t.Fatal(err)
	}
	one[0] ^= 1 << bit
	if _, err := f.WriteAt(one[:], int64(at)); err != nil {
		r.t.Fatal(err)
	}
}

// old is a member's folder as it was some time ago, from a snapshot of its machine's disk. What it acknowledged since is with the leader alone by then,
// which ends: the third member heard nothing of it.
var old = kind{name: "old", weight: 2, takes: true, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	name := lossName(rng)
	var leads, m *lab.Member // nil if the group has no leader then, or more members
	return []step{
		{begin / 2, func() {
			if leads = r.leader(); leads == nil || r.troupe.size() != first {
				leads = nil
				return
			}
			others := slices.DeleteFunc(r.troupe.members(), func(o *lab.Member) bool { return o == leads })
			m = others[0]
			r.troupe.down(m)
			copied(r, m.DataDir, m.DataDir+".old")
			r.troupe.up(m)
			r.Lose(name, both(others[1], r.Others(others[1]), 100)...)
			r.trace.act("old", "%s is to have the folder of now at +%v, when %s ends; %s hears nothing of the others until then", m.Name, begin-begin/2, leads.Name, others[1].Name)
		}},
		{begin, func() {
			if leads == nil {
				return
			}
			r.troupe.down(leads)
			r.troupe.down(m)
			m.Wipe()
			if err := os.Rename(m.DataDir+".old", m.DataDir); err != nil {
				r.t.Fatal(err)
			}
			r.troupe.roles[m].excused, r.troupe.roles[m].damaged = "its folder is old", true
			r.troupe.up(m)
			r.deliver(name)
		}},
		{end, func() {
			if leads != nil {
				r.troupe.up(leads)
			}
		}},
	}
}}

func copied(r *run, from, to string) {
	r.t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		r.t.Fatalf("copy %s: %v: %s", from, err, out)
	}
}

// replaced is a member whose disk is lost: it comes back with an empty folder, and is a new server.
var replaced = kind{name: "replace", weight: 2, takes: true, plan: func(r *run, rng *rand.Rand, begin, end time.Duration) []step {
	whom := r.victim(rng)
	var m *lab.Member
	return []step{
		{begin, func() {
			m = whom()
			r.trace.act("replace", "%s, which comes back with an empty folder at +%v", m.Name, end-begin)
			r.troupe.down(m)
			r.troupe.wipe(m)
		}},
		{end, func() {
			r.trace.note("%s comes back", m.Name)
			r.troupe.up(m)
		}},
	}
}}
