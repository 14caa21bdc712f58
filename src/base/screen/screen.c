/* SPDX-License-Identifier: Apache-2.0 */
/* Text on a terminal.  Room: base/screen. */
#include "base/screen/screen.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>

enum { default_width = 80, max_width = 10000 };

/* Decodes the character at `at`.  Returns its bytes, and 0 for an invalid one: a byte that begins no character, a
 * character that is cut, written with more bytes than it needs, a surrogate, or beyond U+10FFFF. */
static size_t decode(const unsigned char *at, uint32_t *character) {
    size_t bytes = at[0] < 0x80   ? 1
                   : at[0] < 0xC2 ? 0
                   : at[0] < 0xE0 ? 2
                   : at[0] < 0xF0 ? 3
                   : at[0] < 0xF5 ? 4
                                  : 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t value = bytes == 1 ? at[0] : at[0] & (0x7FU >> bytes);
    for (size_t i = 1; i < bytes; ++i) {
        if ((at[i] & 0xC0) != 0x80) return 0;
        value = value << 6 | (at[i] & 0x3FU);
    }
    *character = value;
    bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    return bytes > 1 && (value < least[bytes] || surrogate || value > 0x10FFFF) ? 0 : bytes;
}

typedef struct range {
    uint32_t first, last;
} range;

/* Blocks of combining characters and of format characters without width (Unicode 15, categories Mn, Me and Cf).
 * Combining characters inside the blocks of single scripts are missing: they count as a column, so that a line gets
 * shorter than the terminal, never longer.  So does U+FE0F, which makes a narrow character a wide emoji. */
static const range zero_width[] = {{0x00AD, 0x00AD}, {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                                   {0x0610, 0x061A}, {0x064B, 0x065F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                   {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0x20D0, 0x20FF},
                                   {0xFE00, 0xFE0E}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0000, 0xE01EF}};

/* Blocks of wide characters (Unicode 15, EastAsianWidth W and F), with the emoji. */
static const range wide[] = {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23F3},   {0x25FD, 0x25FE},
                             {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26A1, 0x26A1},   {0x26AA, 0x26FD},
                             {0x2705, 0x270B},   {0x2728, 0x2728},   {0x274C, 0x274E},   {0x2753, 0x2757},
                             {0x2795, 0x2797},   {0x27B0, 0x27BF},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B55},
                             {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},
                             {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                             {0xFFE0, 0xFFE6},   {0x16FE0, 0x18DFF}, {0x1AFF0, 0x1B2FF}, {0x1F004, 0x1F004},
                             {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F19A}, {0x1F200, 0x1F64F}, {0x1F680, 0x1F6FF},
                             {0x1F7E0, 0x1F7F0}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD}};

static bool is_in(uint32_t character, const range *ranges, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (character >= ranges[i].first && character <= ranges[i].last) return true;
    return false;
}

#define IS_IN(character, ranges) is_in(character, ranges, sizeof(ranges) / sizeof *(ranges))

size_t leati_screen_character(const char *at, int *columns) {
    uint32_t character = 0;
    size_t bytes = decode((const unsigned char *)at, &character);
    *columns = 1;
    if (bytes == 0 || character < 0x20 || (character >= 0x7F && character < 0xA0))
        *columns = -1;
    else if (character >= 0x300 || character == 0xAD)
        *columns = IS_IN(character, zero_width) ? 0 : IS_IN(character, wide) ? 2 : 1;
    return *at == '\0' ? 0 : bytes == 0 ? 1 : bytes;
}

static void clean(char *text, bool lines) {
    int columns = 0;
    for (size_t bytes; (bytes = leati_screen_character(text, &columns)) > 0; text += bytes) {
        if (columns >= 0 || (lines && (*text == '\n' || *text == '\t'))) continue;
        for (size_t i = 0; i < bytes; ++i) text[i] = '?';
    }
}

void leati_screen_clean(char *text) {
    clean(text, true);
}

void leati_screen_clean_name(char *text) {
    clean(text, false);
}

size_t leati_screen_cut(const char *text, int columns) {
    size_t used = 0, bytes = 0;
    int next = 0;
    while ((bytes = leati_screen_character(text + used, &next)) > 0) {
        columns -= next < 0 ? 1 : next;
        if (columns < 0) break;
        used += bytes;
    }
    return used;
}

int leati_screen_columns(const char *text) {
    int sum = 0, columns = 0;
    for (size_t bytes; (bytes = leati_screen_character(text, &columns)) > 0; text += bytes)
        sum += columns < 0 ? 1 : columns;
    return sum;
}

int leati_screen_width(int fd) {
    struct winsize size = {0};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *columns = getenv("COLUMNS");
    long number = columns ? strtol(columns, NULL, 10) : 0;
    return number > 0 && number <= max_width ? (int)number : default_width;
}
