// SPDX-License-Identifier: MIT
// Draws applications of a primitive at random, and keeps those that infer accepts.
#include <math.h>
#include "graph_data.h"
#include "sample.h"

enum { ATTEMPTS = 6000, ATTEMPTS_BY_CORE = 300, MAX_ELEMENTS = 4096 };

// --- shapes ----------------------------------------------------------------------------

static void pack_draw_set_shape(tn_type *type, int32_t rank, const int64_t *extent)
{
    type->rank = rank;
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        type->extent[i] = i < rank ? extent[i] : 0;
}

static void random_shape(struct kit *k, tn_type *type)
{
    static const int64_t usual[] = {1, 2, 3, 4, 5, 7, 8, 17, 0}, few[] = {33, 129, 1023};
    int64_t extent[TN_MAX_RANK];
    int32_t rank = (int32_t)random_below(k, 5);
    for (int32_t i = 0; i < rank; i++)
        extent[i] = usual[random_below(k, rank > 2 ? 5 : COUNT(usual))];
    if (rank > 0 && rank < 3 && random_below(k, 4) == 0)
        extent[rank - 1] = few[random_below(k, COUNT(few))]; // vectors that leave a tail
    pack_draw_set_shape(type, rank, extent);
}

// Equal shapes. With `broadcast`, later inputs may lack leading axes, or have extents of 1.
static void shapes_alike(struct kit *k, struct sample *s, bool broadcast)
{
    random_shape(k, &s->types[0]);
    for (uint32_t i = 1; i < s->num_inputs; i++) {
        const tn_type *first = &s->types[0];
        int32_t drop = broadcast ? (int32_t)random_below(k, (uint64_t)first->rank + 1) : 0;
        pack_draw_set_shape(&s->types[i], first->rank - drop, first->extent + drop);
        for (int32_t axis = 0; broadcast && axis < s->types[i].rank; axis++)
            if (random_below(k, 3) == 0)
                s->types[i].extent[axis] = 1;
    }
}

// Shapes from letters, one for each axis; equal letters are equal extents.
static void shapes_by_letters(struct kit *k, struct sample *s, const char *const *letters)
{
    int64_t extent_of[26];
    for (int i = 0; i < 26; i++)
        extent_of[i] = 1 + (int64_t)random_below(k, 6);
    // Images (h x w) are larger than windows (y x x).
    extent_of['h' - 'a'] = 5 + (int64_t)random_below(k, 4);
    extent_of['w' - 'a'] = 5 + (int64_t)random_below(k, 4);
    extent_of['y' - 'a'] = 1 + (int64_t)random_below(k, 3);
    extent_of['x' - 'a'] = 1 + (int64_t)random_below(k, 3);
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        const char *name = letters[i < 3 ? i : 2];
        int64_t extent[TN_MAX_RANK];
        int32_t rank = (int32_t)strlen(name);
        for (int32_t axis = 0; axis < rank; axis++)
            extent[axis] = extent_of[name[axis] - 'a'];
        pack_draw_set_shape(&s->types[i], rank, extent);
    }
}

static void draw_shapes(struct kit *k, struct sample *s)
{
    static const char *const related[][3] = {
        {"mk", "kn", "n"},        {"bmk", "bkn", "n"},      {"nhwc", "oyxc", "o"},
        {"rc", "r", "r"},         {"rc", "m", "mc"},        {"mk", "k", "m"},
        {"n", "m", "o"},          {"nhwc", "nhwc", "nhwc"}, {"m", "", ""},
        {"mn", "mn", "n"},        {"bmk", "bnk", "bnk"},    {"nd", "d", "d"},
        {"bhmd", "bhnd", "bhnd"},
    };
    uint64_t kind = random_below(k, 10);
    if (kind < 3)
        shapes_alike(k, s, false);
    else if (kind < 5)
        shapes_alike(k, s, true);
    else if (kind < 9)
        shapes_by_letters(k, s, related[random_below(k, COUNT(related))]);
    else
        for (uint32_t i = 0; i < s->num_inputs; i++)
            random_shape(k, &s->types[i]);
}

// --- dtypes ----------------------------------------------------------------------------

static tn_dtype random_dtype(struct kit *k)
{
    static const tn_dtype usual[] = {TN_F32, TN_F32,  TN_F32, TN_F64, TN_F64,
                                     TN_F16, TN_BF16, TN_I32, TN_I64, TN_U8};
    if (random_below(k, 4) == 0)
        return (tn_dtype)(1 + random_below(k, TN_NUM_DTYPES - 1));
    return usual[random_below(k, COUNT(usual))];
}

