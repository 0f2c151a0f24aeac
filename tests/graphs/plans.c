// SPDX-License-Identifier: MIT
// Plans as the backends are given them: which slots are said to share memory.
#include "sched/plan.h"
#undef fail // cmocka has a macro of this name
#include "common.h"

// The plan of `out`, whose only leaf is `in`, given away or not.
static struct plan *plan_of(tn_scope *s, tn_array *in, tn_array *out, bool donate)
{
    struct task task = {0};
    struct plan *plan = NULL;
    must(s, task_create(s, &out, 1, &in, 1, &task));
    task.donate = donate;
    must(s, plan_create(s->runtime, &task, NULL, &plan));
    task_finish(&task);
    return plan;
}

// The slot of the first segment that is home to what `home` says, or NONE.
static uint32_t slot_at(const struct plan_segment *segment, int home)
{
    for (uint32_t i = 0; i < segment->segment.num_slots; i++)
        if (segment->slots[i].home == (uint32_t)home)
            return i;
    return NONE;
}

// Two steps read x, the second can write its result over it.
static void an_output_in_a_donated_inputs_memory_names_its_slot(void **state)
{
    const tn_type type = {.dtype = TN_F32, .rank = 2, .extent = {8, 8}};
    for (int donate = 0; donate < 2; donate++) {
        tn_scope *s = tn_scope_open(*state);
        tn_array *x = leaf_create(s, NODE_INPUT, &type);
        struct plan *plan = plan_of(s, x, bin(s, "subtract", x, un(s, "sum", x)), donate);
        const struct plan_segment *segment = &plan->segments[0];
        uint32_t leaf = slot_at(segment, HOME_LEAF);
        uint32_t output = slot_at(segment, HOME_STORAGE);
        assert_int_equal(plan->num_segments, 1);
        assert_true(leaf != NONE && output != NONE);
        uint32_t donated = plan->storages[segment->slots[output].index].donated_leaf;
        assert_int_equal(donated, donate ? 0 : NONE);
        for (uint32_t i = 0; i < segment->segment.num_slots; i++)
            assert_int_equal(segment->segment.slots[i].alias,
                             donate && i == output ? leaf + 1 : 0);
        plan_release(plan);
        tn_scope_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_in_a_donated_inputs_memory_names_its_slot),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
