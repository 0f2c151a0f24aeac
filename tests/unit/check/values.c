// SPDX-License-Identifier: MIT
// The check of a segment's values finds each contradiction between ids, last uses and
// steps.
#include "check.h"
#include "base/fail.h"
#include "check/values.h"

enum { STEPS = 3, LAST = TN_VALUE_LAST };

struct use {
    uint64_t id;
    uint32_t flags;
};

// Each step has two inputs (the second may be absent: id 0) and an output.
static const struct row {
    struct use in[STEPS][2], out[STEPS];
    const char *says; // NULL: nothing is wrong
} rows[] = {
    {{{{1, 0}, {2, LAST}}, {{3, 0}, {1, LAST}}, {{3, LAST}, {4, LAST}}},
     {{3, 0}, {4, 0}, {5, 0}},
     NULL},
    {{{{1, LAST}, {1, LAST}}, {{2, 0}, {0, 0}}, {{2, LAST}, {0, 0}}},
     {{2, 0}, {3, LAST}, {4, 0}},
     NULL}, // twice by one step; an output that nobody reads
    {{{{1, 0}, {0, 0}}, {{2, LAST}, {0, 0}}, {{2, LAST}, {0, 0}}},
     {{2, 0}, {3, 0}, {4, 0}},
     "step '2', input 0: id 2 was read for the last time before (step 1)"},
    {{{{1, 0}, {0, 0}}, {{2, 0}, {0, 0}}, {{2, 0}, {0, 0}}},
     {{2, LAST}, {3, 0}, {4, 0}},
     "step '1', input 0: id 2 was read for the last time before (step 0)"},
    {{{{1, 0}, {0, 0}}, {{2, 0}, {0, 0}}, {{2, 0}, {0, 0}}},
     {{2, 0}, {3, 0}, {3, 0}},
     "step '2', output 0: id 3 was written before (step 1)"},
    {{{{1, 0}, {0, 0}}, {{2, 0}, {1, 0}}, {{2, 0}, {0, 0}}},
     {{2, 0}, {1, 0}, {3, 0}},
     "step '1', output 0: id 1 was read before (step 1)"},
    {{{{1, 0}, {0, 0}}, {{2, 0}, {6, 0}}, {{2, 0}, {0, 0}}},
     {{2, 0}, {3, 0}, {4, 0}},
     "step '1', input 1: id 6 is out of range"},
    {{{{1, 0}, {0, 0}}, {{2, 0}, {0, 0}}, {{2, 0}, {0, 0}}},
     {{2, 0}, {0, 0}, {4, 0}},
     "step '1', output 0: id 0 is out of range"},
    {{{{1, 0}, {0, 0}}, {{2, 0}, {3, TN_VALUE_FUSED}}, {{2, 0}, {0, 0}}},
     {{2, 0}, {3, 0}, {4, 0}},
     "step '1', input 1: id 3 passes through a program"},
    {{{{1, 0}, {0, 0}}, {{2, 0}, {0, 0}}, {{2, 0}, {0, 0}}},
     {{2, 0}, {0, TN_VALUE_FUSED}, {4, 0}},
     NULL}, // it has no memory
};

static tn_value value_of(struct use use)
{
    return (tn_value){
        .id = use.id, .flags = use.flags, .layout.dtype = use.id ? TN_F32 : TN_DTYPE_NONE};
}

Test(values, contradictions_are_found)
{
    static const char *const labels[STEPS] = {"0", "1", "2"};
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        tn_value in[STEPS][2], out[STEPS];
        tn_step steps[STEPS];
        for (int i = 0; i < STEPS; i++) {
            in[i][0] = value_of(rows[r].in[i][0]);
            in[i][1] = value_of(rows[r].in[i][1]);
            out[i] = value_of(rows[r].out[i]);
            steps[i] = (tn_step){.struct_size = sizeof(steps[i]),
                                 .label = labels[i],
                                 .inputs = in[i],
                                 .outputs = &out[i],
                                 .num_inputs = 2,
                                 .num_outputs = 1,
                                 .value_size = sizeof(tn_value)};
        }
        const tn_segment segment = {.struct_size = sizeof(segment),
                                    .steps = steps,
                                    .num_steps = STEPS,
                                    .step_size = sizeof(tn_step),
                                    .num_values = 5};
        fail_clear();
        tn_status status = values_check(&segment);
        check_status(status, rows[r].says ? TN_ERR_INTERNAL : TN_OK);
        if (rows[r].says)
            check_says(fail_text(), rows[r].says);
    }
}
