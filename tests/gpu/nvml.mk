# SPDX-License-Identifier: Apache-2.0
# The stand-in for NVIDIA's management library, under its real name: nothing of ours is linked in.
NVML_STAND_IN := $(BUILD)/tests/gpu/libnvidia-ml.so.1

$(NVML_STAND_IN): tests/gpu/nvml_stand_in.c
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -std=gnu17 -O2 -g -Wall -Wextra -Wshadow -Wno-unused-parameter -fPIC -shared -fvisibility=hidden \
	        -Wl,-soname,libnvidia-ml.so.1 -o $@ $<

$(BUILD)/tests/unit/test_gpu_nvml: | $(NVML_STAND_IN)
tools: $(NVML_STAND_IN)
