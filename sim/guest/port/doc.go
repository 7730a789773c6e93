// SPDX-License-Identifier: Apache-2.0

// Package port is a simulated process's network: net.Conn and net.Listener over the frames of sim/network, and HTTP
// over those, one request a connection.
//
// It builds for every platform; the system calls below it are handed in. Start reading at Port.
package port
