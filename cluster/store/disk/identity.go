// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster/store"
)

const identityFile = "identity.json"

// instanceBytes is the length of what is drawn for an instance: enough that a lost folder never gets its old name.
const instanceBytes = 6

// ErrForeign says that a folder holds what is not this member's.
var ErrForeign = errors.New("not the data folder of this member")

const remedyForeign = "give this member an empty folder, or the one that belongs to it"

// Identity is who a data folder belongs to. A folder that is lost gets another instance, and with it another server
// id: to the group it is a new server that knows nothing.
type Identity struct {
	Sum      string `json:"sum,omitempty"` // of the file as it was written; first, so that no value before it can look like it
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Group    string `json:"group,omitempty"` // once known
	Epoch    uint64 `json:"epoch,omitempty"` // that the lineage of its log began in, as this member last knew it
	Nonce    string `json:"nonce,omitempty"` // of that lineage, if it began with a recover
	// Format is the newest format that the group's record had, as this member last knew it: releases that do not know it
	// have no business here.
	Format uint32 `json:"format,omitempty"`
	// Removed says that the group has removed this server: the folder is of no use any more.
	Removed bool `json:"removed,omitempty"`
	// Differs says, for people, how this server's record was found to be another one than most voters': it takes no part any more. Empty if it was not.
	Differs string    `json:"differs,omitempty"`
	Created time.Time `json:"created"` // for people
	// Made is false until the files beside this one exist. A folder that was made and lacks its log was tampered with.
	Made bool `json:"made"`
}

// identify reads the folder's identity, or makes one in an empty folder.
func (f *Folder) identify(name string) error {
	path := filepath.Join(f.path, identityFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f.found(name)
	}
	if err != nil {
		return f.error("read "+identityFile, store.RemedyReplace, err)
	}
	var id Identity
	err = json.Unmarshal(raw, &id)
	if err == nil {
		err = checkIdentity(raw, id.Sum)
	}
	if err == nil && id.Instance == "" {
		err = errors.New("it names no instance")
	}
	if err != nil {
		return f.error("read "+identityFile, store.RemedyReplace, fmt.Errorf("%w: %w", store.ErrCorrupt, err))
	}
	if id.Name != name {
		return f.error("read "+identityFile, remedyForeign, fmt.Errorf("%w: it belongs to %s, this is %s", ErrForeign, id.Name, name))
	}
	f.identity = id
	if !id.Made {
		return f.finish()
	}
	return nil
}

// found draws an instance for an empty folder.
func (f *Folder) found(name string) error {
	names, err := f.foreign()
	if err != nil {
		return f.error("open data folder", remedyOpen, err)
	}
	if len(names) > 0 {
		return f.error("make data folder", remedyForeign,
			fmt.Errorf("%w: it has no %s, but holds %s", ErrForeign, identityFile, strings.Join(names, ", ")))
	}
	drawn := make([]byte, instanceBytes)
	if _, err := rand.Read(drawn); err != nil {
		return f.error("make data folder", remedyOpen, err)
	}
	f.identity = Identity{Name: name, Instance: hex.EncodeToString(drawn), Created: time.Now().UTC().Truncate(time.Second)}
	if err := f.writeIdentity(); err != nil {
		return err
	}
	return f.finish()
}

// finish makes the log and then says so. It begins anew if it was interrupted: nobody has seen this instance yet.
func (f *Folder) finish() error {
	path := filepath.Join(f.path, logFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.error("make the log", remedyOpen, err)
	}
	log, err := f.options.MakeLog(path)
	if err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return f.error("make the log", remedyOpen, err)
	}
	f.identity.Made, f.fresh = true, true
	return f.writeIdentity()
}

// SetMembership remembers the lineage that this member's log is of: it is asked for that before it has read its log.
func (f *Folder) SetMembership(group string, epoch uint64, nonce string) error {
	if f.identity.Group == group && f.identity.Epoch == epoch && f.identity.Nonce == nonce {
		return nil
	}
	f.identity.Group, f.identity.Epoch, f.identity.Nonce = group, epoch, nonce
	return f.writeIdentity()
}

// RaiseFormat remembers that the group's record has a format. One that is older than what it had is none to remember.
func (f *Folder) RaiseFormat(format uint32) error {
	if format <= f.identity.Format {
		return nil
	}
	f.identity.Format = format
	return f.writeIdentity()
}

// SetRemoved remembers whether the group has removed this server. It is for good, unless the folder becomes a group of
// its own.
func (f *Folder) SetRemoved(removed bool) error {
	if f.identity.Removed == removed {
		return nil
	}
	f.identity.Removed = removed
	return f.writeIdentity()
}

// SetDiffers remembers how this server's record was found to be another one than the group's. It is for good, unless the folder becomes a group of its own.
func (f *Folder) SetDiffers(found string) error {
	if f.identity.Differs == found {
		return nil
	}
	f.identity.Differs = found
	return f.writeIdentity()
}

// writeIdentity replaces the file as a whole, on disk when it returns.
func (f *Folder) writeIdentity() error {
	f.identity.Sum = noSum
	raw, err := json.MarshalIndent(f.identity, "", "  ")
	if err != nil {
		return f.error("write "+identityFile, remedyOpen, err)
	}
	if err := replace(filepath.Join(f.path, identityFile), sealIdentity(append(raw, '\n'))); err != nil {
		return f.error("write "+identityFile, remedyOpen, err)
	}
	return nil
}

// replace writes a file beside the old one, syncs it, moves it into place and syncs the folder.
func replace(path string, data []byte) error {
	next := path + ".next"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
