// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"fairlead.io/fairlead/cmd/fairlead-driver-haproxy/internal/haproxy"
)

// config is a command line, understood.
type config struct {
	listen  string
	loop    bool // listen is of this machine alone
	socket  string
	state   string
	mark    haproxy.Mark
	drain   time.Duration
	token   string // file
	cert    string // file
	key     string // file
	callers string // file with the CA of clients
}

// parse reads a command line. Help goes to out. Errors: flag.ErrHelp, or what is wrong.
func parse(args []string, out io.Writer) (config, error) {
	var c config
	var mark string
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.listen, "listen", "127.0.0.1:7490", "`IP:PORT` to serve webhooks at")
	flags.StringVar(&c.socket, "socket", "/run/haproxy/admin.sock", "`PATH` of HAProxy's stats socket, which needs level admin")
	flags.StringVar(&c.state, "state", "/var/lib/fairlead-driver-haproxy/servers.json", "`FILE` to keep the servers in, in a folder of its own")
	flags.StringVar(&mark, "mark", string(haproxy.DefaultMark), "`LETTERS` that names of this driver's servers begin with")
	flags.DurationVar(&c.drain, "drain", 30*time.Second, "how long a deregistered server keeps connections, before they are shut")
	flags.StringVar(&c.token, "token-file", "", "`FILE` with the bearer token that callers have to show")
	flags.StringVar(&c.cert, "tls-cert", "", "`FILE` with the certificate to serve HTTPS with")
	flags.StringVar(&c.key, "tls-key", "", "`FILE` with its key")
	flags.StringVar(&c.callers, "client-ca", "", "`FILE` with the CA whose certificates callers have to show")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, out)
		}
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("argument %q: there are only flags", flags.Arg(0))
	}
	var err error
	if c.mark, err = haproxy.ParseMark(mark); err != nil {
		return config{}, fmt.Errorf("--mark: %w", err)
	}
	return c, c.check()
}

func usage(flags *flag.FlagSet, out io.Writer) {
	_, _ = fmt.Fprintf(out, "Usage: %s [flags]\n\nPuts backends as servers on backends of the HAProxy on this machine.\n\n", program)
	flags.SetOutput(out)
	flags.PrintDefaults()
}

// check finds what is wrong with flags, and whether strangers could call.
func (c *config) check() error {
	host, _, err := net.SplitHostPort(c.listen)
	if err != nil {
		return fmt.Errorf("--listen %q: give IP:PORT, such as 127.0.0.1:7490", c.listen)
	}
	address, err := netip.ParseAddr(host)
	switch {
	case err != nil && host != "" && host != "localhost":
		return fmt.Errorf("--listen %q: give IP:PORT, such as 127.0.0.1:7490", c.listen)
	case c.socket == "":
		return errors.New("--socket: it is empty; give the path of HAProxy's stats socket")
	case c.state == "":
		return errors.New("--state: it is empty; give a file to keep the servers in")
	case c.drain < 0:
		return fmt.Errorf("--drain %v: it is negative", c.drain)
	case (c.cert == "") != (c.key == ""):
		return errors.New("--tls-cert, --tls-key: give both or none")
	case c.callers != "" && c.cert == "":
		return errors.New("--client-ca: callers show certificates in TLS only; give --tls-cert and --tls-key, too")
	}
	c.loop = host == "localhost" || address.IsLoopback()
	return nil
}
