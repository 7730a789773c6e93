// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// controlSocket is where a dev process takes orders, in its data folder. Only its user can reach it.
const controlSocket = "dev.sock"

// DataOf is the data folder of the dev process that wrote a context file, which may be linked to.
func DataOf(contextFile string) string {
	if real, err := filepath.EvalSymlinks(contextFile); err == nil {
		contextFile = real
	}
	return filepath.Dir(contextFile)
}

// control serves orders until ctx ends.
func control(ctx context.Context, dir string, g *group) error {
	path := filepath.Join(dir, controlSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	mux := http.NewServeMux()
	order := func(do func(string) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := do(memberName(r.PathValue("member"))); err != nil {
				http.Error(w, err.Error(), http.StatusConflict)
			}
		}
	}
	mux.HandleFunc("POST /kill/{member}", order(g.kill))
	mux.HandleFunc("POST /start/{member}", order(func(name string) error { return g.start(ctx, name) }))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// runs tells whether a dev process takes orders in a data folder.
func runs(dir string) bool {
	c, err := net.Dial("unix", filepath.Join(dir, controlSocket))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// memberName accepts a member's number for its name.
func memberName(s string) string {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return "m" + s
	}
	return s
}

// Order tells the dev process of a data folder to kill or start a member.
func Order(ctx context.Context, dir, verb, memberOrNumber string) error {
	path := filepath.Join(dir, controlSocket)
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	url := fmt.Sprintf("http://dev/%s/%s", verb, memberOrNumber)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return fmt.Errorf("%s %q: %w", verb, memberOrNumber, err)
	}
	answer, err := client.Do(request)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s %s: no `fairlead dev` runs over %s; start one, or name its folder with --data", verb, memberOrNumber, dir)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, memberOrNumber, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		return errors.New(strings.TrimSpace(string(why)))
	}
	return nil
}
