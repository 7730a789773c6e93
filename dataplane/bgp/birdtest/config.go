// SPDX-License-Identifier: Apache-2.0

package birdtest

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Config is BIRD's side. Zero fields get what the comments say.
type Config struct {
	Address   netip.Addr // 127.0.0.1; BIRD listens here
	Port      uint16     // a free one
	ASN       uint32     // 65001
	RouterID  string     // Address if IPv4
	Neighbors []Neighbor
	HoldTime  time.Duration // 30 s: a speaker that a busy machine keeps waiting is not lost
	NoAddPath bool          // keep one path per prefix and neighbour
	NoRestart bool          // negotiate no graceful restart of either kind
	NoIPv6    bool          // carry IPv4 only
	Export    string        // what BIRD announces to neighbours, a filter expression; "none"
	Extra     string        // appended to the configuration
	Within    []string      // a command that runs BIRD elsewhere, such as nsenter; its Port is to be given then
}

// Neighbor is a speaker that BIRD expects.
type Neighbor struct {
	Name    string     // letters, digits, underscores: what BIRD calls the session
	Address netip.Addr // where it dials from and listens
	Port    uint16     // at which BIRD dials it; 0: BIRD waits to be dialled
	ASN     uint32     // 65000
	Import  string     // BIRD filter expression; "all"
	// Password is for TCP MD5; none if empty.
	Password string
	// TTLSecurity drops packets of a speaker that come from further than two hops away (RFC 5082).
	TTLSecurity bool
}

func (c Config) withDefaults() Config {
	c.Address = cmp.Or(c.Address, netip.MustParseAddr("127.0.0.1"))
	c.ASN = cmp.Or(c.ASN, 65001)
	c.RouterID = cmp.Or(c.RouterID, c.Address.String())
	c.Export = cmp.Or(c.Export, "none")
	c.HoldTime = cmp.Or(c.HoldTime, 30*time.Second)
	return c
}

// text returns bird.conf. Sessions are multihop because BIRD takes no neighbour on the loopback interface for attached.
func (c Config) text(logFile string) string {
	var b strings.Builder
	hold := int(c.HoldTime / time.Second)
	fmt.Fprintf(&b, "log %q all;\nrouter id %s;\ntimeformat protocol iso long ms;\nprotocol device {}\n", logFile, c.RouterID)
	for _, n := range c.Neighbors {
		if n.ASN == 0 {
			n.ASN = 65000
		}
		fmt.Fprintf(&b, "protocol bgp %s {\n  debug { states };\n", n.Name)
		fmt.Fprintf(&b, "  local %s port %d as %d;\n", c.Address, c.Port, c.ASN)
		fmt.Fprintf(&b, "  neighbor %s", n.Address)
		if n.Port != 0 {
			fmt.Fprintf(&b, " port %d", n.Port)
		}
		fmt.Fprintf(&b, " as %d;\n  multihop 2;\n", n.ASN)
		if n.Port == 0 {
			b.WriteString("  passive on;\n")
		}
		if n.Password != "" {
			fmt.Fprintf(&b, "  password %q;\n", n.Password)
		}
		if n.TTLSecurity {
			b.WriteString("  ttl security on;\n")
		}
		fmt.Fprintf(&b, "  hold time %d;\n  keepalive time %d;\n", hold, max(hold/3, 1))
		b.WriteString("  connect delay time 1;\n  connect retry time 1;\n  error wait time 1,2;\n")
		if c.NoRestart {
			b.WriteString("  graceful restart off;\n  long lived graceful restart off;\n")
		}
		c.channel(&b, "ipv4", n)
		if !c.NoIPv6 {
			c.channel(&b, "ipv6", n)
		}
		b.WriteString("}\n")
	}
	b.WriteString(c.Extra)
	return b.String()
}

func (c Config) channel(b *strings.Builder, family string, n Neighbor) {
	imported := n.Import
	if imported == "" {
		imported = "all"
	}
	fmt.Fprintf(b, "  %s { import %s; export %s;", family, imported, c.Export)
	if !c.NoAddPath {
		b.WriteString(" add paths rx;")
	}
	b.WriteString(" };\n")
}
