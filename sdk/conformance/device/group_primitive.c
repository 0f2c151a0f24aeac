// SPDX-License-Identifier: MIT
// A backend under a runtime: every primitive of every installed pack on each device of the
// backend, compared with the primitive's definition.
#include "../kit/fixture.h"
#include "groups.h"
#include "../pack/pack.h"

// Part of MAX_SAMPLES to try: one in SHARE, or one in SMALL_SHARE on software drivers,
// which are slow to compile shaders.
enum { SHARE = 4, SMALL_SHARE = 12 };

struct primitive_trial {
    struct fixture *fixture;
    struct sample_maker maker; // computes the expected outputs
    tn_runtime *runtime;       // computes on the device
    bool is_exact;             // math functions give the C library's results
    uint32_t num_samples;      // for each primitive
};

// Evaluates a sample on the device. TN_OK: gives `out`; else *out_why is the reason.
static tn_status primitive_group_evaluate(struct primitive_trial *t, const struct sample *s,
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

// False when the device does not support the sample, which is no failure.
static bool primitive_group_try_sample(struct primitive_trial *t, const struct sample *s,
                                       const char **out_why)
{
    struct kit *k = t->maker.kit;
    struct array want[MAX_OUT], got[MAX_OUT];
    const char *why = apply_definition(&t->maker, s, want);
    if (why)
        return true; // the checks of the primitive's own pack report this
    tn_status status = primitive_group_evaluate(t, s, got, out_why);
    if (status == TN_OK) {
        check_case(k);
        double tolerance = sample_tolerance(s, t->is_exact);
        const char *failure = apply_compare(&t->maker, s, got, want, tolerance);
        if (failure && apply_is_sound(&t->maker, s, want, tolerance))
            check_fail(k, "%s: %s", sample_text(s), failure);
        outputs_free(got);
    } else if (status != TN_ERR_UNSUPPORTED) {
        check_fail(k, "%s: it fails with status %d: %s", sample_text(s), status, *out_why);
    }
    outputs_free(want);
    return status != TN_ERR_UNSUPPORTED;
}

static void group_check_primitive(struct primitive_trial *t, const tn_primitive *primitive)
{
    static struct sample samples[MAX_SAMPLES];
    struct kit *k = t->maker.kit;
    const char *why = "";
    uint32_t count = samples_make(&t->maker, primitive, samples, t->num_samples),
             refused = 0;
    for (uint32_t i = 0; i < count; i++) {
        sample_fill(k, &samples[i]);
        refused += !primitive_group_try_sample(t, &samples[i], &why);
        sample_free(&samples[i]);
    }
    if (count == 0)
        check_skip(k, "no application of it was found: give examples (--examples)");
    else if (refused == count)
        check_skip(k, "not on this backend: %s", why);
}

// Checks all installed primitives whose system libraries are present.
static void check_primitive_all(struct primitive_trial *t)
{
    const char *const *names = tn_primitive_names(t->maker.runtime);
    for (uint32_t i = 0; names && names[i]; i++) {
        if (!check_begin(t->maker.kit, "primitive.values", "%.40s:%u %.90s",
                         t->fixture->backend->name, t->fixture->index, names[i]))
            continue;
        const tn_primitive *primitive = tn_primitive_find(t->maker.runtime, names[i]);
        if (!primitive || tn_primitive_check(t->maker.runtime, names[i]) != TN_OK)
            check_skip(t->maker.kit, "%s", tn_last_error());
        else
            group_check_primitive(t, primitive);
        check_end(t->maker.kit);
    }
}

static void check_primitive_device(struct fixture *f)
{
    char device[80];
    const char *why = "";
    struct primitive_trial t = {.fixture = f, .maker = {.kit = f->kit, .host = &f->host}};
    tn_device_info info = {.struct_size = sizeof(info)};
    if (f->backend->device_info(f->host.table, f->index, &info) != TN_OK)
        return; // the group `backend` reports this
    if (info.flags & TN_DEVICE_COMPUTES_NOTHING) {
        skip(f->kit, "primitive.values", "it computes nothing");
        return;
    }
    bool is_slow = info.flags & TN_DEVICE_SOFTWARE;
    t.num_samples = MAX_SAMPLES / (is_slow ? SMALL_SHARE : SHARE);
    t.is_exact = info.flags & TN_DEVICE_HOST_MEMORY && !is_slow;
    format_text(device, sizeof(device), "%.40s:%u", f->backend->name, f->index);
    t.runtime = subject_runtime_on(f->kit, device, NULL, &why);
    t.maker.runtime = subject_runtime(f->kit, "TENON_BACKEND=cpu-blas", &why);
    if (!t.runtime)
        skip(f->kit, "primitive.values", why);
    else
        check_primitive_all(&t);
    tn_runtime_close(t.runtime);
    tn_runtime_close(t.maker.runtime);
}

void group_primitive(struct kit *k)
{
    static struct fixture f;
    const char *why;
    if (!fixture_start(&f, k))
        return;
    uint32_t count = fixture_count(&f, &why);
    if (count == 0)
        skip(k, "primitive.values", why);
    for (f.index = 0; f.index < count; f.index++)
        if (fixture_is_wanted(&f))
            check_primitive_device(&f);
    fixture_finish(&f);
}
