// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp"
)

// The codes of faults.
const (
	faultTheirAS      = "peer-as"       // the peer has another AS number
	faultRouterID     = "router-id"     // two speakers have one
	faultRefused      = "refused"       // the peer does not talk to us: an AS number of ours that it does not expect, or no such neighbour
	faultNotification = "notification"  // the peer, or we, ended it for another reason
	faultNoConnection = "no-connection" // TCP does not open
)

// silentAfter is how long a connection may take to open before that is a fault.
const silentAfter = 10 * time.Second

// faults keeps the last one of each peer. GoBGP tells them in its log only, and opens and closes such sessions for ever.
type faults struct {
	mu sync.Mutex
	of map[netip.Addr]bgp.Fault
}

// notice takes in what GoBGP logs about a peer, and tells of a fault that is another one than before.
func (f *faults) notice(event string, about attributes, log *slog.Logger, within func(slog.Level) slog.Level) {
	address, err := netip.ParseAddr(about["Key"].String())
	if err != nil {
		return
	}
	var now bgp.Fault
	switch event {
	case "Peer Up":
	case "received notification", "sent notification":
		code, subcode := about.octet("Code"), about.octet("Subcode")
		received := event == "received notification"
		switch {
		case !received && code == wire.BGP_ERROR_CEASE:
			return // we took leave
		case !received && code == wire.BGP_ERROR_FSM_ERROR:
			now = refused() // something else than its OPEN came: a NOTIFICATION, of which GoBGP does not tell more
		default:
			now = faultOf(code, subcode, received)
		}
	default:
		return
	}
	f.mu.Lock()
	before := f.of[address]
	if f.of == nil {
		f.of = map[netip.Addr]bgp.Fault{}
	}
	f.of[address] = now
	f.mu.Unlock()
	if now != before && now != (bgp.Fault{}) {
		log.Log(context.Background(), within(slog.LevelError), "no bgp session", "peer", address, "code", now.Code, "reason", now.Reason, "remedy", now.Remedy)
	}
}

func (f *faults) forget(a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, a)
}

func (f *faults) get(a netip.Addr) bgp.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of[a]
}

// faultOf says what a NOTIFICATION means (RFC 4271 §4.5, RFC 4486).
func faultOf(code, subcode uint8, received bool) bgp.Fault {
	open := code == wire.BGP_ERROR_OPEN_MESSAGE_ERROR
	switch {
	case open && subcode == wire.BGP_ERROR_SUB_BAD_PEER_AS:
		return bgp.Fault{Code: faultTheirAS, Reason: "the switch has another AS number than spec.peerASN", Remedy: "set spec.peerASN to the switch's"}
	case open && subcode == wire.BGP_ERROR_SUB_BAD_BGP_IDENTIFIER:
		return bgp.Fault{Code: faultRouterID, Reason: "the router id is invalid, or the other end's own", Remedy: "give each member and switch a router id of its own: bgp.routerID in controller.yaml"}
	case received && code == wire.BGP_ERROR_CEASE && (subcode == wire.BGP_ERROR_SUB_CONNECTION_REJECTED || subcode == wire.BGP_ERROR_SUB_PEER_DECONFIGURED):
		return bgp.Fault{Code: faultRefused, Reason: "the switch does not take this member for a neighbour", Remedy: "configure the member's address as a neighbour of the switch"}
	case received && code == wire.BGP_ERROR_CEASE && subcode == wire.BGP_ERROR_SUB_ADMINISTRATIVE_SHUTDOWN:
		return bgp.Fault{Code: faultRefused, Reason: "the session is shut down at the switch", Remedy: "enable it there"}
	}
	text, who := wire.NewNotificationErrorCode(code, subcode).String(), "this member"
	if received {
		who = "the switch"
	}
	return bgp.Fault{Code: faultNotification, Reason: who + " ended it: " + text, Remedy: "look at the log of the switch"}
}

// refused is the fault of a peer that ends sessions while they open. GoBGP does not tell which NOTIFICATION that was.
func refused() bgp.Fault {
	return bgp.Fault{
		Code: faultRefused, Reason: "the switch refuses the session while it opens; its log has the reason",
		Remedy: "set spec.myASN to the AS number that the switch has for this neighbour, and see that it has the member's address as a neighbour",
	}
}

// silent is the fault of a peer to which TCP does not open. Segments with another signature, or on one side only, are dropped
// without a word, so that a wrong password cannot be told from a switch that is off.
func silent(address netip.Addr, port uint16, password bgp.Secret) bgp.Fault {
	f := bgp.Fault{
		Code: faultNoConnection, Reason: fmt.Sprintf("no TCP connection opens with %s", netip.AddrPortFrom(address, port)),
		Remedy: "see that the switch is up, has this member as a neighbour at its address, and asks for no password and no TTL security",
	}
	if password != "" {
		f.Remedy = "see that the switch is up, has this member as a neighbour at its address, and has the same password: with another one, or none, TCP stays silent"
	}
	return f
}
