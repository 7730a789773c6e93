// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/fairlead/internal/output"
)

// madeSigner is what `fairlead pki signer` prints.
type madeSigner struct {
	CA       string    `json:"ca"`
	Cert     string    `json:"cert"`
	Key      string    `json:"key"`
	NotAfter time.Time `json:"notAfter"`
	Next     string    `json:"next"` // what to do now
}

// WriteTable writes one fact a line.
func (m madeSigner) WriteTable(w io.Writer) error {
	return output.WriteFields(w, [2]string{"ca", m.CA}, [2]string{"cert", m.Cert},
		[2]string{"key", m.Key + " (keep it secret; whoever has it can be any member or agent)"},
		[2]string{"not after", m.NotAfter.Format(time.RFC3339)}, [2]string{"next", m.Next})
}

func newPKISigner(c *cli) *cobra.Command {
	var dir, out string
	var opts pki.CAOptions
	cmd := &cobra.Command{
		Use:   "signer",
		Short: "Make a signer of the CA, with which members sign certificates of machines",
		Long: "Make a signer of the CA in --dir: signer.key, signer.crt and ca.crt in --out, which never overwrites. Members with it as\n" +
			"tls.caKey sign certificates of members, agents and hosts, and no others; the CA's own key stays off line. Members go on with\n" +
			"another one as soon as its files are in the place of the former ones.",
		Example: "  fairlead pki signer --dir ca --out signer",
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			end, err := pki.InitSigner(dir, out, opts)
			if err != nil {
				return err
			}
			key := filepath.Join(out, pki.SignerKeyFile)
			return c.print(madeSigner{
				CA: filepath.Join(out, pki.CAFile), Cert: filepath.Join(out, pki.SignerFile), Key: key, NotAfter: end.UTC().Truncate(time.Second),
				Next: "name " + key + " in tls.caKey of members, with " + pki.SignerFile + " beside it",
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultCADir, "folder of the CA")
	cmd.Flags().StringVar(&out, "out", "signer", "folder for the new files, another one than the CA's")
	cmd.Flags().DurationVar(&opts.TTL, "ttl", 0, "how long it lives, and all that it signs (default two years)")
	return cmd
}
