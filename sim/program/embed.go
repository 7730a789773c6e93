// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fairlead.io/fairlead/sim/patch"
)

// Tag is the build tag of a fairlead that holds the program.
const Tag = "fairlead_sim"

// place is where the compiler looks for the program, from the root of the source.
const place = "sim/program/guest.gz"

// Embed builds the program for an architecture into a folder, and gives the file to be named by `go build -tags fairlead_sim -overlay`, so
// that a fairlead built in that way needs neither source nor compiler. Equal sources give equal bytes.
func Embed(ctx context.Context, source, folder, arch string) (overlay string, err error) {
	root, err := checkout(source)
	if err != nil {
		return "", err
	}
	code, err := build(ctx, root, folder, arch, Options{})
	if err != nil {
		return "", err
	}
	packed := filepath.Join(folder, "guest.gz")
	if err := os.WriteFile(packed, pack(code), 0o600); err != nil {
		return "", fmt.Errorf("embed the simulated process: %w", err)
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, patch.WriteOverlay(overlay, map[string]string{filepath.Join(root, place): packed})
}

func pack(code []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(code) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		var code []byte
		if code, err = io.ReadAll(r); err == nil {
			return code, nil
		}
	}
	return nil, fmt.Errorf("unpack the simulated process that was built in: %w", err)
}
