// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// memoryPages bounds the memory of a process, in pages of 64 KiB: 1 GiB.
const memoryPages = 1 << 14

// Module is a program, ready to run. Worlds that run in parallel may share it: processes have nothing in common but code.
type Module struct {
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiled wazero.CompiledModule
	image    *image
	native   *os.File // a program for this machine; then there is nothing else
	sum      [sha256.Size]byte
}

// Load takes a program for this machine as it is. It compiles one in WebAssembly, or takes it from a folder of earlier
// compilations (which is made; "" keeps none). The folder keeps those of the programs that were loaded last.
func Load(ctx context.Context, code []byte, cacheDir string) (*Module, error) {
	m := &Module{sum: sha256.Sum256(code)}
	if bytes.HasPrefix(code, []byte("\x7fELF")) {
		return m, m.loadNative(code)
	}
	config := wazero.NewRuntimeConfigCompiler().WithMemoryLimitPages(memoryPages).WithDebugInfoEnabled(false)
	if cacheDir != "" {
		cache, err := openCache(cacheDir, m.sum)
		if err != nil {
			return nil, fmt.Errorf("load module %x: open cache %s: %w", m.sum[:4], cacheDir, err)
		}
		m.cache, config = cache, config.WithCompilationCache(cache)
	}
	m.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := m.load(ctx, code); err != nil {
		return nil, fmt.Errorf("load module %x: %w", m.sum[:4], errors.Join(err, m.Close(ctx)))
	}
	return m, nil
}

func (m *Module) load(ctx context.Context, code []byte) error {
	if err := export(ctx, m.runtime); err != nil {
		return fmt.Errorf("export system calls: %w", err)
	}
	rest, image, err := split(code)
	if err != nil {
		return err
	}
	m.image = image
	m.compiled, err = m.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), rest)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	return nil
}

// Sum is the SHA-256 of the program. Runs can be compared for equal programs only.
func (m *Module) Sum() [sha256.Size]byte { return m.sum }

// Close frees it. No process of it may be alive.
func (m *Module) Close(ctx context.Context) error {
	if m.native != nil {
		return m.native.Close()
	}
	err := m.runtime.Close(ctx)
	if m.cache != nil {
		err = errors.Join(err, m.cache.Close(ctx))
	}
	if m.image != nil {
		err = errors.Join(err, m.image.close())
	}
	return err
}
