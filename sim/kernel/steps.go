// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/hex"
	"fmt"

	"fairlead.io/fairlead/sim/kernel/message"
)

// Fields of a packet that a rule can load, and how many bytes each has.
const (
	fieldFamily = iota + 1
	fieldProtocol
	fieldPort
	fieldSource4
	fieldSource6
	fieldDestination4
	fieldDestination6
	fieldMark
	fieldStatus
	fieldInbound
	fieldSourcePort
	fieldDestinationType
	fieldSourceType
	fieldOutbound
)

// width is how many registers a field takes, 0 for none that there is.
func width(field int) int {
	switch field {
	case fieldSource6, fieldDestination6:
		return 4
	case fieldFamily, fieldProtocol, fieldPort, fieldSource4, fieldDestination4, fieldMark, fieldStatus, fieldInbound,
		fieldSourcePort, fieldDestinationType, fieldSourceType, fieldOutbound:
		return 1
	}
	return 0
}

const registers = 16

// ruleFault tells why a kernel would not take a rule: it reads what it did not write, or names what cannot be.
func ruleFault(t *message.Table, rule []message.Step) string {
	if len(rule) == 0 {
		return "a rule without steps"
	}
	var written [registers]bool
	write := func(at, n int) bool {
		if at < 0 || n <= 0 || at+n > registers {
			return false
		}
		for i := range n {
			written[at+i] = true
		}
		return true
	}
	read := func(at, bytes int) bool {
		n := (bytes + 3) / 4
		if at < 0 || n <= 0 || at+n > registers {
			return false
		}
		for i := range n {
			if !written[at+i] {
				return false
			}
		}
		return true
	}
	for i, s := range rule {
		data, err := hex.DecodeString(s.Data)
		if err != nil {
			return "data that is not hexadecimal"
		}
		set := t.Sets[s.Set]
		ok := true
		switch s.Do {
		case "load":
			ok = write(s.To, width(s.Field))
		case "put":
			ok = write(s.To, (len(data)+3)/4)
		case "draw":
			ok = s.Number > 0 && write(s.To, 1)
		case "hash":
			ok = s.Number > 0 && read(s.From, int(s.Bits)) && write(s.To, 1)
		case "mask":
			ok = read(s.To, len(data))
		case "match":
			ok = read(s.From, len(data))
		case "set-mark":
			ok = write(s.To, 1)
		case "member", "remember", "branch":
			ok = read(s.From, size(set.Key)) && (s.Do == "branch") == set.Verdict && (s.Do != "remember" || set.Dynamic && s.For > 0)
		case "get":
			ok = read(s.From, size(set.Key)) && len(set.Data) > 0 && write(s.To, size(set.Data)/4)
		case "translate":
			ok = read(s.To, map[byte]int{2: 4, 10: 16}[s.Family]) && read(s.From, 2)
		case "masquerade", "refuse", "tally", "verdict":
		default:
			return "unknown step " + s.Do
		}
		if !ok {
			return fmt.Sprintf("step %d, %s, reads or writes what it cannot", i, s.Do)
		}
	}
	return ""
}
