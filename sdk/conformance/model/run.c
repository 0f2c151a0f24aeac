// SPDX-License-Identifier: MIT
// Opens a model of the plugin under test in a runtime, and runs its steps.
#include "run.h"

#include <math.h>

// --- weights ---------------------------------------------------------------------------

int64_t model_list(struct kit *k, const tn_model *ops, const tn_host *host,
                   const tn_model_self *self, int64_t part, tn_model_weight *out)
{
    uint64_t count = DRAFT_WEIGHTS;
    memset(out, 0, DRAFT_WEIGHTS * sizeof(*out));
    tn_status status = ops->weights(host, self, part, out, &count);
    if (status == TN_OK && count <= DRAFT_WEIGHTS)
        return (int64_t)count;
    check_fail(
        k, "weights of part %lld: returns %d, and %llu of them, expected 0 and at most %d",
        (long long)part, status, (unsigned long long)count, DRAFT_WEIGHTS);
    return -1;
}

static bool list_all(struct model_run *run)
{
    tn_model_weight *part = calloc(DRAFT_WEIGHTS, sizeof(*part));
    struct draft_weight *all = calloc(DRAFT_WEIGHTS, sizeof(*all));
    bool good = part && all;
    free(run->weights);
    run->weights = all;
    run->num_weights = 0;
    for (int64_t i = TN_MODEL_OUTPUT; good && i < run->facts->layers; i++) {
        int64_t count = model_list(run->kit, run->ops, run->host, run->self, i, part);
        good = count >= 0 && run->num_weights + (uint64_t)count <= DRAFT_WEIGHTS;
        for (int64_t w = 0; good && w < count; w++)
            all[run->num_weights++] = (struct draft_weight){part[w], i};
    }
    free(part);
    return good;
}

// Whether a part of the step lists the weight.
static bool is_of_step(const struct model_run *run, const struct draft_weight *w,
                       const tn_model_step *step)
{
    if (w->part == TN_MODEL_EMBEDDING)
        return step->first == 0;
    if (w->part == TN_MODEL_OUTPUT)
        return step->end == run->facts->layers;
    return w->part >= step->first && w->part < step->end;
}

// --- the step, as the plugin sees it ---------------------------------------------------

struct running_step {
    tn_model_step base; // first: slots get its address
    struct model_run *run;
    struct model_step *asked;
    tn_scope *scope;
};

// Counts a call of a slot. False: this call has to fail, or the scope has failed.
static bool count_call(struct running_step *step)
{
    if (++step->asked->calls != step->asked->fails_at)
        return tn_scope_status(step->scope) == TN_OK;
    tn_scope_fail(step->scope, TN_ERR_MEMORY, "a slot of the step that the kit lets fail");
    return false;
}

static struct running_step *model_run_step_of(const tn_model_step *base)
{
    return (struct running_step *)(void *)(uintptr_t)base;
}

// Finds a weight that a part of the step lists with `flag`; 0: to be read whole.
static const tn_model_weight *model_run_weight_of(struct running_step *step,
                                                  const char *name, uint32_t flag)
{
    static const char *const ways[] = {"to be read whole", "", "for products", "",
                                       "for rows"};
    const struct model_run *run = step->run;
    const tn_model_weight *found = NULL;
    bool is_listed = false;
    if (!count_call(step))
        return NULL;
    for (uint64_t i = 0; i < run->num_weights; i++) {
        const tn_model_weight *w = &run->weights[i].weight;
        uint32_t read = w->flags & (TN_MODEL_PRODUCT | TN_MODEL_ROWS);
        if (!is_of_step(run, &run->weights[i], &step->base) || strcmp(w->name, name) != 0)
            continue;
        is_listed = true;
        if (flag ? read & flag : !read)
            found = w;
    }
    if (!found)
        check_fail(run->kit,
                   "build of layers %lld to %lld uses the weight %.95s, which %s%s",
                   (long long)step->base.first, (long long)step->base.end - 1, name,
                   is_listed ? "is not listed " : "none of their parts lists",
                   is_listed ? ways[flag] : "");
    if (!found)
        tn_scope_fail(step->scope, TN_ERR_INTERNAL, "a weight that is not listed");
    return found;
}

