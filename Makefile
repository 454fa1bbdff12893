# SPDX-License-Identifier: Apache-2.0
#
#   make            lulld and lull below build/
#   make demo       the main job, end to end          (root)
#   make test       all tests                         (root)
#   make e2e        lull on a Kubernetes of this machine (root)
#   make bench      the budgets, measured             (root)
#   make lint       formatting, static analysis, layering
#   make install    DESTDIR= PREFIX=
#   make unit       the tests that need no root
#
# SANITIZE=1 builds everything with ASan and UBSan below build/sanitize. For another architecture: CROSS_COMPILE=aarch64-linux-gnu-

VERSION := 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
CROSS_COMPILE ?=
SANITIZE ?= 0

ifneq ($(CROSS_COMPILE),)
  BUILD ?= build/$(patsubst %-,%,$(CROSS_COMPILE))
else ifeq ($(SANITIZE),1)
  BUILD ?= build/sanitize
else
  BUILD ?= build
endif

ifeq ($(origin CC),default)
  CC := $(CROSS_COMPILE)gcc
endif
ifeq ($(origin AR),default)
  AR := $(CROSS_COMPILE)ar
endif
CLANG ?= clang-19
LLVM_STRIP ?= llvm-strip-19
BPFTOOL ?= $(shell tools/find-bpftool)
# Where there is no pkg-config for the other architecture, the host's reads that one's files.
ifneq ($(CROSS_COMPILE),)
  PKG_CONFIG ?= $(or $(shell command -v $(CROSS_COMPILE)pkg-config), \
          env PKG_CONFIG_LIBDIR=/usr/lib/$(patsubst %-,%,$(CROSS_COMPILE))/pkgconfig:/usr/share/pkgconfig pkg-config)
else
  PKG_CONFIG ?= pkg-config
endif
CLANG_FORMAT ?= clang-format-19
CLANG_TIDY ?= clang-tidy-19
PYTHON ?= /usr/bin/python3

ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
BPF_ARCH := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(ARCH)))

LIBRARIES := libbpf libelf zlib libsystemd libcurl jansson yaml-0.1 libmicrohttpd libmnl

# These install what they miss and then call make again for the rest.
BOOTSTRAP := test demo bench lint clean e2e
ifneq ($(filter-out $(BOOTSTRAP),$(or $(MAKECMDGOALS),all)),)
ifneq ($(shell $(PKG_CONFIG) --exists $(LIBRARIES) && echo yes),yes)
  $(error libraries are missing: run "tools/install-dependencies build" (or arm64) as root)
endif
endif

CPPFLAGS += -D_GNU_SOURCE -DLULL_VERSION='"$(VERSION)"' -Iinclude -Isrc -I$(BUILD)
CFLAGS ?= -O2 -g
# SystemTap notes and other private flags of the libraries' .pc files are not wanted here: only their include paths.
ALL_CFLAGS := -std=gnu17 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter -fno-strict-aliasing \
        -fstack-protector-strong $(shell $(PKG_CONFIG) --cflags $(LIBRARIES)) $(CFLAGS)
ALL_LDFLAGS := -Wl,--as-needed -Wl,-z,relro,-z,now $(LDFLAGS)
LIBS := $(shell $(PKG_CONFIG) --libs $(LIBRARIES))
ifeq ($(WERROR),1)
  ALL_CFLAGS += -Werror
endif
ifeq ($(SANITIZE),1)
  ALL_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
  ALL_LDFLAGS += -fsanitize=address,undefined
endif
BPF_CFLAGS := -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -D__TARGET_ARCH_$(BPF_ARCH) -Iinclude -Ibpf \
        -isystem $(shell $(PKG_CONFIG) --variable=includedir libbpf)