static void draw_dtypes(struct kit *k, struct sample *s)
{
    static const tn_dtype indices[] = {TN_I64, TN_I32, TN_U32, TN_U8, TN_BOOL};
    tn_dtype main = random_dtype(k);
    uint64_t kind = random_below(k, 10);
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        bool is_other = (kind == 6 && i + 1 == s->num_inputs) || (kind == 7 && i == 1) ||
                        (kind == 8 && i == 0);
        s->types[i].dtype = is_other    ? indices[random_below(k, COUNT(indices))]
                            : kind == 9 ? random_dtype(k)
                                        : main;
    }
}

// Draws types of the inputs: repeats a variadic input, leaves out optional inputs at the
// end.
static void draw_inputs(struct kit *k, struct sample *s)
{
    const tn_primitive *p = s->primitive;
    s->num_inputs = p->num_inputs;
    if (p->num_inputs && p->inputs[p->num_inputs - 1].flags & TN_INPUT_VARIADIC &&
        s->num_inputs + 2 <= MAX_IN)
        s->num_inputs += (uint32_t)random_below(k, 3);
    draw_shapes(k, s);
    draw_dtypes(k, s);
    for (int64_t i = (int64_t)p->num_inputs - 1;
         i >= 0 && p->inputs[i].flags & TN_INPUT_OPTIONAL; i--) {
        if (random_below(k, 2))
            break; // this input and those before it are given
        s->types[i] = (tn_type){.dtype = TN_DTYPE_NONE};
    }
}

// --- attributes ------------------------------------------------------------------------

static int64_t random_integer(struct kit *k, const tn_attr_field *field)
{
    int64_t count = 0;
    switch (field->kind) {
    case TN_ATTR_BOOL:
        return (int64_t)random_below(k, 2);
    case TN_ATTR_DTYPE:
        return random_dtype(k);
    case TN_ATTR_CHOICE:
        while (field->choices[count])
            count++;
        return (int64_t)random_below(k, (uint64_t)count);
    default:
        return (int64_t)random_below(k, 7) - 2;
    }
}

// Values of texts and lists: some that a primitive may refuse, and some that crash careless
// code.
static const char *const texts[] = {"", "a", "none", "ij,jk->ik", "\303\251 \"%s\"", "b c"};
static const int64_t integers[] = {1, 0, 3, 2, -1, 5, 4, 7, 6, 12, 9, 40};
static const double numbers[] = {0.5, 1, -2, 0, 3, 0.25, 8, -0.125, 2, 4};

// A random text or list for an attribute; it is constant.
static const void *random_value(struct kit *k, uint32_t kind)
{
    static tn_int_list ints[COUNT(integers) + 1];
    static tn_float_list floats[COUNT(numbers) + 1];
    uint64_t count;
    switch (kind) {
    case TN_ATTR_STRING:
        return texts[random_below(k, COUNT(texts))];
    case TN_ATTR_INT_LIST:
        count = random_below(k, COUNT(ints));
        ints[count] = (tn_int_list){count, integers};
        return &ints[count];
    case TN_ATTR_GRAPH:
        return NULL; // a graph has to fit the inputs: only examples have one
    default:
        count = random_below(k, COUNT(floats));
        floats[count] = (tn_float_list){count, numbers};
        return &floats[count];
    }
}

static void draw_attrs(struct kit *k, struct sample *s)
{
    const tn_attr_table *table = &s->primitive->attrs;
    for (uint32_t i = 0; i < table->num_fields && i < MAX_FIELDS; i++) {
        const tn_attr_field *field = &table->fields[i];
        if (field->flags & TN_ATTR_RESULT)
            continue; // nodes do not have it; attrs.result checks it
        if (!(field->flags & TN_ATTR_REQUIRED) && random_below(k, 2))
            continue;
        s->given |= UINT64_C(1) << i;
        if (field->flags & TN_ATTR_RUNTIME) {
            s->runtime[i] = field->kind == TN_ATTR_F64 ? floor(random_in(k, -8, 8)) / 4
                                                       : (double)random_integer(k, field);
        } else if (field->kind == TN_ATTR_F64) {
            *(double *)sample_field(s, field) = floor(random_in(k, -8, 8)) / 4;
        } else if (field->kind == TN_ATTR_INTS) {
            tn_ints *ints = sample_field(s, field);
            *ints = (tn_ints){.count = (uint32_t)random_below(k, 4), .given = 1};
            for (uint32_t n = 0; n < ints->count; n++)
                ints->value[n] = (int64_t)random_below(k, 7) - 1;
        } else if (field->kind > TN_ATTR_BITS) {
            *(const void **)sample_field(s, field) = random_value(k, field->kind);
        } else {
            *(int64_t *)sample_field(s, field) = random_integer(k, field);
        }
    }
}