// Elements of a weight, the same in each step: matrices whose products keep the magnitude
// of x, and vectors near 1.
static tn_array *weight_array(struct running_step *step, const tn_model_weight *w)
{
    tn_type type = {.dtype = TN_F32, .rank = w->rank};
    memcpy(type.extent, w->extent, sizeof(w->extent));
    uint64_t count = 1, state = numbers_named(step->run->kit->seed, w->name);
    const tn_shape shape = {
        .rank = w->rank,
        .extent = {w->extent[0], w->extent[1], w->extent[2], w->extent[3]}};
    for (int32_t i = 0; i < w->rank; i++)
        count *= (uint64_t)w->extent[i];
    float *data = calloc(count, sizeof(*data));
    double bound = sqrt(3 / (double)w->extent[w->rank - 1]);
    for (uint64_t i = 0; data && i < count; i++)
        data[i] = (float)(w->rank > 1 ? numbers_between(&state, -bound, bound)
                                      : numbers_between(&state, 0.5, 1.5));
    tn_array *array = data ? tn_from_data(step->scope, TN_F32, &shape, data) : NULL;
    free(data);
    return array;
}

static tn_array *step_weight(const tn_model_step *base, const char *name)
{
    struct running_step *step = model_run_step_of(base);
    const tn_model_weight *w = model_run_weight_of(step, name, 0);
    bool is_absent =
        w && w->flags & TN_MODEL_OPTIONAL && step->run->draft.kind != DRAFT_FULL;
    return w && !is_absent ? weight_array(step, w) : NULL;
}

static tn_array *step_product(const tn_model_step *base, tn_array *x, const char *name)
{
    struct running_step *step = model_run_step_of(base);
    const tn_model_weight *w = model_run_weight_of(step, name, TN_MODEL_PRODUCT);
    tn_array *turned = w ? tn_op(step->scope, "base.transpose/1",
                                 TN_IN(weight_array(step, w)), TN_NO_ATTRS)
                         : NULL;
    return tn_op(step->scope, "base.matmul/1", TN_IN(x, turned), TN_NO_ATTRS);
}

static tn_array *step_rows(const tn_model_step *base, tn_array *ids, const char *name)
{
    struct running_step *step = model_run_step_of(base);
    const tn_model_weight *w = model_run_weight_of(step, name, TN_MODEL_ROWS);
    return tn_op(step->scope, "base.take/1", TN_IN(w ? weight_array(step, w) : NULL, ids),
                 TN_NO_ATTRS);
}

static tn_array *step_constant(const tn_model_step *base, tn_dtype dtype,
                               const tn_shape *shape, const void *data)
{
    struct running_step *step = model_run_step_of(base);
    return count_call(step) ? tn_from_data(step->scope, dtype, shape, data) : NULL;
}

static tn_array *step_experts(const tn_model_step *base, tn_array *x, tn_array *ids,
                              const char *name)
{
    struct running_step *step = model_run_step_of(base);
    const tn_model_weight *w = model_run_weight_of(step, name, TN_MODEL_PRODUCT);
    return tn_op(step->scope, "quant.experts_matmul/1",
                 TN_IN(x, w ? weight_array(step, w) : NULL, ids), tn_attrs("format", ""));
}

// --- running ---------------------------------------------------------------------------

static tn_array *model_run_integers(tn_scope *scope, const int32_t *values, int64_t count)
{
    return tn_from_data(scope, TN_I32, TN_SHAPE(count), values);
}

// Makes arrays of a step's inputs.
static void fill_inputs(struct running_step *step, tn_array **caches)
{
    const struct model_run *run = step->run;
    const struct model_step *asked = step->asked;
    tn_model_step *base = &step->base;
    tn_scope *scope = step->scope;
    int64_t sequences = base->sequences, rows = sequences * asked->count;
    int32_t *lengths = calloc((uint64_t)sequences, sizeof(*lengths));
    for (int64_t i = 0; lengths && i < sequences; i++)
        lengths[i] = asked->positions[i] + (int32_t)asked->count;
    const int32_t start[] = {0, 0, asked->positions[0], 0};
    base->input =
        asked->first > 0
            ? tn_from_data(scope, TN_F32, TN_SHAPE(rows, run->facts->width), asked->hidden)
            : model_run_integers(scope, asked->ids, rows);
    base->position = model_run_integers(scope, asked->positions, sequences);
    base->length = lengths ? model_run_integers(scope, lengths, sequences) : NULL;
    base->start = model_run_integers(scope, start, 4);
    base->last = asked->last ? model_run_integers(scope, asked->last, sequences) : NULL;
    base->slots = asked->slots ? model_run_integers(scope, asked->slots, sequences) : NULL;
    free(lengths);
    uint64_t first = (uint64_t)asked->first * run->facts->num_caches;
    uint64_t end = (uint64_t)base->end * run->facts->num_caches;
    for (uint64_t i = first; i < end; i++) {
        tn_shape shape = {.rank = run->types[i].rank};
        memcpy(shape.extent, run->types[i].extent, sizeof(shape.extent));
        if (asked->num_slots)
            shape.extent[0] = asked->num_slots;
        caches[i] = tn_from_data(scope, run->types[i].dtype, &shape, asked->caches[i]);
    }
    base->caches = caches + first;
}

