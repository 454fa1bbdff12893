# SPDX-License-Identifier: Apache-2.0
#
#   make e2e            lull as real pods on the test cluster (root)

.PHONY: e2e

e2e:
	@tools/install-dependencies build cluster
	@$(MAKE) --no-print-directory run-tests TIERS=e2e
