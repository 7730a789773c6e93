// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"fairlead.io/fairlead/dataplane/bgp/gobgp"
	"fairlead.io/fairlead/dataplane/bgp/supervisor"
)

// Command is the first argument of the program as a child.
const Command = "bgp-speaker"

// IsChild tells whether this process was started as a child. A program that has a Speaker calls Main then, before anything else.
func IsChild() bool { return len(os.Args) == 2 && os.Args[1] == Command }

// connectionFD is where the child finds its connection with the parent.
const connectionFD = 3

// Main is the child's program: it speaks until its parent says that it is over, or is gone. It returns the exit status.
//
// The parent ends it: signals that a terminal, or a supervisor, sends to all processes of a service are the parent's to heed.
func Main() int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	file := os.NewFile(connectionFD, "parent")
	conn, err := net.FileConn(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: no connection with a parent (%v): members and agents run this command themselves\n", Command, err)
		return 2
	}
	_ = file.Close() // conn has a duplicate
	level := slog.LevelInfo
	if os.Getenv(debugVariable) != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	open := func(s supervisor.Settings) (supervisor.Served, error) {
		return gobgp.New(gobgp.Config{
			ASN: s.ASN, RouterID: s.RouterID, ListenPort: s.ListenPort, ListenAddrs: s.ListenAddrs, Management: s.Management, Logger: log,
		})
	}
	if err := supervisor.Serve(conn, open, limitMemory(debug.SetMemoryLimit(-1))); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Command, err)
		return 1
	}
	return 0
}

// limitMemory has this process collect its garbage before it has so much memory, or what GOMEMLIMIT says, if that is less.
func limitMemory(most int64) func(bytes uint64) {
	return func(bytes uint64) { debug.SetMemoryLimit(int64(min(bytes, uint64(most)))) }
}

// debugVariable of the environment has a child log what its parent's log takes down to debug.
const debugVariable = "FAIRLEAD_BGP_SPEAKER_DEBUG"
