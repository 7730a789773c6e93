// SPDX-License-Identifier: Apache-2.0

// Package program finds the program that simulated processes run: built into release builds, built on demand in a
// checkout of the source.
//
// Start reading at Find.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"fairlead.io/fairlead/sim/mutants"
)

// module is how go.mod begins in a checkout.
const module = "module fairlead.io/fairlead\n"

// ErrNoSource says that neither a program nor the source of one is there.
var ErrNoSource = errors.New("this build holds no program for simulated processes, and this folder is not in a checkout of the source")

// Options say which program.
type Options struct {
	// Source is a folder in a checkout; empty: the current one.
	Source string
	// Cache is a folder for what was built; empty: fairlead/sim in the user's cache folder.
	Cache string
	// Overlay is a file that `go build -overlay` takes, for programs that differ otherwise from the source than by what
	// the release before this one did (see mutants.Overlay), which every one can play; empty: none.
	Overlay string
}

// Program is a program and where compilations of it may be kept.
type Program struct {
	Code  []byte
	Cache string
}

// Find gives the program that was built in, or builds it.
func Find(ctx context.Context, o Options) (Program, error) {
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return Program{}, err
	}
	if packed, ok := embedded(); ok && o.Overlay == "" {
		code, err := unpack(packed)
		return Program{Code: code, Cache: cache}, err
	}
	root, err := checkout(o.Source)
	if err != nil {
		return Program{}, err
	}
	code, err := build(ctx, root, cache, o)
	return Program{Code: code, Cache: cache}, err
}

func cacheFolder(given string) (string, error) {
	if given == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the cache folder: %w; set HOME or XDG_CACHE_HOME", err)
		}
		given = filepath.Join(base, "fairlead", "sim")
	}
	if err := os.MkdirAll(given, 0o700); err != nil {
		return "", fmt.Errorf("make the cache folder: %w; set XDG_CACHE_HOME to a folder that can be written", err)
	}
	return given, nil
}

// checkout finds the root of the source that a folder is in.
func checkout(from string) (string, error) {
	dir, err := filepath.Abs(from)
	if err != nil {
		return "", fmt.Errorf("find the source: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte(module)) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("%w; use a release, or run it inside of a checkout", ErrNoSource)
		}
		dir = parent
	}
}

// build has the go command build the program, which costs little where nothing changed.
func build(ctx context.Context, root, cache string, o Options) ([]byte, error) {
	target, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return nil, fmt.Errorf("build the simulated process: %w", err)
	}
	defer func() { _ = os.RemoveAll(target) }() // it was read
	file := filepath.Join(target, "guest.wasm")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file}
	overlay := o.Overlay
	if overlay == "" {
		if overlay, err = mutants.Overlay(root, target, nil); err != nil {
			return nil, err
		}
	}
	args = append(args, "-overlay", overlay)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/internal/simguest")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the simulated process in %s: %w: %s", root, err, strings.TrimSpace(string(out)))
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the simulated process: %w", err)
	}
	return code, nil
}