static bool model_run_has_type(const tn_array *array, tn_dtype dtype, int32_t rank,
                               const int64_t *extent)
{
    const tn_type *type = array ? tn_array_type(array) : NULL;
    return type && type->dtype == dtype && type->rank == rank &&
           memcmp(type->extent, extent, (uint64_t)rank * sizeof(*extent)) == 0;
}

// Checks that build has set the outputs that tn_model_step describes, with their types.
static bool expect_outputs(const struct running_step *step, tn_array *const *before)
{
    const tn_model_step *base = &step->base;
    const struct model_run *run = step->run;
    const tn_model_facts *f = run->facts;
    bool is_whole = base->end == f->layers;
    int64_t rows = base->last && is_whole ? base->sequences : base->sequences * base->count;
    const int64_t extent[] = {rows, is_whole ? f->vocabulary : f->width};
    const int64_t hidden[] = {rows, f->width};
    bool good = model_run_has_type(base->output, TN_F32, 2, extent);
    if (!good)
        check_fail(run->kit, "the output of layers %lld to %lld is not f32 [%lld, %lld]",
                   (long long)base->first, (long long)base->end - 1, (long long)extent[0],
                   (long long)extent[1]);
    if (base->hidden && !model_run_has_type(base->hidden, TN_F32, 2, hidden)) {
        check_fail(run->kit, "the hidden state is not f32 [%lld, %lld]", (long long)rows,
                   (long long)f->width);
        good = false;
    }
    uint64_t count = (uint64_t)(base->end - base->first) * f->num_caches;
    for (uint64_t i = 0; i < count; i++) {
        const tn_type *type = tn_array_type(before[i]);
        if (type &&
            !model_run_has_type(base->caches[i], type->dtype, type->rank, type->extent)) {
            check_fail(run->kit, "cache %llu of layer %lld is of another type after build",
                       (unsigned long long)(i % f->num_caches),
                       (long long)(base->first + (int64_t)(i / f->num_caches)));
            good = false;
        }
    }
    return good;
}

// Reads the output and the caches back.
static bool step_read_back(const struct running_step *step)
{
    const struct model_step *asked = step->asked;
    const struct model_run *run = step->run;
    tn_array *arrays[RUN_CACHES + 1] = {step->base.output};
    uint64_t first = (uint64_t)asked->first * run->facts->num_caches;
    uint64_t count = (uint64_t)(step->base.end - asked->first) * run->facts->num_caches;
    memcpy(arrays + 1, step->base.caches, count * sizeof(*arrays));
    tn_eval_n(step->scope, arrays, count + 1);
    const tn_type *type = tn_array_type(step->base.output);
    uint64_t size = (uint64_t)(type->extent[0] * type->extent[1]) * sizeof(float);
    if (asked->output)
        tn_read(step->scope, step->base.output, asked->output, size);
    uint64_t slots = asked->num_slots ? (uint64_t)asked->num_slots : 1;
    for (uint64_t i = 0; i < count; i++)
        tn_read(step->scope, arrays[i + 1], asked->caches[first + i],
                run->bytes[first + i] * slots);
    if (tn_scope_status(step->scope) == TN_OK)
        return true;
    check_fail(run->kit, "the step does not run: %s", tn_scope_error(step->scope));
    return false;
}

// Builds the graph in the scope of `step`.
static bool step_build(struct running_step *step, tn_array **caches)
{
    struct model_run *run = step->run;
    struct model_step *asked = step->asked;
    const tn_host_graph *graph = run->host->query(run->host, TN_HOST_GRAPH);
    tn_build slots = {.struct_size = sizeof(slots)};
    tn_array *before[RUN_CACHES];
    if (!graph || graph->build(run->host, step->scope, &slots))
        return false;
    step->base.build = &slots;
    fill_inputs(step, caches);
    memcpy(before, step->base.caches,
           (uint64_t)(step->base.end - step->base.first) * run->facts->num_caches *
               sizeof(*before));
    asked->status = run->ops->build(run->host, run->self, &step->base);
    asked->is_built = asked->status == TN_OK && tn_scope_status(step->scope) == TN_OK;
    if (asked->fails_at)
        return true;
    if (!asked->is_built) {
        check_fail(run->kit,
                   "build of %lld positions through layers %lld to %lld fails: %s",
                   (long long)asked->count, (long long)step->base.first,
                   (long long)step->base.end - 1,
                   asked->status ? tn_last_error() : tn_scope_error(step->scope));
        return false;
    }
    return expect_outputs(step, before) && step_read_back(step);
}

