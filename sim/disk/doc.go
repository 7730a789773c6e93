// SPDX-License-Identifier: Apache-2.0

// Package disk is the disk of a simulated machine: a tree of files in memory which knows what a loss of power would
// leave of it.
//
// Each file has what processes see and what is durable, and the writes between the two. Killing a process loses
// nothing; Crash is the loss of power. What is promised to survive it:
//
//   - the bytes and the size of a file as they were when Sync of it last succeeded, unless they were written again;
//   - entries of directories (creation, renaming, removal) that were made before a Sync of the directory, or before
//     a Sync of the file or directory that the entry names, succeeded. As in the journals of ext4 and XFS, whatever
//     was done to directories earlier has become durable with it.
//
// Of everything else any part survives: for each file none, all, the first few or any few of its later writes, one of
// them torn: at a border of sectors where it overwrites, at any byte where it appends. A write that survives
// beyond one that does not leaves zeros between. Later changes of directories survive up to some moment, or up to
// some moment in each directory by itself; a renaming survives wholly or not at all. Bytes that nobody wrote never
// appear, besides those zeros and what Flip does. After a Sync that failed, the writes before it can still be read, but
// no later Sync makes them durable: so it is on Linux.
//
// There are no links, owners, or permissions. Start reading at Disk, then Node, then crash.go.
package disk
