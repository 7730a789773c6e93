// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// Whatever is done to the folder, and however it fails: once it has been left alone for a while without trouble, the
// World holds what the files last said in a readable form; and while there is trouble, nothing leaves it. Objects that
// went while all was well are evidence, those that are missing after trouble are not.
func TestPropertyTheWorldFollowsTheFolderAndForgetsNothing(t *testing.T) {
	t.Parallel()
	names := []string{"a.yaml", "b.yaml", "sub/c.yaml"}
	testkit.Check(t, func(t *rapid.T) {
		b := newBench()
		stood := map[string]string{} // by file: services that it held when it last was whole
		quiet := map[string]string{} // by file: its text when the folder was last left alone
		troubled := false            // since the folder was last seen to be just as the World has it
		shaken := false              // since it was last left alone for a while
		everWhole := false
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			for range rapid.IntRange(0, 4).Draw(t, "edits") {
				name := rapid.SampledFrom(names).Draw(t, "file")
				switch rapid.SampledFrom([]string{"write", "write", "break", "cut", "empty", "delete"}).Draw(t, "edit") {
				case "write":
					var docs []string
					for i := range rapid.IntRange(1, 3).Draw(t, "services") {
						docs = append(docs, service(fmt.Sprintf("%s%d", strings.TrimSuffix(path.Base(name), ".yaml"), i)))
					}
					b.write(name, strings.Join(docs, "---\n"))
				case "break":
					b.write(name, "a: b: c\n")
				case "cut":
					b.write(name, rapid.SampledFrom([]string{"kind: Service\n", "---\napiVersion: v1\n", "nonsense\n", "[1, 2]\n"}).Draw(t, "rest"))
				case "empty":
					b.write(name, "# nothing\n")
				case "delete":
					delete(b.disk.files, name)
				}
				b.pass(time.Millisecond)
				shaken = shaken || len(b.disk.files) == 0
				troubled = (troubled || len(b.disk.files) == 0) && !asItWas(b, quiet)
			}
			before := serviceNames(b.source.World())
			trouble := rapid.SampledFrom([]string{"", "", "", ".", "a.yaml", "sub"}).Draw(t, "trouble")
			if trouble != "" {
				if _, there := b.disk.files[trouble]; !there && trouble == "a.yaml" {
					trouble = "."
				}
				b.disk.broken[trouble] = errDisk
			}
			b.pass(3 * time.Second)
			failing := trouble == "." || trouble == "a.yaml" || trouble == "sub" && b.disk.files["sub/c.yaml"] != nil || len(b.disk.files) == 0
			delete(b.disk.broken, trouble)
			got := serviceNames(b.source.World())
			if failing {
				troubled, shaken = true, true
				for _, s := range strings.Fields(before) {
					if !slices.Contains(strings.Fields(got), s) && stillStands(b, stood, s) {
						t.Fatalf("%s left the World (%q -> %q) while %q failed", s, before, got, trouble)
					}
				}
				// What the failing reading could see of the files may have been taken in; go on from a quiet state.
				b.pass(3 * time.Second)
				got = serviceNames(b.source.World())
				if len(b.disk.files) == 0 {
					continue
				}
			}
			gonePreviously := evidence(b)
			whole := true
			for name := range stood {
				if b.disk.files[name] == nil {
					delete(stood, name)
				}
			}
			for name, f := range b.disk.files {
				switch text := string(f.Data); {
				case strings.HasPrefix(text, "apiVersion"):
					stood[name] = text
				default: // broken, cut off or empty: it counts as it was, and of one that was nothing nobody knows what it held
					whole = whole && stood[name] != ""
				}
			}
			if want := servicesIn(stood); got != want {
				t.Fatalf("services %q, want %q", got, want)
			}
			if w := b.source.World(); w.Complete != whole && everWhole {
				t.Fatalf("complete %t, want %t", w.Complete, whole)
			}
			everWhole = true
			for _, s := range strings.Fields(before) {
				left := !slices.Contains(strings.Fields(got), s)
				seen := slices.Contains(gonePreviously, s)
				if left && (seen && troubled || !seen && !shaken) {
					t.Fatalf("%s left; evidence %t, after trouble %t or %t", s, seen, troubled, shaken)
				}
			}
			troubled, shaken = false, false
			clear(quiet)
			for name, f := range b.disk.files {
				quiet[name] = string(f.Data)
			}
		}
	})
}

// asItWas tells whether the folder is again just as it was when it was last left alone: the trouble is over then.
func asItWas(b *bench, before map[string]string) bool {
	for name, text := range before {
		if f := b.disk.files[name]; f == nil || string(f.Data) != text {
			return false
		}
	}
	return len(before) == len(b.disk.files) && len(before) > 0
}

// stillStands tells whether a service is in what some file last said.
func stillStands(b *bench, stood map[string]string, service string) bool {
	return slices.Contains(strings.Fields(servicesIn(stood)), service)
}

func servicesIn(files map[string]string) string {
	var out []string
	for _, text := range files {
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, "  name: "); ok {
				out = append(out, strings.TrimSpace(name))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func evidence(b *bench) []string {
	var out []string
	w := b.source.World()
	for _, d := range w.Deleted {
		out = append(out, d.Name)
	}
	return out
}
