/* SPDX-License-Identifier: Apache-2.0 */
/* What lull uses of NVML's binary interface: the layouts, codes and versioned symbols of NVIDIA's public nvml.h. The library is opened
 * with dlopen() and never linked, so lulld runs where there is none. */
#pragma once

#include <assert.h>
#include <stdint.h>

#define NVML_LIBRARY "libnvidia-ml.so.1"

enum nvml_return {
        NVML_SUCCESS = 0,
        NVML_ERROR_UNINITIALIZED = 1,
        NVML_ERROR_INVALID_ARGUMENT = 2,
        NVML_ERROR_NOT_SUPPORTED = 3,
        NVML_ERROR_NO_PERMISSION = 4,
        NVML_ERROR_NOT_FOUND = 6,
        NVML_ERROR_INSUFFICIENT_SIZE = 7,
        NVML_ERROR_DRIVER_NOT_LOADED = 9,
        NVML_ERROR_TIMEOUT = 10,
        NVML_ERROR_GPU_IS_LOST = 15,
        NVML_ERROR_UNKNOWN = 999,
};

enum {
        NVML_UUID_SIZE = 96,
        NVML_NAME_SIZE = 96,
        NVML_BUS_ID_LEGACY_SIZE = 16,
        NVML_BUS_ID_SIZE = 32,
        NVML_GPU_UTILIZATION_SAMPLES = 1, /* nvmlSamplingType_t */
        NVML_MIG_ENABLED = 1,
};

typedef struct nvmlDevice *nvml_device_handle;

struct nvml_pci_info { /* nvmlPciInfo_t as nvmlDeviceGetPciInfo_v3() has it */
        char bus_id_legacy[NVML_BUS_ID_LEGACY_SIZE];
        uint32_t domain, bus, device;
        uint32_t pci_device_id, pci_subsystem_id;
        char bus_id[NVML_BUS_ID_SIZE];
};
static_assert(sizeof(struct nvml_pci_info) == 68, "nvmlPciInfo_t");

struct nvml_utilization { /* per cent of the last sampling period, a sixth of a second to one */
        uint32_t gpu, memory;
};
static_assert(sizeof(struct nvml_utilization) == 8, "nvmlUtilization_t");

struct nvml_memory {
        uint64_t total, free, used;
};
static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

struct nvml_process_sample {
        uint32_t pid;
        uint64_t timestamp_us; /* of the CPU's wall clock */
        uint32_t sm, memory, encoder, decoder;
};
static_assert(sizeof(struct nvml_process_sample) == 32, "nvmlProcessUtilizationSample_t");

union nvml_value {
        double as_double;
        uint32_t as_uint;
        uint64_t as_ulonglong;
};

struct nvml_sample {
        uint64_t timestamp_us;
        union nvml_value value;
};
static_assert(sizeof(struct nvml_sample) == 16, "nvmlSample_t");

/* X(member, symbol, whether NVML is of no use without it, arguments): every function returns an nvmlReturn_t. */
#define NVML_FUNCTIONS(X)                                                                                                          \
        X(init, nvmlInit_v2, true, (void))                                                                                         \
        X(device_count, nvmlDeviceGetCount_v2, true, (uint32_t *count))                                                            \
        X(device_by_index, nvmlDeviceGetHandleByIndex_v2, true, (uint32_t index, nvml_device_handle *device))                      \
        X(uuid, nvmlDeviceGetUUID, true, (nvml_device_handle device, char *text, uint32_t size))                                   \
        X(name, nvmlDeviceGetName, false, (nvml_device_handle device, char *text, uint32_t size))                                  \
        X(minor, nvmlDeviceGetMinorNumber, true, (nvml_device_handle device, uint32_t *minor))                                     \
        X(pci_info, nvmlDeviceGetPciInfo_v3, false, (nvml_device_handle device, struct nvml_pci_info * info))                      \
        X(utilization, nvmlDeviceGetUtilizationRates, true, (nvml_device_handle device, struct nvml_utilization * utilization))    \
        X(samples, nvmlDeviceGetSamples, false,                                                                                    \
          (nvml_device_handle device, int type, uint64_t last_seen_us, int *value_type, uint32_t *count,                           \
           struct nvml_sample *samples))                                                                                           \
        X(process_utilization, nvmlDeviceGetProcessUtilization, false,                                                             \
          (nvml_device_handle device, struct nvml_process_sample * samples, uint32_t *count, uint64_t last_seen_us))               \
        X(memory, nvmlDeviceGetMemoryInfo, false, (nvml_device_handle device, struct nvml_memory * memory))                        \
        X(power, nvmlDeviceGetPowerUsage, false, (nvml_device_handle device, uint32_t *milliwatts))                                \
        X(mig_mode, nvmlDeviceGetMigMode, false, (nvml_device_handle device, uint32_t *current, uint32_t *pending))

#define NVML_MEMBER(member, symbol, needed, arguments) int(*member) arguments;
struct nvml_functions {
        NVML_FUNCTIONS(NVML_MEMBER)
};
#undef NVML_MEMBER
