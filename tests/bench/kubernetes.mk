# SPDX-License-Identifier: Apache-2.0
#
#   make bench-kubernetes    the budgets on the test cluster, measured (root)

.PHONY: bench-kubernetes run-bench-kubernetes

bench-kubernetes:
	@tools/install-dependencies build cluster bench
	@$(MAKE) --no-print-directory run-bench-kubernetes

run-bench-kubernetes: all
	@BUILD=$(BUILD) $(PYTHON) tests/bench/run-kubernetes
