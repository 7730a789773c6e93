// SPDX-License-Identifier: Apache-2.0

// Command fetch fetches and compiles what the older release is built from, for tests that run where nothing can be fetched.
package main

import (
	"fmt"
	"os"

	"fairlead.io/fairlead/e2e/release"
)

func main() {
	if err := fetch(); err != nil {
		fmt.Fprintln(os.Stderr, "fetch the older release:", err)
		os.Exit(1)
	}
}

func fetch() error {
	folder, err := os.MkdirTemp("", "fairlead-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	_, err = release.Build(folder)
	return err
}
