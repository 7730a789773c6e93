// SPDX-License-Identifier: Apache-2.0

// Package program holds the programs and tables of the kernel by which package sock resolves addresses: sock.c, what
// is compiled from it (generate.sh), and how they get into the kernel, stay there without an agent, and are replaced in
// place by those of another release.
//
// Tables are pinned in a folder named after their layout and sizes, below bpffs; links of programs to the cgroup are
// pinned beside it. Open finds or makes the tables and touches no traffic; Attach puts the programs into the place of
// those that run, each in one step, once the tables hold what they should. Tables of other sizes or another layout are
// removed then; what clients are remembered by goes over where it looks alike.
package program

//go:generate ./generate.sh
