// SPDX-License-Identifier: MIT
// Primitives of a pack through a runtime, on every device here: in any layout, with donated
// inputs, and with each kernel of the pack in turn.
#include "groups.h"
#include "devices.h"
#include "../kernel/query.h"

enum { FEW = 3 }; // samples for a device that is slow to compile shaders

struct trial {
    struct kit *kit;
    struct pack *pack;
    const struct tried_device *device;
    tn_runtime *runtime;
    char why[300]; // reason of the last failed evaluation
};

// One way to evaluate a sample. TN_OK: gives `out`; else t->why is the reason.
typedef tn_status (*evaluation)(struct trial *t, struct sample *s,
                                struct array out[MAX_OUT]);

// --- evaluating ------------------------------------------------------------------------

static tn_status trial_read_all(struct trial *t, tn_scope *scope, const struct sample *s,
                                tn_array *const *results, struct array out[MAX_OUT])
{
    tn_status status = graph_read_all(scope, s, results, out);
    if (status != TN_OK)
        format_text(t->why, sizeof(t->why), "%s", tn_scope_error(scope));
    return status;
}

static tn_status device_group_plainly(struct trial *t, struct sample *s,
                                      struct array out[MAX_OUT])
{
    tn_array *in[MAX_IN] = {NULL}, *results[MAX_OUT] = {NULL};
    tn_scope *scope = tn_scope_open(t->runtime);
    graph_inputs(scope, s, in);
    graph_op(scope, s, in, results);
    tn_status status = trial_read_all(t, scope, s, results, out);
    tn_scope_close(scope);
    return status;
}

// Applies the primitive to inputs that are views of the given layout.
static tn_status laid_out(struct trial *t, struct sample *s, enum layout_kind kind,
                          struct array out[MAX_OUT])
{
    tn_array *in[MAX_IN] = {NULL}, *results[MAX_OUT] = {NULL};
    tn_scope *scope = tn_scope_open(t->runtime);
    for (uint32_t i = 0; i < s->num_inputs; i++)
        if (s->in[i].tensor.data)
            in[i] = graph_laid_out(scope, &s->in[i], kind);
    graph_op(scope, s, in, results);
    tn_status status = trial_read_all(t, scope, s, results, out);
    tn_scope_close(scope);
    return status;
}

static tn_status apply_in_trace(tn_scope *scope, tn_array *const *inputs,
                                uint64_t num_inputs, tn_array **outputs,
                                uint64_t num_outputs, void *sample)
{
    (void)num_inputs, (void)num_outputs;
    return graph_op(scope, sample, inputs, outputs);
}

// Donates the input of every in-place pair, so that its memory may become the output's.
static tn_status device_group_donated(struct trial *t, struct sample *s,
                                      struct array out[MAX_OUT])
{
    const tn_primitive *p = s->primitive;
    tn_array *in[MAX_IN] = {NULL}, *results[MAX_OUT] = {NULL};
    tn_function_options options = {.struct_size = sizeof(options)};
    tn_function *function = NULL;
    uint32_t given[MAX_IN];
    for (uint32_t i = 0; i < MAX_IN; i++)
        for (uint32_t k = 0; k < p->num_in_place; k++)
            if (p->in_place[k].input == (int32_t)i && i < s->num_inputs) {
                given[options.num_donated++] = i;
                break;
            }
    options.donated = given;
    tn_status status =
        tn_function_create(t->runtime, apply_in_trace, s, &options, &function);
    if (status != TN_OK) {
        format_text(t->why, sizeof(t->why), "%s", tn_last_error());
        return status;
    }
    tn_scope *scope = tn_scope_open(t->runtime);
    uint32_t count = graph_inputs(scope, s, in);
    tn_function_call(function, scope, in, count, results, s->num_outputs);
    status = trial_read_all(t, scope, s, results, out);
    tn_scope_close(scope);
    tn_function_destroy(function);
    return status;
}

