// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	"fairlead.io/fairlead/cmd/fairlead-driver-haproxy/internal/haproxy"
	"fairlead.io/fairlead/dataplane/driver/kit"
)

// serve is the driver until ctx ends.
func serve(ctx context.Context, c config, stderr io.Writer) (err error) {
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	o := kit.ServerOptions{Listen: c.listen, Cert: c.cert, Key: c.key, ClientCA: c.callers, HandlerOptions: kit.HandlerOptions{Log: log}}
	if c.token != "" {
		if o.Token, err = kit.ReadToken(c.token); err != nil {
			return err
		}
	}
	server, err := kit.Listen(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // it is closed already, but for what fails here
	book, err := haproxy.OpenBook(c.state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	driver := haproxy.New(haproxy.Options{Runtime: haproxy.Socket(c.socket), Book: book, Mark: c.mark, Drain: c.drain, Log: log})
	switch {
	case c.loop:
	case o.Token == "" && c.callers == "":
		log.Warn("everybody who can connect may change HAProxy: use --token-file or --client-ca", "listen", c.listen)
	case c.cert == "":
		log.Warn("whoever sees a call may read its token, and change HAProxy: use --tls-cert and --tls-key", "listen", c.listen)
	}
	log.Info("serving", "listen", server.Addr().String(), "tls", c.cert != "", "socket", c.socket, "state", c.state, "mark", c.mark)
	driver.Healthy(ctx) // which says why not

	var wait sync.WaitGroup
	defer wait.Wait()
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	wait.Go(func() { driver.Keep(keeping) })
	defer log.Info("stopped")
	return server.Serve(ctx, driver)
}
