/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/base64.h"

#include <stdint.h>
#include <string.h>

#include "base/macros.h"

static int digit_value(char digit)
{
        if (digit >= 'A' && digit <= 'Z')
                return digit - 'A';
        if (digit >= 'a' && digit <= 'z')
                return digit - 'a' + 26;
        if (digit >= '0' && digit <= '9')
                return digit - '0' + 52;
        return digit == '+' ? 62 : digit == '/' ? 63 : -EINVAL;
}

int kube_base64_decode(const char *text, char **ret_decoded)
{
        _cleanup_(freep) char *decoded = malloc(strlen(text) / 4 * 3 + 4);
        size_t length = 0, digits = 0, padding = 0;
        uint32_t bits = 0;

        if (!decoded)
                return -ENOMEM;

        for (; *text; text++) {
                int value = digit_value(*text);

                if (strchr(" \t\r\n", *text))
                        continue;
                padding += *text == '=';
                if (*text != '=' && (value < 0 || padding > 0))
                        return -EINVAL;
                bits = bits << 6 | (value < 0 ? 0 : (uint32_t)value);
                if (++digits % 4 != 0)
                        continue;
                decoded[length++] = (char)(bits >> 16);
                decoded[length++] = (char)(bits >> 8);
                decoded[length++] = (char)bits;
        }
        if (digits % 4 != 0 || padding > 2 || padding > digits)
                return -EINVAL;
        length -= padding;
        if (memchr(decoded, '\0', length))
                return -EINVAL;
        decoded[length] = '\0';
        *ret_decoded = TAKE_PTR(decoded);
        return 0;
}