static tn_status in_layouts(struct trial *t, struct sample *s, struct array out[MAX_OUT])
{
    enum layout_kind kind = (enum layout_kind)(1 + random_below(t->kit, REPEATED - 1));
    return laid_out(t, s, kind, out);
}

// Repeats the first axis in memory. This changes the sample's values, and with them the
// expected result.
static tn_status trial_repeated(struct trial *t, struct sample *s,
                                struct array out[MAX_OUT])
{
    for (uint32_t i = 0; i < s->num_inputs; i++)
        if (s->in[i].tensor.data) {
            struct array constant = array_laid_out(&s->in[i], REPEATED);
            array_free(&constant);
        }
    return laid_out(t, s, REPEATED, out);
}

// --- comparing -------------------------------------------------------------------------

// False when the device or the definition cannot compute the sample.
static bool trial_compare(struct trial *t, struct sample *s, evaluation evaluate)
{
    struct array want[MAX_OUT], got[MAX_OUT];
    tn_status status = evaluate(t, s, got);
    // The definition comes last: `evaluate` may change the inputs.
    bool is_known =
        status != TN_ERR_UNSUPPORTED && !apply_definition(&t->pack->maker, s, want);
    if (is_known && status != TN_OK) {
        check_fail(t->kit, "%s: on %s it fails: %s", sample_text(s), t->device->name,
                   t->why);
    } else if (is_known) {
        double tolerance = sample_tolerance(s, t->device->is_exact);
        const char *failure = apply_compare(&t->pack->maker, s, got, want, tolerance);
        check_case(t->kit);
        if (failure && apply_is_sound(&t->pack->maker, s, want, tolerance))
            check_fail(t->kit, "%s: on %s %s", sample_text(s), t->device->name, failure);
    }
    if (status == TN_OK)
        outputs_free(got);
    if (is_known)
        outputs_free(want);
    return is_known;
}

static void try_samples(struct trial *t, const tn_primitive *p, evaluation evaluate)
{
    static struct sample samples[MAX_SAMPLES];
    uint32_t most = t->device->is_slow ? FEW : MAX_SAMPLES;
    uint32_t count = samples_make(&t->pack->maker, p, samples, most);
    for (uint32_t i = 0; i < count; i++) {
        if (evaluate == device_group_donated && sample_has_gap(&samples[i]))
            continue;
        sample_fill(t->kit, &samples[i]);
        trial_compare(t, &samples[i], evaluate);
        sample_free(&samples[i]);
    }
    if (count == 0)
        check_skip(t->kit, "no application of it was found: give examples (--examples)");
    else if (t->kit->cases == 0)
        check_skip(t->kit, "not done there: %s", t->why);
}

// --- checks ----------------------------------------------------------------------------

static void check_device_primitive(struct kit *k, struct pack *pack,
                                   struct devices *devices, uint32_t index,
                                   const tn_primitive *p, const char *check,
                                   evaluation evaluate)
{
    const char *why = "";
    if (!check_begin(k, check, "%s on %s", p->id, devices->items[index].name))
        return;
    struct trial t = {.kit = k,
                      .pack = pack,
                      .device = &devices->items[index],
                      .runtime = device_runtime(devices, index, &why)};
    if (!t.runtime)
        check_skip(k, "%s", why);
    else if (evaluate != device_group_plainly &&
             !tn_primitive_find(t.runtime, "base.slice"))
        check_skip(k, "views are made by the pack base, which is not here");
    else if (tn_primitive_check(t.runtime, p->id) != TN_OK)
        check_skip(k, "%s", tn_last_error());
    else
        try_samples(&t, p, evaluate);
    check_end(k);
}

static void check_device_primitives(struct kit *k, struct pack *pack,
                                    struct devices *devices, uint32_t index)
{
    for (uint32_t i = 0; i < pack->ops->num_primitives; i++) {
        const tn_primitive *p = pack->ops->primitives[i];
        check_device_primitive(k, pack, devices, index, p, "device.values",
                               device_group_plainly);
        if (p->num_inputs == 0)
            continue;
        check_device_primitive(k, pack, devices, index, p, "device.layouts", in_layouts);
        check_device_primitive(k, pack, devices, index, p, "device.repeated",
                               trial_repeated);
        if (p->num_in_place)
            check_device_primitive(k, pack, devices, index, p, "device.donated",
                                   device_group_donated);
    }
}

