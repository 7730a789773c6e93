// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
)

// Protocol marks the rules and routes that are ours (rtm_protocol, FRA_PROTOCOL).
const Protocol = 83

// TableName is our nftables table, of family inet.
const TableName = "fairlead-steer"

// Options is what a Steer is made of. Zero fields take their default.
type Options struct {
	// Folder keeps what settings were before they were changed. Required.
	Folder string
	// InTable and OutTable are used when the node's configuration names none. Defaults 101 and 102.
	InTable, OutTable uint32
	// PriorityIn, PriorityOut and PriorityMark are those of the rules to an address (or of packets marked as such),
	// from one, and for answers. Defaults 30101, 30102 and 30103; below 32766, the main table's.
	PriorityIn, PriorityOut, PriorityMark uint32
	// MarkIn is the packet mark of what goes to a service address, MarkOut that of answers and of connections that
	// entered for one. Bits that nobody else uses. Defaults 0x1000 and 0x2000.
	MarkIn, MarkOut uint32
	// RulesMax is up to how many addresses of a family have rules of their own. Default 256. Once more were wanted, it
	// takes a quarter less to come back.
	RulesMax int
	// Interfaces are patterns (as of path.Match) of the network interfaces that face the switch or the clients. Default:
	// Ethernet cards, bonds, teams and VLANs, and whatever leads to the switch.
	Interfaces []string
	// SysNet is the folder of the kernel's settings of networks. Default /proc/sys/net; a container may not write its own
	// and is given the host's at another place.
	SysNet string
	// Reread is how often everything is read anew, whatever was heard of changes. Default one minute.
	Reread time.Duration
	// Namespace is a file descriptor of the network namespace to work in; 0 is the process's own.
	Namespace int
	Log       *slog.Logger          // required
	Metrics   prometheus.Registerer // optional
}

func (o Options) withDefaults() Options {
	o.InTable = cmp.Or(o.InTable, 101)
	o.OutTable = cmp.Or(o.OutTable, 102)
	o.PriorityIn = cmp.Or(o.PriorityIn, 30101)
	o.PriorityOut = cmp.Or(o.PriorityOut, 30102)
	o.PriorityMark = cmp.Or(o.PriorityMark, 30103)
	o.MarkIn = cmp.Or(o.MarkIn, 0x1000)
	o.MarkOut = cmp.Or(o.MarkOut, 0x2000)
	o.RulesMax = cmp.Or(o.RulesMax, 256)
	o.SysNet = cmp.Or(o.SysNet, "/proc/sys/net")
	o.Reread = cmp.Or(o.Reread, time.Minute)
	return o
}

// under gives the options as a node's configuration changes them; its zero fields change nothing.
func (o Options) under(c desired.Config) (Options, error) {
	if c.RulePriorityIn != 0 {
		o.PriorityIn = c.RulePriorityIn
	}
	if c.RulePriorityOut != 0 {
		o.PriorityOut = c.RulePriorityOut
	}
	if o.PriorityMark <= o.PriorityOut {
		o.PriorityMark = o.PriorityOut + 1
	}
	if c.FwMark != 0 {
		o.MarkOut = c.FwMark
	}
	if err := o.validate(); err != nil {
		return o, fmt.Errorf("node configuration: %w; change RULE_PRIORITY_IN, RULE_PRIORITY_OUT or FWMARK", err)
	}
	return o, nil
}

// priorityMain is the kernel's rule for the main table.
const priorityMain = 32766

func (o Options) validate() error {
	switch {
	case o.Folder == "":
		return errors.New("steer: no folder to keep what settings were; name one")
	case o.Log == nil:
		return errors.New("steer: no logger")
	case o.PriorityIn >= o.PriorityOut || o.PriorityOut >= o.PriorityMark || o.PriorityMark >= priorityMain:
		return fmt.Errorf("steer: rule priorities %d, %d and %d do not rise below %d", o.PriorityIn, o.PriorityOut, o.PriorityMark, priorityMain)
	case o.MarkIn&o.MarkOut != 0:
		return fmt.Errorf("steer: packet marks %#x and %#x share bits; give each its own", o.MarkIn, o.MarkOut)
	}
	for _, p := range o.Interfaces {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("steer: interfaces: %q: %w", p, err)
		}
	}
	return nil
}
