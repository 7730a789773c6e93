// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Credentials is what a driver wants to be shown, and what it is known by. LBCF had nothing of this. All fields may be empty.
type Credentials struct {
	CA        []byte // certificates, in PEM, that the driver's is checked against
	Cert, Key []byte // shown to the driver, in PEM
	Token     string // bearer token
	// User and Password are for basic authentication, where there is no Token.
	User, Password string
}

// CredentialsOf reads the keys of a Secret: ca.crt, tls.crt, tls.key, token, username and password.
func CredentialsOf(secret map[string][]byte) Credentials {
	return Credentials{
		CA: secret["ca.crt"], Cert: secret["tls.crt"], Key: secret["tls.key"], Token: strings.TrimSpace(string(secret["token"])),
		User: string(secret["username"]), Password: string(secret["password"]),
	}
}

func (c Credentials) equal(o Credentials) bool {
	return bytes.Equal(c.CA, o.CA) && bytes.Equal(c.Cert, o.Cert) && bytes.Equal(c.Key, o.Key) && c.Token == o.Token &&
		c.User == o.User && c.Password == o.Password
}

// spoken tells whether a request carries some of them.
func (c Credentials) spoken() bool { return c.Token != "" || c.User != "" }

// show puts them on a request.
func (c Credentials) show(r *http.Request) {
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	} else {
		r.SetBasicAuth(c.User, c.Password)
	}
}

// way is the way to one driver: an http.RoundTripper that shows credentials as they are now.
type way struct {
	o        Options
	settings Settings
	base     *url.URL

	mu      sync.Mutex
	shown   Credentials // that transport was made of
	through Transport   // nil before the first
}

func newWay(o Options, s Settings) (*way, error) {
	base, err := webhook.ParseURL(s.URL)
	if err != nil {
		return nil, fmt.Errorf("driver %s: %w", s.Name, err)
	}
	return &way{o: o, settings: s, base: base}, nil
}

// RoundTrip implements http.RoundTripper, as driver.Client wants it: where credentials are not to be had nothing is written.
func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	through, c, err := w.open(r.Context())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrNotSent, err)
	}
	if c.spoken() {
		r = r.Clone(r.Context())
		c.show(r)
	}
	return through.RoundTrip(r)
}

// check is asked about each connection that credentials are shown on.
func (w *way) check(c Credentials) func(context.Context, netip.AddrPort) error {
	return func(ctx context.Context, to netip.AddrPort) error {
		if c.spoken() && w.base.Scheme != "https" {
			if err := driver.LoopbackOnly(ctx, to); err != nil {
				return err
			}
		}
		return w.o.Check(ctx, to)
	}
}

// open gives connections that show what is to be shown now.
func (w *way) open(ctx context.Context) (Transport, Credentials, error) {
	c, err := w.credentials(ctx)
	if err != nil {
		return nil, Credentials{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.through != nil && w.shown.equal(c) {
		return w.through, c, nil
	}
	through, err := w.o.Transport(driver.TransportOptions{
		CA: c.CA, Cert: c.Cert, Key: c.Key, Connections: w.settings.Concurrent, Check: w.check(c),
	})
	if err != nil {
		return nil, Credentials{}, fmt.Errorf("Secret %s: %w", w.settings.Secret, err)
	}
	if w.through != nil {
		w.through.Close()
	}
	w.through, w.shown = through, c
	return through, c, nil
}

func (w *way) credentials(ctx context.Context) (Credentials, error) {
	if w.settings.Secret == "" {
		return Credentials{}, nil
	}
	if w.o.Secrets == nil {
		return Credentials{}, errors.New("the driver wants credentials from a Secret, and this member reads no cluster: name one in sources.kubernetes")
	}
	namespace, _, _ := strings.Cut(w.settings.Name, "/")
	secret, err := w.o.Secrets(ctx, namespace, w.settings.Secret)
	if err != nil {
		return Credentials{}, fmt.Errorf("credentials of the driver: %w", err)
	}
	return CredentialsOf(secret), nil
}

// close ends connections that no call uses. Calls that are under way go on.
func (w *way) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.through != nil {
		w.through.Close()
	}
}
