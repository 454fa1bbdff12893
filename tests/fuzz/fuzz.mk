# SPDX-License-Identifier: Apache-2.0
#
#   make fuzz-policy [FUZZ_SECONDS=60]
#
# Fuzzers are built by clang with libFuzzer, ASan and UBSan from the sources they need. New inputs stay below $(BUILD); what is worth
# keeping is added to tests/fuzz/corpus by hand.

FUZZ_SECONDS ?= 60
FUZZ_CFLAGS := -std=gnu17 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined

.PHONY: fuzz-policy
fuzz-policy: $(BUILD)/tests/fuzz/fuzz_policy
	@mkdir -p $(BUILD)/tests/fuzz/found-policy
	$< -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -dict=tests/fuzz/policy.dict \
		-artifact_prefix=$(BUILD)/tests/fuzz/ $(BUILD)/tests/fuzz/found-policy tests/fuzz/corpus/policy

$(BUILD)/tests/fuzz/fuzz_policy: tests/fuzz/fuzz_policy.c $(wildcard src/policy/*.[ch]) src/base/time.c src/base/address.c
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -o $@ $(filter %.c,$^) $(shell $(PKG_CONFIG) --cflags --libs yaml-0.1 jansson)

#   make fuzz-kube-stream fuzz-kube-list
.PHONY: fuzz-kube-stream fuzz-kube-list
fuzz-kube-stream fuzz-kube-list: fuzz-kube-%: $(BUILD)/tests/fuzz/fuzz_kube_%
	@mkdir -p $(BUILD)/tests/fuzz/found-kube-$*
	$< -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -dict=tests/fuzz/kube.dict \
		-artifact_prefix=$(BUILD)/tests/fuzz/ $(BUILD)/tests/fuzz/found-kube-$* tests/fuzz/corpus/kube_$*

$(BUILD)/tests/fuzz/fuzz_kube_%: tests/fuzz/fuzz_kube_%.c src/kube/stream.c src/kube/list.c src/kube/status.c src/kube/buffer.c
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --cflags --libs jansson)

#   make fuzz-kube-objects
.PHONY: fuzz-kube-objects
fuzz-kube-objects: $(BUILD)/tests/fuzz/fuzz_kube_objects
	@mkdir -p $(BUILD)/tests/fuzz/found-kube-objects
	$< -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -dict=tests/fuzz/objects.dict \
		-artifact_prefix=$(BUILD)/tests/fuzz/ $(BUILD)/tests/fuzz/found-kube-objects tests/fuzz/corpus/kube_objects

$(BUILD)/tests/fuzz/fuzz_kube_objects: tests/fuzz/fuzz_kube_objects.c $(wildcard src/kube/scale_to_zero*.[ch] src/policy/*.[ch]) \
		src/kube/pod.c src/kube/pod_devices.c src/kube/pod_allocations.c src/kube/resource_claim.c src/kube/resource_slice.c \
		src/kube/node_activity.c src/kube/fields.c src/kube/metadata.c src/kube/micro_time.c src/base/time.c src/base/address.c
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -o $@ $(filter %.c,$^) $(shell $(PKG_CONFIG) --cflags --libs yaml-0.1 jansson)

#   make fuzz-elf: the seeds are the stand-ins for driver libraries
.PHONY: fuzz-elf
fuzz-elf: $(BUILD)/tests/fuzz/fuzz_elf $(GPU_STANDINS)
	@mkdir -p $(BUILD)/tests/fuzz/found-elf $(BUILD)/tests/fuzz/seeds-elf
	cp $(filter-out %/slow/libcuda.so.1,$(filter %.so.1 %.so.6,$(GPU_STANDINS))) $(BUILD)/tests/fuzz/seeds-elf
	$< -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=512 \
		-artifact_prefix=$(BUILD)/tests/fuzz/ $(BUILD)/tests/fuzz/found-elf $(BUILD)/tests/fuzz/seeds-elf

$(BUILD)/tests/fuzz/fuzz_elf: tests/fuzz/fuzz_elf.c src/gpu/elf_functions.c src/gpu/prologue.c
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --cflags --libs libelf)
