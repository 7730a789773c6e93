// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// drawsDigest is a digest of what all properties drew, and how many there were: testkit.Check leaves a line for each in files of a
// folder. Runs of one tree have equal digests, in whatever order tests ran.
func drawsDigest(folder string) (digest string, properties int, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return "", 0, err
	}
	var lines []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", 0, err
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	slices.Sort(lines)
	sum := sha256.New()
	for _, l := range lines {
		_, _ = io.WriteString(sum, l+"\n") // a hash takes all
	}
	return fmt.Sprintf("%.8x", sum.Sum(nil)), len(lines), nil
}
