/* SPDX-License-Identifier: Apache-2.0 */
/* The process that calls NVML. It is forked from a daemon that has one thread, and may block or crash as NVML likes. */
#include <dlfcn.h>
#include <string.h>

#include "base/macros.h"
#include "base/time.h"
#include "gpu/nvml.h"

#define RING_NS (10 * NSEC_PER_SEC) /* what NVML remembers of processes */

enum { SAMPLES_MAX = 1024 };

struct ring { /* how far a device's samples have been read */
        uint64_t seen_us;
        uint64_t read_ns;  /* 0: not, or not the last time */
        uint64_t since_ns; /* without a gap */
};

struct reader {
        struct nvml_functions call;
        struct nvml_snapshot *snapshot;
        void *library;
        bool initialised;
        struct ring devices[NVML_DEVICES_MAX], processes[NVML_DEVICES_MAX];
        struct nvml_process_sample process_samples[SAMPLES_MAX];
        struct nvml_sample samples[SAMPLES_MAX];
};

static const char *error_text(int code, char buffer[static 32])
{
        switch (code) {
        case NVML_ERROR_NOT_SUPPORTED:
                return "not supported by the device";
        case NVML_ERROR_NO_PERMISSION:
                return "no permission";
        case NVML_ERROR_DRIVER_NOT_LOADED:
                return "the driver is not loaded";
        case NVML_ERROR_TIMEOUT:
                return "the driver did not answer in time";
        case NVML_ERROR_GPU_IS_LOST:
                return "the device has fallen off the bus";
        default:
                snprintf(buffer, 32, "NVML error %d", code);
                return buffer;
        }
}

static void ring_fail(struct ring *ring)
{
        ring->read_ns = ring->since_ns = 0;
}

/* Returns since when the ring is known. */
static uint64_t ring_advance(struct ring *ring, uint64_t now_ns)
{
        if (ring->read_ns == 0 || now_ns - ring->read_ns > RING_NS)
                ring->since_ns = now_ns;
        ring->read_ns = now_ns;
        return ring->since_ns;
}

static void *look_up(void *library, const char *symbol)
{
        return dlsym(library, symbol);
}

/* Says the problem and returns -ENOSYS when NVML is not there, or not the one that we know. */
static int load(struct reader *reader, const char *name)
{
        char *problem = reader->snapshot->problem;

        if (reader->library)
                return 0;
        reader->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!reader->library) {
                snprintf(problem, NVML_PROBLEM_MAX, "%.80s cannot be loaded", name);
                return -ENOSYS;
        }
