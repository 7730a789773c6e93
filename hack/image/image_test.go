// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// entries reads a tar archive, and holds every entry to what all of them must be like.
func entries(t rapid.TB, archive []byte) map[string][]byte {
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(time.Unix(0, 0)) || h.Uid != 0 || h.Gid != 0 || h.Uname+h.Gname != "" {
			t.Errorf("%s is of %s, %d:%d", h.Name, h.ModTime, h.Uid, h.Gid)
		}
		if _, again := files[h.Name]; again {
			t.Errorf("%s is there twice", h.Name)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// unpack follows an archive as a container runtime does, from index.json to the files of each architecture, and
// checks each digest and size on the way.
func unpack(t rapid.TB, archive []byte) map[string]map[string][]byte {
	files := entries(t, archive)
	follow := func(d descriptor) []byte {
		content, ok := files[pathOf(d.Digest)]
		if !ok || digestOf(content) != d.Digest || len(content) != d.Size {
			t.Fatalf("blob %s: there: %v, digest %s, %d bytes of %d", d.Digest, ok, digestOf(content), len(content), d.Size)
		}
		return content
	}
	read := func(content []byte, into any) {
		if err := json.Unmarshal(content, into); err != nil {
			t.Fatal(err)
		}
	}
	var root, all index
	read(files["index.json"], &root)
	read(follow(root.Manifests[0]), &all)
	out := map[string]map[string][]byte{}
	for _, d := range all.Manifests {
		var m manifest
		var c config
		read(follow(d), &m)
		read(follow(m.Config), &c)
		z, err := gzip.NewReader(bytes.NewReader(follow(m.Layers[0])))
		if err != nil {
			t.Fatal(err)
		}
		layer, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if c.Architecture != d.Platform.Architecture || len(c.RootFS.DiffIDs) != 1 || c.RootFS.DiffIDs[0] != digestOf(layer) {
			t.Errorf("configuration %+v of platform %+v", c, d.Platform)
		}
		out[c.Architecture] = entries(t, layer)
	}
	return out
}

func TestArchivesHoldWhatWasPutInAndNothingOfWhenAndHow(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		content := rapid.MapOf(rapid.SampledFrom([]string{"bin/a", "bin/b", "etc/x/y", "z"}), rapid.SliceOf(rapid.Byte()))
		var images []image
		for _, arch := range []string{"amd64", "arm64"} {
			images = append(images, image{arch, content.Draw(t, arch)})
		}
		archive, digest, err := pack("registry.example.com:5000/fairlead:v1", images)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range images {
			got := unpack(t, archive)[i.Architecture]
			files := 0
			for name, text := range got {
				if !strings.HasSuffix(name, "/") {
					files++
					if !bytes.Equal(text, i.Files[name]) {
						t.Errorf("%s: %s differs", i.Architecture, name)
					}
				}
			}
			if files != len(i.Files) {
				t.Errorf("%s: %d files of %d", i.Architecture, files, len(i.Files))
			}
		}
		again, other, err := pack("registry.example.com:5000/fairlead:v1", images)
		if err != nil || other != digest || !bytes.Equal(again, archive) {
			t.Errorf("packed again: %s, then %s, %v", digest, other, err)
		}
	})
}

// A kubelet finds what an archive brought by the name that manifests have: its runtime looks for the full one. What is no name is refused
// before anything is built.
func TestArchivesBearFullNames(t *testing.T) {
	for name, want := range map[string]string{
		"fairlead:latest": "docker.io/library/fairlead:latest", "fairlead": "docker.io/library/fairlead:latest", "me/fairlead:v1": "docker.io/me/fairlead:v1",
		"registry.example.com:5000/fairlead:v1": "registry.example.com:5000/fairlead:v1", "localhost/fairlead:v1": "localhost/fairlead:v1", "Fair lead": "",
	} {
		full, err := fullName(name)
		if full != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", name, full, err, want)
			continue
		}
		if want == "" {
			continue
		}
		archive, _, err := pack(full, []image{{"amd64", nil}})
		if err != nil {
			t.Fatal(err)
		}
		var root index
		var docker []struct{ RepoTags []string }
		files := entries(t, archive)
		if err := errors.Join(json.Unmarshal(files["index.json"], &root), json.Unmarshal(files["manifest.json"], &docker)); err != nil {
			t.Fatal(err)
		}
		if named := root.Manifests[0].Annotations[keyName]; named != want || !slices.Equal(docker[0].RepoTags, []string{want}) {
			t.Errorf("%s: containerd reads %q, Docker %q", name, named, docker[0].RepoTags)
		}
	}
	if code := run(t.Context(), []string{"--name", "Fair lead", "--out", filepath.Join(t.TempDir(), "x.tar")}, io.Discard, io.Discard); code != 2 {
		t.Errorf("what is no name ends with %d", code)
	}
}

// The same source gives the same program in another folder, with another cache of builds, at another time.
func TestProgramsAreTheSameWhereverTheyAreBuilt(t *testing.T) {
	testkit.NotFast(t, "compiles Go's own packages twice")
	var built []map[string][]byte
	for range 2 {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"go.mod":  "module example.com/hello\n\ngo 1.26\n",
			"main.go": "package main\n\nimport \"runtime\"\n\nfunc main() {\n\t_, file, _, _ := runtime.Caller(0)\n\tprintln(file)\n}\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Chdir(dir)
		t.Setenv("GOCACHE", t.TempDir())
		files, err := build(t.Context(), t.TempDir(), runtime.GOARCH, map[string]string{"bin/hello": "example.com/hello"})
		if err != nil {
			t.Fatal(err)
		}
		built = append(built, files)
	}
	if !bytes.Equal(built[0]["bin/hello"], built[1]["bin/hello"]) {
		t.Error("two builds differ")
	}
}

// The real image of this machine's architecture, twice: the same bytes, and programs that run.
func TestImageIsReproducibleAndRuns(t *testing.T) {
	testkit.Long(t, "builds the product twice")
	dir := t.TempDir()
	var archives [][]byte
	for _, name := range []string{"a.tar", "b.tar"} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"--arch", runtime.GOARCH, "--out", filepath.Join(dir, name)}, &stdout, &stderr); code != 0 {
			t.Fatalf("exit %d: %s", code, stderr.String())
		}
		archive, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds differ")
	}
	files := unpack(t, archives[0])[runtime.GOARCH]
	for path, c := range map[string]struct{ arg, want string }{
		"bin/fairlead": {"version", "format"}, "bin/gobgp": {"--help", "neighbor"},
		"bin/fairlead-driver-haproxy": {"--help", "-socket"},
	} {
		program := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(program, files[path], 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(program, c.arg).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s %s: %v: %s", path, c.arg, err, out)
		}
	}
}
