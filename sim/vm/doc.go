// SPDX-License-Identifier: Apache-2.0

// Package vm runs the processes of a simulated world: Go programs that see nothing but that world.
//
// A process lives in a coroutine, which an event of the world resumes, and which gives control back where Go's runtime
// says that nothing is left to run, or while a disk syncs. So exactly one process runs at a time, and what it sees
// (clock, randomness, files, messages) comes from the world alone: equal seeds give equal runs, whatever the machine
// underneath is doing. Kill drops the coroutine; no code of the process runs after it.
//
// There are two kinds, which a program's first bytes tell apart:
//
//   - Processes of this machine (child.go), several times as fast. Their runtime was changed so that it waits for nothing but
//     the world (package sim/native); it shares memory with the world. Calls that have no answer are posted there, and
//     carried out, in order and at their times, before the next question is answered; frames come with answers.
//   - WebAssembly instances (process.go), for any machine, made from a program that was built for wasip1.
//
// What either finds:
//
//   - WASI preview 1 as far as Go's runtime and package os use it, with one preopened directory, "/", on the disk of
//     its machine. Symbolic links do not exist. Processes of this machine make system calls of Linux, which their
//     runtime turns into those of WASI.
//   - dial, listen, send, close and observe (see wire.go).
//   - Frames that arrived; see Process.Deliver. An instance reads them from descriptor 100.
//
// Each call to the host and each look at a clock costs 100 ns of the world's time, so that a process which spins on its
// clock gets on. The computing in between costs nothing. A process that never parks fails the run.
//
// Load takes a program; a Module may be used by many worlds at once. Start reading at Spec and Process.
package vm
