/* SPDX-License-Identifier: Apache-2.0 */
/* A number that depends on two words alone, the same on every machine and at every time (FNV-1a, and a final mix, without which words
 * that differ in their last letter are near each other). */
#pragma once

#include <stdint.h>

static inline uint64_t spread_mix(uint64_t hash, const char *word)
{
        for (; *word; word++)
                hash = (hash ^ (unsigned char)*word) * UINT64_C(1099511628211);
        return (hash ^ 0xff) * UINT64_C(1099511628211); /* no word has this byte: "a", "bc" differs from "ab", "c" */
}

static inline uint64_t spread_hash(const char *first, const char *second)
{
        uint64_t hash = spread_mix(spread_mix(UINT64_C(14695981039346656037), first), second);

        hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
        return hash ^ (hash >> 32);
}
