// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"fairlead.io/fairlead/sim/mutants"
	"fairlead.io/fairlead/sim/native"
	"fairlead.io/fairlead/sim/patch"
)

// build has the go command build the program for an architecture, which costs little where nothing changed.
func build(ctx context.Context, root, cache, arch string, o Options) ([]byte, error) {
	if o.Engine != WebAssembly && runs(arch) {
		n := o
		n.Engine = Native
		code, err := Build(ctx, root, cache, process, n)
		if o.Engine == Native || !errors.Is(err, native.ErrUnknownGo) {
			return code, err
		}
	}
	o.Engine = WebAssembly
	return Build(ctx, root, cache, process, o)
}

// process is the package of members and agents.
const process = "./cmd/internal/simguest"

// Build has the go command build a package of a checkout for an engine, which must be named, in a folder.
func Build(ctx context.Context, root, folder, name string, o Options) ([]byte, error) {
	target, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return nil, fmt.Errorf("build the simulated process: %w", err)
	}
	defer func() { _ = os.RemoveAll(target) }() // it was read
	replaced, err := replacements(ctx, root, target, o)
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(target, "whole.json")
	if err := patch.WriteOverlay(overlay, replaced); err != nil {
		return nil, err
	}
	file := filepath.Join(target, "guest")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlay, "-o", file}
	env := []string{"GOOS=wasip1", "GOARCH=wasm"}
	if o.Engine == Native {
		args = append(args, "-tags", native.Tag)
		env = native.Env()
	}
	if _, err := run(ctx, root, env, append(args, name)...); err != nil {
		return nil, fmt.Errorf("build the simulated process in %s: %w", root, err)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the simulated process: %w", err)
	}
	return code, nil
}

// run runs the go command on a source, whatever the user's settings are.
func run(ctx context.Context, root string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(append(os.Environ(), "GOFLAGS=", "GOWORK=off"), env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// replacements are the files that differ, written to a folder, by the files that they take the place of.
func replacements(ctx context.Context, root, folder string, o Options) (map[string]string, error) {
	overlay := o.Overlay
	if overlay == "" {
		var err error
		if overlay, err = mutants.Overlay(root, folder, nil); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		return nil, fmt.Errorf("read the overlay: %w", err)
	}
	var read struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("read the overlay %s: %w", overlay, err)
	}
	if o.Engine == Native {
		library, err := standardLibrary(ctx, root, folder)
		if err != nil {
			return nil, err
		}
		maps.Copy(read.Replace, library)
	}
	return read.Replace, nil
}

// standardLibrary writes what differs in Go's standard library.
func standardLibrary(ctx context.Context, root, folder string) (map[string]string, error) {
	said, err := run(ctx, root, nil, "env", "GOROOT", "GOMODCACHE")
	if err != nil {
		return nil, fmt.Errorf("find Go's source: %w", err)
	}
	goroot, modules, _ := strings.Cut(said, "\n")
	if strings.HasPrefix(goroot, modules+string(filepath.Separator)) {
		return nil, fmt.Errorf("%w: it was downloaded to %s, where the go command takes no changes", native.ErrUnknownGo, goroot)
	}
	sources, err := native.Sources(goroot)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, text := range sources {
		to := filepath.Join(folder, "go+"+strings.ReplaceAll(strings.TrimPrefix(name, goroot), string(filepath.Separator), "+"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write the runtime of simulated processes: %w", err)
		}
		out[name] = to
	}
	return out, nil
}

// runs says whether there is a native program for an architecture; they are for Linux.
func runs(arch string) bool { return runtime.GOOS == "linux" && arch == native.Arch }
