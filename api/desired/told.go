// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"net/netip"

	"google.golang.org/protobuf/encoding/protowire"
)

// Source is where a Service comes from. Equal ones give equal Services.
type Source interface {
	Name() string // namespace/name
	Service() *Service
}

// Held is a Service that somebody has anyway.
type Held struct{ Is *Service }

// Name implements Source.
func (h Held) Name() string { return h.Is.Name }

// Service implements Source.
func (h Held) Service() *Service { return h.Is }

// Told is a Service as a node was told of it. It is decoded whenever somebody asks, and kept as it was sent: endpoints are most of what
// a node is told, and decoded they are many times as large.
type Told struct {
	key   string
	value string
}

// newTold checks that it can be decoded.
func newTold(key, value string) (*Told, error) {
	if _, err := decodeService(key, []byte(value)); err != nil {
		return nil, err
	}
	return &Told{key, value}, nil
}

// Name implements Source.
func (t *Told) Name() string { return t.key[1:] }

// Service implements Source: it decodes, anew each time.
func (t *Told) Service() *Service {
	s, _ := decodeService(t.key, t.encoded()) // newTold found that it can be
	return s
}

// encoded is the value as it was sent.
func (t *Told) encoded() []byte { return []byte(t.value) }

// Numbers of fields of fairlead.v1.Service.
const (
	serviceAddresses  = 1
	serviceHealthPort = 8
	serviceProbe      = 95
)

// addresses decodes nothing else.
func (t *Told) addresses() (out []netip.Addr) {
	t.fields(func(number protowire.Number, value []byte) {
		if a, ok := netip.AddrFromSlice(value); ok && number == serviceAddresses {
			out = append(out, a)
		}
	})
	return out
}

// HasHealthCheck tells whether it has a HealthCheckNodePort.
func (t *Told) HasHealthCheck() (has bool) {
	t.fields(func(number protowire.Number, _ []byte) { has = has || number == serviceHealthPort })
	return has
}

// HasProbe tells whether it has a Probe.
func (t *Told) HasProbe() (has bool) {
	t.fields(func(number protowire.Number, _ []byte) { has = has || number == serviceProbe })
	return has
}

// fields calls each with the fields of the value; what is no bytes is nil.
func (t *Told) fields(each func(number protowire.Number, value []byte)) {
	for data := t.encoded(); len(data) > 0; {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return
		}
		data = data[n:]
		var value []byte
		if kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(data)
		} else {
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return
		}
		each(number, value)
		data = data[n:]
	}
}
