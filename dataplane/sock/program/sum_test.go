// SPDX-License-Identifier: Apache-2.0

package program

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// Balancing §1: what is in the tree, for amd64 and arm64, was compiled from the source that is beside it.
// Rule: balancing §16.
func TestCompiledProgramsAreCurrent(t *testing.T) {
	source, err := os.ReadFile("sock.c")
	if err != nil {
		t.Fatal(err)
	}
	noted, err := os.ReadFile("sock.sum")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(source)
	if hex.EncodeToString(sum[:]) != strings.TrimSpace(string(noted)) {
		t.Error("sock.c is not what the objects were compiled from: run dataplane/sock/program/generate.sh")
	}
}
