/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/printable.h"

#include <stdbool.h>

/* U+0080 to U+009F are control characters too; in UTF-8 each is 0xc2 and itself. */
static bool is_upper_control(const unsigned char *bytes)
{
        return bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] <= 0x9f;
}

void make_printable(char *text)
{
        for (unsigned char *p = (unsigned char *)text; *p; p++) {
                if (is_upper_control(p)) {
                        *p++ = '?';
                        *p = '?';
                } else if (*p < 0x20 || *p == 0x7f) {
                        *p = '?';
                }
        }
}
