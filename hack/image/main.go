// SPDX-License-Identifier: Apache-2.0

// Command image builds the container image without a daemon: an OCI archive for amd64 and arm64, in which there is
// nothing but /bin/fairlead, /bin/fairlead-driver-haproxy and /bin/gobgp. The same commit and the same Go give the same bytes, wherever and whenever
// that happens: no time, path, user or order of this machine gets into it.
//
// Start reading at run; build.go makes the programs, archive.go the bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"

	"fairlead.io/fairlead/sim/program"
)

// programs are what the image holds, and the packages that they are built from.
var programs = map[string]string{
	"bin/fairlead":                "fairlead.io/fairlead/cmd/fairlead",
	"bin/fairlead-driver-haproxy": "fairlead.io/fairlead/cmd/fairlead-driver-haproxy",
	"bin/gobgp":                   "github.com/osrg/gobgp/v4/cmd/gobgp", // users of the old system know it
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "bin/fairlead-image.tar", "archive to write")
	name := flags.String("name", "fairlead:latest", "name of the image in the archive")
	architectures := flags.String("arch", "amd64,arm64", "architectures, by Go's names")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	full, err := fullName(*name)
	if err != nil {
		fmt.Fprintf(stderr, "build image: --name %q: %v; write one as registry.example.com/fairlead:v1, or fairlead:latest\n", *name, err)
		return 2
	}
	digest, err := write(ctx, *out, full, strings.Split(*architectures, ","), stderr)
	if err != nil {
		fmt.Fprintf(stderr, "build image %s: %v\n", *name, err)
		return 1
	}
	fmt.Fprintf(stdout, "%s %s %s\n", *out, full, digest)
	return 0
}

// fullName is a name with registry and tag: kubelets ask their runtime for that one, and find no other.
func fullName(name string) (string, error) {
	full, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", err
	}
	return full.String(), nil
}

// write builds everything and puts the archive in place once it is whole.
func write(ctx context.Context, out, name string, architectures []string, log io.Writer) (digest string, err error) {
	dir, err := os.MkdirTemp("", "fairlead-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	var images []image
	for _, arch := range architectures {
		fmt.Fprintf(log, "building for linux/%s\n", arch)
		folder, err := os.MkdirTemp(dir, "program-")
		if err != nil {
			return "", err
		}
		overlay, err := program.Embed(ctx, ".", folder, arch)
		if err != nil {
			return "", err
		}
		files, err := build(ctx, dir, arch, programs, "-tags", program.Tag, "-overlay", overlay)
		if err != nil {
			return "", err
		}
		images = append(images, image{Architecture: arch, Files: files})
	}
	archive, digest, err := pack(name, images)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(out+".next", archive, 0o644); err != nil {
		return "", err
	}
	return digest, os.Rename(out+".next", out)
}
