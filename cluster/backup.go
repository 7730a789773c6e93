// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/hashicorp/raft"
)

// A backup is a line that names the format, a line of JSON (BackupHeader), the state in chunks that each begin with
// their length in four bytes, an empty chunk, and the SHA-256 of everything before it. It needs to be read only once,
// and a cut or changed one is noticed before anything is done with it.
const (
	backupMagic = "fairlead-backup 1\n"
	chunkBytes  = 64 << 10
)

// ErrNotABackup says that a file is no backup, or not a whole one.
var ErrNotABackup = errors.New("not a whole backup; take it from another copy")

// BackupHeader says what a backup is of.
type BackupHeader struct {
	Index    Index  `json:"index"` // everything up to here is in it
	Term     uint64 `json:"term"`
	ServerID string `json:"serverId"` // who wrote it
}

// Backup writes this member's record as of one index. On the leader it holds everything that was committed before the
// call; on another member possibly a little less.
func (n *Node) Backup(ctx context.Context, w io.Writer) (BackupHeader, error) {
	if n.raft.State() == raft.Leader {
		if err := n.Barrier(ctx); err != nil {
			return BackupHeader{}, fmt.Errorf("backup: %w", err)
		}
	}
	frozen, index, term, err := n.fsm.freeze(ctx)
	if err != nil {
		return BackupHeader{}, fmt.Errorf("backup: %w", err)
	}
	h := BackupHeader{Index: Index(index), Term: term, ServerID: string(n.id)}
	if err := WriteBackup(w, h, frozen); err != nil {
		return BackupHeader{}, fmt.Errorf("backup: %w", err)
	}
	return h, nil
}

// WriteBackup writes a state as a backup of which the header says what it is; Node.Restore takes it.
func WriteBackup(w io.Writer, h BackupHeader, state Frozen) error {
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	sum := sha256.New()
	all := io.MultiWriter(w, sum)
	if _, err := fmt.Fprintf(all, "%s%s\n", backupMagic, head); err != nil {
		return err
	}
	chunks := bufio.NewWriterSize(&chunkWriter{w: all}, chunkBytes)
	if err := state.Write(chunks); err != nil {
		return err
	}
	if err := chunks.Flush(); err != nil {
		return err
	}
	if err := binary.Write(all, binary.BigEndian, uint32(0)); err != nil {
		return err
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// chunkWriter writes each Write as a chunk.
type chunkWriter struct{ w io.Writer }

func (c *chunkWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := binary.Write(c.w, binary.BigEndian, uint32(len(p))); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

// readBackup gives the state to restore, and succeeds only if every byte is as it was written.
func readBackup(r io.Reader, restore func(io.Reader) error) (BackupHeader, error) {
	var h BackupHeader
	sum := sha256.New()
	in := bufio.NewReaderSize(r, chunkBytes)
	magic, err := line(in, sum)
	if err != nil || magic != backupMagic {
		return h, fmt.Errorf("%w: it does not begin with %q", ErrNotABackup, backupMagic[:len(backupMagic)-1])
	}
	head, err := line(in, sum)
	if err == nil {
		err = json.Unmarshal([]byte(head), &h)
	}
	if err != nil {
		return h, fmt.Errorf("%w: header: %w", ErrNotABackup, err)
	}
	chunks := &chunkReader{in: io.TeeReader(in, sum)}
	if err := restore(chunks); err != nil {
		return h, fmt.Errorf("%w: %w", ErrNotABackup, err)
	}
	if _, err := io.Copy(io.Discard, chunks); err != nil { // to the last chunk, if the state did not ask for it
		return h, fmt.Errorf("%w: %w", ErrNotABackup, err)
	}
	var want [sha256.Size]byte
	if _, err := io.ReadFull(in, want[:]); err != nil {
		return h, fmt.Errorf("%w: its checksum is missing", ErrNotABackup)
	}
	if [sha256.Size]byte(sum.Sum(nil)) != want {
		return h, fmt.Errorf("%w: its checksum does not match", ErrNotABackup)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return h, fmt.Errorf("%w: it goes on after its checksum", ErrNotABackup)
	}
	return h, nil
}

func line(in *bufio.Reader, sum hash.Hash) (string, error) {
	text, err := in.ReadSlice('\n') // bounded by the reader's buffer
	sum.Write(text)
	return string(text), err
}

// chunkReader reads chunks as one stream, to the empty one.
type chunkReader struct {
	in   io.Reader
	left uint32
	done bool
}

func (c *chunkReader) Read(p []byte) (int, error) {
	for c.left == 0 {
		if c.done {
			return 0, io.EOF
		}
		if err := binary.Read(c.in, binary.BigEndian, &c.left); err != nil {
			return 0, fmt.Errorf("cut short: %w", err)
		}
		c.done = c.left == 0
	}
	n, err := c.in.Read(p[:min(len(p), int(c.left))])
	c.left -= uint32(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
