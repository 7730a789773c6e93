// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/sha256"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/sim/event"
)

// Backup has the leader write the record. What it gives is whole.
func (o *Operator) Backup(then func([]byte, error)) {
	var data []byte
	o.try("backup", func(member string, done func(error)) {
		data = nil
		var whole []byte
		take := func(message []byte) error {
			var part fairleadv1.BackupResponse
			if err := proto.Unmarshal(message, &part); err != nil {
				return err
			}
			if whole = append(whole, part.GetData()...); part.GetSummary() != nil {
				data = whole
			}
			return nil
		}
		o.g.stream(member, fairleadv1connect.RaftServiceBackupProcedure, []proto.Message{&fairleadv1.BackupRequest{Reason: "simulated"}}, take, done)
	}, func(err error) { then(data, err) })
}

// pieceBytes is how much of a backup goes into one message.
const pieceBytes = 256 << 10

// Restore replaces the record by a backup's. It is a call that checkers hear of: from then on what came after the backup
// may be gone. First is asked first, if it is a member. Force spares members a copy in a folder that their machines do not have.
func (o *Operator) Restore(first string, backup []byte, then func(error)) {
	sum := sha256.Sum256(backup)
	requests := []proto.Message{&fairleadv1.RestoreRequest{Part: &fairleadv1.RestoreRequest_Header{Header: &fairleadv1.RestoreHeader{
		Force: true, Reason: "simulated", SizeBytes: uint64(len(backup)), Sha256: sum[:],
	}}}}
	for rest := backup; len(rest) > 0; {
		piece := rest[:min(pieceBytes, len(rest))]
		rest = rest[len(piece):]
		requests = append(requests, &fairleadv1.RestoreRequest{Part: &fairleadv1.RestoreRequest_Data{Data: piece}})
	}
	ended := o.Rescues("restore", "")
	o.tryFrom(first, "restore", func(member string, done func(error)) {
		take := func(message []byte) error { return proto.Unmarshal(message, &fairleadv1.RestoreResponse{}) }
		o.g.stream(member, fairleadv1connect.RaftServiceRestoreProcedure, requests, take, done)
	}, func(err error) {
		ended(err)
		then(err)
	})
}

// Rescues says that an operator begins a restore or a recover, and gives what says that he is done.
func (o *Operator) Rescues(do, member string) (ended func(error)) {
	end := o.g.began(event.CallBegan{Client: OperatorMachine, Do: do, Key: "the record", To: member})
	return func(err error) {
		switch {
		case err == nil:
			end(done, event.CallEnded{})
		case Sure(err):
			end(refused, event.CallEnded{Why: err.Error()})
		default:
			end(unknown, event.CallEnded{Why: err.Error()})
		}
	}
}
