// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// pieceBytes is how much of a backup goes into one message.
const pieceBytes = 256 << 10

// Backup implements fairleadv1connect.RaftServiceHandler.
func (s *RaftService) Backup(ctx context.Context, req *fairleadv1.BackupRequest,
	stream *connect.ServerStream[fairleadv1.BackupResponse],
) error {
	_, err := lead(ctx, s.onLeader, "back up", func(ctx context.Context, caller Caller) (struct{}, error) {
		change := changeOf(caller, req)
		if err := s.mustLead(); err != nil && !change.Force {
			return struct{}{}, err
		}
		return struct{}{}, s.backup(ctx, change, stream)
	}, func(ctx context.Context, leader *Client) (struct{}, error) {
		from, err := leader.Raft.Backup(ctx, req)
		if err != nil {
			return struct{}{}, err
		}
		defer func() { _ = from.Close() }()
		for from.Receive() {
			if err := stream.Send(from.Msg()); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, from.Err()
	})
	return err
}

func (s *RaftService) backup(ctx context.Context, change Change, stream *connect.ServerStream[fairleadv1.BackupResponse]) error {
	pieces := &pieceWriter{sum: sha256.New(), send: func(piece []byte) error {
		return stream.Send(&fairleadv1.BackupResponse{Part: &fairleadv1.BackupResponse_Data{Data: piece}})
	}}
	made, err := s.group.Backup(ctx, pieces, change)
	if errors.Is(err, NotLeader) && pieces.size > 0 {
		// The caller has part of it already: it cannot be done anew elsewhere.
		err = fmt.Errorf("leadership was lost while backing up; try again: %w", Stopped)
	}
	if err != nil {
		return err
	}
	if err := pieces.flush(); err != nil {
		return err
	}
	s.log.Info("backup made", "index", made.Revision.Index, "size_bytes", pieces.size, "actor", change.Actor, "reason", change.Reason)
	return stream.Send(&fairleadv1.BackupResponse{Part: &fairleadv1.BackupResponse_Summary{Summary: &fairleadv1.BackupSummary{
		Group: made.Group, Revision: toRevision(made.Revision), Format: made.Format, SizeBytes: pieces.size, Sha256: pieces.sum.Sum(nil),
	}}})
}

// pieceWriter cuts a stream of bytes into messages.
type pieceWriter struct {
	sum  hash.Hash
	size uint64
	rest []byte
	send func([]byte) error
}

func (w *pieceWriter) Write(data []byte) (int, error) {
	w.size += uint64(len(data))
	_, _ = w.sum.Write(data) // a hash never fails
	w.rest = append(w.rest, data...)
	for len(w.rest) >= pieceBytes {
		if err := w.send(w.rest[:pieceBytes]); err != nil {
			return 0, err
		}
		w.rest = append(w.rest[:0], w.rest[pieceBytes:]...)
	}
	return len(data), nil
}

func (w *pieceWriter) flush() error {
	if len(w.rest) == 0 {
		return nil
	}
	return w.send(w.rest)
}

// Restore implements fairleadv1connect.RaftServiceHandler.
func (s *RaftService) Restore(ctx context.Context, stream *connect.ClientStream[fairleadv1.RestoreRequest],
) (*fairleadv1.RestoreResponse, error) {
	header, err := restoreHeader(stream)
	if err != nil {
		return nil, err
	}
	return lead(ctx, s.onLeader, "restore", func(ctx context.Context, caller Caller) (*fairleadv1.RestoreResponse, error) {
		if err := s.mustLead(); err != nil {
			return nil, err
		}
		return s.restore(ctx, header, changeOf(caller, header), stream)
	}, func(ctx context.Context, leader *Client) (*fairleadv1.RestoreResponse, error) {
		return handOnRestore(ctx, leader, header, stream)
	})
}

func restoreHeader(stream *connect.ClientStream[fairleadv1.RestoreRequest]) (*fairleadv1.RestoreHeader, error) {
	if !stream.Receive() && stream.Err() != nil {
		return nil, stream.Err()
	}
	header := stream.Msg().GetHeader()
	if header == nil || len(header.GetSha256()) != sha256.Size {
		return nil, &Refusal{
			Code: Invalid, What: "restore", Why: "the first message has no header with size and SHA-256",
			Remedy: "use `fairlead raft restore`",
		}
	}
	return header, nil
}

func (s *RaftService) restore(ctx context.Context, header *fairleadv1.RestoreHeader, change Change,
	stream *connect.ClientStream[fairleadv1.RestoreRequest],
) (*fairleadv1.RestoreResponse, error) {
	whole := &wholeReader{stream: stream, sum: sha256.New(), header: header}
	restored, err := s.group.Restore(ctx, whole, header.GetDryRun(), change)
	if errors.Is(err, NotLeader) {
		// The data is read; what the caller sent cannot be handed on.
		err = fmt.Errorf("leadership was lost while restoring; try again: %w", Stopped)
	}
	if err != nil {
		return nil, err
	}
	s.log.Warn("record restored", "dry_run", header.GetDryRun(), "epoch", restored.Revision.Epoch, "index", restored.Revision.Index,
		"actor", change.Actor, "reason", change.Reason, "force", change.Force)
	listed := restored.Differences[:min(len(restored.Differences), MaxDifferences)]
	return &fairleadv1.RestoreResponse{
		Revision:        toRevision(restored.Revision),
		Differences:     listed,
		MoreDifferences: restored.More + uint64(len(restored.Differences)-len(listed)),
	}, nil
}

// wholeReader gives the data of a backup, and io.EOF only if all of it came as announced.
type wholeReader struct {
	stream *connect.ClientStream[fairleadv1.RestoreRequest]
	header *fairleadv1.RestoreHeader
	sum    hash.Hash
	size   uint64
	piece  []byte
}

func (r *wholeReader) Read(p []byte) (int, error) {
	for len(r.piece) == 0 {
		if !r.stream.Receive() {
			return 0, r.end()
		}
		r.piece = r.stream.Msg().GetData()
		r.size += uint64(len(r.piece))
		_, _ = r.sum.Write(r.piece) // a hash never fails
		if r.size > r.header.GetSizeBytes() {
			return 0, r.broken("more than the announced %d bytes came", r.header.GetSizeBytes())
		}
	}
	n := copy(p, r.piece)
	r.piece = r.piece[n:]
	return n, nil
}

func (r *wholeReader) end() error {
	switch err := r.stream.Err(); {
	case err != nil:
		return err
	case r.size != r.header.GetSizeBytes():
		return r.broken("%d of %d bytes came", r.size, r.header.GetSizeBytes())
	case !bytes.Equal(r.sum.Sum(nil), r.header.GetSha256()):
		return r.broken("its SHA-256 is another one than announced")
	default:
		return io.EOF
	}
}

func (r *wholeReader) broken(format string, args ...any) error {
	return &Refusal{
		Code: Invalid, What: "restore", Why: "the backup did not arrive whole: " + fmt.Sprintf(format, args...),
		Remedy: "nothing was changed; send it again",
	}
}

func handOnRestore(ctx context.Context, leader *Client, header *fairleadv1.RestoreHeader,
	from *connect.ClientStream[fairleadv1.RestoreRequest],
) (*fairleadv1.RestoreResponse, error) {
	to, err := leader.Raft.Restore(ctx)
	if err != nil {
		return nil, err
	}
	err = to.Send(&fairleadv1.RestoreRequest{Part: &fairleadv1.RestoreRequest_Header{Header: header}})
	for err == nil && from.Receive() {
		err = to.Send(from.Msg())
	}
	if err == nil && from.Err() != nil {
		// Without the rest the leader finds the backup incomplete and changes nothing.
		_, _ = to.CloseAndReceive()
		return nil, from.Err()
	}
	// When sending failed with io.EOF the leader has ended the call, and says here why.
	return to.CloseAndReceive()
}
