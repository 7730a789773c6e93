#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the CRDs of our own group: into deploy/crds, or into a folder: generate.sh [FOLDER]
# The program that does it comes from lbcf/generate/go.mod.
set -eu
cd "$(dirname "$0")"
crds=${1:-../../deploy/crds}
gen=$(cd lbcf/generate && go tool -n controller-gen)
"$gen" paths=. crd:headerFile=lbcf/generate/header.yaml output:crd:dir="$crds"
