/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for libnvidia-ml.so.1: its symbols, structs and codes, without a device. What it says is in the file that LULL_NVML_STATE
 * names, read anew at every call:
 *
 *   init CODE                    what nvmlInit_v2() returns
 *   hang | crash                 when a device is asked for its utilisation
 *   device KEY=NUMBER...         minor, percent, power (mW), used and total (bytes), mig, bus, and as NVML's codes: lost (of the
 *                                handle), error (of the utilisation), process_error
 *   sample DEVICE PERCENT        what its ring of samples has
 *   process DEVICE PID PERCENT
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { DEVICES = 8, ROWS = 64, SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9 };

typedef struct nvmlDevice_st *nvmlDevice_t; /* the number of the device and one */

typedef struct {
        unsigned int gpu, memory;
} nvmlUtilization_t;

typedef struct {
        unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
        unsigned int pid;
        unsigned long long timeStamp;
        unsigned int smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef union {
        double dVal;
        unsigned int uiVal;
        unsigned long long ullVal;
} nvmlValue_t;

typedef struct {
        unsigned long long timeStamp;
        nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct {
        char busIdLegacy[16];
        unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
        char busId[32];
} nvmlPciInfo_t;

struct device {
        long minor, percent, power, used, total, mig, bus, lost, error, process_error;
};

struct row {
        int device;
        unsigned pid, percent;
};

struct state {
        int init;
        bool hangs, crashes;
        unsigned n_devices, n_processes, n_samples;
        struct device devices[DEVICES];
        struct row processes[ROWS], samples[ROWS];
};

static void read_device(char *words, struct device *device)
{
        static const struct {
                const char *name;
                size_t offset;
        } keys[] = {
                { "minor", offsetof(struct device, minor) }, { "percent", offsetof(struct device, percent) },
                { "power", offsetof(struct device, power) }, { "used", offsetof(struct device, used) },
                { "total", offsetof(struct device, total) }, { "mig", offsetof(struct device, mig) },
                { "bus", offsetof(struct device, bus) },     { "lost", offsetof(struct device, lost) },
                { "error", offsetof(struct device, error) }, { "process_error", offsetof(struct device, process_error) },
        };
        char *rest = NULL;

        for (char *word = strtok_r(words, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
                char *value = strchr(word, '=');

                if (!value)
                        continue;
                *value++ = '\0';
                for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                        if (strcmp(keys[i].name, word) == 0)
                                *(long *)((char *)device + keys[i].offset) = strtol(value, NULL, 10);
        }
}

static void read_line(char *line, struct state *state)
{
        struct row row = { 0 };

        if (sscanf(line, "init %d", &state->init) == 1)
                return;
        if (strncmp(line, "hang", 4) == 0)
                state->hangs = true;
        if (strncmp(line, "crash", 5) == 0)
                state->crashes = true;
        if (strncmp(line, "device", 6) == 0 && state->n_devices < DEVICES)
                read_device(line + 6, &state->devices[state->n_devices++]);
        if (sscanf(line, "process %d %u %u", &row.device, &row.pid, &row.percent) == 3 && state->n_processes < ROWS)
                state->processes[state->n_processes++] = row;
        else if (sscanf(line, "sample %d %u", &row.device, &row.percent) == 2 && state->n_samples < ROWS)
                state->samples[state->n_samples++] = row;
}

static struct state read_state(void)
{
        const char *path = getenv("LULL_NVML_STATE");
        struct state state = { 0 };
        FILE *file = path ? fopen(path, "re") : NULL;
        char line[512];

        if (!file) {
                state.init = DRIVER_NOT_LOADED;
                return state;
        }
        while (fgets(line, sizeof(line), file))
                read_line(line, &state);
        fclose(file);
        return state;
}

static struct device *find(struct state *state, nvmlDevice_t handle)
{
        uintptr_t number = (uintptr_t)handle;

        *state = read_state();
        return number >= 1 && number <= state->n_devices ? &state->devices[number - 1] : NULL;
}

static unsigned long long now_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
        return read_state().init;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *count);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *count)
{
        *count = read_state().n_devices;
        return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
        struct state state = read_state();

        if (index >= state.n_devices)
                return INVALID_ARGUMENT;
        if (state.devices[index].lost)
                return (int)state.devices[index].lost;
        *device = (nvmlDevice_t)(uintptr_t)(index + 1);
        return SUCCESS;
}

EXPORT int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length);
EXPORT int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
        struct state state;
        struct device *found = find(&state, device);

        if (!found)
                return INVALID_ARGUMENT;
        return snprintf(uuid, length, "GPU-00000000-0000-0000-0000-%012lu", (unsigned long)found->minor) < (int)length
                       ? SUCCESS
                       : INSUFFICIENT_SIZE;
}

