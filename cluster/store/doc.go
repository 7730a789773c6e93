// SPDX-License-Identifier: Apache-2.0

// Package store guards what a member keeps on its disk: the log, the few values that elections depend on, and the
// snapshots.
//
// hashicorp/raft goes on after a failed write: it logs the error and stays a voter. A Guard does not let it: the first
// operation that fails, and the first entry, term or vote whose checksum does not match, end the member, and the error names the
// path and what to do. Check refuses to start on a folder whose newest snapshot does not restore or whose log does not
// join it without a gap, instead of falling back to an older state in silence.
//
// Start reading at Guard. The real files are in store/disk; this package works on any raft.LogStore, raft.StableStore
// and raft.SnapshotStore, simulated ones too.
package store
