// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"pgregory.net/rapid"
)

// drawsFolder is where draws are recorded; "" records nothing.
var drawsFolder = os.Getenv("FAIRLEAD_DRAWS")

// draws is a record of what a property drew. A nil one records nothing.
type draws struct {
	folder, pkg, name string

	checks int
	sum    hash.Hash
	failed atomic.Bool // and that was told: what rapid logs then is for whoever reads the output
}

var (
	callsMu sync.Mutex
	calls   = map[string]int{} // by package and test
	fileMu  sync.Mutex
	// Addresses of memory are in what %#v makes of pointers in a value.
	address = regexp.MustCompile(`\)\(0x[0-9a-f]+\)`)
)

func newDraws(folder, pkg, test string) *draws {
	callsMu.Lock()
	defer callsMu.Unlock()
	calls[test]++
	return &draws{folder: folder, pkg: pkg, name: fmt.Sprintf("%s#%d", strings.ReplaceAll(test, " ", "_"), calls[test]), sum: sha256.New()}
}

// counted is prop that draws once more at the end of each check: what comes then depends on how often it drew before.
func (d *draws) counted(prop func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		prop(t)
		if !t.Failed() {
			d.checks++
			rapid.Uint64().Draw(t, "end of the check")
		}
	}
}

// hears takes what rapid logs, as long as that tells of draws.
func (d *draws) hears(format string, args []any) bool {
	if d == nil || d.failed.Load() || strings.HasPrefix(format, "[rapid] OK") {
		return false
	}
	if strings.HasPrefix(format, "[rapid] draw") {
		_, _ = d.sum.Write(address.ReplaceAll(fmt.Appendf(nil, format+"\n", args...), nil))
	}
	return true
}

func (d *draws) fail() {
	if d != nil {
		d.failed.Store(true)
	}
}

// save adds a line to this process' file.
func (d *draws) save() error {
	fileMu.Lock()
	defer fileMu.Unlock()
	name := fmt.Sprintf("%s.%d", strings.ReplaceAll(d.pkg, "/", "-"), os.Getpid())
	f, err := os.OpenFile(filepath.Join(d.folder, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("record draws: %w", err)
	}
	if _, err := fmt.Fprintf(f, "%s %s %d %x\n", d.pkg, d.name, d.checks, d.sum.Sum(nil)[:16]); err != nil {
		_ = f.Close()
		return fmt.Errorf("record draws: %w", err)
	}
	return f.Close()
}
