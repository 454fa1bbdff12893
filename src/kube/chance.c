/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/chance.h"

#include <stdint.h>
#include <sys/random.h>

double kube_chance(void)
{
        uint64_t bits = 0;

        /* Never blocks once the kernel has booted; without it there is no jitter. */
        if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits))
                return 0;
        return (double)(bits >> 11) * 0x1p-53;
}
