// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// model is an HAProxy as management.txt describes its runtime API: it knows the commands that the driver needs, says what HAProxy
// 2.6 says, and calls anything else a mistake.
type model struct {
	process  Process
	now      time.Duration
	backends map[string]bool    // name -> `balance` is dynamic
	servers  map[string]*served // backend/name -> what is there
	mistakes []string
	asked    int

	// fault befalls the next lines: false for no more of them.
	fault func() fault
}

// served is one server of the model.
type served struct {
	address    netip.AddrPort
	weight     int
	maxConn    int
	admin      int
	changed    time.Duration
	sessions   int
	shutting   bool // sessions end after the line that shut them
	configured bool // of the configuration: a restart brings it back
	interval   int  // of checks, in milliseconds; 0 if it was added without
	agentPort  int
	checked    bool // HAProxy checks it
}

// fault is what goes wrong with a line.
type fault int

const (
	fine        fault = iota
	unreachable       // not a byte is read
	deaf              // read and not carried out, without an answer
	mute              // carried out, without an answer
	halfway           // the first command is carried out, without an answer
	reluctant         // the first command is carried out, the others are refused, of which there may be none
	unwilling         // what changes something is refused
)

func newModel() *model {
	return &model{
		process: Process{PID: 100, Started: 1_700_000_000}, servers: map[string]*served{},
		backends: map[string]bool{"web": true, "api": true, "fixed": false},
		fault:    func() fault { return fine },
	}
}

// restart is a new process: it knows the configuration only.
func (m *model) restart() {
	m.process.PID++
	m.process.Started += 7
	maps.DeleteFunc(m.servers, func(_ string, s *served) bool { return !s.configured })
}

// Ask implements Runtime.
func (m *model) Ask(ctx context.Context, line string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m.asked++
	commands := strings.Split(line, "; ")
	lost := errors.New("the connection broke")
	switch m.fault() {
	case unreachable:
		return "", fmt.Errorf("%w: no such socket", ErrUnreachable)
	case deaf:
		return "", lost
	case mute:
		m.all(commands)
		return "", lost
	case halfway:
		m.all(commands[:1])
		return "", lost
	case unwilling:
		if !strings.HasPrefix(line, "show ") {
			return "Refused.\n" + m.all(slices.DeleteFunc(commands, func(c string) bool { return !strings.HasPrefix(c, "show ") })), nil
		}
	case reluctant:
		if last := len(commands) - 1; last > 0 {
			return m.all(commands[:1]) + "Refused.\n" + m.all(commands[last:]), nil
		}
	}
	return m.all(commands), nil
}

func (m *model) all(commands []string) string {
	var out strings.Builder
	for _, c := range commands {
		out.WriteString(m.one(c))
	}
	for _, s := range m.servers {
		if s.shutting {
			s.sessions, s.shutting = 0, false
		}
	}
	return out.String() + "\n"
}

func (m *model) one(command string) string {
	words := strings.Fields(command)
	has := func(prefix string, n int) bool { return strings.HasPrefix(command, prefix+" ") && len(words) == n }
	switch {
	case command == "show info":
		return fmt.Sprintf("Name: HAProxy\nVersion: 2.6.12\nPid: %d\nStart_time_sec: %d\n", m.process.PID, m.process.Started)
	case command == "show cli level":
		return "admin\n"
	case command == "show backend":
		return "# name\n" + strings.Join(slices.Sorted(maps.Keys(m.backends)), "\n") + "\n"
	case has("show servers state", 4):
		return m.show(words[3])
	case has("add server", 8), has("add server", 13):
		return m.add(words)
	case has("set server", 5), has("set server", 7):
		return m.set(words)
	case has("set maxconn server", 5):
		return m.at(words[3], func(s *served) { s.maxConn = m.number(words[4]) })
	case has("enable health", 3):
		return m.at(words[2], func(s *served) { s.checked = s.interval > 0 })
	case has("disable health", 3):
		return m.at(words[2], func(s *served) { s.checked = false })
	case has("shutdown sessions server", 4):
		return m.at(words[3], func(s *served) { s.shutting = true })
	case has("del server", 3):
		return m.del(words[2])
	}
	m.mistakes = append(m.mistakes, command)
	return "Unknown command: '" + command + "'\n"
}