EXPORT int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
EXPORT int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
        snprintf(name, length, "Stand-in");
        return SUCCESS;
}

/* A function that gives one thing of a device, by @statement. */
#define GETTER(name, type, result, statement)                                                                                      \
        EXPORT int name(nvmlDevice_t device, type *result);                                                                        \
        EXPORT int name(nvmlDevice_t device, type *result)                                                                         \
        {                                                                                                                          \
                struct state state;                                                                                                \
                const struct device *found = find(&state, device);                                                                 \
                                                                                                                                   \
                if (!found)                                                                                                        \
                        return INVALID_ARGUMENT;                                                                                   \
                statement;                                                                                                         \
                return SUCCESS;                                                                                                    \
        }

static nvmlPciInfo_t pci_info_of(const struct device *device)
{
        nvmlPciInfo_t info = { .bus = (unsigned)device->bus };

        snprintf(info.busId, sizeof(info.busId), "00000000:%02X:00.0", info.bus);
        return info;
}

static nvmlMemory_t memory_of(const struct device *device)
{
        unsigned long long total = (unsigned long long)device->total, used = (unsigned long long)device->used;

        return (nvmlMemory_t){ .total = total, .free = total - used, .used = used };
}

GETTER(nvmlDeviceGetMinorNumber, unsigned int, minor, *minor = (unsigned)found->minor)
GETTER(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t, info, *info = pci_info_of(found))
GETTER(nvmlDeviceGetMemoryInfo, nvmlMemory_t, memory, *memory = memory_of(found))
GETTER(nvmlDeviceGetPowerUsage, unsigned int, milliwatts, *milliwatts = (unsigned)found->power)

EXPORT int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization);
EXPORT int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
        struct state state;
        struct device *found = find(&state, device);

        if (!found)
                return INVALID_ARGUMENT;
        while (state.hangs)
                pause();
        if (state.crashes)
                raise(SIGKILL);
        if (found->error)
                return (int)found->error;
        *utilization = (nvmlUtilization_t){ .gpu = (unsigned)found->percent };
        return SUCCESS;
}

EXPORT int nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long last_seen, int *value_type, unsigned int *count,
                                nvmlSample_t *samples);
EXPORT int nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long last_seen, int *value_type, unsigned int *count,
                                nvmlSample_t *samples)
{
        struct state state;
        struct device *found = find(&state, device);
        unsigned n = 0;

        if (!found || type != 1)
                return INVALID_ARGUMENT;
        for (unsigned i = 0; i < state.n_samples && n < *count; i++)
                if (&state.devices[state.samples[i].device] == found) {
                        samples[n] = (nvmlSample_t){ .timeStamp = now_us() + n };
                        samples[n++].sampleValue.uiVal = state.samples[i].percent;
                }
        *count = n;
        *value_type = 1;
        return n ? SUCCESS : NOT_FOUND;
}

EXPORT int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count,
                                           unsigned long long last_seen);
EXPORT int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count,
                                           unsigned long long last_seen)
{
        struct state state;
        struct device *found = find(&state, device);
        unsigned n = 0;

        if (!found)
                return INVALID_ARGUMENT;
        if (found->process_error)
                return (int)found->process_error;
        for (unsigned i = 0; i < state.n_processes && n < *count; i++)
                if (&state.devices[state.processes[i].device] == found)
                        samples[n++] = (nvmlProcessUtilizationSample_t){ .pid = state.processes[i].pid,
                                                                         .timeStamp = now_us() + n,
                                                                         .smUtil = state.processes[i].percent };
        *count = n;
        return n ? SUCCESS : NOT_FOUND;
}

EXPORT int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending);
EXPORT int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
        struct state state;
        struct device *found = find(&state, device);

        if (!found)
                return INVALID_ARGUMENT;
        *current = *pending = (unsigned)found->mig;
        return SUCCESS;
}
