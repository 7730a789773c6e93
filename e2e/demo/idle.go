// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// idle waits until nobody asks a pod any more.
func (w *world) idle(ctx context.Context, p *pod) error {
	s := silence{since: w.ended.Load()}
	return eventually(ctx, "end of requests to pod "+p.name, func() error {
		now, err := p.conns()
		if err != nil {
			return err
		}
		return s.look(now, w.ended.Load())
	})
}

// silence is that of a pod: it has no connection, and got none while so many requests of clients ended that whoever still sends
// some its way would have.
type silence struct {
	before conns
	since  int64 // requests that had ended when it began
}

const longSilence = 500

// look tells why it is not yet one, by the pod's connections and the requests that have ended.
func (s *silence) look(now conns, ended int64) error {
	if now.open > 0 || now != s.before {
		*s = silence{now, ended}
		return fmt.Errorf("%d connections are open, %d were accepted", now.open, now.accepted)
	}
	if n := ended - s.since; n < longSilence {
		return fmt.Errorf("none of %d requests came there", n)
	}
	return nil
}

// conns are the connections of a pod, as the kernel of its network counts them.
type conns struct{ accepted, open int }

func (p *pod) conns() (c conns, err error) {
	var text []byte
	err = p.net().Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	if err != nil {
		return c, err
	}
	return readConns(string(text))
}

// readConns reads lines such as
//
//	Tcp: ActiveOpens PassiveOpens CurrEstab
//	Tcp: 0 1205 3
func readConns(snmp string) (conns, error) {
	values := map[string]int{}
	var names []string
	for line := range strings.Lines(snmp) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] != "Tcp:":
		case names == nil:
			names = words
		default:
			for i, word := range words[1:min(len(words), len(names))] {
				values[names[i+1]], _ = strconv.Atoi(word) // none that is read here is anything else
			}
		}
	}
	accepted, ok := values["PassiveOpens"]
	open, too := values["CurrEstab"]
	if !ok || !too {
		return conns{}, fmt.Errorf("no count of connections in %q", snmp)
	}
	return conns{accepted, open}, nil
}