// Sets the types of the scalars of runtime attributes.
static void type_runtime(struct sample *s)
{
    const tn_attr_table *table = &s->primitive->attrs;
    uint32_t dtypes = 0, n = s->num_inputs;
    for (uint32_t i = 0; i < s->num_inputs; i++)
        if (s->types[i].dtype != TN_DTYPE_NONE)
            dtypes |= TN_DTYPE_BIT(s->types[i].dtype);
    for (uint32_t i = 0; i < table->num_fields && n < MAX_IN; i++)
        if (table->fields[i].flags & TN_ATTR_RUNTIME)
            s->types[n++] =
                (tn_type){.dtype = tn_runtime_dtype(table->fields[i].kind, dtypes)};
}

void sample_draw(struct kit *k, const tn_primitive *primitive, struct sample *out)
{
    sample_defaults(primitive, out);
    draw_inputs(k, out);
    draw_attrs(k, out);
    type_runtime(out);
}

// --- accepting -------------------------------------------------------------------------

// Infers types by building an application in a scope; it is never evaluated.
static tn_status infer_by_core(struct sample_maker *maker, struct sample *s)
{
    tn_array *in[MAX_IN] = {NULL}, *out[MAX_OUT] = {NULL};
    tn_attr items[MAX_FIELDS];
    uint32_t count = sample_given(s);
    if (!maker->runtime)
        return TN_ERR_UNSUPPORTED;
    tn_scope *scope = tn_scope_open(maker->runtime);
    for (uint32_t i = 0; i < count; i++)
        if (s->types[i].dtype != TN_DTYPE_NONE) {
            struct array zeros = array_new(&s->types[i], PLAIN, 0);
            in[i] = graph_data(scope, &zeros);
            array_free(&zeros);
        }
    const tn_array *const *inputs = (const tn_array *const *)in;
    const tn_attr_list attrs = sample_attr_list(s, items);
    uint64_t outputs = TN_HAS(s->primitive, count_outputs)
                           ? tn_op_outputs(scope, s->primitive->id, inputs, count, attrs)
                           : s->num_outputs;
    s->num_outputs = outputs && outputs <= MAX_OUT ? (uint32_t)outputs : 1;
    tn_status status =
        tn_op_n(scope, s->primitive->id, inputs, count, attrs, out, s->num_outputs);
    for (uint32_t i = 0; status == TN_OK && i < s->num_outputs; i++)
        s->outputs[i] = *tn_array_type(out[i]);
    tn_scope_close(scope);
    return status;
}

// Whether the primitive takes the inputs' dtypes: the core checks this before it calls
// infer.
static bool dtypes_are_taken(const struct sample *s)
{
    const tn_primitive *p = s->primitive;
    for (uint32_t i = 0; i < s->num_inputs && p->num_inputs > 0; i++) {
        uint32_t set = p->inputs[i < p->num_inputs ? i : p->num_inputs - 1].dtypes;
        if (s->types[i].dtype != TN_DTYPE_NONE &&
            !tn_dtype_in(s->types[i].dtype, set ? set : TN_FIRST_DTYPES))
            return false;
    }
    return true;
}

// Sets the number of outputs where it depends on the application. A sample holds few.
static tn_status count_outputs(struct sample *s, tn_infer *infer)
{
    uint64_t count = 0;
    if (!TN_HAS(s->primitive, count_outputs))
        return TN_OK;
    infer->num_outputs = 0;
    tn_status status = s->primitive->count_outputs(infer, &count);
    if (status != TN_OK)
        return status;
    if (count == 0 || count > MAX_OUT)
        return infer->host->fail(infer->host, TN_ERR_UNSUPPORTED,
                                 "%d outputs, of which a sample holds at most %d",
                                 (int)count, MAX_OUT);
    infer->num_outputs = s->num_outputs = (uint32_t)count;
    return TN_OK;
}

tn_status sample_infer(struct sample_maker *maker, struct sample *s)
{
    if (!s->primitive->infer)
        return infer_by_core(maker, s);
    if (!dtypes_are_taken(s))
        return maker->host->table->fail(maker->host->table, TN_ERR_ARGUMENT,
                                        "an input's dtype is not in its set");
    tn_infer infer = {.struct_size = sizeof(infer),
                      .host = maker->host->table,
                      .types = s->types,
                      .attrs = s->attrs,
                      .num_inputs = s->num_inputs,
                      .num_outputs = s->num_outputs};
    tn_status status = count_outputs(s, &infer);
    return status == TN_OK ? s->primitive->infer(&infer, s->outputs) : status;
}

