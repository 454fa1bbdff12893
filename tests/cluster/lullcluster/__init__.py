# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes on this machine, for the tests: two nodes as namespaces, no container engine, no registry."""
