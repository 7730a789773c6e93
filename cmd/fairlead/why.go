// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
)

func newWhy(c *cli) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "why SERVICE|ADDRESS | why KIND NAME",
		Short: "Explain why an address, or a backend of an outside load balancer, is as it is",
		Long: "Explain where the addresses of a Service come from, which nodes announce them and why the others do not, what changed\n" +
			"last, and what is waited for, on whom.\n\n" +
			"SERVICE is NAMESPACE/NAME, or a name that only one Service has. An ADDRESS means the Services that have it or ask for it.\n" +
			"KIND is backendgroup, bind, loadbalancer or backend, and NAME is NAMESPACE/NAME: which driver has which backends, which call is\n" +
			"waited for, what came of the last one and when the next one is due, and which pods are not registered. A backend may also be\n" +
			"named by its pod or its address.\n\n" +
			"The leader answers; where it cannot be reached, the member that was asked answers from its record, and says so.\n" +
			"docs/why.md has every reason with its remedy.",
		Example: "  fairlead why shop/web\n" +
			"  fairlead why web -n shop -o json\n" +
			"  fairlead why 203.0.113.10\n" +
			"  fairlead why backendgroup shop/web\n" +
			"  fairlead why backend shop/web-1",
		Args:              arguments(1, 2),
		ValidArgsFunction: c.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, err := whySubject(args, namespace)
			if err != nil {
				return err
			}
			answer, err := ask(cmd.Context(), c, "why "+subject, lookWithin, func(ctx context.Context, client *admin.Client) (*fairleadv1.WhyResponse, error) {
				return client.Record.Why(ctx, &fairleadv1.WhyRequest{Subject: subject})
			})
			if err != nil {
				return err
			}
			e := explanation{raw: json.RawMessage(answer.GetDocument())}
			if err := json.Unmarshal(e.raw, &e.Why); err != nil {
				return fmt.Errorf("why %s: the answer cannot be read: %w; use the release of fairlead that the group runs", subject, err)
			}
			return c.print(e)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the Service")
	return cmd
}

// whySubject is what the group is asked about. Errors: wrong use.
func whySubject(args []string, namespace string) (string, error) {
	arg := args[len(args)-1]
	if len(args) > 1 {
		kind := whyKinds[strings.ToLower(args[0])]
		if kind == "" {
			return "", usagef("there is no kind %s that why knows: want service, backendgroup, bind, loadbalancer or backend", args[0])
		}
		name, err := whySubject(args[1:], namespace)
		if err != nil || kind == serviceKind {
			return name, err
		}
		if !strings.Contains(name, "/") {
			return "", usagef("why %s %s: want NAMESPACE/NAME, or -n NAMESPACE", args[0], name)
		}
		return kind + " " + name, nil
	}
	if namespace == "" {
		return arg, nil
	}
	if _, err := netip.ParseAddr(arg); err == nil {
		return "", usagef("-n %s: an address has no namespace", namespace)
	}
	switch of, _, has := strings.Cut(arg, "/"); {
	case !has:
		return namespace + "/" + arg, nil
	case of != namespace:
		return "", usagef("-n %s: %s names another namespace", namespace, arg)
	}
	return arg, nil
}

const serviceKind = "service"

// whyKinds are the kinds that may be asked about, by all that they may be called.
var whyKinds = map[string]string{
	"service": serviceKind, "services": serviceKind, "svc": serviceKind,
	"backendgroup": "backendgroup", "backendgroups": "backendgroup", "bg": "backendgroup", "bind": "bind", "binds": "bind",
	"loadbalancer": "loadbalancer", "loadbalancers": "loadbalancer", "lb": "loadbalancer",
	"backend": "backend", "backends": "backend", "binding": "backend", "bindings": "backend", "backendrecord": "backend", "backendrecords": "backend",
}

// completeServices offers the names of Services.
func (c *cli) completeServices(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeNames(cmd.Context(), "services"), cobra.ShellCompDirectiveNoFileComp
}

// explanation is what `fairlead why` prints. In JSON it is what the member said, newer fields included.
type explanation struct {
	records.Why
	raw json.RawMessage
}

// MarshalJSON gives the document as it came.
func (e explanation) MarshalJSON() ([]byte, error) { return e.raw, nil }