func (m *model) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		m.mistakes = append(m.mistakes, text)
	}
	return n
}

// at does something to a server that is there.
func (m *model) at(name string, do func(*served)) string {
	s := m.servers[name]
	if s == nil {
		return "No such server.\n"
	}
	do(s)
	return "\n"
}

func (m *model) show(backend string) string {
	if _, ok := m.backends[backend]; !ok {
		return "Can't find backend.\n"
	}
	var out strings.Builder
	out.WriteString("1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_state srv_port srv_agent_port\n")
	for i, name := range slices.Sorted(maps.Keys(m.servers)) {
		s := m.servers[name]
		if of, short, _ := strings.Cut(name, "/"); of == backend {
			fmt.Fprintf(&out, "3 %s %d %s %s 2 %d %d 1 %d %d %d %d\n",
				of, i+1, short, s.address.Addr(), s.admin, s.weight, int((m.now-s.changed)/time.Second), s.check(), s.address.Port(), s.agentPort)
		}
	}
	return out.String()
}

// check is the column srv_check_state.
func (s *served) check() int {
	switch {
	case s.checked:
		return checkConfigured | checkEnabled
	case s.interval > 0:
		return checkConfigured
	default:
		return 0
	}
}

// add is `add server BACKEND/NAME ADDRESS weight N maxconn N`, perhaps with `check inter N agent-port N`.
func (m *model) add(words []string) string {
	backend, _, _ := strings.Cut(words[2], "/")
	dynamic, ok := m.backends[backend]
	address, err := netip.ParseAddrPort(words[3])
	switch {
	case !ok:
		return "No such backend.\n"
	case !dynamic:
		return "Backend must use a dynamic load balancing to support dynamic servers.\n"
	case m.servers[words[2]] != nil:
		return "Already exists a server with the same name in backend.\n"
	case err != nil || words[4] != "weight" || words[6] != "maxconn" || len(words) > 8 && (words[8] != "check" || words[9] != "inter" || words[11] != "agent-port"):
		m.mistakes = append(m.mistakes, strings.Join(words, " "))
		return "unknown keyword\n"
	}
	m.servers[words[2]] = &served{
		address: address, weight: m.number(words[5]), maxConn: m.number(words[7]), admin: forcedMaintenance, changed: m.now,
	}
	if len(words) > 8 {
		m.servers[words[2]].interval, m.servers[words[2]].agentPort = m.number(words[10]), m.number(words[12])
	}
	return "New server registered.\n"
}

// set is `set server BACKEND/NAME` with `weight N`, `state STATE`, or `addr IP port N`.
func (m *model) set(words []string) string {
	return m.at(words[2], func(s *served) {
		what := words[3]
		if len(words) == 7 {
			what += " " + words[5]
		}
		switch {
		case what == "weight":
			s.weight = m.number(words[4])
		case what == "state" && words[4] == "ready":
			s.admin, s.changed = 0, m.now
		case what == "state" && words[4] == "maint":
			s.admin, s.changed = forcedMaintenance, m.now
		case what == "health" && words[4] == "up":
		case what == "addr port":
			s.address = netip.AddrPortFrom(netip.MustParseAddr(words[4]), uint16(m.number(words[6])))
		default:
			m.mistakes = append(m.mistakes, strings.Join(words, " "))
		}
	})
}

func (m *model) del(name string) string {
	s := m.servers[name]
	switch {
	case s == nil:
		return "No such server.\n"
	case s.admin&forcedMaintenance == 0:
		return "Only servers in maintenance mode can be deleted.\n"
	case s.sessions > 0:
		return "Server still has connections attached to it, cannot remove it.\n"
	}
	delete(m.servers, name) // servers of the configuration, too
	return "Server deleted.\n"
}

// picture is everything that the model has, but for connections and times.
func (m *model) picture() map[string]string {
	out := map[string]string{}
	for name, s := range m.servers {
		out[name] = fmt.Sprintf("%s weight %d maxconn %d admin %d", s.address, s.weight, s.maxConn, s.admin)
		if s.checked {
			out[name] += fmt.Sprintf(" checked %d", s.interval)
		}
	}
	return out
}
