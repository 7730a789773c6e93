// SPDX-License-Identifier: Apache-2.0

// Package disk keeps a member's data folder: who it is, its log, its snapshots, and the lock that keeps a second
// process out.
//
// It promises that a folder is believed as a whole or not at all: one that is locked, unwritable, cut short or damaged
// is refused with an error that names the path and the remedy, also where the libraries below would panic, fall back
// to an older snapshot or touch memory that is no longer backed by the file. Start reading at Open; OpenWith is for
// platforms without bbolt and locks of files, which bring their own.
//
//	identity.json   name, instance, group, and whether making the folder was finished
//	raft.db         log and stable store (bbolt)
//	snapshots/      the newest two snapshots, each with a checksum of what the library says about it (meta.sum)
//	lock            held while a process uses the folder
package disk