// True when the plan for this sample uses the kernel.
static bool device_group_is_chosen(struct trial *t, const tn_kernel *kernel,
                                   const struct sample *s)
{
    char *json = NULL, label[160];
    tn_array *in[MAX_IN] = {NULL}, *results[MAX_OUT] = {NULL};
    tn_scope *scope = tn_scope_open(t->runtime);
    graph_inputs(scope, s, in);
    graph_op(scope, s, in, results);
    format_text(label, sizeof(label), "\"kernel\": \"%s\"", kernel->name);
    bool found = tn_explain(scope, results, s->num_outputs, &json) == TN_OK &&
                 strstr(json, label) != NULL;
    tn_text_free(json);
    tn_scope_close(scope);
    return found;
}

// Compares every sample whose plan uses the kernel. Returns how many samples it takes.
static uint32_t run_kernel(struct trial *t, const tn_kernel *kernel, const tn_primitive *p)
{
    static struct sample samples[MAX_SAMPLES];
    uint32_t count = kernel_samples(&t->pack->maker, kernel, p, samples, MAX_SAMPLES),
             done = 0;
    for (uint32_t i = 0; i < count; i++) {
        sample_fill(t->kit, &samples[i]);
        if ((!t->device->is_slow || done < FEW) &&
            device_group_is_chosen(t, kernel, &samples[i]))
            done += trial_compare(t, &samples[i], device_group_plainly);
        sample_free(&samples[i]);
    }
    return count;
}

// Warns of kernels that never ran, but not of those for devices that --devices does not
// name.
static void tell_idle(struct kit *k, const tn_kernel *kernel, uint32_t num_taken)
{
    if (num_taken == 0)
        check_warn(k, "it never ran: none of the applications drawn is one that it takes: "
                      "give examples (--examples)");
    else if (k->devices)
        check_skip(k, "no device of --devices runs it (%s)", kernel->family);
    else
        check_warn(k, "it never ran: no device here runs it (%s)", kernel->family);
}

static void check_device_kernel(struct kit *k, struct pack *pack, struct devices *devices,
                                const tn_kernel *kernel)
{
    char rule[280];
    const char *why;
    uint32_t num_taken = 0;
    if (!check_begin(k, "device.kernel", "%s %s", kernel->primitive, kernel->name))
        return;
    const tn_primitive *p = pack_primitive(pack, kernel->primitive);
    format_text(rule, sizeof(rule), "%s=%s/%s", kernel->primitive, pack->subject.entry->id,
                kernel->name);
    for (uint32_t i = 0; p && i < devices->count; i++) {
        struct trial t = {.kit = k,
                          .pack = pack,
                          .device = &devices->items[i],
                          .runtime = device_runtime_with(devices, i, rule, &why)};
        if (t.runtime)
            num_taken += run_kernel(&t, kernel, p);
        tn_runtime_close(t.runtime);
    }
    if (!p)
        check_skip(k, "no pack here has this primitive");
    else if (devices->count == 0)
        check_skip(k, "no device here computes");
    else if (k->cases == 0)
        tell_idle(k, kernel, num_taken);
    check_end(k);
}

void group_device(struct kit *k)
{
    struct pack pack;
    struct devices devices;
    if (!pack_open(&pack, k))
        return;
    if (pack.ops) {
        devices_find(&devices, k);
        for (uint32_t i = 0; i < devices.count; i++)
            check_device_primitives(k, &pack, &devices, i);
        for (uint32_t i = 0; i < pack.ops->num_kernels; i++)
            check_device_kernel(k, &pack, &devices, pack.ops->kernels[i]);
        devices_close(&devices);
    }
    pack_close(&pack);
}
