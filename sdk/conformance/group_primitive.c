// SPDX-License-Identifier: MIT
// A backend under a runtime: every primitive of every installed pack on each of its
// devices, against the primitive's definition.
#include "bench.h"
#include "checks.h"
#include "pack.h"

enum { SHARE = 4, SMALL_SHARE = 12 }; // of the samples that checks of packs take

struct trial {
    struct bench *bench;
    struct sample_maker maker; // its runtime gives definitions
    tn_runtime *runtime;       // that computes on the device
    bool is_exact;             // as the C library is
    uint32_t num_samples;      // of each; software drivers take long to compile shaders
};

// What the device makes of a sample. TN_OK: gives `out`; else *out_why.
static tn_status evaluate(struct trial *t, const struct sample *s,
                          struct array out[MAX_OUT], const char **out_why)
{
    static char why[DETAIL_SIZE];
    tn_array *in[MAX_IN] = {NULL}, *results[MAX_OUT] = {NULL};
    tn_scope *scope = tn_scope_open(t->runtime);
    graph_inputs(scope, s, in);
    graph_op(scope, s, in, results);
    tn_status status = graph_read_all(scope, s, results, out);
    *out_why = format_text(why, sizeof(why), "%s", tn_scope_error(scope));
    tn_scope_close(scope);
    return status;
}

// False: the device cannot do this one, which is nothing wrong.
static bool try_sample(struct trial *t, const struct sample *s, const char **out_why)
{
    struct kit *k = t->maker.kit;
    struct array want[MAX_OUT], got[MAX_OUT];
    const char *why = apply_definition(&t->maker, s, want);
    if (why)
        return true; // its pack's own check says so
    tn_status status = evaluate(t, s, got, out_why);
    if (status == TN_OK) {
        check_case(k);
        double tolerance = sample_tolerance(s, t->is_exact);
        const char *failure = outputs_compare(s, got, want, tolerance);
        if (failure && apply_is_sound(&t->maker, s, want, tolerance))
            check_fail(k, "%s: %s", sample_text(s), failure);
        outputs_free(got);
    } else if (status != TN_ERR_UNSUPPORTED) {
        check_fail(k, "%s: it fails with status %d: %s", sample_text(s), status, *out_why);
    }
    outputs_free(want);
    return status != TN_ERR_UNSUPPORTED;
}

static void check_primitive(struct trial *t, const tn_primitive *primitive)
{
    static struct sample samples[MAX_SAMPLES];
    struct kit *k = t->maker.kit;
    const char *why = "";
    uint32_t count = samples_make(&t->maker, primitive, samples, t->num_samples),
             refused = 0;
    for (uint32_t i = 0; i < count; i++) {
        sample_fill(k, &samples[i]);
        refused += !try_sample(t, &samples[i], &why);
        sample_free(&samples[i]);
    }
    if (count == 0)
        check_skip(k, "no application of it was found: give examples (--examples)");
    else if (refused == count)
        check_skip(k, "not on this backend: %s", why);
}

// All of them, and of those whose system libraries are there.
static void check_all(struct trial *t)
{
    const char *const *names = tn_primitive_names(t->maker.runtime);
    for (uint32_t i = 0; names && names[i]; i++) {
        if (!check_begin(t->maker.kit, "primitive.values", "%.40s:%u %.90s",
                         t->bench->backend->name, t->bench->index, names[i]))
            continue;
        const tn_primitive *primitive = tn_primitive_find(t->maker.runtime, names[i]);
        if (!primitive || tn_primitive_check(t->maker.runtime, names[i]) != TN_OK)
            check_skip(t->maker.kit, "%s", tn_last_error());
        else
            check_primitive(t, primitive);
        check_end(t->maker.kit);
    }
}

static void check_device(struct bench *b)
{
    char variable[80];
    const char *why = "";
    struct trial t = {.bench = b, .maker = {.kit = b->kit, .host = &b->host}};
    tn_device_info info = {.struct_size = sizeof(info)};
    if (b->backend->device_info(b->host.table, b->index, &info) != TN_OK)
        return; // which the group `backend` says
    if (info.flags & TN_DEVICE_COMPUTES_NOTHING) {
        skip(b->kit, "primitive.values", "it computes nothing");
        return;
    }
    bool is_slow = info.flags & TN_DEVICE_SOFTWARE;
    t.num_samples = MAX_SAMPLES / (is_slow ? SMALL_SHARE : SHARE);
    t.is_exact = info.flags & TN_DEVICE_HOST_MEMORY && !is_slow;
    format_text(variable, sizeof(variable), "TENON_BACKEND=%.40s:%u", b->backend->name,
                b->index);
    t.runtime = subject_runtime(b->kit, variable, &why);
    t.maker.runtime = subject_runtime(b->kit, "TENON_BACKEND=cpu-blas", &why);
    if (!t.runtime)
        skip(b->kit, "primitive.values", why);
    else
        check_all(&t);
    tn_runtime_close(t.runtime);
    tn_runtime_close(t.maker.runtime);
}

void group_primitive(struct kit *k)
{
    static struct bench b;
    const char *why;
    if (!bench_start(&b, k))
        return;
    uint32_t count = bench_count(&b, &why);
    if (count == 0)
        skip(k, "primitive.values", why);
    for (b.index = 0; b.index < count; b.index++)
        if (bench_is_wanted(&b))
            check_device(&b);
    bench_finish(&b);
}
