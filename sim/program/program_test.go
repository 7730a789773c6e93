// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

func TestOutsideOfACheckoutItSaysSo(t *testing.T) {
	_, err := Find(context.Background(), Options{Source: t.TempDir(), Cache: t.TempDir()})
	if !errors.Is(err, ErrNoSource) {
		t.Fatal(err)
	}
}

func TestCacheThatCannotBeMadeIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(context.Background(), Options{Cache: filepath.Join(file, "cache")}); err == nil {
		t.Fatal("made")
	}
}

func TestWhatIsEmbeddedIsTheProgram(t *testing.T) {
	testkit.Long(t, "builds the program of simulated processes")
	folder := t.TempDir()
	overlay, err := Embed(context.Background(), "", folder, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var o struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &o); err != nil || len(o.Replace) != 1 {
		t.Fatalf("%s: %v", text, err)
	}
	for _, packed := range o.Replace {
		b, err := os.ReadFile(packed)
		if err != nil {
			t.Fatal(err)
		}
		code, err := unpack(b)
		built, builtErr := Find(context.Background(), Options{Cache: t.TempDir()})
		if err != nil || builtErr != nil || !bytes.Equal(code, built.Code) {
			t.Fatalf("%d bytes, %v; %d bytes, %v", len(code), err, len(built.Code), builtErr)
		}
	}
}
