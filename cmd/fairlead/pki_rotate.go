// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// rotated is what `fairlead pki rotate` prints: the files, and what to do with them.
type rotated struct {
	CA      string `json:"ca"`
	Key     string `json:"key"`
	Dropped int    `json:"dropped"` // CAs that are no longer in ca.crt
	Next    string `json:"next"`    // what to do now
}

// WriteTable writes one fact a line.
func (r rotated) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"ca", r.CA}, [2]string{"key", r.Key}, [2]string{"dropped", strconv.Itoa(r.Dropped)}, [2]string{"next", r.Next})
}

func newPKIRotate(c *cli) *cobra.Command {
	var dir, next string
	var opts pki.CAOptions
	var finish bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the CA by another one, with overlap",
		Long: "Replace the CA by another one, with overlap. It makes files only; docs/agents.md has the steps between:\n\n" +
			"  1. fairlead pki rotate --dir ca --out next\n" +
			"  2. put next/ca.crt in the place of tls.ca on every member with tls.caKey; wait a day\n" +
			"  3. fairlead pki signer --dir next --out signer; put signer.crt and signer.key in the place of their tls.caKey; wait a day\n" +
			"  4. fairlead pki rotate --dir next --finish; put next/ca.crt in the place of their tls.ca",
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if finish == (next != "") {
				return usagef("give either --out, to begin, or --finish")
			}
			if err := alone(cmd, "finish", "it makes no new CA", "name", "ttl"); err != nil {
				return err
			}
			if finish {
				dropped, err := pki.FinishRotation(dir)
				if err != nil {
					return err
				}
				return c.print(rotated{
					CA: filepath.Join(dir, pki.CAFile), Key: filepath.Join(dir, pki.CAKeyFile), Dropped: dropped,
					Next: "put " + filepath.Join(dir, pki.CAFile) + " in the place of tls.ca on every member with tls.caKey",
				})
			}
			if err := pki.Rotate(dir, next, opts); err != nil {
				return err
			}
			return c.print(rotated{
				CA: filepath.Join(next, pki.CAFile), Key: filepath.Join(next, pki.CAKeyFile),
				Next: "put " + filepath.Join(next, pki.CAFile) + " in the place of tls.ca on every member with tls.caKey, and wait a day",
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultCADir, "folder of the CA")
	cmd.Flags().StringVar(&next, "out", "", "folder for the new CA")
	cmd.Flags().BoolVar(&finish, "finish", false, "drop all CAs but the one in --dir")
	cmd.Flags().StringVar(&opts.Name, "name", "", "name of the new CA (default: that of the old one)")
	cmd.Flags().DurationVar(&opts.TTL, "ttl", 0, "how long the new CA lives (default ten years)")
	return cmd
}
