// SPDX-License-Identifier: Apache-2.0

// Package vm runs the processes of a simulated world: each is a WebAssembly instance of its own, made from a Go program
// that was built for wasip1.
//
// An instance lives in a coroutine, which an event of the world resumes, and which gives control back where Go's
// runtime says that nothing is left to run: in poll_oneoff, or while a disk syncs. So exactly one process runs at a
// time, and what it sees (clock, randomness, files, messages) comes from the world alone: equal seeds give equal runs,
// whatever the machine underneath is doing. Kill drops the coroutine; no code of the process runs after it.
//
// What a process finds:
//
//   - WASI preview 1 as far as Go's runtime and package os use it, with one preopened directory, "/", on the disk of
//     its machine. Symbolic links do not exist.
//   - Imports of module "fairlead": dial, listen, send, close and observe (see wire.go).
//   - Descriptor 100, which is read for frames that arrived; see Process.Deliver.
//
// Each call to the host costs 100 ns of the world's time, so that a process which spins on its clock gets on. The
// computing in between costs nothing. A process that never parks fails the run.
//
// Load compiles; a Module may be used by many worlds at once. Start reading at Spec and Process.
package vm
