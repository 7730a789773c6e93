// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/alike"
)

// folder is what is known of the whole folder. One goroutine owns it.
type folder struct {
	fs    fs.FS
	dir   string
	rules rules

	files map[string]*file
	// order is the names of files, sorted.
	order []string
	// trouble is what is wrong with the folder or its subfolders by the newest reading.
	trouble []world.Problem

	readings uint64 // in all
	lists    uint64 // that were complete
	listed   bool
	// complete: by the newest reading, what no file holds is absent.
	complete bool
	// interrupted: since the World was last known to be whole, a reading failed. What is missing then was not
	// seen to go.
	interrupted bool

	merged merged
	view   world.World
}

func newFolder(fsys fs.FS, dir string, by rules) *folder {
	f := &folder{fs: fsys, dir: dir, rules: by, files: map[string]*file{}}
	f.publish(true)
	return f
}

// read goes through the folder once. It tells when something that is under way is due to be looked at again (zero if
// nothing is), and whether the reading was complete.
func (f *folder) read(now time.Time) (due time.Time, whole bool) {
	f.readings++
	troubled := f.trouble
	found, ok := f.look(f.walk(), now)
	if len(found) == 0 && ok {
		f.trouble = append(f.trouble, f.problem("", "no manifests (*.yaml, *.yml, *.json) are there", "add some; nothing is removed while the folder is empty"))
		ok = false
	}
	due, removed := f.miss(found, now, ok)
	f.order = sortedNames(f.files)

	waiting, touched := false, removed || !slices.Equal(troubled, f.trouble)
	for _, known := range f.files {
		at, unsettled := known.settled(now, f.readings, !ok)
		if !at.IsZero() {
			due = earlier(due, at)
		}
		waiting = waiting || unsettled || known.away()
		touched = touched || known.touched
		known.touched = false
	}
	f.interrupted = f.interrupted || !ok
	f.judge(ok)
	if touched {
		f.merged.update(f.files, f.order, !f.interrupted)
	}
	if ok && !waiting {
		f.interrupted = false
	}
	f.publish(touched)
	return due, f.complete
}

// look reads the files found, and gives those that are there still. It returns false if one could not be read.
func (f *folder) look(found []string, now time.Time) (there []string, ok bool) {
	ok = len(f.trouble) == 0
	var like alike.Table
	for _, name := range found {
		known, seen := f.files[name]
		if !seen {
			known = &file{name: name}
		}
		if err := known.look(f.fs, now, f.readings, &like, f.rules); err != nil {
			if f.went(name) {
				continue // it was deleted since the folder was listed: no trouble
			}
			known.unreadable(err)
			ok = false
		}
		f.files[name] = known
		known.miss(time.Time{})
		there = append(there, name)
	}
	return there, ok
}

// went tells whether there is no file of a name any more, nor a link that leads nowhere.
func (f *folder) went(name string) bool {
	_, err := fs.Lstat(f.fs, name)
	return errors.Is(err, fs.ErrNotExist)
}

// judge concludes what the reading is worth as a list.
func (f *folder) judge(ok bool) {
	undecided, unknown := false, false
	for _, known := range f.files {
		undecided = undecided || !known.decided && !known.hasGood
		unknown = unknown || !known.known()
	}
	f.listed = f.listed || ok && !undecided
	f.complete = ok && !unknown
	if f.complete {
		f.lists++
	}
}

// miss drops the files that have been missing for long enough, and tells when the next one will have been. A file
// that a failed reading did not find may be just where it was.
func (f *folder) miss(found []string, now time.Time, ok bool) (due time.Time, removed bool) {
	for name, known := range f.files {
		if _, there := slices.BinarySearch(found, name); there {
			continue
		}
		if !ok {
			known.miss(time.Time{})
			continue
		}
		if known.missing.IsZero() {
			known.miss(now)
		}
		if at := known.missing.Add(gone); now.Before(at) {
			due = earlier(due, at)
		} else {
			delete(f.files, name)
			removed = true
		}
	}
	return due, removed
}

// publish makes the view anew: wholly if what the files say changed, and else only what is known of the lists.
func (f *folder) publish(touched bool) {
	if touched {
		f.view = f.merged.world()
		f.view.Problems = f.problems()
		f.view.SortLists()
		if more := len(f.view.Problems) - maxProblems; more > 0 {
			f.view.Problems = append(f.view.Problems[:maxProblems:maxProblems], world.Problem{
				Severity: world.Degraded, File: f.dir, Why: fmt.Sprintf("%d more problems", more), Remedy: "mend the ones above first"})
		}
	}
	f.view.Complete = f.complete
	kinds := world.Kinds()
	views := make([]world.KindView, len(kinds))
	for i, kind := range kinds {
		views[i] = world.KindView{Kind: kind, Listed: f.listed, Complete: f.complete, Lists: f.lists}
	}
	f.view.Kinds = views
}

// problems gathers what a person should mend.
func (f *folder) problems() []world.Problem {
	out := slices.Clone(f.trouble)
	for _, name := range f.order {
		out = append(out, f.files[name].problems()...)
	}
	return append(out, f.merged.problems...)
}

// walk lists the manifest files, sorted by name, and notes what could not be listed.
func (f *folder) walk() []string {
	f.trouble = nil
	var found []string
	err := fs.WalkDir(f.fs, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			f.trouble = append(f.trouble, f.problem(name, "cannot be listed: "+reason(err), "make it readable for this process; until then nothing is removed"))
			return fs.SkipDir
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !isManifest(name):
			return nil
		case !isFile(f.fs, name, d): // a pipe may have no end, and one who reads it waits
			if !isFolder(f.fs, name) {
				f.trouble = append(f.trouble, f.problem(name, "is no file, and is not read", "put a file in its place; until then nothing is removed"))
			}
			return nil
		case len(found) == maxFiles:
			f.trouble = append(f.trouble, f.problem("", fmt.Sprintf("more than %d files", maxFiles), "put several objects into one file"))
			return fs.SkipAll
		}
		found = append(found, name)
		return nil
	})
	if err != nil {
		f.trouble = append(f.trouble, f.problem("", reason(err), "make the folder readable for this process"))
	}
	slices.Sort(found)
	return found
}

func isManifest(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// isFile tells whether an entry is a file, or a link to one, as in the volumes that Kubernetes mounts. A link that
// leads nowhere counts too: it is a file that cannot be read.
func isFile(fsys fs.FS, name string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return d.Type().IsRegular()
	}
	info, err := fs.Stat(fsys, name)
	return err != nil || info.Mode().IsRegular()
}

// isFolder tells whether a link leads to a folder, of which nothing is read.
func isFolder(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.IsDir()
}

// problem is trouble with the folder itself, or with what it holds under name.
func (f *folder) problem(name, why, remedy string) world.Problem {
	at := f.dir
	if name != "" && name != "." {
		at = name
	}
	return world.Problem{Severity: world.Failed, File: at, Why: why, Remedy: remedy}
}

func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func sortedNames(files map[string]*file) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