#define NVML_LOOK_UP(member, symbol, needed, arguments)                                                                            \
        *(void **)&reader->call.member = look_up(reader->library, #symbol);                                                        \
        if (needed && !reader->call.member) {                                                                                      \
                snprintf(problem, NVML_PROBLEM_MAX, "%.64s has no %s", name, #symbol);                                             \
                return -ENOSYS;                                                                                                    \
        }
        NVML_FUNCTIONS(NVML_LOOK_UP)
#undef NVML_LOOK_UP
        return 0;
}

static int initialise(struct reader *reader)
{
        char code[32];
        int error;

        if (reader->initialised)
                return 0;
        error = reader->call.init();
        if (error != NVML_SUCCESS) {
                snprintf(reader->snapshot->problem, NVML_PROBLEM_MAX, "it cannot be initialised: %s", error_text(error, code));
                return -EIO;
        }
        reader->initialised = true;
        return 0;
}

/* "00000000:65:00.0" as sysfs writes it: a domain of four digits, lower case. */
static void copy_bus_id(const struct nvml_pci_info *info, char bus_id[static NVML_BUS_ID_SIZE])
{
        snprintf(bus_id, NVML_BUS_ID_SIZE, "%04x:%02x:%02x.0", info->domain, info->bus, info->device);
}

static void read_identity(struct reader *reader, nvml_device_handle handle, struct nvml_device *device)
{
        struct nvml_pci_info info = { 0 };

        if (reader->call.name && reader->call.name(handle, device->name, sizeof(device->name)) != NVML_SUCCESS)
                device->name[0] = '\0';
        if (reader->call.pci_info && reader->call.pci_info(handle, &info) == NVML_SUCCESS)
                copy_bus_id(&info, device->bus_id);
}

static void read_gauges(struct reader *reader, nvml_device_handle handle, struct nvml_device *device)
{
        struct nvml_memory memory = { 0 };
        uint32_t current = 0, pending = 0;

        if (reader->call.mig_mode && reader->call.mig_mode(handle, &current, &pending) == NVML_SUCCESS)
                device->mig = current == NVML_MIG_ENABLED;
        if (reader->call.memory && reader->call.memory(handle, &memory) == NVML_SUCCESS) {
                device->memory_used = memory.used;
                device->memory_total = memory.total;
        }
        if (!reader->call.power || reader->call.power(handle, &device->power_milliwatts) != NVML_SUCCESS)
                device->power_milliwatts = 0;
}

/* The rate is about the last moment only; the ring fills the time since the last reading. */
static uint32_t most_of_samples(struct reader *reader, nvml_device_handle handle, struct ring *ring)
{
        uint32_t count = SAMPLES_MAX, most = 0;
        int type = 0;

        if (!reader->call.samples || reader->call.samples(handle, NVML_GPU_UTILIZATION_SAMPLES, ring->seen_us, &type, &count,
                                                          reader->samples) != NVML_SUCCESS)
                return 0;
        for (uint32_t i = 0; i < MIN(count, (uint32_t)SAMPLES_MAX); i++) {
                const struct nvml_sample *sample = &reader->samples[i];

                if (sample->timestamp_us <= ring->seen_us)
                        continue;
                ring->seen_us = sample->timestamp_us;
                most = MAX(most, sample->value.as_uint);
        }
        return most;
}

static void read_device_utilization(struct reader *reader, nvml_device_handle handle, struct nvml_device *device, struct ring *ring)
{
        struct nvml_utilization rate = { 0 };
        char code[32];
        int error;

        error = reader->call.utilization(handle, &rate);
        if (error != NVML_SUCCESS) {
                ring_fail(ring);
                snprintf(device->problem, sizeof(device->problem), "%s",
                         device->mig ? "the device is divided by MIG" : error_text(error, code));
                return;
        }
        device->percent = MAX(rate.gpu, most_of_samples(reader, handle, ring));
        device->percent_since_ns = ring_advance(ring, now_monotonic_ns());
}

/* Returns -ENOSPC when there is no room for another process. */
static int add_process(struct nvml_device *device, const struct nvml_process_sample *sample)
{
        uint32_t codec = MAX(sample->encoder, sample->decoder), memory = MAX(sample->memory, codec);
        uint32_t percent = MAX(sample->sm, memory);

        if (percent == 0)
                return 0;
        for (uint32_t i = 0; i < device->n_processes; i++)
                if (device->processes[i].pid == sample->pid) {
                        device->processes[i].percent = MAX(device->processes[i].percent, percent);
                        return 0;
                }
        if (device->n_processes == NVML_PROCESSES_MAX)
                return -ENOSPC;
        device->processes[device->n_processes++] = (struct nvml_process){ .pid = sample->pid, .percent = percent };
        return 0;
}

/* NOT_FOUND means that no process has used the device since. */
static int read_process_samples(struct reader *reader, nvml_device_handle handle, struct nvml_device *device, struct ring *ring)
{
        uint32_t count = SAMPLES_MAX;
        uint64_t seen_us = ring->seen_us;
        int error;

        if (!reader->call.process_utilization)
                return -ENOSYS;
        error = reader->call.process_utilization(handle, reader->process_samples, &count, ring->seen_us);
        if (error == NVML_ERROR_NOT_FOUND)
                return 0;
        if (error != NVML_SUCCESS || count > SAMPLES_MAX)
                return -EIO;
        for (uint32_t i = 0; i < count; i++) {
                seen_us = MAX(seen_us, reader->process_samples[i].timestamp_us);
                if (reader->process_samples[i].timestamp_us > ring->seen_us && add_process(device, &reader->process_samples[i]) < 0)
                        return -ENOSPC;
        }
        ring->seen_us = seen_us;
        return 0;
}

static void read_process_utilization(struct reader *reader, nvml_device_handle handle, struct nvml_device *device,
                                     struct ring *ring)
{
        if (read_process_samples(reader, handle, device, ring) < 0)
                ring_fail(ring);
        else
                device->processes_since_ns = ring_advance(ring, now_monotonic_ns());
}

static void read_device(struct reader *reader, uint32_t index, struct nvml_device *device)
{
        struct ring *whole = &reader->devices[index], *processes = &reader->processes[index];
        nvml_device_handle handle = NULL;
        char code[32];
        int error;

        memset(device, 0, sizeof(*device));
        error = reader->call.device_by_index(index, &handle);
        if (error == NVML_SUCCESS)
                error = reader->call.uuid(handle, device->uuid, sizeof(device->uuid));
        if (error == NVML_SUCCESS)
                error = reader->call.minor(handle, &device->minor);
        if (error != NVML_SUCCESS) {
                ring_fail(whole);
                ring_fail(processes);
                device->minor = UINT32_MAX;
                snprintf(device->problem, sizeof(device->problem), "%s", error_text(error, code));
                return;
        }
        read_identity(reader, handle, device);
        read_gauges(reader, handle, device);
        read_device_utilization(reader, handle, device, whole);
        read_process_utilization(reader, handle, device, processes);
}

static void read_all(struct reader *reader, const char *library)
{
        struct nvml_snapshot *snapshot = reader->snapshot;
        uint32_t count = 0;
        char code[32];
        int error;

        snapshot->problem[0] = '\0';
        if (load(reader, library) < 0 || initialise(reader) < 0)
                return;
        error = reader->call.device_count(&count);
        if (error != NVML_SUCCESS) {
                snprintf(snapshot->problem, sizeof(snapshot->problem), "it cannot count the devices: %s", error_text(error, code));
                return;
        }
        snapshot->n_devices = MIN(count, (uint32_t)NVML_DEVICES_MAX);
        for (uint32_t i = 0; i < snapshot->n_devices; i++)
                read_device(reader, i, &snapshot->devices[i]);
        snapshot->read_ns = now_monotonic_ns();
}

void nvml_serve(int fd, const char *library, struct nvml_snapshot *snapshot)
{
        struct reader *reader = calloc(1, sizeof(*reader));
        char byte;

        if (!reader)
                return;
        reader->snapshot = snapshot;
        while (read(fd, &byte, 1) == 1) {
                read_all(reader, library);
                if (write(fd, &byte, 1) != 1)
                        break;
        }
        free(reader);
}
