// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"fairlead.io/fairlead/cluster/store"
)

const (
	metaFile = "meta.json" // the library's: index, term and configuration of a snapshot
	sumFile  = "meta.sum"  // ours
)

// sumOf is what a file ought to be read with, in hexadecimal digits.
func sumOf(raw []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(raw, crc32.MakeTable(crc32.Castagnoli)))
}

// sealMeta keeps a checksum of a finished snapshot's meta.json, which the library keeps none of: a damaged configuration
// would name other members.
func sealMeta(snapshot string) error {
	raw, err := os.ReadFile(filepath.Join(snapshot, metaFile))
	if err != nil {
		return err
	}
	return replace(filepath.Join(snapshot, sumFile), []byte(sumOf(raw)))
}

// checkMeta compares it. One that was finished when the process died has none yet.
func checkMeta(snapshot string) error {
	want, err := os.ReadFile(filepath.Join(snapshot, sumFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(snapshot, metaFile))
	if err != nil {
		return err
	}
	if have := sumOf(raw); have != string(want) {
		return fmt.Errorf("%w: its %s has checksum %s, written with %q", store.ErrCorrupt, metaFile, have, want)
	}
	return nil
}

// noSum stands where the checksum of an identity goes while it is computed.
const noSum = "00000000"

// sealIdentity puts the checksum of an identity, which was encoded with noSum, into it.
func sealIdentity(raw []byte) []byte {
	return bytes.Replace(raw, []byte(noSum), []byte(sumOf(raw)), 1)
}

// checkIdentity compares the checksum that was read with an identity, if it has one.
func checkIdentity(raw []byte, sum string) error {
	if sum == "" {
		return nil // an older release wrote it
	}
	if have := sumOf(bytes.Replace(raw, []byte(sum), []byte(noSum), 1)); have != sum {
		return fmt.Errorf("it has checksum %s, written with %s", have, sum)
	}
	return nil
}
