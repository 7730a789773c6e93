// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// AssetsVariable names a folder with ready-made binaries, as controller-runtime's envtest does.
const AssetsVariable = "KUBEBUILDER_ASSETS"

const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	etcd              = "etcd"
)

// source says what each binary is built from.
var source = map[string]string{
	apiServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
	controllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
	kubeProxy:         "k8s.io/kubernetes/cmd/kube-proxy",
	etcd:              "go.etcd.io/etcd/server/v3",
}

// Binaries gives the folder of the binaries, building them into the user's cache folder if nobody has before, which
// takes minutes and the network. Processes that ask at the same time build once. Progress goes to log.
func Binaries(ctx context.Context, log io.Writer) (dir string, err error) {
	if dir := os.Getenv(AssetsVariable); dir != "" {
		return dir, complete(dir, apiServer, etcd)
	}
	module, err := moduleFolder(ctx)
	if err != nil {
		return "", fmt.Errorf("find the Kubernetes binaries: %w", err)
	}
	dir, version, err := cacheFolder(module)
	if err != nil {
		return "", fmt.Errorf("find the Kubernetes binaries: %w", err)
	}
	if complete(dir, apiServer, etcd, controllerManager) == nil {
		return dir, nil
	}
	if err := buildOnce(ctx, module, dir, version, log); err != nil {
		return "", fmt.Errorf("build Kubernetes %s: %w; run `go run fairlead.io/fairlead/e2e/kubetest/kubebin` where there is a network, or set %s",
			version, err, AssetsVariable)
	}
	return dir, nil
}

// complete tells which of the binaries a folder lacks.
func complete(dir string, names ...string) error {
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("no %s in %s: %w", name, dir, err)
		} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return fmt.Errorf("%s in %s is not a program", name, dir)
		}
	}
	return nil
}

// moduleFolder is e2e/kube of the checkout in which this process runs.
func moduleFolder(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "fairlead.io/fairlead")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list -m fairlead.io/fairlead: %w", withStderr(err))
	}
	return filepath.Join(strings.TrimSpace(string(out)), "e2e", "kube"), nil
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s+k8s\.io/kubernetes (v[^\s]+)`)

// cacheFolder is where the binaries of this go.mod are kept. Another go.mod, however it differs, has another folder.
func cacheFolder(module string) (dir, version string, err error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	text, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", "", err
	}
	match := kubernetesVersion.FindSubmatch(text)
	if match == nil {
		return "", "", fmt.Errorf("%s requires no k8s.io/kubernetes", filepath.Join(module, "go.mod"))
	}
	version = string(match[1])
	name := fmt.Sprintf("kube-%s-%s-%s-%.6x", version, runtime.GOOS, runtime.GOARCH, sha256.Sum256(text))
	return filepath.Join(base, "fairlead", name), version, nil
}

// buildOnce builds into dir under a lock that other processes wait for. A build that breaks off leaves no dir.
func buildOnce(ctx context.Context, module, dir, version string, log io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if complete(dir, apiServer, etcd, controllerManager) == nil {
		return nil // built while we waited
	}
	fmt.Fprintf(log, "building kube-apiserver and kube-controller-manager %s and etcd into %s, once; this takes some minutes\n", version, dir)
	partial := dir + ".building" // ours alone while we hold the lock; a build that was killed may have left it
	if err := errors.Join(os.RemoveAll(partial), os.Mkdir(partial, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	names := []string{etcd, apiServer, controllerManager}
	for _, name := range names {
		if err := build(ctx, module, filepath.Join(partial, name), source[name], version); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}

func build(ctx context.Context, module, output, pkg, version string) error {
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(numbers) < 2 {
		return fmt.Errorf("version %q has no minor number", version)
	}
	// The API server answers /version from these.
	const stamp = "k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w -X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=%[3]s -X %[1]sgitMinor=%[4]s", stamp, version, numbers[0], numbers[1])
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", flags, "-o", output, pkg)
	cmd.Dir = module
	cmd.Env = append(slices.Clone(os.Environ()), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	if _, err := cmd.Output(); err != nil {
		return fmt.Errorf("go build %s: %w", pkg, withStderr(err))
	}
	return nil
}

// withStderr adds the last words of a program that failed.
func withStderr(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return err
	}
	words := strings.TrimSpace(string(exit.Stderr))
	return fmt.Errorf("%w: %s", err, words[max(0, len(words)-500):])
}
