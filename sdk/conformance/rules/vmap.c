// SPDX-License-Identifier: MIT
// Batching rules compared with a loop: each slice of a batched result equals the primitive
// applied to this slice.
#include "rules.h"

enum { BATCH = 3, TRIES = 4 }; // BATCH: slices; TRIES: choices of batch axes a sample

struct vmap_batch {
    struct kit *kit;
    struct pack *pack;
    struct sample *s;        // types and attributes of a slice; `in` is empty
    struct array in[MAX_IN]; // the batched inputs
    struct array slices[BATCH][MAX_IN];
    struct array want[BATCH][MAX_OUT];
    int32_t axes[MAX_IN];
    int num_slices; // slices that are filled
};

// --- slices ----------------------------------------------------------------------------

tn_type rules_with_axis(const tn_type *type, int32_t axis, int64_t extent)
{
    tn_type out = {.dtype = type->dtype, .rank = type->rank + (axis >= 0)};
    for (int32_t i = 0; i < out.rank; i++)
        out.extent[i] = i == axis ? extent : type->extent[i - (axis >= 0 && i > axis)];
    return out;
}

struct array rules_slice(const struct array *array, int32_t axis, int64_t number)
{
    struct array slice = *array;
    tn_layout *layout = &slice.tensor.layout;
    if (axis < 0)
        return slice;
    layout->offset += number * layout->stride[axis];
    layout->rank--;
    slice.count = layout->extent[axis] ? slice.count / layout->extent[axis] : 0;
    for (int32_t i = axis; i < layout->rank; i++) {
        layout->extent[i] = layout->extent[i + 1];
        layout->stride[i] = layout->stride[i + 1];
    }
    layout->extent[layout->rank] = layout->stride[layout->rank] = 0;
    return slice;
}

// Whether the outputs have room for another axis.
static bool rule_batches_has_room(const struct sample *s)
{
    for (uint32_t i = 0; i < s->num_outputs; i++)
        if (s->outputs[i].rank == TN_MAX_RANK)
            return false;
    return true;
}

// Chooses the batch axis of each input, -1 for none; at least one input has one. False: no
// input can have one.
static bool draw_axes(struct vmap_batch *b)
{
    uint32_t able = 0, chosen = 0;
    uint32_t count = b->s->num_inputs < MAX_IN ? b->s->num_inputs : MAX_IN;
    for (uint32_t i = 0; i < count; i++) {
        const tn_type *type = &b->s->types[i];
        b->axes[i] = -1;
        able |= (uint32_t)(type->dtype != TN_DTYPE_NONE && type->rank < TN_MAX_RANK) << i;
    }
    while (able && !chosen)
        for (uint32_t i = 0; i < count; i++)
            if (able >> i & 1 && random_below(b->kit, 3)) {
                b->axes[i] =
                    (int32_t)random_below(b->kit, (uint64_t)b->s->types[i].rank + 1);
                chosen |= UINT32_C(1) << i;
            }
    for (uint32_t i = b->s->num_inputs; i < sample_operands(b->s); i++)
        b->axes[i] = -1; // scalars of runtime attributes
    return able != 0;
}

// Fills one slice and its expected outputs. Inputs without a batch axis equal those of
// slice 0.
static bool fill_slice(struct vmap_batch *b, int number)
{
    struct sample slice = *b->s;
    sample_fill(b->kit, &slice);
    for (uint32_t i = 0; i < slice.num_inputs && number; i++)
        if (b->axes[i] < 0) {
            array_free(&slice.in[i]);
            if (b->slices[0][i].tensor.data)
                slice.in[i] = array_laid_out(&b->slices[0][i], PLAIN);
        }
    if (apply_definition(&b->pack->maker, &slice, b->want[number])) {
        sample_free(&slice);
        return false;
    }
    memcpy(b->slices[number], slice.in, sizeof(slice.in));
    b->num_slices++;
    return apply_is_sound(&b->pack->maker, &slice, b->want[number],
                          4 * sample_tolerance(&slice, true));
}

static void batch_free(struct vmap_batch *b)
{
    for (int n = 0; n < b->num_slices; n++) {
        outputs_free(b->want[n]);
        for (int i = 0; i < MAX_IN; i++)
            array_free(&b->slices[n][i]);
    }
    for (int i = 0; i < MAX_IN; i++)
        array_free(&b->in[i]);
}

static bool batch_make(struct vmap_batch *b)
{
    if (!rule_batches_has_room(b->s) || !draw_axes(b))
        return false;
    for (int n = 0; n < BATCH; n++)
        if (!fill_slice(b, n))
            return false;
    for (uint32_t i = 0; i < b->s->num_inputs; i++) {
        if (!b->slices[0][i].tensor.data)
            continue;
        tn_type type = rules_with_axis(&b->s->types[i], b->axes[i], BATCH);
        b->in[i] = array_new(&type, PLAIN, 0);
        for (int n = 0; n < BATCH; n++) {
            struct array slice = rules_slice(&b->in[i], b->axes[i], n);
            array_copy(&slice, &b->slices[n][i]);
        }
    }
    return true;
}

static const char *axes_text(const struct vmap_batch *b)
{
    static char text[120];
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < b->s->num_inputs && at + 8 < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", i ? ", " : "",
                               b->axes[i]);
    return text;
}

// --- the rule --------------------------------------------------------------------------

