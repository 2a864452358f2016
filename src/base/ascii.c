/* SPDX-License-Identifier: MIT */
#include "base/ascii.h"

#include "base/base.h"

#include <limits.h>

/* The sums that occur; each byte of the table below has exactly one. */
enum {
    PLAIN = ASCII_VALUE | ASCII_TARGET,
    MARK = PLAIN | ASCII_TOKEN,
    NUMBER = MARK | ASCII_DIGIT | ASCII_HEX,
    LETTER = MARK | ASCII_ALPHA,
    HEX_LETTER = LETTER | ASCII_HEX
};

/* clang-format off */
const uint8_t ascii_classes[256] = {
    ['\t'] = ASCII_VALUE,
    [' '] = ASCII_VALUE,
    ['!'] = MARK, ['"'] = PLAIN, ['#' ... '\''] = MARK, ['(' ... ')'] = PLAIN,
    ['*' ... '+'] = MARK, [','] = PLAIN, ['-' ... '.'] = MARK, ['/'] = PLAIN,
    ['0' ... '9'] = NUMBER,
    [':' ... '@'] = PLAIN,
    ['A' ... 'F'] = HEX_LETTER, ['G' ... 'Z'] = LETTER,
    ['[' ... ']'] = PLAIN, ['^' ... '`'] = MARK,
    ['a' ... 'f'] = HEX_LETTER, ['g' ... 'z'] = LETTER,
    ['{'] = PLAIN, ['|'] = MARK, ['}'] = PLAIN, ['~'] = MARK,
    [0x80 ... 0xff] = PLAIN,
};
/* clang-format on */

int ascii_hex(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (!ascii_is(byte, ASCII_HEX))
        return -1;
    return ascii_lower(byte) - 'a' + 10;
}

bool ascii_all(struct span span, unsigned classes)
{
    for (size_t i = 0; i < span.size; i++)
        if (!ascii_is(span.data[i], classes))
            return false;
    return span.size > 0;
}

bool ascii_equal_fold(struct span a, struct span b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++)
        if (a.data[i] != b.data[i] && ascii_lower(a.data[i]) != ascii_lower(b.data[i]))
            return false;
    return true;
}

bool ascii_list_has(struct span list, struct span token)
{
    while (list.data)
        if (ascii_equal_fold(span_trim(span_split(&list, ',')), token))
            return true;
    return false;
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned lower = a < b ? a : b;

    return lower < c ? lower : c;
}

unsigned ascii_distance(struct span a, struct span b)
{
    enum { LONGEST = 63 };
    unsigned row[LONGEST + 1]; /* distances of the first i bytes of a to all beginnings of b */

    if (a.size > LONGEST || b.size > LONGEST)
        return UINT_MAX;
    for (unsigned j = 0; j <= b.size; j++)
        row[j] = j;
    for (size_t i = 0; i < a.size; i++) {
        unsigned diagonal = row[0]++;

        for (size_t j = 0; j < b.size; j++) {
            unsigned changed = diagonal + (a.data[i] != b.data[j]);

            diagonal = row[j + 1];
            row[j + 1] = least(changed, row[j] + 1, row[j + 1] + 1);
        }
    }
    return row[b.size];
}
