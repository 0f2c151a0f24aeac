// SPDX-License-Identifier: MIT
// Dividing layers among devices by their memory: a table of sizes.
#include "../../sdk/lm/spread/stages.h"
#include <string.h>
#include "assertion.h"

enum { MOST = 4 };

#define OPEN .is_unbounded = true
#define LOST .is_closed = true

Test(sharding, layers_go_to_the_first_device_that_has_room)
{
    static const struct {
        const char *what;
        uint64_t layer, embedding, output, again;
        int64_t layers, num_rooms;
        struct lm_room rooms[MOST];
        int64_t ends[MOST];
        struct lm_shortage shortage; // `missing` 0: it fits
    } rows[] = {
        {"all fit on the first", 10, 5, 7, 3, 4, 2, {{52}, {1000, .memory = 1}}, {4, 4}},
        {"a byte less: the last layer goes with the output, and what it has again",
         10,
         5,
         7,
         3,
         4,
         2,
         {{51}, {20, .memory = 1}},
         {3, 4}},
        {"and a byte less there: nothing fits",
         10,
         5,
         7,
         3,
         4,
         2,
         {{51}, {19, .memory = 1}},
         {3, 3},
         {1, 3, 1}},
        {"in order, each as many as fit",
         10,
         0,
         0,
         0,
         6,
         3,
         {{25}, {19, .memory = 1}, {30, .memory = 2}},
         {2, 3, 6}},
        {"the embedding is with the first layer",
         10,
         15,
         0,
         0,
         2,
         2,
         {{24}, {35, .memory = 1}},
         {0, 2}},
        {"a device without room for a layer has none",
         10,
         0,
         0,
         0,
         3,
         3,
         {{10}, {9, .memory = 1}, {20, .memory = 2}},
         {1, 1, 3}},
        {"the host behind takes what is left",
         10,
         5,
         7,
         3,
         9,
         2,
         {{45}, {0, OPEN, .memory = 1}},
         {4, 9}},
        {"two devices of one memory share it",
         10,
         0,
         0,
         0,
         4,
         3,
         {{25}, {25}, {20, .memory = 1}},
         {2, 2, 4}},
        {"of one memory the least is believed",
         10,
         0,
         0,
         0,
         3,
         2,
         {{30}, {20}},
         {2, 2},
         {1, 2, 10}},
        {"a lost one has none", 10, 0, 0, 0, 3, 2, {{90, LOST}, {30, .memory = 1}}, {0, 3}},
        {"all lost", 10, 0, 0, 0, 3, 1, {{90, LOST}}, {0}, {0, 0, 30}},
        {"one device, too small", 10, 5, 7, 3, 4, 1, {{40}}, {3}, {0, 3, 12}},
        {"one device that is full", 10, 5, 7, 3, 4, 1, {{1}}, {0}, {0, 0, 51}},
        {"numbers of many bytes",
         UINT64_C(1) << 40,
         0,
         0,
         0,
         3,
         2,
         {{UINT64_C(2) << 40}, {UINT64_C(1) << 40, .memory = 1}},
         {2, 3}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes[16];
        int64_t ends[MOST] = {-1, -1, -1, -1};
        struct lm_shortage shortage = {0};
        for (int64_t k = 0; k < rows[i].layers; k++)
            bytes[k] = rows[i].layer;
        const struct lm_needs needs = {rows[i].layers, bytes, rows[i].embedding,
                                       rows[i].output, rows[i].again};
        bool fits =
            lm_shard_layers(&needs, rows[i].rooms, rows[i].num_rooms, ends, &shortage);
        cr_assert(eq(int, fits, rows[i].shortage.missing == 0), "%s", rows[i].what);
        cr_assert(eq(u64, shortage.missing, rows[i].shortage.missing), "%s", rows[i].what);
        cr_assert(eq(i64, shortage.placed, rows[i].shortage.placed), "%s", rows[i].what);
        cr_assert(eq(i64, shortage.device, rows[i].shortage.device), "%s", rows[i].what);
        for (int64_t d = 0; d < rows[i].num_rooms; d++)
            cr_assert(eq(i64, ends[d], rows[i].ends[d]), "%s: device %d", rows[i].what,
                      (int)d);
        // What is divided fits as a division that was asked for.
        if (fits)
            cr_assert(eq(int,
                         lm_division_fits(&needs, rows[i].rooms, rows[i].num_rooms, ends,
                                          &shortage),
                         1),
                      "%s", rows[i].what);
    }
}

Test(sharding, a_division_that_is_asked_for_has_to_fit)
{
    static const uint64_t bytes[] = {10, 20, 30};
    static const struct lm_needs needs = {3, bytes, 5, 7, 3};
    static const struct {
        struct lm_room rooms[2];
        int64_t ends[2];
        struct lm_shortage shortage;
    } rows[] = {
        {{{15}, {60, .memory = 1}}, {1, 3}, {0}},
        {{{14}, {60, .memory = 1}}, {1, 3}, {0, 0, 1}},
        {{{15}, {55, .memory = 1}}, {1, 3}, {1, 1, 5}},
        {{{72}, {0, .memory = 1}}, {3, 3}, {0}},
        {{{75}, {75}}, {1, 3}, {0}},
        {{{74}, {74}}, {1, 3}, {1, 1, 1}}, // one memory
        {{{0, OPEN}, {60, LOST, .memory = 1}}, {1, 3}, {1, 1, 60}},
        {{{0, LOST}, {0, OPEN, .memory = 1}}, {0, 3}, {0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct lm_shortage s = {0};
        bool fits = lm_division_fits(&needs, rows[i].rooms, 2, rows[i].ends, &s);
        cr_assert(eq(int, fits, rows[i].shortage.missing == 0), "row %zu", i);
        cr_assert(eq(u64, s.missing, rows[i].shortage.missing), "row %zu", i);
        cr_assert(eq(i64, s.device, rows[i].shortage.device), "row %zu", i);
        cr_assert(eq(i64, s.placed, rows[i].shortage.placed), "row %zu", i);
    }
}

Test(sharding, splits_are_read_or_refused)
{
    static const struct {
        const char *text;
        int64_t ends[3];
        const char *wrong;
    } rows[] = {
        {"16,14", {16, 30, 30}},
        {"30", {30, 30, 30}},
        {"0,30,0", {0, 30, 30}},
        {"10,10,10", {10, 20, 30}},
        {"", {0}, "expected numbers of layers, separated by commas"},
        {"16,", {0}, "expected numbers of layers, separated by commas"},
        {"16, 14", {0}, "expected numbers of layers, separated by commas"},
        {"-1,31", {0}, "expected numbers of layers, separated by commas"},
        {"16;14", {0}, "expected numbers of layers, separated by commas"},
        {"16,13", {0}, "it has fewer layers than the model"},
        {"16,15", {0}, "it has more layers than the model"},
        {"99999999999999999999", {0}, "it has more layers than the model"},
        {"10,10,5,5", {0}, "it names more devices than there are"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ends[3] = {0};
        const char *wrong = lm_read_split(rows[i].text, 30, 3, ends);
        cr_assert(eq(int, !wrong, !rows[i].wrong), "'%s': %s", rows[i].text,
                  wrong ? wrong : "taken");
        if (wrong)
            cr_assert(eq(int, strcmp(wrong, rows[i].wrong), 0), "'%s': %s", rows[i].text,
                      wrong);
        for (int d = 0; !wrong && d < 3; d++)
            cr_assert(eq(i64, ends[d], rows[i].ends[d]), "'%s'", rows[i].text);
    }
}

// Processes work at once: the slowest takes as little time as can be.
Test(sharding, stages_are_balanced_within_their_memory)
{
    static const struct {
        const char *what;
        uint64_t work, output, again;
        int64_t layers, num_stages;
        struct lm_stage stages[MOST];
        int64_t ends[MOST];
        struct lm_shortage shortage; // `missing` 0: it fits
    } rows[] = {
        {"evenly", 10, 0, 0, 6, 3, {{{OPEN}, 1}, {{OPEN}, 1}, {{OPEN}, 1}}, {2, 4, 6}},
        {"the output counts as work, also where it is the embedding",
         10,
         0,
         20,
         6,
         2,
         {{{OPEN}, 1}, {{OPEN}, 1}},
         {4, 6}},
        {"by speed", 10, 0, 0, 8, 2, {{{OPEN}, 3}, {{OPEN}, 1}}, {6, 8}},
        {"memory bounds the fast one", 10, 0, 0, 8, 2, {{{40}, 3}, {{OPEN}, 1}}, {4, 8}},
        {"the slow one in front has one",
         10,
         0,
         0,
         4,
         2,
         {{{OPEN}, 1}, {{OPEN}, 90}},
         {1, 4}},
        {"each has one", 10, 0, 0, 2, 2, {{{OPEN}, 1}, {{OPEN}, 1000}}, {1, 2}},
        {"memory of the last is missing",
         10,
         0,
         0,
         6,
         2,
         {{{20}, 1}, {{30}, 1}},
         {2, 5},
         {1, 5, 10}},
        {"of the first", 10, 0, 0, 2, 2, {{{9}, 1}, {{OPEN}, 1}}, {0, 0}, {0, 0, 1}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes[MOST * MOST];
        int64_t ends[MOST] = {0};
        struct lm_shortage shortage = {0, 0, 0};
        for (int64_t k = 0; k < rows[i].layers; k++)
            bytes[k] = rows[i].work;
        const struct lm_needs needs = {.layers = rows[i].layers,
                                       .bytes = bytes,
                                       .output = rows[i].output,
                                       .again = rows[i].again};
        bool fits = lm_stages_divide(&needs, bytes, rows[i].stages, rows[i].num_stages,
                                     ends, &shortage);
        cr_assert(eq(int, fits, rows[i].shortage.missing == 0), "%s", rows[i].what);
        cr_assert(eq(u64, shortage.missing, rows[i].shortage.missing), "%s", rows[i].what);
        cr_assert(eq(i64, shortage.device, rows[i].shortage.device), "%s", rows[i].what);
        for (int64_t k = 0; k < rows[i].num_stages && fits; k++)
            cr_assert(eq(i64, ends[k], rows[i].ends[k]), "%s: stage %d", rows[i].what,
                      (int)k);
    }
}
