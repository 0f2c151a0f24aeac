// SPDX-License-Identifier: MIT
// Calls cpu.c/1 functions with the least convenient parallel_for that the ABI allows.
#include <pthread.h>
#include "apply.h"

enum { MAX_PIECES = 16, NUM_THREADS = 3 };

uint32_t cpu_features_here(void)
{
    uint32_t features = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        features |= TN_CPU_AVX2;
    if (features && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        features |= TN_CPU_AVX512;
    if (features & TN_CPU_AVX512 && __builtin_cpu_supports("avx512vnni"))
        features |= TN_CPU_VNNI;
#elif defined(__aarch64__)
    features = TN_CPU_NEON;
#endif
    return features;
}

// --- parallel_for ----------------------------------------------------------------------

// A range cut into pieces. Threads take the next piece from `next`; `order` is a random
// permutation.
struct work {
    void (*body)(void *context, int64_t begin, int64_t end, uint32_t worker);
    void *context;
    int64_t begin[MAX_PIECES], end[MAX_PIECES];
    int order[MAX_PIECES];
    int num_pieces;
    _Atomic int next;
    _Atomic uint32_t workers; // threads that have begun
};

// tn_cpu_call has no context pointer, so parallel_for finds the kit's random numbers here.
static __thread struct kit *kit_of_call;

static void work_cut(struct kit *k, struct work *work, int64_t n, int64_t grain)
{
    int64_t at = 0;
    grain = grain > 0 ? grain : 1;
    while (at < n) {
        int64_t left = n - at, size = left;
        if (work->num_pieces + 1 < MAX_PIECES && left > grain)
            size = grain + (int64_t)random_below(k, (uint64_t)(left - grain) + 1);
        work->begin[work->num_pieces] = at;
        work->end[work->num_pieces++] = at + size;
        at += size;
    }
    for (int i = 0; i < work->num_pieces; i++)
        work->order[i] = i;
    for (int i = work->num_pieces; i > 1; i--) {
        int j = (int)random_below(k, (uint64_t)i), kept = work->order[i - 1];
        work->order[i - 1] = work->order[j];
        work->order[j] = kept;
    }
}

static void *run_pieces(void *context)
{
    struct work *work = context;
    uint32_t worker = work->workers++;
    for (int i; (i = work->next++) < work->num_pieces;)
        work->body(work->context, work->begin[work->order[i]], work->end[work->order[i]],
                   worker);
    return NULL;
}

static void parallel_for(const tn_cpu_call *call, int64_t n, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end,
                                      uint32_t worker),
                         void *context)
{
    struct work work = {.body = body, .context = context};
    pthread_t threads[NUM_THREADS];
    int started = 0;
    work_cut(kit_of_call, &work, n, grain);
    while (call->num_threads > 1 && started + 1 < NUM_THREADS &&
           pthread_create(&threads[started], NULL, run_pieces, &work) == 0)
        started++;
    run_pieces(&work);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static tn_cpu_call table_of(const struct sample_maker *maker, const struct cpu_call *call,
                            tn_tensor in[MAX_IN], tn_tensor out[MAX_OUT])
{
    const struct sample *s = call->sample;
    for (uint32_t i = 0; i < sample_operands(s); i++)
        in[i] = i < s->num_inputs ? call->in[i].tensor : s->in[i].tensor;
    for (uint32_t i = 0; i < s->num_outputs; i++)
        out[i] = call->out[i].tensor;
    return (tn_cpu_call){.struct_size = sizeof(tn_cpu_call),
                         .host = maker->host->table,
                         .inputs = in,
                         .outputs = out,
                         .attrs = s->attrs,
                         .scratch = call->scratch,
                         .scratch_size = call->scratch_size,
                         .num_inputs = sample_operands(s),
                         .num_outputs = s->num_outputs,
                         .cpu_features = call->cpu_features,
                         .num_threads = call->num_threads ? call->num_threads : 1,
                         .parallel_for = parallel_for,
                         .state = call->state};
}

tn_status apply_cpu(struct sample_maker *maker, const struct cpu_call *call)
{
    tn_tensor in[MAX_IN], out[MAX_OUT];
    const tn_cpu_call table = table_of(maker, call, in, out);
    kit_of_call = maker->kit;
    return call->launch(&table);
}

static void apply_cpu_here(const tn_cpu_call *call, int64_t n, int64_t grain,
                           void (*body)(void *context, int64_t begin, int64_t end,
                                        uint32_t worker),
                           void *context)
{
    (void)call, (void)grain;
    if (n > 0)
        body(context, 0, n, 0);
}

tn_status apply_prepare(struct sample_maker *maker, const tn_cpu_kernel *kernel,
                        const struct cpu_call *call, void **out_state)
{
    tn_tensor in[MAX_IN], out[MAX_OUT];
    tn_cpu_call table = table_of(maker, call, in, out);
    for (uint32_t i = 0; i < table.num_inputs; i++)
        in[i].data = NULL;
    for (uint32_t i = 0; i < table.num_outputs; i++)
        out[i].data = NULL;
    table.scratch = table.state = NULL;
    table.scratch_size = 0;
    table.parallel_for = apply_cpu_here;
    return kernel->prepare(&table, out_state);
}

// --- definitions -----------------------------------------------------------------------

typedef tn_status (*graph_builder)(tn_scope *scope, const struct sample *s,
                                   tn_array *const *in, tn_array *out[MAX_OUT]);

static const char *define_by_graph(struct sample_maker *maker, const struct sample *s,
                                   graph_builder build, struct array out[MAX_OUT])
{
    static char text[300];
    tn_array *in[MAX_IN] = {NULL}, *results[MAX_OUT] = {NULL};
    if (!maker->runtime)
        return "no backend here computes";
    tn_scope *scope = tn_scope_open(maker->runtime);
    graph_inputs(scope, s, in);
    build(scope, s, in, results);
    tn_status status = graph_read_all(scope, s, results, out);
    if (status != TN_OK)
        format_text(text, sizeof(text), "%s", tn_scope_error(scope));
    tn_scope_close(scope);
    return status == TN_OK ? NULL : text;
}

// The scratch memory of the reference, rounded up to a multiple of 64.
static uint64_t reference_scratch(const struct cpu_call *call)
{
    const struct sample *s = call->sample;
    tn_layout in[MAX_IN], out[MAX_OUT];
    if (!s->primitive->reference_scratch)
        return 0;
    for (uint32_t i = 0; i < sample_operands(s); i++)
        in[i] = (i < s->num_inputs ? call->in[i] : s->in[i]).tensor.layout;
    for (uint32_t i = 0; i < s->num_outputs; i++)
        out[i] = call->out[i].tensor.layout;
    const tn_kernel_query query = {.struct_size = sizeof(query),
                                   .inputs = in,
                                   .outputs = out,
                                   .attrs = s->attrs,
                                   .num_inputs = sample_operands(s),
                                   .num_outputs = s->num_outputs,
                                   .num_workers = 1};
    return (s->primitive->reference_scratch(&query) + 63) / 64 * 64;
}

tn_status apply_reference(struct sample_maker *maker, const struct sample *s,
                          const struct array *in, const struct array *out)
{
    struct cpu_call call = {
        .launch = s->primitive->reference, .sample = s, .in = in, .out = out};
    call.scratch_size = reference_scratch(&call);
    if (call.scratch_size && !(call.scratch = aligned_alloc(64, call.scratch_size)))
        abort();
    tn_status status = apply_cpu(maker, &call);
    free(call.scratch);
    return status;
}

static const char *define_by_reference(struct sample_maker *maker, const struct sample *s,
                                       struct array out[MAX_OUT])
{
    outputs_new(s, PLAIN, 0, out);
    if (apply_reference(maker, s, s->in, out) == TN_OK)
        return NULL;
    outputs_free(out);
    return maker->host->text[0] ? maker->host->text : "its reference fails";
}

const char *apply_meaning(struct sample_maker *maker, const struct sample *s,
                          enum meaning meaning, struct array out[MAX_OUT])
{
    switch (meaning) {
    case BY_REFERENCE:
        return define_by_reference(maker, s, out);
    case BY_EXPR:
        return define_by_graph(maker, s, graph_expr, out);
    case BY_DECOMPOSE:
        return define_by_graph(maker, s, graph_decompose, out);
    default:
        return define_by_graph(maker, s, graph_op, out);
    }
}

bool has_meaning(const tn_primitive *p, enum meaning meaning)
{
    switch (meaning) {
    case BY_REFERENCE:
        return p->reference != NULL;
    // an expression yields one output, so it cannot stand for a primitive with several
    case BY_EXPR:
        return p->expr && p->num_outputs <= 1 && !(p->flags & TN_PRIM_OWN_TYPE);
    case BY_DECOMPOSE:
        return p->decompose != NULL;
    default:
        return true;
    }
}

const char *apply_definition(struct sample_maker *maker, const struct sample *s,
                             struct array out[MAX_OUT])
{
    enum meaning meaning = BY_REFERENCE;
    while (!has_meaning(s->primitive, meaning))
        meaning++;
    return apply_meaning(maker, s, meaning, out);
}

bool apply_repeats(struct sample_maker *maker, const struct sample *s)
{
    struct array first[MAX_OUT], second[MAX_OUT];
    if (!(s->primitive->flags & TN_PRIM_EFFECT))
        return true;
    if (apply_definition(maker, s, first))
        return true; // the check of the definition reports this failure
    bool repeats = !apply_definition(maker, s, second);
    if (repeats) {
        repeats = !outputs_compare(s, second, first, 0);
        outputs_free(second);
    }
    outputs_free(first);
    return repeats;
}

bool apply_is_sound(struct sample_maker *maker, const struct sample *s,
                    const struct array want[MAX_OUT], double tolerance)
{
    struct array other[MAX_OUT];
    if (!apply_repeats(maker, s))
        return false;
    if (!s->primitive->reference || !s->primitive->decompose)
        return true; // only one definition exists
    if (apply_meaning(maker, s, BY_DECOMPOSE, other))
        return true; // the decomposition cannot be built here
    bool agrees = true;
    for (uint32_t i = 0; i < s->num_outputs; i++)
        agrees = agrees && !array_compare(&other[i], &want[i], tolerance,
                                          sample_magnitude(s, &want[i]), NULL);
    outputs_free(other);
    return agrees;
}
