#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Removes Fairlead: from a cluster (needs kubectl), or from this one machine where it runs as systemd units (needs no
# cluster). It may be repeated.
set -euo pipefail

usage() {
	cat <<'EOF'
usage: uninstall.sh cluster | node

cluster  1. members go; the switch drops their paths at the end of the stale time that they asked for (600 s), or at
            once if you take the neighbours away there first
         2. agents go, and `fairlead agent cleanup` runs on every node: no rule, route, table or setting of ours stays
         3. everything else labelled app.kubernetes.io/part-of=fairlead goes
         What stays: kube-gobgp-cfg and kube-iprule-cfg, Secrets fairlead-member-*, fairlead-signer and fairlead-tls, config map fairlead-ca, the addresses in
         the status of Services, LBCF's kinds, those of deploy/components/balancing, and their objects, the members' data (/var/lib/fairlead on their nodes). Nothing of it holds up a
         deletion: finalizers that the option status.finalizer set on Services are taken away in step 3.
node     stops and disables fairlead-agent and fairlead-controller, and cleans up this node. What stays: /etc/fairlead,
         the member's data in /var/lib/fairlead.
EOF
}

namespace=kube-system
ours="app.kubernetes.io/part-of=fairlead"
here=$(cd "$(dirname "$0")" && pwd)
timeout=${TIMEOUT:-5m}

say() { echo "uninstall: $*" >&2; }
kube() { kubectl --namespace "$namespace" "$@"; }

cluster() {
	command -v kubectl >/dev/null || { say "kubectl is missing; it has to reach the cluster as an administrator"; exit 1; }
	say "admission" # first: without members nobody could change objects of LBCF's kinds
	kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations -l "$ours"
	say "members"
	kube delete daemonset fairlead-controller --ignore-not-found --wait
	if kube get daemonset fairlead-agent >/dev/null 2>&1; then
		local image config
		image=$(kube get daemonset fairlead-agent -o jsonpath='{.spec.template.spec.containers[?(@.name=="agent")].image}')
		config=$(kube get daemonset fairlead-agent -o jsonpath='{.spec.template.spec.volumes[?(@.name=="config")].configMap.name}')
		say "cleaning up nodes"
		# Before the agents go, so that image and configuration are known if this is broken off.
		sed -e "s|@IMAGE@|$image|; s|@CONFIG@|$config|" "$here/cleanup.yaml" | kube apply -f -
		kube delete daemonset fairlead-agent --wait
	fi
	if kube get daemonset fairlead-cleanup >/dev/null 2>&1; then
		if ! kube rollout status daemonset fairlead-cleanup --timeout "$timeout"; then
			say "not every node is clean: kubectl -n $namespace logs -l app.kubernetes.io/name=fairlead-cleanup -c cleanup"
			say "for nodes that are gone for good: kubectl delete node NAME; then run this again"
			exit 1
		fi
		kube delete daemonset fairlead-cleanup --wait
	fi
	say "finalizers of Services"
	finalizers
	say "everything else"
	kube delete poddisruptionbudgets,services,configmaps,rolebindings,roles,serviceaccounts -l "$ours"
	kubectl delete clusterrolebindings,clusterroles -l "$ours"
	kubectl delete priorityclasses -l "$ours" # of releases that had one
	say "done; the members' data is in /var/lib/fairlead on their nodes"
}

# finalizers gives up what members own of Services beside their status, by applying nothing in their name: that of others stays.
finalizers() {
	local namespace name all
	kubectl get services --all-namespaces --no-headers \
		-o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,FINALIZERS:.metadata.finalizers |
		while read -r namespace name all; do
			case $all in *service.kubernetes.io/load-balancer-cleanup*) ;; *) continue ;; esac
			printf '{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"%s","name":"%s"}}' "$namespace" "$name" |
				kubectl apply --server-side --field-manager fairlead --validate=false -f -
		done
}

node() {
	[ "$(id -u)" -eq 0 ] || { say "only root may clean up a node"; exit 1; }
	systemctl disable --now fairlead-agent.service fairlead-controller.service 2>/dev/null || true
	if [ -e /etc/fairlead/agent.yaml ]; then
		say "cleaning up this node"
		fairlead agent cleanup --config /etc/fairlead/agent.yaml
	fi
	say "done; the member's data is in /var/lib/fairlead"
}

case ${1:-} in
cluster | node) "$1" ;;
-h | --help) usage ;;
*) usage >&2; exit 2 ;;
esac
