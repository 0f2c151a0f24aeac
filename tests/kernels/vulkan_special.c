// SPDX-License-Identifier: MIT
// Which shapes of a plan's launches get kernels of their own: the rule of docs/kernels.md.
#include <stdio.h>
#include <string.h>

#include "assertion.h"
#include "dispatch/special_rule.h"

// Launches as text: a letter is a kernel, of ten words if it is a capital, else of one; the
// digit behind it is a shape, '-' none.
// `expected`: by launch the number of its kernel of one shape, or '.'.
static const struct {
    const char *launches, *expected;
    uint32_t most_kernels;
} cases[] = {
    {"", "", 9},
    {"a1", "0", 9}, // a kernel that is replaced costs none
    {"a1b1a1b1a1b1", "010101", 0},
    {"a-a-a-", "...", 9}, // nothing is known of their words
    {"a1a1a2", "...", 9}, // too few are equal
    // a1 is added, and a2 then replaces what is left.
    {"a1a1a1a2", "....", 1},
    {"a1a1a1a2", "0001", 2},
    {"a1a1a1a-", "....", 1},
    {"a1a1a1a-", "000.", 2},
    {"a2a2a2a1a1a1a1", "1110000", 2}, // the most frequent first
    {"a2a2a2a1a1a1a1", ".......", 1},
    {"b2b2b2b1a2a1a1a1a1", "....10000", 3},
    {"b2b2b2b1a2a1a1a1a1", "111230000", 4},
    {"b2b2b2b1a1a1a1a2", "0001....", 3},    // of those alike the one that is launched first
    {"a1b1a1b1a1", "01010", 9},             // one shape of two kernels is two
    {"a1a1a1a1a2B1B1B1B2", ".....0001", 3}, // the most words first
    {"a1a1a1a1a2B1B1B1B2", "222230001", 4},
};

static uint32_t read(const char *text, struct vk_special_launch *out)
{
    uint32_t count = 0;
    for (; *text; text += 2)
        out[count++] = (struct vk_special_launch){
            .kernel = {(uint64_t)text[0], 1},
            .words = text[0] < 'a' ? 10 : 1,
            .shape = text[1] == '-' ? (struct vk_hash){0, 0}
                                    : (struct vk_hash){(uint64_t)text[1], 2}};
    return count;
}

Test(vulkan_special, shapes_are_chosen_by_the_rule)
{
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const struct vk_special_rule rule = {.least_equal = 3,
                                             .most_kernels = cases[c].most_kernels};
        struct vk_special_launch launches[16];
        uint32_t numbers[16], num, most = 0;
        char got[17] = "";
        uint32_t count = read(cases[c].launches, launches);
        cr_assert(vk_special_choose(&rule, launches, count, numbers, &num));
        for (uint32_t i = 0; i < count; i++) {
            got[i] = numbers[i] == UINT32_MAX ? '.' : (char)('0' + numbers[i]);
            if (numbers[i] != UINT32_MAX && numbers[i] + 1 > most)
                most = numbers[i] + 1;
        }
        if (strcmp(got, cases[c].expected) != 0 || num != most)
            cr_fatal("%s with %u: got %s (%u), expected %s", cases[c].launches,
                     cases[c].most_kernels, got, num, cases[c].expected);
    }
}

// Lists longer than what is looked at: the launches behind keep their kernels.
Test(vulkan_special, of_very_many_shapes_the_first_are_looked_at)
{
    enum { COUNT = 3000 };
    static struct vk_special_launch launches[COUNT];
    static uint32_t numbers[COUNT];
    uint32_t num;
    const struct vk_special_rule rule = {.least_equal = 3, .most_kernels = COUNT};
    for (uint32_t i = 0; i < COUNT; i++)
        launches[i] =
            (struct vk_special_launch){.kernel = {i / 3 % 1000, 1}, .shape = {i / 3, 1}};
    cr_assert(vk_special_choose(&rule, launches, COUNT, numbers, &num));
    cr_assert(eq(u32, num, 256));
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert(eq(int, numbers[i] == UINT32_MAX, i >= 3 * 256));
}