static void compare_output(struct vmap_batch *b, const struct array *got, int32_t axis,
                           uint32_t output)
{
    char text[200];
    tn_type want = rules_with_axis(&b->s->outputs[output], axis, BATCH),
            have = array_type(got);
    if (memcmp(&have, &want, sizeof(want)) != 0) {
        tn_type both[2] = {have, want};
        check_fail(b->kit,
                   "%s, batch on axes %s: output %u with the batch on axis %d; got "
                   "and expected are %s",
                   sample_text(b->s), axes_text(b), output, axis,
                   types_text(text, sizeof(text), both, 2));
        return;
    }
    for (int n = 0; n < BATCH; n++) {
        struct array slice = rules_slice(got, axis, n);
        struct sample one = *b->s;
        memcpy(one.in, b->slices[n], sizeof(one.in));
        const char *failure =
            apply_compare_output(&b->pack->maker, &one, output, &slice, &b->want[n][output],
                                 sample_tolerance(&one, true));
        if (failure)
            check_fail(b->kit, "%s, batch on axes %s: slice %d of output %u: %s",
                       sample_text(b->s), axes_text(b), n, output, failure);
    }
}

static void compare_outputs(struct vmap_batch *b, tn_scope *scope, tn_array *const *outputs,
                            const int32_t *axes)
{
    for (uint32_t o = 0; o < b->s->num_outputs; o++) {
        struct array got;
        if (axes[o] < -1 || axes[o] > b->s->outputs[o].rank) {
            check_fail(b->kit,
                       "%s, batch on axes %s: output %u carries it on axis %d, "
                       "expected -1 to %d",
                       sample_text(b->s), axes_text(b), o, axes[o], b->s->outputs[o].rank);
        } else if (graph_read(scope, outputs[o], &got) != TN_OK) {
            check_fail(b->kit, "%s, batch on axes %s: output %u: %s", sample_text(b->s),
                       axes_text(b), o, tn_scope_error(scope));
        } else {
            compare_output(b, &got, axes[o], o);
            array_free(&got);
        }
    }
}

// Calls the rule directly, with the batch on any axes.
static void batches_call_rule(struct vmap_batch *b)
{
    tn_array *in[MAX_IN] = {NULL}, *single[MAX_IN] = {NULL}, *applied[MAX_OUT] = {NULL},
             *outputs[MAX_OUT] = {NULL};
    int32_t out_axes[MAX_OUT] = {0};
    struct sample whole = *b->s, slice = *b->s;
    tn_scope *scope = tn_scope_open(b->pack->maker.runtime);
    memcpy(whole.in, b->in, sizeof(whole.in));
    memcpy(slice.in, b->slices[0], sizeof(slice.in));
    graph_inputs(scope, &whole, in);
    graph_inputs(scope, &slice, single);
    graph_op(scope, &slice, single, applied);
    tn_build build = graph_build(scope, b->pack->host.table);
    tn_rule rule = {.struct_size = sizeof(rule),
                    .attrs = b->s->attrs,
                    .inputs = in,
                    .outputs = applied,
                    .num_inputs = sample_operands(b->s),
                    .num_outputs = b->s->num_outputs};
    fake_host_reset(&b->pack->host);
    tn_status status =
        b->s->primitive->vmap(&build, &rule, b->axes, BATCH, outputs, out_axes);
    check_case(b->kit);
    if (status == TN_OK)
        compare_outputs(b, scope, outputs, out_axes);
    else if (status != TN_ERR_UNSUPPORTED)
        check_fail(b->kit, "%s, batch on axes %s: it fails: %s", sample_text(b->s),
                   axes_text(b),
                   b->pack->host.failures ? b->pack->host.text : tn_scope_error(scope));
    tn_scope_close(scope);
}

static tn_status apply_slice(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                             tn_array **outputs, uint64_t num_outputs, void *slice)
{
    (void)num_inputs, (void)num_outputs;
    return graph_op(scope, slice, inputs, outputs);
}

// Calls tn_vmap_call, which uses the rule, or derives one.
static void call_transform(struct vmap_batch *b)
{
    tn_array *in[MAX_IN] = {NULL}, *outputs[MAX_OUT] = {NULL};
    struct sample whole = *b->s, slice = *b->s;
    tn_scope *scope = tn_scope_open(b->pack->maker.runtime);
    memcpy(whole.in, b->in, sizeof(whole.in));
    uint32_t count = graph_inputs(scope, &whole, in);
    if (sample_has_gap(&slice)) {
        tn_scope_close(scope);
        return; // an input that is not given has no slices
    }
    tn_status status = tn_vmap_call(scope, apply_slice, &slice, in, b->axes, count, outputs,
                                    NULL, b->s->num_outputs);
    if (status == TN_OK) {
        check_case(b->kit);
        compare_outputs(b, scope, outputs, (const int32_t[MAX_OUT]){0});
    } else if (status == TN_ERR_UNSUPPORTED && !b->s->primitive->vmap) {
        check_skip(b->kit, "%s", tn_scope_error(scope));
    } else {
        check_fail(b->kit, "%s, batch on axes %s: vmap fails: %s", sample_text(b->s),
                   axes_text(b), tn_scope_error(scope));
    }
    tn_scope_close(scope);
}

void rules_vmap(struct kit *k, struct pack *pack, const tn_primitive *p)
{
    static struct sample samples[MAX_SAMPLES];
    static struct vmap_batch b;
    if (!check_begin(k, "rules.vmap", "%s", p->id))
        return;
    uint32_t count =
        pack->maker.runtime ? samples_make(&pack->maker, p, samples, MAX_SAMPLES) : 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t t = 0; t < samples_limit(k, TRIES); t++) {
            b = (struct vmap_batch){.kit = k, .pack = pack, .s = &samples[i]};
            if (batch_make(&b)) {
                call_transform(&b);
                if (p->vmap)
                    batches_call_rule(&b);
            }
            batch_free(&b);
        }
    if (!pack->maker.runtime)
        check_skip(k, "no backend here computes");
    else if (k->cases == 0)
        check_skip(k, "no application was found that can be batched");
    check_end(k);
}
