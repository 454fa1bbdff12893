/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#define PARKING_MANAGER "lull.dev" /* of the label endpointslice.kubernetes.io/managed-by */
