// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cmd/fairlead/internal/output"
	"fairlead.io/fairlead/fsm"
)

// build is what `fairlead version` prints.
type build struct {
	Version  string  `json:"version"`
	Commit   string  `json:"commit,omitempty"`
	Time     string  `json:"time,omitempty"` // of the commit, RFC 3339
	Modified bool    `json:"modified"`
	Go       string  `json:"go"`
	Platform string  `json:"platform"`
	Formats  formats `json:"formats"`
}

// formats are the formats of the record that this binary can work with.
type formats struct {
	Oldest uint32 `json:"oldest"`
	Newest uint32 `json:"newest"`
}

// thisBuild reads what the Go tool wrote into the binary.
func thisBuild() build {
	b := build{
		Version:  "unknown",
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Formats:  formats{Oldest: fsm.OldestFormat, Newest: fsm.NewestFormat},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// WriteTable writes one fact a line.
func (b build) WriteTable(w io.Writer) error {
	commit := b.Commit
	if b.Modified {
		commit += " (modified)"
	}
	return output.WriteFields(w,
		[2]string{"version", b.Version},
		[2]string{"commit", commit},
		[2]string{"time", b.Time},
		[2]string{"go", b.Go + " " + b.Platform},
		[2]string{"record formats", fmt.Sprintf("%d to %d", b.Formats.Oldest, b.Formats.Newest)},
	)
}

func newVersion(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is and which record formats it knows",
		Args:  arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return c.print(thisBuild())
		},
	}
}
