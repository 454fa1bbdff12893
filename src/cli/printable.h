/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Replaces by "?" what a terminal takes for commands: names of processes, which anybody may choose, end up in texts. */
void make_printable(char *text);
