// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// backedUp is what `fairlead raft backup` prints.
type backedUp struct {
	File      string   `json:"file"`
	Group     string   `json:"group"`
	Revision  revision `json:"revision"`
	Format    uint32   `json:"format"`
	SizeBytes uint64   `json:"sizeBytes"`
	SHA256    string   `json:"sha256"`
}

// WriteTable writes one fact a line.
func (b backedUp) WriteTable(w io.Writer) error {
	return output.WriteFields(w,
		[2]string{"file", b.File},
		[2]string{"group", b.Group},
		[2]string{"revision", b.Revision.String()},
		[2]string{"format", number(uint64(b.Format))},
		[2]string{"size", fmt.Sprintf("%d bytes", b.SizeBytes)},
		[2]string{"sha256", b.SHA256},
	)
}

func newRaftBackup(c *cli) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the record to a new file, which is complete once it is there",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := args[0]
			if _, err := os.Lstat(path); err == nil {
				return fmt.Errorf("raft backup: %s: it exists and is never overwritten; name another file", path)
			}
			file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // readable by its owner only
			if err != nil {
				return fmt.Errorf("raft backup: %w; name a file in a folder that can be written to", err)
			}
			req := &fairleadv1.BackupRequest{Force: ch.force, Reason: ch.reason}
			summary, err := ask(cmd.Context(), c, "raft backup", longWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.BackupSummary, error) {
				return receive(ctx, client, req, file)
			})
			if err == nil {
				err = keep(file, path)
			}
			if err != nil {
				return errors.Join(err, discard(file))
			}
			return c.print(backedUp{
				File: path, Group: summary.GetGroup(), Revision: revisionOf(summary.GetRevision()), Format: summary.GetFormat(),
				SizeBytes: summary.GetSizeBytes(), SHA256: hex.EncodeToString(summary.GetSha256()),
			})
		},
	}
	ch.addFlags(cmd, "take it from a leader without quorum: it may lack what others agreed on")
	return cmd
}

// receive writes a backup to w and makes sure that it is whole.
func receive(ctx context.Context, client *admin.Client, req *fairleadv1.BackupRequest, w io.Writer) (*fairleadv1.BackupSummary, error) {
	stream, err := client.Raft.Backup(ctx, req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // what matters of it came, or failed, before
	sum, size := sha256.New(), uint64(0)
	for stream.Receive() {
		if summary := stream.Msg().GetSummary(); summary != nil {
			return summary, checkWhole(summary, size, sum)
		}
		data := stream.Msg().GetData()
		size += uint64(len(data))
		_, _ = sum.Write(data) // a hash never fails
		if _, err := w.Write(data); err != nil {
			return nil, fmt.Errorf("%w; make room, or name a file elsewhere", err)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return nil, errors.New("the backup ended early; try again")
}

func checkWhole(summary *fairleadv1.BackupSummary, size uint64, sum hash.Hash) error {
	if size != summary.GetSizeBytes() || !bytes.Equal(sum.Sum(nil), summary.GetSha256()) {
		return fmt.Errorf("%d bytes came that are not the %d bytes that were sent; try again", size, summary.GetSizeBytes())
	}
	return nil
}

// keep gives a complete file its name.
func keep(file *os.File, path string) error {
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("raft backup: %w; make room, or name a file elsewhere", err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("raft backup: %w; name another file", err)
	}
	return nil
}

// discard removes the temporary file; it may be closed already.
func discard(file *os.File) error {
	_ = file.Close() // what it holds is of no use
	return os.Remove(file.Name())
}

// restored is what `fairlead raft restore` prints.
type restored struct {
	DryRun          bool     `json:"dryRun"`
	Revision        revision `json:"revision"`
	Differences     []string `json:"differences"`
	MoreDifferences uint64   `json:"moreDifferences"`
}

// WriteTable writes the differences, then where the group stands.
func (r restored) WriteTable(w io.Writer) error {
	for _, d := range r.Differences {
		if _, err := fmt.Fprintln(w, output.Clean(d)); err != nil {
			return err
		}
	}
	if r.MoreDifferences > 0 {
		if _, err := fmt.Fprintf(w, "and %d more\n", r.MoreDifferences); err != nil {
			return err
		}
	}
	what := "restored: revision"
	if r.DryRun {
		what = "dry run, nothing changed: would follow on revision"
	}
	_, err := fmt.Fprintf(w, "%s %s\n", what, r.Revision)
	return err
}

func newRaftRestore(c *cli) *cobra.Command {
	header := &fairleadv1.RestoreHeader{}
	var ch change
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the record by a backup, in a new epoch; --dry-run tells what would differ",
		Args:  arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("raft restore: %w; name a file that `fairlead raft backup` wrote", err)
			}
			defer func() { _ = file.Close() }() // only read
			header.Force, header.Reason = ch.force, ch.reason
			if err := measure(file, header); err != nil {
				return fmt.Errorf("raft restore: %w", err)
			}
			answer, err := ask(cmd.Context(), c, "raft restore "+args[0], longWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.RestoreResponse, error) {
				return send(ctx, client, header, file)
			})
			if err != nil {
				return err
			}
			return c.print(restored{
				DryRun: header.GetDryRun(), Revision: revisionOf(answer.GetRevision()),
				Differences: append([]string{}, answer.GetDifferences()...), MoreDifferences: answer.GetMoreDifferences(),
			})
		},
	}
	cmd.Flags().BoolVar(&header.DryRun, "dry-run", false, "change nothing, print what would differ")
	ch.addFlags(cmd, "do it although the backup is another group's, or older than what the outside was told")
	return cmd
}

// measure reads the file once for its size and hash, which go first, and leaves it at its start.
func measure(file *os.File, header *fairleadv1.RestoreHeader) error {
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return err
	}
	header.SizeBytes, header.Sha256 = uint64(size), sum.Sum(nil)
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// restorePiece is how much of a backup goes into one message.
const restorePiece = 256 << 10

func send(ctx context.Context, client *admin.Client, header *fairleadv1.RestoreHeader, r io.Reader) (*fairleadv1.RestoreResponse, error) {
	stream, err := client.Raft.Restore(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&fairleadv1.RestoreRequest{Part: &fairleadv1.RestoreRequest_Header{Header: header}})
	piece := make([]byte, restorePiece)
	for err == nil {
		n, readErr := io.ReadFull(r, piece)
		if n > 0 {
			err = stream.Send(&fairleadv1.RestoreRequest{Part: &fairleadv1.RestoreRequest_Data{Data: piece[:n]}})
		}
		if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
			break
		}
		if readErr != nil {
			_, _ = stream.CloseAndReceive() // incomplete, so it changes nothing
			return nil, readErr
		}
	}
	// A send that fails with io.EOF means that the member ended the call; why, it says in its answer.
	answer, closeErr := stream.CloseAndReceive()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return answer, closeErr
}
