// SPDX-License-Identifier: Apache-2.0

package appliedstate

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// The file is one line of text, then JSON:
//
//	fairlead applied.state 1 sha256:<of the JSON, in hexadecimal>
//
// A number other than 1 is a format of another release. JSON fields are only ever added: what an older release does
// not know it must refuse, since it would announce something else than was announced.
const magic = "fairlead applied.state 1 sha256:%x\n"

type document struct {
	Group string `json:"group"`
	Epoch uint64 `json:"epoch"`
	Index uint64 `json:"index"`
	Paths []path `json:"paths"`
	Peers []peer `json:"peers"`
}

type path struct {
	Prefix           netip.Prefix         `json:"prefix"`
	NextHop          netip.Addr           `json:"nextHop"`
	Origin           bgp.Origin           `json:"origin,omitempty"`
	MED              uint32               `json:"med,omitempty"`
	LocalPref        uint32               `json:"localPref,omitempty"`
	Communities      []bgp.Community      `json:"communities,omitempty"`
	LargeCommunities []bgp.LargeCommunity `json:"largeCommunities,omitempty"`
	Terms            []bgp.Terms          `json:"terms,omitempty"`
	Withheld         bool                 `json:"withheld,omitempty"`
	Weight           uint32               `json:"weight,omitempty"`
}

type peer struct {
	Name         string        `json:"name,omitempty"`
	Address      netip.Addr    `json:"address"`
	Port         uint16        `json:"port,omitempty"`
	RemoteASN    uint32        `json:"remoteASN"`
	LocalASN     uint32        `json:"localASN,omitempty"`
	LocalAddress netip.Addr    `json:"localAddress,omitzero"`
	Passive      bool          `json:"passive,omitempty"`
	EBGPMultihop uint8         `json:"ebgpMultihop,omitempty"`
	TTLSecurity  uint8         `json:"ttlSecurity,omitempty"`
	Families     []bgp.Family  `json:"families,omitempty"`
	SendMax      uint8         `json:"sendMax,omitempty"`
	HoldTime     time.Duration `json:"holdTime,omitempty"`
	Keepalive    time.Duration `json:"keepalive,omitempty"`
	ConnectRetry time.Duration `json:"connectRetry,omitempty"`
	Restart      restart       `json:"restart,omitzero"`
	Password     string        `json:"password,omitempty"` // a bgp.Secret would write stars
	Demoted      bool          `json:"demoted,omitempty"`
}

type restart struct {
	Mode         bgp.RestartMode `json:"mode,omitempty"`
	RestartTime  time.Duration   `json:"restartTime,omitempty"`
	StaleTime    time.Duration   `json:"staleTime,omitempty"`
	Deferral     time.Duration   `json:"deferral,omitempty"`
	Notification bool            `json:"notification,omitempty"`
}

func encode(r bgp.Routes, group string) ([]byte, error) {
	d := document{
		Group: group, Epoch: r.Revision.Epoch, Index: r.Revision.Index,
		Paths: make([]path, 0, r.Paths.Len()), Peers: make([]peer, len(r.Peers)),
	}
	for p := range r.Paths.All() {
		d.Paths = append(d.Paths, path{p.Prefix, p.NextHop, p.Origin, p.MED, p.LocalPref, p.Communities, p.LargeCommunities, p.Terms, p.Withheld, p.Weight})
	}
	for i, p := range r.Peers {
		d.Peers[i] = peer{
			p.Name, p.Address, p.Port, p.RemoteASN, p.LocalASN, p.LocalAddress, p.Passive, p.EBGPMultihop, p.TTLSecurity, p.Families,
			p.SendMax, p.HoldTime, p.Keepalive, p.ConnectRetry, restart(p.Restart), string(p.Password), p.Demoted,
		}
	}
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return append(fmt.Appendf(nil, magic, sha256.Sum256(body)), body...), nil
}

func decode(text []byte, group string) (bgp.Routes, error) {
	head, body, ok := bytes.Cut(text, []byte("\n"))
	want := fmt.Appendf(nil, magic, sha256.Sum256(body))
	if !ok || !bytes.Equal(head, bytes.TrimSuffix(want, []byte("\n"))) {
		return bgp.Routes{}, fmt.Errorf("%w: its checksum or format does not match", ErrCorrupt)
	}
	var d document
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return bgp.Routes{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if d.Group != group {
		return bgp.Routes{}, fmt.Errorf("%w: %q, this is %q", ErrForeign, d.Group, group)
	}
	r := bgp.Routes{Revision: bgp.Revision{Epoch: d.Epoch, Index: d.Index}}
	paths := make([]bgp.Path, 0, len(d.Paths))
	for _, p := range d.Paths {
		paths = append(paths, bgp.Path{
			Prefix: p.Prefix, NextHop: p.NextHop, Origin: p.Origin, MED: p.MED, LocalPref: p.LocalPref,
			Communities: p.Communities, LargeCommunities: p.LargeCommunities, Terms: p.Terms, Withheld: p.Withheld, Weight: p.Weight,
		})
	}
	r.Paths = bgp.NewPaths(paths...)
	for _, p := range d.Peers {
		r.Peers = append(r.Peers, bgp.Peer{
			Name: p.Name, Address: p.Address, Port: p.Port, RemoteASN: p.RemoteASN, LocalASN: p.LocalASN,
			LocalAddress: p.LocalAddress, Passive: p.Passive, EBGPMultihop: p.EBGPMultihop, TTLSecurity: p.TTLSecurity, Families: p.Families,
			SendMax: p.SendMax, HoldTime: p.HoldTime, Keepalive: p.Keepalive, ConnectRetry: p.ConnectRetry,
			Restart: bgp.GracefulRestart(p.Restart), Password: bgp.Secret(p.Password), Demoted: p.Demoted,
		})
	}
	return r, nil
}
