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
	lines, err := drawsIn(folder)
	if err != nil {
		return "", 0, err
	}
	slices.Sort(lines)
	sum := sha256.New()
	for _, l := range lines {
		_, _ = io.WriteString(sum, l+"\n") // a hash takes all
	}
	return fmt.Sprintf("%.8x", sum.Sum(nil)), len(lines), nil
}

func drawsIn(folder string) (lines []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	return lines, nil
}

// drawn gives the tests, as "package test", of which a property is or that have one in a part.
func drawn(folder string) (map[string]bool, error) {
	lines, err := drawsIn(folder)
	tests := map[string]bool{}
	for _, l := range lines {
		pkg, name, _ := strings.Cut(l, " ")
		tests[strings.TrimSuffix(pkg, "_test")+" "+name[:strings.IndexAny(name+"#", "/#")]] = true
	}
	return tests, err
}
