// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server is what `show servers state` says of one.
type Server struct {
	Backend, Name string
	// Address is invalid if HAProxy does not know it (yet), as of a host name.
	Address netip.AddrPort
	Weight  int
	// Admin is a sum of the flags below.
	Admin int
	// Check is a sum of the flags below.
	Check int
	// Interval is how often it is checked if it is, where this driver added it: 0 if checks were never asked for.
	Interval time.Duration
	// Since is how long ago its state changed last, in whole seconds.
	Since time.Duration
}

// Flags of Server.Admin (HAProxy's management.txt, "show servers state").
const (
	forcedMaintenance = 0x01 // by a command; dynamic servers begin with it
	forcedDrain       = 0x08 // by a command
)

// Flags of Server.Check.
const (
	checkConfigured = 0x02
	checkEnabled    = 0x04
)

// maintained tells whether the server is in maintenance by a command.
func (s Server) maintained() bool { return s.Admin&forcedMaintenance != 0 }

// ready tells whether no command keeps the server from serving.
func (s Server) ready() bool { return s.Admin&(forcedMaintenance|forcedDrain) == 0 }

// checked tells whether HAProxy checks its health.
func (s Server) checked() bool { return s.Check&checkEnabled != 0 }

// stateHeader begins the answer to `show servers state`: the version of its format, and the names of columns.
const stateHeader = "1\n# be_id "

// splitState parts the answer to a line that ends with `show servers state`: what HAProxy said to the commands before,
// and the table, empty if there is none.
func splitState(answer string) (words, table string) {
	at := strings.LastIndex(answer, stateHeader)
	if at < 0 {
		return said(answer), ""
	}
	return said(answer[:at]), answer[at:]
}

// said is what HAProxy said, as a line.
func said(answer string) string {
	const most = 300
	line := strings.Join(strings.Fields(answer), " ")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

// parseServers reads the table of `show servers state`. Columns are found by their names: newer releases add some.
func parseServers(table string) ([]Server, error) {
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	if !strings.HasPrefix(table, stateHeader) {
		return nil, fmt.Errorf("servers of HAProxy: not format 1 of `show servers state`: %.80q", table)
	}
	columns, err := findColumns(strings.Fields(strings.TrimPrefix(lines[1], "#")))
	if err != nil {
		return nil, fmt.Errorf("servers of HAProxy: %w", err)
	}
	servers := make([]Server, 0, len(lines)-2)
	var fields []string
	for _, line := range lines[2:] {
		fields = appendFields(fields[:0], line)
		s, err := columns.server(fields)
		if err != nil {
			return nil, fmt.Errorf("servers of HAProxy: %w in %.200q", err, line)
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// Columns of the table that are read.
const (
	backendColumn = iota
	nameColumn
	addressColumn
	portColumn
	weightColumn
	adminColumn
	checkColumn
	agentPortColumn
	sinceColumn
	allColumns
)

// columns says which field of a line is which column. Tables of thousands of lines are read for every few calls.
type columns [allColumns]int

func findColumns(names []string) (c columns, err error) {
	for i, name := range [allColumns]string{
		"be_name", "srv_name", "srv_addr", "srv_port", "srv_uweight", "srv_admin_state", "srv_check_state", "srv_agent_port", "srv_time_since_last_change",
	} {
		if c[i] = slices.Index(names, name); c[i] < 0 {
			return c, fmt.Errorf("no column %s", name)
		}
	}
	return c, nil
}

// appendFields appends the words of a line, which single spaces part.
func appendFields(to []string, line string) []string {
	for field := range strings.SplitSeq(line, " ") {
		if field != "" {
			to = append(to, field)
		}
	}
	return to
}

// server reads one line.
func (c *columns) server(fields []string) (Server, error) {
	if len(fields) <= slices.Max(c[:]) {
		return Server{}, fmt.Errorf("%d columns", len(fields))
	}
	var numbers [allColumns]int
	for _, i := range [...]int{portColumn, weightColumn, adminColumn, checkColumn, agentPortColumn, sinceColumn} {
		n, err := strconv.Atoi(fields[c[i]])
		if err != nil {
			return Server{}, err
		}
		numbers[i] = n
	}
	s := Server{
		Backend: fields[c[backendColumn]], Name: fields[c[nameColumn]], Weight: numbers[weightColumn], Admin: numbers[adminColumn],
		Check: numbers[checkColumn], Since: time.Duration(numbers[sinceColumn]) * time.Second,
	}
	if s.Check&checkConfigured != 0 {
		s.Interval = time.Duration(numbers[agentPortColumn]) * intervalUnit
	}
	if ip, err := netip.ParseAddr(fields[c[addressColumn]]); err == nil {
		s.Address = netip.AddrPortFrom(ip, uint16(numbers[portColumn]))
	}
	return s, nil
}

// parseBackends reads `show backend`.
func parseBackends(answer string) ([]string, error) {
	names, ok := strings.CutPrefix(answer, "# name\n")
	if !ok {
		return nil, fmt.Errorf("backends of HAProxy: it says %q", said(answer))
	}
	return strings.Fields(names), nil
}

// Process is one life of HAProxy. Dynamic servers end with it.
type Process struct {
	PID int `json:"pid"`
	// Started is in seconds since 1970.
	Started int64 `json:"started"`
}

// parseInfo reads `show info`.
func parseInfo(answer string) (Process, error) {
	var p Process
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		var err error
		switch key {
		case "Pid":
			p.PID, err = strconv.Atoi(value)
		case "Start_time_sec":
			p.Started, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return Process{}, fmt.Errorf("process of HAProxy: %s: %w", key, err)
		}
	}
	if p.PID == 0 || p.Started == 0 {
		return Process{}, errors.New("process of HAProxy: `show info` lacks Pid or Start_time_sec; HAProxy 2.6 or newer is needed")
	}
	return p, nil
}
