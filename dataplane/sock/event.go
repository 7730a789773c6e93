// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// Event is one call that got another destination, or failed to (balancing §19).
type Event struct {
	Time    time.Time
	Cgroup  uint64 // of the caller; its inode number
	PID     uint32
	Rule    uint32
	To      Place
	Backend netip.AddrPort // the zero one if there is none
	Failure Failure
	Kind    Kind
	Mode    Mode
	Limited bool // a redirect did not count, since there were too many in that second
	IPv4    bool // the call was about IPv4, maybe by a socket of IPv6
}

// Failure is what went wrong with a call; the numbers are those of balancing §19.
type Failure uint8

// The failures that there are.
const (
	NoFailure       Failure = 0
	NoBackend       Failure = 1
	BackendNotFound Failure = 2
	NoNodeProxy     Failure = 3
	AffinityFailed  Failure = 100 // the call went on
	RecordFailed    Failure = 101
)

func (f Failure) String() string {
	switch f {
	case NoFailure:
		return ""
	case NoBackend:
		return "AgentNoBackend"
	case BackendNotFound:
		return "AgentFindBackendFailure"
	case NoNodeProxy:
		return "AgentFindNodeProxyIpFailure"
	case AffinityFailed:
		return "SystemUpdateAffinityFailure"
	case RecordFailed:
		return "SystemUpdateNatRecordFailure"
	}
	return fmt.Sprintf("failure %d", uint8(f))
}

// Origin is where a call came from. A container of no pod has Container alone, a process of the host nothing.
type Origin struct{ Pod, Namespace, PodUID, Container string }

// report is an event in the words and the order of balancing §19.
type report struct {
	NodeName          string
	ClientPodName     string
	ClientNamespace   string
	ClientPodUuid     string
	ClientContainerId string
	ClientPid         uint32
	IsHostApp         bool
	IsIpv4            bool
	Protocol          string
	DestIp            string
	DestPort          uint16
	NatIp             string
	NatPort           uint16
	IsSuccess         bool
	Failure           string
	ServiceId         uint32
	PolicyName        string
	NatType           string
	NatMode           string
	RedirectHitLimit  bool
	TimeStamp         string
}

// reportOf puts an event into words. Of a caller that nobody knows any more it is not said whether it was the host's.
func reportOf(e Event, node, policy string, from Origin, known bool) report {
	nat := e.Backend.Addr()
	if !nat.IsValid() {
		if nat = netip.IPv6Unspecified(); e.IPv4 {
			nat = netip.IPv4Unspecified()
		}
	}
	return report{
		NodeName: node, ClientPodName: from.Pod, ClientNamespace: from.Namespace, ClientPodUuid: from.PodUID, ClientContainerId: from.Container,
		ClientPid: e.PID, IsHostApp: known && from == Origin{}, IsIpv4: e.IPv4, Protocol: protocolName(e.To.Protocol),
		DestIp: e.To.Address.String(), DestPort: e.To.Port, NatIp: nat.String(), NatPort: e.Backend.Port(),
		IsSuccess: e.Backend.IsValid() && e.Failure != RecordFailed, Failure: e.Failure.String(), ServiceId: e.Rule, PolicyName: policy,
		NatType: e.Kind.String(), NatMode: e.Mode.String(), RedirectHitLimit: e.Limited, TimeStamp: e.Time.UTC().Format(time.RFC3339),
	}
}

// attrs are the fields as keys of a log line.
func (r report) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("NodeName", r.NodeName), slog.String("ClientPodName", r.ClientPodName), slog.String("ClientNamespace", r.ClientNamespace),
		slog.String("ClientPodUuid", r.ClientPodUuid), slog.String("ClientContainerId", r.ClientContainerId), slog.Uint64("ClientPid", uint64(r.ClientPid)),
		slog.Bool("IsHostApp", r.IsHostApp), slog.Bool("IsIpv4", r.IsIpv4), slog.String("Protocol", r.Protocol),
		slog.String("DestIp", r.DestIp), slog.Uint64("DestPort", uint64(r.DestPort)), slog.String("NatIp", r.NatIp), slog.Uint64("NatPort", uint64(r.NatPort)),
		slog.Bool("IsSuccess", r.IsSuccess), slog.String("Failure", r.Failure), slog.Uint64("ServiceId", uint64(r.ServiceId)), slog.String("PolicyName", r.PolicyName),
		slog.String("NatType", r.NatType), slog.String("NatMode", r.NatMode), slog.Bool("RedirectHitLimit", r.RedirectHitLimit), slog.String("TimeStamp", r.TimeStamp),
	}
}
