// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Register is one of the sixteen registers of four bytes that a rule works with. Wider values take several, and fields
// that stand side by side form the key of a map. A rule reads only what it wrote itself.
type Register uint8

// registerBytes is how wide a register is.
const registerBytes = 4

// Field is what a rule can know of a packet.
type Field uint8

// Fields of a packet. Addresses take as many registers as they have words, all others one, padded with zero bytes.
const (
	Family           Field = iota + 1 // 2 for IPv4, 10 for IPv6
	Protocol                          // IANA number
	DestinationPort                   // in network order
	Source4                           // address
	Source6                           //
	Destination4                      // address, as it is now
	Destination6                      //
	PacketMark                        // in the machine's order, as all that follows
	ConnectionStatus                  // flags of the connection
	Inbound                           // index of the interface it came in by, 0 if this node sent it, or a bridge passes it on and br_netfilter shows it
	SourcePort                        // in network order
	DestinationType                   // what the destination is to this node: localAddress, or another RTN_* of the kernel's
	SourceType                        // likewise, the source
	Outbound                          // index of the interface it leaves by
)

// Op is one step of a rule. A step that does not hold ends the rule, and the next one is tried.
type Op interface{ isOp() }

type (
	// Load puts a field of the packet into registers.
	Load struct {
		Field Field
		Into  Register
	}
	// Put puts a constant into registers.
	Put struct {
		Value string
		Into  Register
	}
	// Draw puts a random number below Of into a register, each with the same probability.
	Draw struct {
		Of   uint32
		Into Register
	}
	// Count puts a number below Of into a register: for each packet that comes by the next one.
	Count struct {
		Of   uint32
		Into Register
	}
	// Hash puts a number below Of into a register, which depends on the Bytes from a register on and on nothing else:
	// it is the same on every node of one byte order.
	Hash struct {
		From  Register
		Bytes uint32
		Of    uint32
		Into  Register
	}
	// Mask keeps those bits of a register that are set in Bits.
	Mask struct {
		Bits string
		In   Register
	}
	// SetMark changes the packet's mark: of the bits in Bits, those in Value are set and the others cleared. It uses
	// a register.
	SetMark struct {
		Bits, Value uint32
		Using       Register
	}
	// Match holds if a register begins with Value, or with Not if it does not.
	Match struct {
		Register Register
		Value    string
		Not      bool
	}
	// Member holds if the key is in the set.
	Member struct {
		Set string
		Key Register
	}
	// Get holds if the key is in the map, and puts its data into registers. They may be read by Translate only: nft
	// of 1.0 fails to list rules that look something up by what they looked up.
	Get struct {
		Map       string
		Key, Into Register
	}
	// Branch holds if the key is in the map, and does what its verdict says.
	Branch struct {
		Map string
		Key Register
	}
	// Remember puts the key into a set for a while, or prolongs its time there.
	Remember struct {
		Set string
		Key Register
		For time.Duration
	}
	// Translate rewrites the destination of the connection, and ends the walk.
	Translate struct {
		Family        byte // 2 or 10, as Family
		Address, Port Register
	}
	// Masquerade rewrites the source of the connection to this node's address, and ends the walk.
	Masquerade struct{}
	// Refuse drops the packet and tells its sender: with Reset by a TCP reset, else as an unreachable port.
	Refuse struct{ Reset bool }
	// Tally counts the packet.
	Tally struct{}
	// Verdict ends the rule: VerdictReturn, VerdictDrop, or what goTo and call give.
	Verdict struct{ Is string }
)

func (Load) isOp()       {}
func (Put) isOp()        {}
func (Draw) isOp()       {}
func (Count) isOp()      {}
func (Hash) isOp()       {}
func (Mask) isOp()       {}
func (SetMark) isOp()    {}
func (Match) isOp()      {}
func (Member) isOp()     {}
func (Get) isOp()        {}
func (Branch) isOp()     {}
func (Remember) isOp()   {}
func (Translate) isOp()  {}
func (Masquerade) isOp() {}
func (Refuse) isOp()     {}
func (Tally) isOp()      {}
func (Verdict) isOp()    {}

// Verdicts that name no chain.
const (
	VerdictReturn = "return" // to the rule after the jump, or out of the table
	VerdictDrop   = "drop"
)

const (
	goToPrefix = "goto "
	callPrefix = "jump "
)

// goTo continues in another chain for good.
func goTo(chain string) string { return goToPrefix + chain }

// call continues in another chain, which may return.
func call(chain string) string { return callPrefix + chain }

// Rule is a list of steps.
type Rule []Op

// Tag tells rules apart: it is kept with the rule in the kernel, and is how ours are recognized there.
func (r Rule) Tag() string {
	sum := sha256.New()
	for _, op := range r {
		fmt.Fprintf(sum, "%T%+v;", op, op)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
