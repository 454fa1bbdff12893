/* SPDX-License-Identifier: Apache-2.0 */
/* Driver libraries: by which file names they are known, and which of their functions mean what. Pure tables; docs/gpu-calls.md explains
 * them. */
#pragma once

enum gpu_vendor { GPU_VENDOR_NVIDIA, GPU_VENDOR_AMD, GPU_VENDOR_INTEL, GPU_VENDOR_MAX };

/* Of what a function does when it is called. Where compilers have folded functions of two roles into one the lower counts. */
enum driver_role {
        DRIVER_ROLE_SUBMIT,     /* hands work to a device */
        DRIVER_ROLE_WAIT,       /* returns when the device is done */
        DRIVER_ROLE_INITIALISE, /* a process begins to use the driver; rarely called */
        DRIVER_ROLE_MAX,
};

/* The vendor of the library at @path, or -1 for another file: "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15". */
int driver_library_vendor(const char *path);

/* The role of the function @symbol of that vendor's library, or -1. */
int driver_function_role(enum gpu_vendor vendor, const char *symbol);

const char *gpu_vendor_to_string(enum gpu_vendor vendor); /* "nvidia", "amd", "intel" */
