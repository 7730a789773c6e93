// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build makes programs for an architecture, and gives their bytes by their paths in the image. Extra goes to the go
// command.
func build(ctx context.Context, dir, arch string, programs map[string]string, extra ...string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for path, pkg := range programs {
		output := filepath.Join(dir, arch+"-"+filepath.Base(path))
		args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", output}, extra...)
		cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
		// The defaults of instruction sets, so that a setting of this machine has no say.
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=")
		if words, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build %s for linux/%s: %w: %s", pkg, arch, err, strings.TrimSpace(string(words)))
		}
		program, err := os.ReadFile(output)
		if err != nil {
			return nil, err
		}
		files[path] = program
	}
	return files, nil
}