bool model_run_step(struct model_run *run, struct model_step *asked)
{
    tn_array *caches[RUN_CACHES] = {NULL};
    int64_t end = asked->end ? asked->end : run->facts->layers;
    struct running_step step = {
        .base = {.struct_size = sizeof(step.base),
                 .count = asked->count,
                 .capacity = RUN_CAPACITY,
                 .first = asked->first,
                 .end = end,
                 .weight = step_weight,
                 .product = step_product,
                 .rows = step_rows,
                 .constant = step_constant,
                 .experts = step_experts,
                 .context = RUN_CAPACITY,
                 .sequences = asked->sequences ? asked->sequences : 1},
        .run = run,
        .asked = asked,
        .scope = tn_scope_open(run->runtime),
    };
    asked->calls = 0;
    check_case(run->kit);
    bool good = step.scope && step_build(&step, caches);
    tn_scope_close(step.scope);
    return good;
}

// --- caches ----------------------------------------------------------------------------

void model_caches_init(const struct model_run *run, int64_t slots, void *out[RUN_CACHES])
{
    for (uint64_t i = 0; i < RUN_CACHES; i++)
        out[i] = run->bytes[i] ? calloc((uint64_t)slots, run->bytes[i]) : NULL;
}

void model_caches_free(void *caches[RUN_CACHES])
{
    for (uint64_t i = 0; i < RUN_CACHES; i++) {
        free(caches[i]);
        caches[i] = NULL;
    }
}

static bool take_caches(struct model_run *run)
{
    for (int64_t layer = 0; layer < run->facts->layers; layer++) {
        uint64_t first = (uint64_t)layer * run->facts->num_caches;
        tn_status status =
            run->ops->caches(run->host, run->self, layer, RUN_CAPACITY, run->types + first);
        if (status != TN_OK) {
            check_fail(run->kit, "caches of layer %lld: returns %d", (long long)layer,
                       status);
            return false;
        }
        for (uint64_t i = first; i < first + run->facts->num_caches; i++) {
            run->bytes[i] = (uint64_t)tn_dtype_bytes(run->types[i].dtype);
            for (int32_t axis = 0; axis < run->types[i].rank; axis++)
                run->bytes[i] *= (uint64_t)run->types[i].extent[axis];
        }
    }
    return true;
}

// --- opening ---------------------------------------------------------------------------

static bool open_once(struct model_run *run)
{
    tn_status status =
        run->ops->open(run->host, &run->draft.source, &run->self, &run->facts);
    if (status != TN_OK) {
        run->self = NULL;
        check_skip(run->kit, "it does not open the kit's description: %.300s",
                   tn_last_error());
        return false;
    }
    if (run->facts->layers != DRAFT_LAYERS || run->facts->num_caches < 1 ||
        run->facts->num_caches > TN_MODEL_CACHES) {
        check_fail(run->kit, "facts say %lld layers and %u caches",
                   (long long)run->facts->layers, run->facts->num_caches);
        return false;
    }
    return list_all(run) && take_caches(run);
}

bool model_run_open(struct model_run *run, struct kit *k, struct subject *subject,
                    const char *architecture, enum draft_kind kind)
{
    const void *table;
    const char *why = "";
    *run = (struct model_run){.kit = k};
    model_draft_init(&run->draft, architecture, kind);
    run->runtime = subject_runtime(k, "TENON_BACKEND=cpu-blas", &why);
    if (!run->runtime) {
        check_skip(k, "no runtime: %.300s", why);
        return false;
    }
    if (tn_provider_load(run->runtime, TN_IFACE_MODEL, subject->entry->id, &table,
                         &run->host)) {
        check_fail(k, "a runtime does not load it: %.300s", tn_last_error());
        return false;
    }
    run->ops = table;
    if (!open_once(run) || kind != DRAFT_FULL)
        return run->self && !check_failed(k);
    // Opens the model again, with a source that has all weights that it listed.
    run->draft.known = run->weights;
    run->draft.num_known = run->num_weights;
    run->weights = NULL;
    run->ops->close(run->host, run->self);
    run->self = NULL;
    return open_once(run);
}

void model_run_close(struct model_run *run)
{
    if (run->self)
        run->ops->close(run->host, run->self);
    tn_runtime_close(run->runtime);
    free(run->weights);
    free(run->draft.known);
    *run = (struct model_run){0};
}
