// SPDX-License-Identifier: MIT
// Shape rules: infer on accepted and on random types, and the layouts of views.
#include <tenon/checked.h>
#include <tenon/ops/reference.h>
#include "groups.h"
#include "../pack/pack.h"

enum { DRAWS = 400 };

// Overwrites about half of the input types with random ones, most of which do not fit.
static void sample_spoil(struct kit *k, struct sample *s)
{
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        tn_type *type = &s->types[i];
        if (type->dtype == TN_DTYPE_NONE || random_below(k, 2))
            continue;
        type->dtype = (tn_dtype)(1 + random_below(k, TN_NUM_DTYPES - 1));
        type->rank = (int32_t)random_below(k, TN_MAX_RANK + 1);
        for (int32_t axis = 0; axis < TN_MAX_RANK; axis++) {
            int64_t extent = (int64_t)random_below(k, 6);
            bool is_huge = random_below(k, 40) == 0;
            type->extent[axis] = axis >= type->rank ? 0
                                 : is_huge          ? INT64_C(1) << 40
                                                    : extent;
        }
    }
}

static tn_status infer_poisoned(struct pack *pack, struct sample *s, int poison)
{
    fake_host_reset(&pack->host);
    memset(s->outputs, poison, sizeof(s->outputs));
    return sample_infer(&pack->maker, s);
}

static void check_infer_message(struct pack *pack, struct kit *k, const tn_primitive *p)
{
    if (!check_begin(k, "infer.message", "%s", p->id))
        return;
    for (int i = 0; i < DRAWS; i++) {
        struct sample s;
        sample_draw(k, p, &s);
        sample_spoil(k, &s);
        tn_status status = infer_poisoned(pack, &s, 0);
        check_case(k);
        if (status != TN_OK && pack->host.failures != 1)
            check_fail(k, "%s: infer returns %d, and recorded %llu messages, expected 1",
                       sample_text(&s), status, (unsigned long long)pack->host.failures);
        else if (status != TN_OK && pack->host.status != status)
            check_fail(k, "%s: infer returns %d, but recorded %d (%s)", sample_text(&s),
                       status, pack->host.status, pack->host.text);
        if (status == TN_OK && pack->host.failures)
            check_fail(k, "%s: infer succeeds, but recorded: %s", sample_text(&s),
                       pack->host.text);
        if (status > 0 || status < TN_ERR_INTERNAL)
            check_fail(k, "%s: infer returns %d, which is no status", sample_text(&s),
                       status);
    }
    check_end(k);
}

static bool is_poisoned(const struct sample *s, int poison)
{
    const unsigned char *bytes = (const unsigned char *)s->outputs;
    for (size_t i = 0; i < sizeof(s->outputs); i++)
        if (bytes[i] != poison)
            return false;
    return true;
}

static void check_infer_untouched(struct pack *pack, struct kit *k, const tn_primitive *p)
{
    if (!check_begin(k, "infer.untouched", "%s", p->id))
        return;
    for (int i = 0; i < DRAWS; i++) {
        struct sample s;
        sample_draw(k, p, &s);
        sample_spoil(k, &s);
        check_case(k);
        if (infer_poisoned(pack, &s, 0xee) != TN_OK && !is_poisoned(&s, 0xee))
            check_fail(k, "%s: infer fails, and wrote to the outputs", sample_text(&s));
    }
    check_end(k);
}

static bool infer_group_is_valid(const tn_type *type)
{
    bool good = type->dtype > TN_DTYPE_NONE && type->dtype < TN_NUM_DTYPES &&
                type->rank >= 0 && type->rank <= TN_MAX_RANK;
    for (int32_t axis = 0; good && axis < type->rank; axis++)
        good = type->extent[axis] >= 0;
    return good;
}

static void check_infer_valid(struct pack *pack, struct kit *k, const tn_primitive *p)
{
    if (!check_begin(k, "infer.valid", "%s", p->id))
        return;
    for (int i = 0; i < 4 * DRAWS; i++) {
        struct sample s;
        char text[200];
        sample_draw(k, p, &s);
        if (infer_poisoned(pack, &s, 0xee) != TN_OK)
            continue;
        check_case(k);
        for (uint32_t o = 0; o < s.num_outputs; o++)
            if (!infer_group_is_valid(&s.outputs[o]))
                check_fail(k, "%s: output %u has dtype %d and rank %d: %s", sample_text(&s),
                           o, s.outputs[o].dtype, s.outputs[o].rank,
                           is_poisoned(&s, 0xee)
                               ? "not written"
                               : types_text(text, sizeof(text), &s.outputs[o], 1));
    }
    check_end(k);
}

static void check_infer_pure(struct pack *pack, struct kit *k, const tn_primitive *p)
{
    if (!check_begin(k, "infer.pure", "%s", p->id))
        return;
    for (int i = 0; i < DRAWS; i++) {
        struct sample s, before;
        sample_draw(k, p, &s);
        before = s;
        tn_status status = infer_poisoned(pack, &s, 0);
        check_case(k);
        if (pack->host.allocations)
            check_fail(k, "%s: infer allocates memory", sample_text(&s));
        if (memcmp(before.types, s.types, sizeof(s.types)) != 0 ||
            memcmp(before.attrs, s.attrs, sizeof(s.attrs)) != 0)
            check_fail(k, "%s: infer changes its inputs", sample_text(&before));
        struct sample again = before;
        if (infer_poisoned(pack, &again, 0) != status ||
            (status == TN_OK && memcmp(again.outputs, s.outputs, sizeof(s.outputs)) != 0))
            check_fail(k, "%s: infer gives something else the second time",
                       sample_text(&s));
    }
    check_end(k);
}

