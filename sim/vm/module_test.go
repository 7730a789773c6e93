// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"fairlead.io/fairlead/sim/engine"
)

func TestModuleIsKnownByItsCode(t *testing.T) {
	_, err := Load(context.Background(), []byte("not wasm"), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "load module") {
		t.Errorf("loaded text: %v", err)
	}
	code, err := os.ReadFile(filepath.Join("testdata", "empty.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(context.Background(), code, "")
	if err != nil {
		t.Fatal(err)
	}
	if m.Sum() != sha256.Sum256(code) {
		t.Error("wrong sum")
	}
	w := engine.New(1)
	var ended error
	Start(Spec{World: w, Name: "p", Module: m, Ended: func(err error) { ended = err }})
	if err := w.Run(time.Second); err != nil || ended == nil || !strings.Contains(ended.Error(), "no _start") {
		t.Errorf("run %v, ended with %v", err, ended)
	}
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// The image of a program's data is what wazero, given the whole program, makes of it.
func TestImageIsTheDataOfTheProgram(t *testing.T) {
	if guest.native != nil {
		return // it has no image
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	if err := export(ctx, r); err != nil {
		t.Fatal(err)
	}
	instance, err := r.InstantiateWithConfig(ctx, code, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	want, _ := instance.Memory().Read(0, instance.Memory().Size())
	got := make([]byte, guest.image.size)
	if _, err := guest.image.file.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	if len(got) < 100_000 || !bytes.HasPrefix(want, got) || len(bytes.Trim(want[len(got):], "\x00")) != 0 {
		t.Errorf("an image of %d bytes, and a memory that holds something else", len(got))
	}
}

func TestProgramWhoseDataHasNoFixedPlaceKeepsIt(t *testing.T) {
	const head = "\x00asm\x01\x00\x00\x00"
	for name, module := range map[string]string{
		"no data":          head + "\x05\x03\x01\x00\x01",
		"counted data":     head + "\x0c\x01\x01\x0b\x07\x01\x00\x41\x00\x0b\x01x",
		"passive data":     head + "\x0b\x04\x01\x01\x01x",
		"place in global":  head + "\x0b\x07\x01\x00\x23\x00\x0b\x01x",
		"negative place":   head + "\x0b\x07\x01\x00\x41\x7f\x0b\x01x",
		"data cut short":   head + "\x0b\x07\x01\x00\x41\x00\x0b\x02x",
		"section too long": head + "\x0b\x7f\x01",
	} {
		if _, memory := withoutData([]byte(module)); memory != nil {
			t.Errorf("%s: data %q taken out", name, memory)
		}
	}
	module := head + "\x05\x03\x01\x00\x01" + "\x0b\x0d\x02\x00\x41\x02\x0b\x01x\x00\x41\x04\x0b\x01y" + "\x00\x02\x01z"
	rest, memory := withoutData([]byte(module))
	if string(memory) != "\x00\x00x\x00y" || string(rest) != head+"\x05\x03\x01\x00\x01"+"\x00\x02\x01z" {
		t.Errorf("split into %q and %q", rest, memory)
	}
}