static bool types_are_small(const tn_type *types, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t elements = 1;
        for (int32_t axis = 0; axis < types[i].rank && axis < TN_MAX_RANK; axis++)
            if (types[i].extent[axis] < 0 ||
                (elements *= types[i].extent[axis]) > MAX_ELEMENTS)
                return false;
    }
    return true;
}

// Filter of samples: a function that accepts some.
struct sample_filter {
    bool (*accepts)(const struct sample *s, const void *context); // NULL: all
    const void *context;
};

// Hash of the features in which samples should differ: which attributes are given, dtypes,
// ranks, and extents of 0 and 1; with a filter, all extents.
static uint64_t sample_kind(const struct sample *s, const struct sample_filter *filter)
{
    uint64_t kind = s->given;
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        kind = kind * 31 + (uint64_t)s->types[i].dtype * 16 + (uint64_t)s->types[i].rank;
        for (int32_t axis = 0; axis < s->types[i].rank; axis++)
            kind = filter->accepts ? kind * 31 + (uint64_t)s->types[i].extent[axis]
                                   : kind * 3 + (s->types[i].extent[axis] == 1) +
                                         (s->types[i].extent[axis] == 0) * 2;
    }
    return kind;
}

static bool sample_is_new(const struct sample *samples, uint32_t count,
                          const struct sample *s, const struct sample_filter *filter)
{
    for (uint32_t i = 0; i < count; i++)
        if (sample_kind(&samples[i], filter) == sample_kind(s, filter))
            return false;
    return true;
}

// Fails the running check for each example that infer refuses, and drops it.
static uint32_t keep_accepted(struct sample_maker *maker, struct sample *examples,
                              uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        type_runtime(&examples[i]);
        if (sample_infer(maker, &examples[i]) == TN_OK)
            examples[kept++] = examples[i];
        else
            check_fail(maker->kit, "example %u (%s) is refused: %s", i,
                       sample_text(&examples[i]), maker->host->text);
    }
    return kept;
}

static bool pack_draw_passes(const struct sample_filter *filter, const struct sample *s)
{
    return !filter->accepts || filter->accepts(s, filter->context);
}

// Drops the examples that the filter does not take.
static uint32_t keep_passing(const struct sample_filter *filter, struct sample *samples,
                             uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (pack_draw_passes(filter, &samples[i]))
            samples[kept++] = samples[i];
    return kept;
}

uint32_t samples_limit(const struct kit *k, uint32_t most)
{
    uint32_t wanted = most * k->samples / MAX_SAMPLES;
    return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

static uint32_t pack_draw_make_samples(struct sample_maker *maker,
                                       const tn_primitive *primitive,
                                       const struct sample_filter *filter,
                                       struct sample *out, uint32_t max)
{
    struct kit *k = maker->kit;
    int attempts = primitive->infer ? ATTEMPTS : ATTEMPTS_BY_CORE;
    if (!sample_fits(primitive))
        return 0;
    struct sampling how;
    max = samples_limit(k, max);
    uint32_t count = keep_accepted(maker, out, examples_read(k, primitive, out, max, &how));
    count = keep_passing(filter, out, count);
    for (int i = 0; i < attempts && count < max && !how.no_random; i++) {
        struct sample *s = &out[count];
        sample_draw(k, primitive, s);
        sampling_apply(&how, s);
        if (types_are_small(s->types, s->num_inputs) &&
            sample_is_new(out, count, s, filter) && sample_infer(maker, s) == TN_OK &&
            types_are_small(s->outputs, s->num_outputs) && pack_draw_passes(filter, s))
            count++;
    }
    return count;
}

uint32_t samples_make(struct sample_maker *maker, const tn_primitive *primitive,
                      struct sample *out, uint32_t max)
{
    return pack_draw_make_samples(maker, primitive, &(struct sample_filter){NULL, NULL},
                                  out, max);
}

uint32_t samples_make_for(struct sample_maker *maker, const tn_primitive *primitive,
                          bool (*accepts)(const struct sample *s, const void *context),
                          const void *context, struct sample *out, uint32_t max)
{
    return pack_draw_make_samples(maker, primitive,
                                  &(struct sample_filter){accepts, context}, out, max);
}
