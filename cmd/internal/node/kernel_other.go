// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
)

var errNotLinux = errors.New("this system is not Linux; use steer: off and nat: kube-proxy")

func (*kernel) openSteer(config.Agent, *slog.Logger, prometheus.Registerer) error { return errNotLinux }

func (*kernel) openNAT(config.Agent, *slog.Logger, prometheus.Registerer) error { return errNotLinux }

func cleanKernel(context.Context, config.Agent, *slog.Logger) error { return nil }
