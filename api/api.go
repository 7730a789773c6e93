// SPDX-License-Identifier: Apache-2.0

// Package api holds the definitions of Fairlead's API, in fairlead/v1/*.proto, and the Go made from them.
//
// The protocol is Connect: the same methods answer gRPC, gRPC-Web and plain JSON over HTTP/1.1 and HTTP/2:
//
//	curl --cacert ca.crt --cert alice.crt --key alice.key --json '{}' \
//	    https://192.0.2.1:7443/fairlead.v1.RaftService/Status
//
// Who may call what is decided in cluster/admin. Methods marked NO_SIDE_EFFECTS change nothing; every other
// method of RaftService carries force and reason. Start reading at fairlead/v1/raft.proto.
package api

//go:generate ./generate.sh