# Every directory below src/ is part of the library, but for the programs' own.
LIBRARY_SOURCES := $(filter-out src/cli/%,$(wildcard src/*/*.c))
LIBRARY_OBJECTS := $(LIBRARY_SOURCES:%.c=$(BUILD)/%.o)
LULL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard src/cli/*.c))
BPF_SOURCES := $(wildcard bpf/*.bpf.c)
SKELETONS := $(BPF_SOURCES:bpf/%.bpf.c=$(BUILD)/bpf/%.skel.h)
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/test_*.c))
BPF_TESTS := $(patsubst tests/bpf/%.c,$(BUILD)/tests/bpf/%,$(wildcard tests/bpf/test_*.c))
TEST_TOOLS := $(patsubst tests/tools/%.c,$(BUILD)/tests/tools/%,$(wildcard tests/tools/*.c))
TEST_TOOLS += $(BUILD)/tests/activity/watch $(BUILD)/tests/kube/watch $(BUILD)/tests/kube/objects $(BUILD)/tests/kube/probe $(BUILD)/tests/cluster/reflect $(BUILD)/tests/cluster/elect $(BUILD)/tests/cluster/scale
TEST_TOOLS += $(BUILD)/tests/net/translate

# V=1 shows the commands.
V ?= 0
ifeq ($(V),0)
  Q := @
  say = @printf '  %-8s %s\n' $(1) $(2:$(CURDIR)/%=%)
endif

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all clean install lint test demo bench unit tools run-tests run-demo run-bench run-lint

all: $(BUILD)/lulld $(BUILD)/lull

$(BUILD)/lulld: $(BUILD)/src/lulld.o $(BUILD)/liblull.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/lull: $(LULL_OBJECTS) $(BUILD)/liblull.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/liblull.a: $(LIBRARY_OBJECTS)
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) qcs $@ $^

$(BUILD)/src/%.o: src/%.c | $(SKELETONS)
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(BUILD)/bpf/$*.d -MT $@ -c -o $@ $<
	$(Q)$(LLVM_STRIP) -g $@

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(BUILD)/tests/%: tests/%.c $(BUILD)/liblull.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -Itests $(ALL_CFLAGS) $(ALL_LDFLAGS) -MMD -MP -MF $@.d -MT $@ -o $@ $< $(BUILD)/liblull.a $(LIBS) -lcmocka

# Servers and the like, as foreign to lull as what it really meets: nothing of ours is linked in.
$(BUILD)/tests/tools/%: tests/tools/%.c
	$(call say,TOOL,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -MMD -MP -MF $@.d -MT $@ -o $@ $<

unit: $(UNIT_TESTS) $(BUILD)/lull
	@BUILD=$(BUILD) tools/run-tests unit

tools: $(TEST_TOOLS)

test:
	@tools/install-dependencies build demo test lint
	@$(MAKE) --no-print-directory run-tests

# TIERS="unit net" runs just those.
run-tests: all tools $(UNIT_TESTS) $(BPF_TESTS)
	@BUILD=$(BUILD) PYTHON=$(PYTHON) tools/run-tests $(TIERS)

demo:
	@tools/install-dependencies build demo
	@$(MAKE) --no-print-directory run-demo

run-demo: all
	@BUILD=$(BUILD) $(PYTHON) tools/demo

bench:
	@tools/install-dependencies build demo bench
	@$(MAKE) --no-print-directory run-bench

run-bench: all tools
	@BUILD=$(BUILD) $(PYTHON) tests/bench/run

lint:
	@tools/install-dependencies build lint
	@$(MAKE) --no-print-directory run-lint

FORMATTED := $(wildcard src/*.[ch] src/*/*.[ch] include/*.h bpf/*.[ch] tests/*/*.[ch] tools/*.[ch])
TIDIED := $(wildcard src/*.c src/*/*.c)
TIDY_FLAGS := $(filter-out -DLULL_VERSION=%,$(CPPFLAGS)) -DLULL_VERSION=\"$(VERSION)\" $(ALL_CFLAGS)
SHELL_SCRIPTS := $(shell grep -lE '^\#!/bin/(ba)?sh' .ci/* tools/* 2>/dev/null)

run-lint: $(SKELETONS)
	$(CLANG_FORMAT) --dry-run -Werror $(FORMATTED)
	printf '%s\n' $(TIDIED) | xargs -P $$(nproc) -n 4 sh -c 'if ! $(CLANG_TIDY) --quiet "$$@" -- $(TIDY_FLAGS) >$(BUILD)/tidy.$$$$ 2>&1; \
		then cat $(BUILD)/tidy.$$$$; exit 1; fi; rm $(BUILD)/tidy.$$$$' tidy
	shellcheck $(SHELL_SCRIPTS)
	tools/check-layers
	tools/check-style

MAN_PAGES := $(wildcard docs/man/*.[1-8])
SHARE := $(DESTDIR)$(PREFIX)/share

install: all
	install -D -m 755 $(BUILD)/lulld $(DESTDIR)$(PREFIX)/sbin/lulld
	install -D -m 755 $(BUILD)/lull $(DESTDIR)$(PREFIX)/bin/lull
	set -e; for page in $(MAN_PAGES); do install -D -m 644 -t $(SHARE)/man/man$${page##*.} $$page; done
	install -D -m 644 deploy/completion/lull.bash $(SHARE)/bash-completion/completions/lull
	install -D -m 644 -t $(SHARE)/doc/lull/examples $(wildcard deploy/examples/*.yaml)
	install -D -m 644 -t $(SHARE)/doc/lull/examples/kubernetes $(wildcard deploy/examples/kubernetes/*.yaml)
	install -d -m 755 $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)/etc/lull/policies.d
	sed 's|@SBINDIR@|$(PREFIX)/sbin|' deploy/systemd/lulld.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/lulld.service

clean:
	rm -rf build

-include $(wildcard tests/gpu/*.mk)
-include tests/fuzz/fuzz.mk
-include tests/cluster/cluster.mk
-include tests/bench/kubernetes.mk
-include tests/e2e/e2e.mk
-include $(patsubst %.o,%.d,$(LIBRARY_OBJECTS) $(LULL_OBJECTS) $(BUILD)/src/lulld.o)
-include $(SKELETONS:%.skel.h=%.d)
-include $(addsuffix .d,$(UNIT_TESTS) $(BPF_TESTS) $(TEST_TOOLS))
