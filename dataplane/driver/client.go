// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Options is what a Client is made of.
type Options struct {
	// Name of the driver, "namespace/name", for errors and logs.
	Name string
	// URL of the driver, http or https.
	URL string
	// HTTP makes the calls: a Transport, or what a simulated world has. It follows no redirects.
	HTTP http.RoundTripper
	// Now is the clock of deadlines; it never runs back.
	Now func() time.Duration
	// Random is used under a lock of the client's and must be used by nobody else. Two clients never draw alike.
	Random rand.Source
	Log    *slog.Logger

	// Timeouts are the whole budgets of calls. Default webhook.DefaultTimeout.
	Timeouts map[webhook.Name]time.Duration
	// Concurrent is how many calls may be in flight at once. Default DefaultConcurrent.
	Concurrent int
	// Token is sent as bearer token; empty for none.
	Token string
	// User is sent as basic authentication where there is no Token; nil for none.
	User *url.Userinfo
	// Redirects is how many answers 307 and 308 of a call are followed, within its budget. Default none. They are followed to
	// other paths of URL's scheme, host and port alone.
	Redirects int
	// DryRun asks drivers that accept it to change nothing, and does not call others.
	DryRun, AcceptsDryRun bool
	// Observe hears of every call once it is over, on the caller's goroutine. Default nobody.
	Observe func(Observation)
}

// Observation is how a call went, for metrics.
type Observation struct {
	Webhook webhook.Name
	Took    time.Duration
	// Err is why there is no usable answer; nil if there is one.
	Err *Error
	// Refused tells that the answer is no: Fail, not succ, not healthy.
	Refused bool
}

// Client calls one driver. Its methods may be called from any goroutine.
type Client struct {
	o       Options
	base    *url.URL
	places  places
	circuit circuit
	dice    dice
}

// New makes a Client. Errors: the URL is none of a driver; a timeout is not positive or longer than webhook.MaxTimeout.
func New(o Options) (*Client, error) {
	base, err := webhook.ParseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("driver %s: %w", o.Name, err)
	}
	for name, t := range o.Timeouts {
		if t <= 0 || t > webhook.MaxTimeout {
			return nil, fmt.Errorf("driver %s: timeout %v of %s: it is not within (0, %v]", o.Name, t, name, webhook.MaxTimeout)
		}
	}
	if o.Concurrent <= 0 {
		o.Concurrent = DefaultConcurrent
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	o.Timeouts = maps.Clone(o.Timeouts)
	c := &Client{o: o, base: base, places: places{most: o.Concurrent}, dice: dice{source: o.Random}}
	c.circuit = circuit{now: o.Now, jitter: c.dice.below}
	return c, nil
}

// Timeout is the whole budget of a call.
func (c *Client) Timeout(n webhook.Name) time.Duration {
	if t, ok := c.o.Timeouts[n]; ok {
		return t
	}
	return webhook.DefaultTimeout
}

// Concurrent is how many calls may be in flight at once.
func (c *Client) Concurrent() int { return c.o.Concurrent }

// Silence is why the driver is left alone at present; nil if it is not.
func (c *Client) Silence() error { return c.circuit.silence() }

// dice draws for all calls of a client.
type dice struct {
	mu     sync.Mutex
	source rand.Source
}

// below draws a duration from [0, d).
func (d *dice) below(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(rand.New(d.source).Int64N(int64(most)))
}

// uuid draws a random UUID (RFC 9562, version 4).
func (d *dice) uuid() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, b := d.source.Uint64(), d.source.Uint64()
	a = a&^0xF000 | 0x4000
	b = b&^(3<<62) | 2<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xFFFF, a&0xFFFF, b>>48, b&(1<<48-1))
}
