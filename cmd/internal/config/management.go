// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
)

// faultOfManagement tells what is wrong with the address of an API that lets everybody in who reaches it.
func faultOfManagement(v string) string {
	if v == "" {
		return ""
	}
	const remedy = "; use 127.0.0.1:PORT, [::1]:PORT or unix:///PATH, or leave it out"
	if path, ok := strings.CutPrefix(v, "unix://"); ok {
		if !filepath.IsAbs(path) || strings.Contains(path, ",") {
			return fmt.Sprintf("%q has no absolute path without commas", v) + remedy
		}
		return ""
	}
	a, err := netip.ParseAddrPort(v)
	switch {
	case err != nil || a.Port() == 0:
		return fmt.Sprintf("%q is no address and port", v) + remedy
	case !a.Addr().IsLoopback():
		return fmt.Sprintf("%q could be reached from other hosts, and asks for no certificate", v) + remedy
	}
	return ""
}
