// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/stage"
)

// Drawn worlds have outside load balancers behind a driver, and clients that write and read the record. In one world
// of four users ask for them by objects of LBCF's kinds, in the others they are brought into the record directly.
const drivers, clients, objectsOf = 1, 2, 4

// In one world of so many there are no outside load balancers, so that backups may be restored.
const driverlessOf = 6

// In one world of so many, addresses are announced by prefixes of one of these lengths.
const aggregatesOf = 5

var aggregates = []int{30, 29}

// In one world of so many, members keep short logs, so that snapshots are sent.
const shortLogsOf = 8

// In one world of so many, users give endpoints weights.
const weightsOf = 7

// In one world of so many, tenants have Services with texts that the record cannot take.
const foulOf = 6

// In one world of so many, something is served at sockets: policies, ClusterIPs, node ports, or several of them.
const socketsOf = 6

var socketsDrawn = []start.Sockets{
	{Policies: true, ClusterIPs: true}, {Policies: true, ClusterIPs: true, NodePorts: true}, {ClusterIPs: true, NodePorts: true}, {Policies: true},
	{Policies: true, ClusterIPs: true, NodePorts: true},
}

// In one of so many of these, tables have less room than it takes.
const roomsOf = 7

// In one of so many of these, where there are policies, some lead to proxy addresses, by tunnels; in another one to listed addresses that are probed.
const tunnelsOf = 3

// Limits of what is drawn. A run of less time has none for anything, and one of more is better made of several.
const (
	MostMembers, MostNodes, MostServices = 9, 50, 200
	MostSegments                         = stage.MostSegments
	LeastDuration, MostDuration          = 10 * time.Second, time.Hour
)

// Draw draws the scenario of a seed as `fairlead sim` does.
func Draw(seed uint64, o scenario.Options) scenario.Scenario {
	o.Balancers, o.Outside, o.Clients = drivers, 0, clients
	if seed%objectsOf == 0 {
		o.Balancers, o.Outside = 0, drivers
	}
	if seed%driverlessOf == 1 {
		o.Balancers = 0
	}
	if o.Aggregate = 0; o.Segments == 0 && seed%aggregatesOf == 2 {
		o.Aggregate = aggregates[seed/aggregatesOf%uint64(len(aggregates))]
	}
	o.ShortLogs = o.Segments == 0 && seed%shortLogsOf == 7
	o.Weights = o.Segments == 0 && seed%weightsOf == 3
	o.Foul = o.Segments == 0 && seed%foulOf == 4
	if o.Sockets = (start.Sockets{}); o.Segments == 0 && seed%socketsOf == 5 {
		o.Sockets = socketsDrawn[seed/socketsOf%uint64(len(socketsDrawn))]
		if seed/socketsOf%roomsOf == 2 {
			o.Sockets.Room = 8 + int(seed%29)
		}
		o.Sockets.Tunnels = o.Sockets.Policies && seed/socketsOf%tunnelsOf == 1 && o.Nodes <= start.MostTunnels
		o.Sockets.Probes = o.Sockets.Policies && seed/socketsOf%tunnelsOf == 2
		o.Weights = false // who gets how many connections is not judged at sockets
	}
	return scenario.Draw(seed, o)
}

// repeat is the command that repeats a run of a scenario: by its seed if it was drawn, else by its file.
func repeat(s scenario.Scenario, file string) string {
	o := scenario.Options{Duration: s.Duration, Members: s.Members, Nodes: s.Nodes, Segments: s.Segments}
	command := fmt.Sprintf("fairlead sim replay --seed %d --duration %v --members %d --nodes %d", s.Seed, s.Duration, s.Members, s.Nodes)
	if s.Segments > 0 {
		command += fmt.Sprint(" --segments ", s.Segments)
	}
	if file == "" && drawn(s, o) {
		return command
	}
	if o.Services = s.Services; file == "" && drawn(s, o) {
		return fmt.Sprintf("%s --services %d", command, s.Services)
	}
	return fmt.Sprintf("fairlead sim replay --scenario %s", cmp.Or(file, s.Name+".yaml"))
}

// drawn tells whether a scenario is what its seed gives.
func drawn(s scenario.Scenario, o scenario.Options) bool {
	able := s.Duration >= LeastDuration && s.Duration <= MostDuration && s.Members <= MostMembers && s.Nodes <= MostNodes
	return able && bytes.Equal(s.Text(), Draw(s.Seed, o).Text())
}
