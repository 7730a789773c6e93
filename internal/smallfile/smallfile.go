// SPDX-License-Identifier: Apache-2.0

// Package smallfile reads files that people name: keys, certificates, configurations. A wrong path must not fill the memory.
//
// Start reading at Read.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Most is what a file of keys or settings has at most, in bytes.
const Most = 1 << 20

// ErrLarge says that a file has more than it may.
var ErrLarge = errors.New("is it the right file?")

// Read gives what is in a file, whatever kind of file it is. Errors: those of os.ReadFile; ErrLarge.
func Read(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("%s: larger than %d bytes; %w", path, most, ErrLarge)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
