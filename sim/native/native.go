// SPDX-License-Identifier: Apache-2.0

// Package native has Go build programs for processes of simulated worlds that run on this machine's own processor,
// several times as fast as the same program in WebAssembly.
//
// Such a program is an ordinary one for Linux whose runtime was changed in a few lines (go.patch) and got two files more
// (source/): it has one thread; its clocks, its randomness and its files are the world's; and where nothing is left to
// run, it waits for the world, which is the only place where it waits. So it does the same in every run of a world, as
// a WebAssembly instance does by construction. What it can reach is not enforced: it is our own program, and asks the
// machine for memory only.
//
// The changes fit releases of Go whose lines they name. With any other, ErrUnknownGo says so, and WebAssembly remains.
//
// Start reading at Sources; package vm is the world's side.
package native

import (
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fairlead.io/fairlead/sim/patch"
)

// ErrUnknownGo says that the installed Go is none for which the changes were made.
var ErrUnknownGo = errors.New("no runtime for simulated processes is known for this release of Go")

// Tag is the build tag of programs for worlds, and Arch the architecture that they are for, under Linux.
const (
	Tag  = "simulated"
	Arch = "amd64"
)

// Env is what the go command builds them with.
func Env() []string { return []string{"GOOS=linux", "GOARCH=" + Arch, "GOAMD64=v1", "CGO_ENABLED=0"} }

//go:embed go.patch
var changes string

//go:embed source/*.go.txt
var added embed.FS

// Sources are the files of Go's standard library in a GOROOT that differ, with their whole texts, by their full names.
// Errors: ErrUnknownGo.
func Sources(goroot string) (map[string]string, error) {
	src := filepath.Join(goroot, "src")
	_, body := patch.Cut(changes)
	patches, err := patch.Parse(body)
	if err != nil {
		return nil, err
	}
	tree := patch.In(src)
	if err := tree.Take("the runtime of simulated processes", patches); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknownGo, err)
	}
	out := map[string]string{}
	for name, f := range tree.Files() {
		if out[filepath.Join(src, name)], err = f.Text(); err != nil {
			return nil, err
		}
	}
	return out, addSources(filepath.Join(src, "runtime"), out)
}

func addSources(folder string, to map[string]string) error {
	entries, err := added.ReadDir("source")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := added.ReadFile("source/" + e.Name())
		if err != nil {
			return err
		}
		to[filepath.Join(folder, "world_"+strings.TrimSuffix(e.Name(), ".txt"))] = string(text)
	}
	return nil
}
