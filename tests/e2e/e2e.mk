# SPDX-License-Identifier: Apache-2.0
#
#   make e2e            lull as real pods on the test cluster that is up, or on one for this run (root)

.PHONY: e2e run-e2e

e2e:
	@tools/install-dependencies build cluster
	@$(MAKE) --no-print-directory run-e2e

run-e2e: all $(NVML_STAND_IN) $(BUILD)/tests/gpu/libcuda.so.1
	@BUILD=$(BUILD) PYTHON=$(PYTHON) tools/run-tests e2e