// --- views -----------------------------------------------------------------------------

// Lowest and highest offset of an element in a layout that has elements. False: an offset
// does not fit in 64 bits.
static bool layout_reach(const tn_layout *layout, int64_t *low, int64_t *high)
{
    *low = *high = layout->offset;
    for (int32_t axis = 0; axis < layout->rank; axis++) {
        int64_t way, *end;
        if (__builtin_mul_overflow(layout->extent[axis] - 1, layout->stride[axis], &way))
            return false;
        end = way < 0 ? low : high;
        if (!tn_checked_add_signed(*end, way, end))
            return false;
    }
    return true;
}

// Returns what is wrong with the layout of a view, or NULL.
static const char *infer_group_wrong_view(const tn_layout *input, const tn_type *type,
                                          const tn_layout *got)
{
    int64_t low, high, least, most; // in elements, whose bytes are:
    const int64_t size = tn_dtype_bytes(got->dtype),
                  of_input = tn_dtype_bytes(input->dtype);
    if (got->dtype != type->dtype || got->rank != type->rank)
        return "its dtype or rank is not what infer said";
    if (memcmp(got->extent, type->extent, (size_t)type->rank * sizeof(int64_t)) != 0)
        return "an extent is not what infer said";
    if (tn_layout_count(got) == 0)
        return NULL;
    if (tn_layout_count(input) == 0)
        return "it has elements, and its input none";
    if (!layout_reach(got, &low, &high) || !layout_reach(input, &least, &most) ||
        low * size < least * of_input || (high + 1) * size > (most + 1) * of_input)
        return "it leaves the memory of its input";
    return NULL;
}

static void check_infer_view_of(struct kit *k, const struct sample *s,
                                enum layout_kind kind)
{
    struct array in = array_new(&s->types[0], kind, 0);
    tn_layout got = {0};
    tn_status status = s->primitive->view(&(tn_view){.struct_size = sizeof(tn_view),
                                                     .input = &in.tensor.layout,
                                                     .output = &s->outputs[0],
                                                     .attrs = s->attrs},
                                          &got);
    const char *wrong =
        status == TN_OK ? infer_group_wrong_view(&in.tensor.layout, &s->outputs[0], &got)
                        : NULL;
    check_case(k);
    if (wrong)
        check_fail(k, "%s: view, of layout %s: %s", sample_text(s), layout_names[kind],
                   wrong);
    if (status == TN_ERR_UNSUPPORTED && kind == PLAIN)
        check_fail(k, "%s: view has no layout for a contiguous input", sample_text(s));
    if (status != TN_OK && status != TN_ERR_UNSUPPORTED)
        check_fail(k, "%s: view, of layout %s, returns %d", sample_text(s),
                   layout_names[kind], status);
    array_free(&in);
}

static void check_infer_view(struct pack *pack, struct kit *k, const tn_primitive *p)
{
    static struct sample samples[MAX_SAMPLES];
    if (!check_begin(k, "infer.view", "%s", p->id))
        return;
    uint32_t count = samples_make(&pack->maker, p, samples, MAX_SAMPLES);
    for (uint32_t i = 0; i < count; i++)
        for (int kind = 0; kind < NUM_LAYOUTS; kind++)
            check_infer_view_of(k, &samples[i], (enum layout_kind)kind);
    if (count == 0)
        check_skip(k, "no application was found that infer accepts");
    check_end(k);
}

// --- all -------------------------------------------------------------------------------

static void check_infer_accepts(struct pack *pack, struct kit *k, const tn_primitive *p)
{
    static struct sample samples[MAX_SAMPLES];
    if (!check_begin(k, "infer.accepts", "%s", p->id))
        return;
    uint32_t count = samples_make(&pack->maker, p, samples, MAX_SAMPLES);
    for (uint32_t i = 0; i < count; i++)
        check_case(k);
    if (!sample_fits(p))
        check_skip(k, "it has more than %d inputs, %d outputs or %d attributes", MAX_IN,
                   MAX_OUT, MAX_FIELDS);
    else if (!p->infer && !pack->maker.runtime)
        check_skip(k, "types follow from its expression, and no backend here computes");
    else if (count == 0)
        check_warn(k, "none of the applications drawn was accepted, so nothing else is "
                      "checked of it: give examples (--examples)");
    check_end(k);
}

void group_infer(struct kit *k)
{
    struct pack pack;
    if (!pack_open(&pack, k))
        return;
    for (uint32_t i = 0; pack.ops && i < pack.ops->num_primitives; i++) {
        const tn_primitive *p = pack.ops->primitives[i];
        check_infer_accepts(&pack, k, p);
        if (!p->infer || !sample_fits(p))
            continue;
        check_infer_message(&pack, k, p);
        check_infer_untouched(&pack, k, p);
        check_infer_valid(&pack, k, p);
        check_infer_pure(&pack, k, p);
        if (p->flags & TN_PRIM_VIEW && TN_HAS(p, view))
            check_infer_view(&pack, k, p);
    }
    pack_close(&pack);
}
