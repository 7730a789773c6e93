// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// The fields that are more than a number or a text.

func (c *coder) names(name string, v *[]string) {
	if c.mode == describe {
		c.describes(name, "texts", strings.Join(*v, " "), len(*v) == 0)
		return
	}
	n := c.count(len(*v))
	if c.mode == unpack && n > 0 {
		*v = make([]string, n)
	}
	for i := range *v {
		c.str(&(*v)[i])
	}
}

func (c *coder) address(name string, v *netip.Addr) {
	if c.mode == describe {
		c.describes(name, "text", addressText(*v), !v.IsValid())
		return
	}
	c.addr(v)
}

// addr writes an address as its text, which is exact and stays readable for the page.
func (c *coder) addr(v *netip.Addr) {
	if c.mode == unpack {
		*v = parsed(c, netip.ParseAddr)
		return
	}
	var room [64]byte
	c.short(v.AppendTo(room[:0]))
}

func (c *coder) prefix(name string, v *netip.Prefix) {
	switch c.mode {
	case describe:
		text := ""
		if v.IsValid() {
			text = v.String()
		}
		c.describes(name, "text", text, text == "")
	case unpack:
		*v = parsed(c, netip.ParsePrefix)
	default:
		var room [64]byte
		c.short(v.AppendTo(room[:0]))
	}
}

// short writes a text that stands in a buffer of the caller.
func (c *coder) short(b []byte) {
	if c.mode == pack {
		if ref, ok := c.refs[string(b)]; ok {
			c.out = binary.AppendUvarint(c.out, ref)
			return
		}
		c.introduce(string(b))
		return
	}
	c.out = binary.AppendUvarint(c.out, uint64(len(b)))
	c.out = append(c.out, b...)
}

// parsed reads a text and what it means; an empty one is the zero value.
func parsed[T any](c *coder, parse func(string) (T, error)) T {
	var v T
	s := c.take()
	if s == "" {
		return v
	}
	v, err := parse(s)
	if err != nil {
		c.err = err
	}
	return v
}

func (c *coder) addresses(name string, v *[]netip.Addr) {
	if c.mode == describe {
		texts := make([]string, len(*v))
		for i, a := range *v {
			texts[i] = addressText(a)
		}
		c.describes(name, "texts", strings.Join(texts, " "), len(*v) == 0)
		return
	}
	n := c.count(len(*v))
	if c.mode == unpack && n > 0 {
		*v = make([]netip.Addr, n)
	}
	for i := range *v {
		c.addr(&(*v)[i])
	}
}

func (c *coder) revision(name string, v *fsm.Revision) {
	if c.mode == describe {
		c.describes(name, "revision", v.String(), v.IsZero())
		return
	}
	epoch, index := uint64(v.Epoch), uint64(v.Index)
	c.word(&epoch)
	c.word(&index)
	v.Epoch, v.Index = fsm.Epoch(epoch), fsm.Index(index)
}

func (c *coder) paths(name string, v *[]event.Path) {
	if c.mode == describe {
		texts := make([]string, len(*v))
		for i, p := range *v {
			texts[i] = pathText(p)
		}
		c.describes(name, "paths", strings.Join(texts, ", "), len(*v) == 0)
		return
	}
	n := c.count(len(*v))
	if c.mode == unpack && n > 0 {
		*v = make([]event.Path, n)
	}
	for i := range *v {
		p := &(*v)[i]
		c.str(&p.Member)
		c.addr(&p.NextHop)
		c.number32("", &p.MED)
		c.number32("", &p.LocalPref)
		c.flag("", &p.Stale)
		c.flag("", &p.LongLived)
		c.flag("", &p.Best)
	}
}

// ways are texts in a trace.
func (c *coder) ways(name string, v *[]event.TunnelWay) {
	var texts []string
	for _, w := range *v {
		texts = append(texts, addressText(w.To)+" "+addressText(w.By)+" "+w.MAC)
	}
	if c.names(name, &texts); c.mode != unpack {
		return
	}
	for _, text := range texts {
		parts := strings.SplitN(text, " ", 3)
		if len(parts) != 3 {
			c.err = fmt.Errorf("way of a tunnel: %q", text)
			return
		}
		var w event.TunnelWay
		w.To, _ = netip.ParseAddr(parts[0]) // empty for none
		w.By, _ = netip.ParseAddr(parts[1])
		w.MAC = parts[2]
		*v = append(*v, w)
	}
}
