// SPDX-License-Identifier: MIT
// Plans as the backends are given them: which slots are said to share memory.
#include "plan/plan.h"
#include "primitive/prim_set.h"
#include "watch/explain.h"
#include "../support/common.h"

// The plan of `out`, whose only leaf is `in`, donated or not.
static struct plan *plan_of(tn_scope *s, tn_array *in, tn_array *out, bool donate)
{
    struct task task = {0};
    struct plan *plan = NULL;
    must(s, task_create(s, &out, 1, &in, 1, &task));
    task.donated = (const uint8_t[]){donate};
    task.num_donated = 1;
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

TestSuite(plans, .init = setup, .fini = teardown);

// Two steps read x, the second can write its result over it.
Test(plans, an_output_in_a_donated_inputs_memory_names_its_slot)
{
    const tn_type type = {.dtype = TN_F32, .rank = 2, .extent = {8, 8}};
    for (int donate = 0; donate < 2; donate++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = leaf_create(s, NODE_INPUT, &type);
        struct plan *plan = plan_of(s, x, bin(s, "subtract", x, un(s, "sum", x)), donate);
        const struct plan_segment *segment = &plan->segments[0];
        uint32_t leaf = slot_at(segment, HOME_LEAF);
        uint32_t output = slot_at(segment, HOME_STORAGE);
        cr_assert(eq(uint, plan->num_segments, 1));
        cr_assert(leaf != NONE && output != NONE);
        uint32_t donated = plan->storages[segment->slots[output].index].donated_leaf;
        cr_assert(eq(uint, donated, donate ? 0 : NONE));
        for (uint32_t i = 0; i < segment->segment.num_slots; i++)
            cr_assert(eq(uint, segment->segment.slots[i].alias,
                         donate && i == output ? leaf + 1 : 0));
        plan_release(plan);
        tn_scope_close(s);
    }
}

Test(plans, an_explanation_tells_what_is_given_away)
{
    const tn_type type = {.dtype = TN_F32, .rank = 1, .extent = {8}};
    for (uint64_t donate = 0; donate < 4; donate++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *in[] = {leaf_create(s, NODE_INPUT, &type),
                          leaf_create(s, NODE_INPUT, &type)};
        tn_array *out = bin(s, "subtract", in[0], in[1]);
        struct task task = {0};
        struct plan *plan = NULL;
        json_t *told = NULL;
        must(s, task_create(s, &out, 1, in, 2, &task));
        task.donated = (const uint8_t[]){donate & 1, donate >> 1 & 1};
        task.num_donated = 2;
        must(s, explain_planning(runtime, &task, &plan, &told));
        for (size_t i = 0; i < 2; i++) {
            json_t *leaf = json_array_get(json_object_get(told, "leaves"), i);
            cr_assert(eq(int, json_is_true(json_object_get(leaf, "donated")),
                         (int)(donate >> i & 1)));
        }
        json_decref(told);
        plan_release(plan);
        task_finish(&task);
        tn_scope_close(s);
    }
}

// --- outputs that nobody reads ----------------------------------------------------------

static tn_status infer_both(const tn_infer *infer, tn_type *types)
{
    types[0] = types[1] = infer->types[0];
    return TN_OK;
}

static tn_status decompose_both(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    const tn_array *x = rule->inputs[0];
    const tn_array *first = build->op(build, "base.tanh", TN_IN(x), TN_NO_ATTRS);
    outputs[0] = build->op(build, "base.transpose", TN_IN(x), TN_NO_ATTRS);
    outputs[1] = build->op(build, "base.exp", TN_IN(first), TN_NO_ATTRS);
    return TN_OK;
}

// What would be one fused step leaves nothing behind.
Test(plans, an_unread_output_of_a_decomposition_is_not_computed)
{
    static const tn_input_info inputs[] = {{.name = "x", .doc = "a square matrix"}};
    static const tn_output_info outputs[] = {{.name = "t", .doc = "its transpose"},
                                             {.name = "e", .doc = "exp(tanh(x))"}};
    static const tn_primitive both = {.struct_size = sizeof(both),
                                      .id = "acme.both/1",
                                      .doc = "two results of one matrix",
                                      TN_INPUTS(inputs),
                                      TN_OUTPUTS(outputs),
                                      .infer = infer_both,
                                      .decompose = decompose_both};
    must(NULL, prim_register(runtime, NULL, &both));
    for (int read = 0; read < 2; read++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = ramp(s, 4, 4, 0, 0.125f), *made[2] = {NULL};
        float got[16] = {0};
        must(s, tn_op_n(s, "acme.both", TN_IN(x), TN_NO_ATTRS, made, 2));
        must(s, tn_read(s, made[read], got, sizeof(got)));
        for (int i = 0; i < 16; i++) {
            float expected =
                read ? expf(tanhf((float)i * 0.125f)) : (float)(i % 4 * 4 + i / 4) * 0.125f;
            cr_assert(fabsf(got[i] - expected) < 1e-5f);
        }
        tn_scope_close(s);
    }
}
