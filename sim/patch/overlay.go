// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"os"
)

// WriteOverlay writes the file that `go build -overlay` takes: what is built instead, by what it takes the place of.
func WriteOverlay(file string, replaced map[string]string) error {
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return fmt.Errorf("encode the overlay: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write the overlay: %w", err)
	}
	return nil
}
