// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWrongCommandLinesExitTwoWithOneLineAndTheWayToHelp(t *testing.T) {
	isolate(t)
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"nothing":             {nil, []string{"no command", "raft", "`fairlead --help`"}},
		"unknown-command":     {[]string{"bogus"}, []string{`"bogus"`}},
		"misspelt-command":    {[]string{"descirbe"}, []string{"did you mean describe?"}},
		"misspelt-verb":       {[]string{"raft", "statsu"}, []string{"raft: ", "did you mean status?", "`fairlead raft --help`"}},
		"group-alone":         {[]string{"raft"}, []string{"raft: no command", "backup"}},
		"unknown-flag":        {[]string{"raft", "status", "--bogus"}, []string{"raft status: ", "--bogus"}},
		"unknown-shorthand":   {[]string{"get", "-z"}, []string{"get: "}},
		"bad-flag-value":      {[]string{"raft", "finalize", "--format", "x"}, []string{"--format", `"x"`}},
		"bad-format":          {[]string{"version", "-o", "xml"}, []string{"xml", "table, json, yaml"}},
		"flag-without-value":  {[]string{"version", "-o"}, []string{"-o"}},
		"no-kind":             {[]string{"get"}, []string{"want KIND [NAME]"}},
		"unknown-kind":        {[]string{"get", "pods"}, []string{`unknown kind "pods"`, "services"}},
		"too-many":            {[]string{"get", "svc", "a", "b"}, []string{"want only KIND [NAME]"}},
		"describe-no-name":    {[]string{"describe", "svc"}, []string{"want KIND NAME"}},
		"argument-to-version": {[]string{"version", "x"}, []string{"want no arguments"}},
		"add-without-address": {[]string{"raft", "add", "m4-x"}, []string{"want SERVER-ID ADDRESS"}},
		"backup-nowhere":      {[]string{"raft", "backup"}, []string{"want FILE"}},
		"unknown-role":        {[]string{"pki", "issue", "king", "x"}, []string{`unknown role "king"`, "operator"}},
		"bad-duration":        {[]string{"pki", "init", "--ttl", "long"}, []string{"--ttl"}},
		"help-on-nothing":     {[]string{"help", "bogus"}, []string{`"bogus"`}},
		"flags-of-another":    {[]string{"apply", "-f", "x"}, []string{`unknown command "apply"`}},
		"flags-in-between":    {[]string{"-o", "json", "apply", "-f", "x"}, []string{`unknown command "apply"`}},
		"unknown-verb-flags":  {[]string{"raft", "statsu", "--local"}, []string{"did you mean status?"}},
		"ignored-timeout":     {[]string{"drain", "node", "n1", "--timeout", "5m"}, []string{"--timeout", "--wait"}},
		"ignored-quiet":       {[]string{"drain", "node", "n1", "--quiet-within", "5m"}, []string{"--quiet-within", "--wait"}},
		"ignored-wait":        {[]string{"move", "a/b", "n1", "--timeout", "5m"}, []string{"--timeout", "--wait"}},
		"ignored-ttl":         {[]string{"pki", "rotate", "--finish", "--ttl", "5m"}, []string{"--ttl", "--finish"}},
		"ignored-server":      {[]string{"pki", "issue", "agent", "n1", "--server", "192.0.2.1:7443"}, []string{"--server", "operators and viewers"}},
		"ignored-seeds":       {[]string{"sim", "run", "--manifests", "../../examples/quickstart", "--seeds", "1..3"}, []string{"--seeds 1..3", "--seeds 1..1"}},
		"ignored-segments":    {[]string{"sim", "run", "--manifests", "../../examples/quickstart", "--segments", "1"}, []string{"--segments", "--manifests"}},
		"no-name-of-a-node":   {[]string{"pki", "enrol", "no de"}, []string{`"no de"`, "lower-case letters"}},
		"unknown-shell":       {[]string{"completion", "tcsh"}, []string{`"tcsh"`}},
	} {
		t.Run(name, func(t *testing.T) {
			fairlead(t, test.args...).mustFail(t, exitUsage, append(test.want, "--help`")...)
		})
	}
}

func TestHelpIsPrintedWhenAskedFor(t *testing.T) {
	isolate(t)
	for _, args := range [][]string{{"--help"}, {"help"}, {"raft", "-h"}, {"help", "raft", "status"}, {"get", "--help"}} {
		if got := fairlead(t, args...).mustPrint(t); !strings.Contains(got, "Usage:") {
			t.Errorf("%v: %q", args, got)
		}
	}
}

func TestExitCodeTellsUsageFromFailure(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
	}{
		"done":              {nil, exitDone},
		"failed":            {errors.New("move x: no room;\n\tmake some"), exitFailed},
		"usage-found-later": {usagef("--a and --b exclude each other"), exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			sub := &cobra.Command{Use: "do", RunE: func(*cobra.Command, []string) error { return test.err }}
			code := execute(t.Context(), newRoot(&cli{out: &stdout, err: &stderr}, sub), []string{"do"}, &stderr)
			if code != test.code || strings.Count(stderr.String(), "\n") != min(code, 1) {
				t.Errorf("exit %d, stderr %q", code, stderr.String())
			}
			if code == exitFailed && stderr.String() != "fairlead: move x: no room; make some\n" {
				t.Errorf("stderr %q", stderr.String())
			}
		})
	}
}

// failingWriter is a full disk behind a redirection.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnswerThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, format := range []string{"table", "json", "yaml"} {
		var stderr strings.Builder
		if code := run(t.Context(), []string{"version", "-o", format}, strings.NewReader(""), failingWriter{}, &stderr); code != exitFailed {
			t.Errorf("%s: exit %d, stderr %q", format, code, stderr.String())
		}
	}
}
