/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks for a holding: from packets as they arrive, and from the map, which knows also of those that could not be handed over. */
#pragma once

#include <stdbool.h>

#include "lull_wire.h"

struct hold;
struct held_frontend;
struct holding;

/* From now on the next packet is demand. What the map knew before is forgotten. */
void demand_arm(struct holding *holding);
/* The holding's first start after an earlier daemon: packets that came since that one's last sign of life are demand already. */
void demand_adopt(struct holding *holding);
void demand_disarm(struct holding *holding);

void demand_note_packet(struct held_frontend *frontend, const struct lull_packet *packet);
/* Reads the map for one frontend; for all that are held. */
void demand_read(struct held_frontend *frontend);
void demand_read_all(struct hold *hold);
/* @from's demand that was not yet told is @to's, where a frontend of it is meant. */
void demand_move(struct holding *from, struct holding *to);
bool demand_exists(const struct holding *holding);
