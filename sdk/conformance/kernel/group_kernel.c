// SPDX-License-Identifier: MIT
// Kernels of the family cpu.c/1, called directly and compared with the definition of their
// primitive, whichever pack has it. Kernels for Vulkan have their plans checked here; the
// group `device` checks their results.
#include "groups.h"
#include "query.h"

enum { POISON = 0xa5, SCRATCH_GUARD = 256 };

// A kernel, one application of its primitive, and the expected outputs.
struct cpu_launch {
    struct pack *pack;
    const tn_kernel *kernel;
    struct sample *s;
    const struct array *want;
};

typedef void (*launch_check)(struct kit *k, struct cpu_launch *l);

// --- launching -------------------------------------------------------------------------

// False when the kernel wrote behind the scratch memory that it asked for.
static bool scratch_holds(const unsigned char *scratch, uint64_t size)
{
    for (uint64_t i = 0; i < SCRATCH_GUARD; i++)
        if (scratch[size + i] != POISON)
            return false;
    return true;
}

// Launches the kernel, between prepare and finish where it has them.
static tn_status kernel_group_run_stages(struct kit *k, const struct cpu_launch *l,
                                         struct cpu_call *call)
{
    const tn_cpu_kernel *payload = l->kernel->payload;
    struct fake_host *host = &l->pack->host;
    tn_status status = TN_OK;
    fake_host_reset(host);
    if (TN_HAS(payload, prepare))
        status = apply_prepare(&l->pack->maker, payload, call, &call->state);
    if (status == TN_OK) {
        uint64_t allocations = host->allocations;
        status = apply_cpu(&l->pack->maker, call);
        if (host->allocations != allocations)
            check_fail(k,
                       "%s: it allocates through the host, instead of asking for scratch",
                       sample_text(l->s));
        if (TN_HAS(payload, prepare) && TN_HAS(payload, finish))
            payload->finish(host->table, call->state);
    }
    if (host->live)
        check_fail(k, "%s: prepare and finish leave %llu blocks", sample_text(l->s),
                   (unsigned long long)host->live);
    return status;
}

static tn_status kernel_launch_once(struct kit *k, const struct cpu_launch *l,
                                    const struct array *in, const struct array *out,
                                    uint32_t features, uint32_t num_threads)
{
    const tn_cpu_kernel *payload = l->kernel->payload;
    uint64_t size = kernel_scratch(l->kernel, l->s, in),
             whole = (size + SCRATCH_GUARD + 63) / 64 * 64;
    unsigned char *scratch = aligned_alloc(64, whole);
    if (!scratch)
        abort();
    memset(scratch, POISON, whole);
    tn_status status = kernel_group_run_stages(k, l,
                                               &(struct cpu_call){
                                                   .launch = payload->launch,
                                                   .sample = l->s,
                                                   .in = in,
                                                   .out = out,
                                                   .scratch = scratch,
                                                   .scratch_size = size,
                                                   .cpu_features = features,
                                                   .num_threads = num_threads,
                                               });
    if (!scratch_holds(scratch, size))
        check_fail(k, "%s: it writes behind the %llu bytes of scratch that it asked for",
                   sample_text(l->s), (unsigned long long)size);
    free(scratch);
    return status;
}

static void kernel_compare(struct kit *k, const struct cpu_launch *l,
                           const struct array *in, uint32_t features, uint32_t threads,
                           const char *how)
{
    struct array out[MAX_OUT];
    outputs_new(l->s, PLAIN, POISON, out);
    tn_status status = kernel_launch_once(k, l, in, out, features, threads);
    if (status != TN_OK) {
        check_fail(k, "%s (%s): it fails: %s", sample_text(l->s), how,
                   l->pack->host.failures ? l->pack->host.text : "without a message");
    } else {
        double tolerance = sample_tolerance(l->s, true);
        const char *failure = apply_compare(&l->pack->maker, l->s, out, l->want, tolerance);
        if (failure && apply_is_sound(&l->pack->maker, l->s, l->want, tolerance))
            check_fail(k, "%s (%s): %s", sample_text(l->s), how, failure);
    }
    outputs_free(out);
}

// --- checks ----------------------------------------------------------------------------

static void check_kernel_values(struct kit *k, struct cpu_launch *l)
{
    kernel_compare(k, l, l->s->in, cpu_features_here(), 1, "one thread");
    kernel_compare(k, l, l->s->in, 0, 1, "no vector instructions");
}

static void check_kernel_threads(struct kit *k, struct cpu_launch *l)
{
    for (int i = 0; i < 3; i++)
        kernel_compare(k, l, l->s->in, cpu_features_here(), 3,
                       "work cut for three threads");
}

static void check_kernel_guards(struct kit *k, struct cpu_launch *l)
{
    struct array out[MAX_OUT];
    outputs_new(l->s, SHIFTED, POISON, out);
    kernel_launch_once(k, l, l->s->in, out, cpu_features_here(), 1);
    for (uint32_t i = 0; i < l->s->num_outputs; i++)
        if (!array_guards_hold(&out[i], POISON))
            check_fail(k, "%s: it writes outside of output %u", sample_text(l->s), i);
    outputs_free(out);
}

