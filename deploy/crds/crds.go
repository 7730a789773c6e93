// SPDX-License-Identifier: Apache-2.0

// Package crds holds the definitions of kinds that come with the product, for those who apply them without kubectl. The
// files beside it are generated from the types. Start reading at Files.
package crds

import (
	"embed"
	"io/fs"
)

//go:embed lbcf.*.yaml
var files embed.FS

// Files gives the manifests, a definition each, in the order of their names.
func Files() ([][]byte, error) {
	names, err := fs.Glob(files, "*") // sorted
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(names))
	for i, name := range names {
		if out[i], err = files.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}
