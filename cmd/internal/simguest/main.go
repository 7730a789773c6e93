// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"fairlead.io/fairlead/sim/guest/abi"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/guest/start"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: %s START; started by `fairlead sim`", os.Args[0])
	}
	p, err := start.Parse(os.Args[1])
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if p.Debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	g := &guest{start: p, log: log, port: port.Open(abi.World{})}
	g.handshakes = &handshakes{g: g}
	ended := make(chan error, 2)
	go func() { ended <- g.port.Run(abi.Wire()) }()
	roles := map[string]func(context.Context) error{"member": g.member, "agent": g.agent, "recover": g.recover}
	role, ok := roles[p.Role]
	if !ok {
		return fmt.Errorf("role %q of %s: unknown", p.Role, p.Name)
	}
	go func() { ended <- role(context.Background()) }()
	return <-ended
}

// guest is this process.
type guest struct {
	start start.Process
	log   *slog.Logger
	port  *port.Port

	handshakes *handshakes
}
