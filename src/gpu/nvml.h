/* SPDX-License-Identifier: Apache-2.0 */
/* What NVIDIA's management library says of its devices, read without ever waiting for it.
 *
 * A call into NVML can block for seconds, or for ever where a device has fallen off the bus, and a library that a vendor ships can
 * crash. So a forked process of our own calls it, and nothing else does; it writes what it reads into memory that both share and tells
 * so over a socket. One that has not answered within three seconds is killed; another is begun once it is gone, after a pause that
 * doubles from five seconds to five minutes. What it last said stays readable, with its time: whoever reads decides when that is too
 * old.
 *
 * Utilisation is given per device, and per process where NVML knows it (its ring holds ten seconds of that, so a reading that comes
 * later leaves a gap, and says so). Under MIG NVML knows neither.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "gpu/nvml_abi.h"

struct nvml;

enum {
        NVML_DEVICES_MAX = 64,
        NVML_PROCESSES_MAX = 128, /* that used one device since the last reading; with more, the rest are not known */
        NVML_PROBLEM_MAX = 128,
};

struct nvml_process {
        uint32_t pid;     /* in the first namespace of pids */
        uint32_t percent; /* the most that it used of any engine */
};

struct nvml_device {
        char uuid[NVML_UUID_SIZE];
        char name[NVML_NAME_SIZE];
        char bus_id[NVML_BUS_ID_SIZE]; /* "0000:65:00.0", or "" */
        uint32_t minor;                /* of /dev/nvidiaN */
        bool mig;
        uint64_t memory_used, memory_total; /* bytes; 0: not known */
        uint32_t power_milliwatts;          /* 0: not known */

        /* Of the whole device: the most since the reading before, as far back as its ring goes. */
        uint32_t percent;
        uint64_t percent_since_ns; /* known without a gap since then; 0: not known, see problem */

        struct nvml_process processes[NVML_PROCESSES_MAX]; /* only those that used it */
        uint32_t n_processes;
        uint64_t processes_since_ns; /* likewise */

        char problem[NVML_PROBLEM_MAX]; /* why the utilisation is not known, or "" */
};

struct nvml_snapshot {
        uint64_t read_ns; /* 0: never */
        uint32_t n_devices;
        struct nvml_device devices[NVML_DEVICES_MAX];
        char problem[NVML_PROBLEM_MAX]; /* why NVML could not be asked at all, or "" */
};

/* @library is what to open; NULL: libnvidia-ml.so.1. It is opened by the first request. Returns 0 or -errno. */
int nvml_new(sd_event *event, const char *library, struct nvml **ret_nvml);
struct nvml *nvml_free(struct nvml *nvml); /* accepts NULL, returns NULL */

/* @done is called when a reading is there, or has failed. */
void nvml_on_read(struct nvml *nvml, void (*done)(void *userdata), void *userdata);
/* Asks for a reading, unless NVML failed a short while ago. Returns whether one is under way; @done may have been called in here when
 * it is not. */
bool nvml_request(struct nvml *nvml);

/* The newest reading. Its problem says what has been wrong since, its time how old it is. */
const struct nvml_snapshot *nvml_latest(const struct nvml *nvml);

/* nvml_read.c: the forked process. Answers each byte that comes in on @fd by a byte, after writing into @snapshot; ends when there is
 * nobody to ask any more. */
void nvml_serve(int fd, const char *library, struct nvml_snapshot *snapshot);
