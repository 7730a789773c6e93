// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/kit"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/smallfile"
)

// newDriver makes the commands for those who write drivers.
func newDriver(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "driver", Short: "Help to write drivers of outside load balancers"}
	cmd.AddCommand(newDriverTest(c))
	return cmd
}

// driverFiles names files with what proves who is who.
type driverFiles struct{ ca, cert, key, token, user string }

// conformance is what `fairlead driver test` prints.
type conformance struct{ kit.Report }

// WriteTable writes a line a check, and what to do about those that failed.
func (r conformance) WriteTable(w io.Writer) error {
	rows := make([][]string, 0, len(r.Checks))
	for _, c := range r.Checks {
		rows = append(rows, []string{string(c.Result), c.Name, "§" + c.Section, c.What})
	}
	if err := output.WriteRows(w, []string{"RESULT", "CHECK", "SECTION", "A DRIVER DOES THIS"}, rows); err != nil {
		return err
	}
	for _, c := range r.Checks {
		if c.Why == "" {
			continue
		}
		text := fmt.Sprintf("\n%s %s: %s\n", c.Name, c.Result, output.Clean(c.Why))
		if c.Remedy != "" {
			text += "  " + output.Clean(c.Remedy) + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", r.Passed, r.Failed, r.Skipped)
	return err
}

func newDriverTest(c *cli) *cobra.Command {
	var o kit.TestOptions
	var files driverFiles
	cmd := &cobra.Command{
		Use:   "test URL",
		Short: "Ask a driver everything that it has to do",
		Long: "Ask a driver everything that it has to do. It is asked to make a load balancer, to put backends on it, with addresses\n" +
			"set aside for documentation, and to take all of them off again. Give it with --lb-spec, --attribute and --parameter what\n" +
			"its users write. The report says what is wrong, which section of the protocol says so, and what to do.",
		Example: "  fairlead driver test http://127.0.0.1:8080 --lb-spec name=test --parameter weight=80\n" +
			"  fairlead driver test https://driver.example.com/v1 --driver-ca ca.crt --token-file token -o json",
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.URL = args[0]
			if err := checkDriverTest(o); err != nil {
				return err
			}
			return testDriver(cmd.Context(), c, o, files)
		},
	}
	flags := cmd.Flags()
	flags.StringToStringVar(&o.LBSpec, "lb-spec", nil, "lbSpec of the load balancer; may be repeated")
	flags.StringToStringVar(&o.Attributes, "attribute", nil, "attributes of the load balancer; may be repeated")
	flags.StringToStringVar(&o.Parameters, "parameter", nil, "parameters of the backends; may be repeated")
	flags.StringSliceVar(&o.Addresses, "address", nil, "addresses of static backends, two or more (default: the driver is asked for those of pods)")
	flags.DurationVar(&o.Timeout, "timeout", webhook.DefaultTimeout, "of each call")
	flags.DurationVar(&o.Within, "within", time.Minute, "how long the driver may answer Running")
	flags.StringVar(&files.ca, "driver-ca", "", "file with the CA certificates of the driver (default those of the system)")
	flags.StringVar(&files.cert, "driver-cert", "", "file with the certificate to show to the driver")
	flags.StringVar(&files.key, "driver-key", "", "file with the key of that certificate")
	flags.StringVar(&files.token, "token-file", "", "file with the bearer token to send; over https, or to this machine")
	flags.StringVar(&files.user, "user-file", "", "file with USER:PASSWORD to send where there is no token; likewise")
	return cmd
}

// checkDriverTest finds what is wrong with the command line.
func checkDriverTest(o kit.TestOptions) error {
	if _, err := webhook.ParseURL(o.URL); err != nil {
		return &usageError{err}
	}
	switch {
	case o.Timeout <= 0 || o.Timeout > webhook.MaxTimeout:
		return usagef("--timeout %v: it is not within (0, %v]", o.Timeout, webhook.MaxTimeout)
	case o.Within <= 0:
		return usagef("--within %v: it is not positive", o.Within)
	case len(o.Addresses) == 1:
		return usagef("--address: give two or more")
	}
	return nil
}

func testDriver(ctx context.Context, c *cli, o kit.TestOptions, files driverFiles) error {
	var err error
	if err = files.open(&o); err != nil {
		return err
	}
	report, err := kit.Test(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(nonconforming(ctx, report), c.print(conformance{report}))
}

// nonconforming is the error of a driver that does not pass.
func nonconforming(ctx context.Context, r kit.Report) error {
	if ctx.Err() != nil {
		return fmt.Errorf("test the driver at %s: interrupted; what it made may be left on the load balancer", r.URL)
	}
	for _, check := range r.Checks {
		if check.Result == kit.Failed {
			return fmt.Errorf("test the driver at %s: %d of %d checks failed, first %s (lbcf §%s): %s; %s",
				r.URL, r.Failed, len(r.Checks), check.Name, check.Section, check.Why, check.Remedy)
		}
	}
	return nil
}

// open reads the files.
func (f driverFiles) open(test *kit.TestOptions) (err error) {
	var o driver.TransportOptions
	var token, user []byte
	for _, file := range []struct {
		name string
		into *[]byte
	}{{f.ca, &o.CA}, {f.cert, &o.Cert}, {f.key, &o.Key}, {f.token, &token}, {f.user, &user}} {
		if file.name == "" {
			continue
		}
		if *file.into, err = smallfile.Read(file.name, smallfile.Most); err != nil {
			return err
		}
	}
	test.Token = strings.TrimSpace(string(token))
	if name, password, ok := strings.Cut(strings.TrimSpace(string(user)), ":"); ok {
		test.User = url.UserPassword(name, password)
	} else if f.user != "" {
		return fmt.Errorf("%s: it is not written as USER:PASSWORD", f.user)
	}
	if (test.Token != "" || test.User != nil) && !strings.HasPrefix(test.URL, "https:") {
		o.Check = driver.LoopbackOnly
	}
	test.HTTP, err = driver.NewTransport(o)
	return err
}
