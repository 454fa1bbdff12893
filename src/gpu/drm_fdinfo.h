/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's DRM drivers say of one client's engine time, in /proc/PID/fdinfo/FD (Documentation/gpu/drm-usage-stats.rst).
 *
 * A driver gives each engine's busy time in nanoseconds, or in cycles (xe), or not at all. Several descriptors may be one client, told
 * by drm-client-id on the device drm-pdev. Values may go back: a driver may lack the newest when it is asked, and then they count as
 * unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DRM_ENGINES_MAX = 16 }; /* further ones of a client are left out */

struct drm_engine {
        char name[24];
        uint64_t busy_ns;
        uint64_t busy_cycles;
};

struct drm_client {
        char driver[32]; /* "amdgpu", "i915", "xe" */
        char pdev[32];   /* "0000:00:02.0", or "" */
        uint64_t id;
        bool has_id; /* older kernels give none */
        struct drm_engine engines[DRM_ENGINES_MAX];
        size_t n_engines;
};

/* Returns 0, or -ENODATA when that is no DRM descriptor's. Lines that it does not know are passed over. */
int drm_fdinfo_parse(const char *text, struct drm_client *ret_client);

struct drm_usage; /* of one workload on one device, over all readings */

struct drm_usage *drm_usage_new(void); /* NULL: no memory */
struct drm_usage *drm_usage_free(struct drm_usage *usage);

/* A reading is begin, any number of clients, end. A client without an id is told by @pid and @fd. At most 256 clients are followed, and
 * past that a reading is not complete. */
void drm_usage_begin(struct drm_usage *usage);
void drm_usage_add(struct drm_usage *usage, const struct drm_client *client, uint32_t pid, uint32_t fd);
void drm_usage_fail(struct drm_usage *usage); /* something could not be read */
void drm_usage_end(struct drm_usage *usage, uint64_t now_ns);

struct drm_usage_totals {
        uint64_t busy_ns;      /* seen since the first reading; monotonic. 0 with drivers that count cycles */
        uint64_t last_busy_ns; /* the last reading that saw an engine's counter advance; 0: none did */
        uint64_t since_ns;     /* readings are complete since then; 0: the last was not, or no client's driver counts */
};
struct drm_usage_totals drm_usage_totals(const struct drm_usage *usage);
