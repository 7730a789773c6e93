// SPDX-License-Identifier: Apache-2.0

// Package program finds the program that simulated processes run: built into release builds, built on demand in a
// checkout of the source. It is a program for this machine where there is a runtime for that (package native), and a
// WebAssembly module elsewhere. Equal seeds are equal runs of equal programs only.
//
// Start reading at Find; build.go has the go command build it.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
	// Engine is what the program is built for; empty: Native where that is possible, else WebAssembly.
	Engine Engine
}

// Engine is what runs a program.
type Engine string

// Engines.
const (
	Native      Engine = "native"
	WebAssembly Engine = "wasm"
)

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
	if packed, ok := embedded(); ok && o.Overlay == "" && o.Engine == "" {
		code, err := unpack(packed)
		return Program{Code: code, Cache: cache}, err
	}
	root, err := checkout(o.Source)
	if err != nil {
		return Program{}, err
	}
	code, err := build(ctx, root, cache, runtime.GOARCH, o)
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
