# SPDX-License-Identifier: Apache-2.0
#
# Stand-ins for driver libraries, with their real names, symbols and prologues, and a program that uses them: as foreign to lull as what
# it really meets.

GPU_CFLAGS := -std=gnu17 -O2 -g -Wall -Wextra -D_GNU_SOURCE
GPU_LIBRARY = $(CC) $(GPU_CFLAGS) -fPIC -fvisibility=hidden -shared
GPU_STANDINS := $(addprefix $(BUILD)/tests/gpu/,libcuda.so.1 slow/libcuda.so.1 libamdhip64.so.6 libze_loader.so.1 client client-linked)

$(BUILD)/tests/gpu/libcuda.so.1: tests/gpu/libcuda.c tests/gpu/standin.h tests/gpu/libcuda.map
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(GPU_LIBRARY) -Wl,-soname,libcuda.so.1,--version-script=tests/gpu/libcuda.map -o $@ $<

$(BUILD)/tests/gpu/slow/libcuda.so.1: tests/gpu/libcuda.c tests/gpu/standin.h tests/gpu/libcuda.map
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(GPU_LIBRARY) -DSTANDIN_SLOW -Wl,-soname,libcuda.so.1,--version-script=tests/gpu/libcuda.map -o $@ $<

$(BUILD)/tests/gpu/libamdhip64.so.6: tests/gpu/libamdhip64.c tests/gpu/standin.h
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(GPU_LIBRARY) -Wl,-soname,$(@F) -o $@ $<

$(BUILD)/tests/gpu/libze_loader.so.1: tests/gpu/libze_loader.c tests/gpu/standin.h
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(GPU_LIBRARY) -Wl,-soname,$(@F) -o $@ $<

$(BUILD)/tests/gpu/client: tests/gpu/client.c
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GPU_CFLAGS) -o $@ $< -ldl -lpthread

$(BUILD)/tests/gpu/client-linked: tests/gpu/client.c $(BUILD)/tests/gpu/libcuda.so.1
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GPU_CFLAGS) -DCLIENT_LINKED -o $@ $^ -Wl,-rpath,'$$ORIGIN' -ldl -lpthread

# No stand-in: this is for real GPUs. It links with nothing of CUDA's, nor of ours.
$(BUILD)/tests/gpu/driver_api: tests/gpu/driver_api.c
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(GPU_CFLAGS) -o $@ $< -ldl -lpthread

tools run-bench: $(GPU_STANDINS) $(BUILD)/tests/gpu/watch $(BUILD)/tests/gpu/tenant
GPU_CHECKERS := $(addprefix $(BUILD)/tests/gpu/,driver_api probes watch)
tools: $(GPU_CHECKERS)
check-real-gpu: all $(GPU_CHECKERS)
.PHONY: check-real-gpu
-include $(addprefix $(BUILD)/tests/gpu/,watch.d tenant.d probes.d)

$(BUILD)/tests/unit/test_gpu_elf_functions $(BUILD)/tests/bpf/test_gpu_calls: | $(GPU_STANDINS)
