// SPDX-License-Identifier: Apache-2.0

package member

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/pool"
	"fairlead.io/fairlead/k8s/secrets"
)

// openDrivers makes the clients of the drivers that this member calls, in all terms and for admission, unless somebody else
// calls them. Their deadlines are by the leader's clock.
func (m *Member) openDrivers() (err error) {
	if m.edges.Drivers != nil {
		return nil
	}
	seeds := dice{random: rand.New(rand.NewPCG(m.edges.Random.Uint64(), m.edges.Random.Uint64()))}
	o := pool.Options{Now: m.edges.Clock.Now, Random: seeds.source, DryRun: m.config.LBCF.DryRun, Check: m.driverReach().Check, Log: m.log, Metrics: m.registry}
	if m.edges.HTTP != nil {
		o.Transport = func(driver.TransportOptions) (pool.Transport, error) { return lent{m.edges.HTTP}, nil }
	}
	if m.kube != nil {
		core := m.kube.Client.CoreV1()
		o.Secrets = secrets.New(func(namespace string) secrets.Getter { return core.Secrets(namespace) }, time.Now).Read
	}
	m.drivers, err = pool.New(o)
	return err
}

// dice makes sources of randomness, each unlike all others.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (d *dice) source() rand.Source {
	d.mu.Lock()
	defer d.mu.Unlock()
	return rand.NewPCG(d.random.Uint64(), d.random.Uint64())
}

// lent is connections that are somebody else's to close.
type lent struct{ http.RoundTripper }

// Close implements pool.Transport.
func (lent) Close() {}
