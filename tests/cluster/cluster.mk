# SPDX-License-Identifier: Apache-2.0
#
#   make cluster        a Kubernetes of two nodes on this machine (root); KUBE_PROXY_MODE=iptables or nftables
#   make cluster-down   removes it and all it made

KUBE_PROXY_MODE ?= nftables

.PHONY: cluster cluster-down

cluster:
	$(PYTHON) tests/cluster/cluster up $(KUBE_PROXY_MODE)

cluster-down:
	$(PYTHON) tests/cluster/cluster down
