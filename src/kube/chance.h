/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

double kube_chance(void); /* uniform in [0, 1), of the kernel's random numbers */