static void check_kernel_inputs(struct kit *k, struct cpu_launch *l)
{
    struct array kept[MAX_IN] = {0}, out[MAX_OUT];
    for (uint32_t i = 0; i < l->s->num_inputs; i++)
        kept[i] = array_laid_out(&l->s->in[i], PLAIN);
    outputs_new(l->s, PLAIN, POISON, out);
    kernel_launch_once(k, l, l->s->in, out, cpu_features_here(), 3);
    for (uint32_t i = 0; i < l->s->num_inputs; i++)
        if (kept[i].size && memcmp(kept[i].memory, l->s->in[i].memory, kept[i].size) != 0)
            check_fail(k, "%s: it writes to input %u", sample_text(l->s), i);
    outputs_free(out);
    for (uint32_t i = 0; i < l->s->num_inputs; i++)
        array_free(&kept[i]);
}

static void check_kernel_layouts(struct kit *k, struct cpu_launch *l)
{
    for (int kind = SHIFTED; kind < REPEATED; kind++) {
        struct array in[MAX_IN] = {0};
        for (uint32_t i = 0; i < l->s->num_inputs; i++)
            in[i] = array_laid_out(&l->s->in[i], (enum layout_kind)kind);
        if (kernel_layouts_fit(l->kernel, l->s, in) && kernel_accepts(l->kernel, l->s, in))
            kernel_compare(k, l, in, cpu_features_here(), 1, layout_names[kind]);
        for (uint32_t i = 0; i < l->s->num_inputs; i++)
            array_free(&in[i]);
    }
}

// Runs each in-place pair of the primitive with the output in the memory of the input.
static void check_kernel_in_place(struct kit *k, struct cpu_launch *l)
{
    const tn_primitive *p = l->s->primitive;
    for (uint32_t i = 0; i < p->num_in_place; i++) {
        tn_in_place pair = p->in_place[i];
        tn_type in = l->s->types[pair.input], want = l->s->outputs[pair.output];
        if (memcmp(&in, &want, sizeof(in)) != 0)
            continue;
        struct array out[MAX_OUT], inputs[MAX_IN];
        memcpy(inputs, l->s->in, sizeof(inputs));
        outputs_new(l->s, PLAIN, POISON, out);
        array_copy(&out[pair.output], &l->s->in[pair.input]);
        inputs[pair.input] = out[pair.output]; // shared
        if (kernel_launch_once(k, l, inputs, out, cpu_features_here(), 3) == TN_OK) {
            const char *failure = apply_compare(&l->pack->maker, l->s, out, l->want,
                                                sample_tolerance(l->s, true));
            if (failure)
                check_fail(k, "%s: with output %d in the memory of input %d: %s",
                           sample_text(l->s), pair.output, pair.input, failure);
        }
        outputs_free(out);
    }
}

// --- all -------------------------------------------------------------------------------

// Returns NULL, or why the expected outputs are unknown.
static const char *check_kernel_sample(struct kit *k, struct pack *pack,
                                       const tn_kernel *kernel, struct sample *s,
                                       launch_check check)
{
    struct array want[MAX_OUT];
    const char *why = NULL;
    sample_fill(k, s);
    if (kernel_accepts(kernel, s, s->in) &&
        !(why = apply_definition(&pack->maker, s, want))) {
        check_case(k);
        check(k, &(struct cpu_launch){pack, kernel, s, want});
        outputs_free(want);
    }
    sample_free(s);
    return why;
}

static void check_kernel_each(struct kit *k, struct pack *pack, const tn_kernel *kernel,
                              const char *name, launch_check check)
{
    static struct sample samples[2 * MAX_SAMPLES];
    const char *why = NULL;
    if (!check_begin(k, name, "%s %s", kernel->primitive, kernel->name))
        return;
    const tn_primitive *p = pack_primitive(pack, kernel->primitive);
    uint32_t count =
        p ? kernel_samples(&pack->maker, kernel, p, samples, COUNT(samples)) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *unknown = check_kernel_sample(k, pack, kernel, &samples[i], check);
        why = unknown ? unknown : why;
    }
    if (!p)
        check_skip(k, "no pack here has this primitive");
    else if (k->cases == 0 && why)
        check_skip(k, "what it must give is not known: %s", why);
    else if (k->cases == 0)
        check_warn(k, "it never ran: none of the applications drawn is one that it takes: "
                      "give examples (--examples)");
    check_end(k);
}

void group_kernel(struct kit *k)
{
    static const struct {
        const char *name;
        launch_check check;
    } checks[] = {
        {"kernel.values", check_kernel_values},
        {"kernel.threads", check_kernel_threads},
        {"kernel.guards", check_kernel_guards},
        {"kernel.inputs", check_kernel_inputs},
        {"kernel.layouts", check_kernel_layouts},
        {"kernel.in-place", check_kernel_in_place},
    };
    struct pack pack;
    if (!pack_open(&pack, k))
        return;
    for (uint32_t i = 0; pack.ops && i < pack.ops->num_kernels; i++) {
        const tn_kernel *kernel = pack.ops->kernels[i];
        const tn_primitive *p = pack_primitive(&pack, kernel->primitive);
        check_shaders(k, &pack.host, pack.ops, i);
        check_plans(k, &pack, kernel);
        if (strcmp(kernel->family, TN_FAMILY_CPU) != 0)
            continue;
        for (size_t c = 0; c < COUNT(checks); c++)
            if (checks[c].check != check_kernel_in_place || (p && p->num_in_place))
                check_kernel_each(k, &pack, kernel, checks[c].name, checks[c].check);
    }
    pack_close(&pack);
}
