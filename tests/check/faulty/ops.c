// SPDX-License-Identifier: MIT
// Operator packs with one fault each in what they compute; without a FAULT_... they have
// none. The name of a fault is that of the check that must find it.
//
// One primitive, alpha * x + y or alpha * x - y, with all that a primitive can have.
#include <string.h>
#include <tenon/ops/reference.h>
#include <tenon/plugin.h>

typedef struct attrs {
    double alpha;
    int64_t sign; // 0: plus, 1: minus
} attrs;

#ifdef FAULT_ATTRS_PARSE
static const char *const signs[] = {"plus", "plus", NULL};
#else
static const char *const signs[] = {"plus", "minus", NULL};
#endif
static const tn_attr_field fields[] = {
    TN_F64_FIELD(attrs, alpha, 1.0, "factor of x"),
    TN_CHOICE_FIELD(attrs, sign, 0, signs, "whether y is added or taken away"),
};

static double sign_of(const attrs *a)
{
    return a->sign ? -1 : 1;
}

// --- shape rule ------------------------------------------------------------------------

static int32_t same_extents(const tn_type *x, const tn_type *y)
{
    return x->rank == y->rank &&
           memcmp(x->extent, y->extent, (size_t)x->rank * sizeof(x->extent[0])) == 0;
}

static tn_status infer(const tn_infer *in, tn_type *types)
{
    const tn_type *x = &in->types[0], *y = &in->types[1];
#ifdef FAULT_INFER_UNTOUCHED
    types[0] = *x;
#endif
#ifdef HANGS
    for (volatile double i = 0; i < ((const attrs *)in->attrs)->alpha;)
        i += 1;
#endif
#ifdef FAULT_INFER_PURE
    in->host->free(in->host, in->host->alloc(in->host, 8, 0));
#endif
#ifdef FAULT_ATTRS_EXTREMES
    static const volatile char steps[16];
    if (steps[(int64_t)((const attrs *)in->attrs)->alpha % INT64_C(0x100000000000)])
        return TN_ERR_INTERNAL;
#endif
    if (!tn_dtype_in(x->dtype, TN_FLOAT_DTYPES) || x->dtype != y->dtype)
#ifdef FAULT_INFER_MESSAGE
        return TN_ERR_ARGUMENT;
#else
        return in->host->fail(in->host, TN_ERR_ARGUMENT,
                              "got dtypes %d and %d, expected the same float", x->dtype,
                              y->dtype);
#endif
    if (!same_extents(x, y))
        return in->host->fail(in->host, TN_ERR_ARGUMENT,
                              "got ranks %d and %d, expected the same shape", x->rank,
                              y->rank);
    types[0] = *x;
#ifdef FAULT_INFER_VALID
    if (x->rank == 0)
        types[0].dtype = TN_NUM_DTYPES;
#endif
    return TN_OK;
}

// --- the reference ---------------------------------------------------------------------

#ifdef FAULT_REFERENCE_LAYOUTS
static int64_t place(const tn_layout *layout, const int64_t *index)
{
    int64_t at = 0;
    for (int32_t i = 0; i < layout->rank; i++)
        at = at * layout->extent[i] + index[i];
    return layout->offset + at;
}
#else
#define place tn_offset_at
#endif

static tn_status reference(const tn_cpu_call *call)
{
    const attrs *a = call->attrs;
    const tn_tensor *x = &call->inputs[0], *y = &call->inputs[1], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0}, count = tn_layout_count(&out->layout), done = 0;
    double extra = 0;
#ifdef FAULT_REFERENCE_REPEAT
    static int times;
    extra = times++ % 2;
#endif
    if (count == 0)
        return TN_OK;
#ifdef FAULT_REFERENCE_COMPLETE
    count -= count > 1;
#endif
    do {
        double p = tn_get_f64(x, place(&x->layout, index));
        double q = tn_get_f64(y, place(&y->layout, index));
        tn_set_f64(out, tn_offset_at(&out->layout, index),
                   a->alpha * p + sign_of(a) * q + extra);
    } while (++done < count && tn_index_next(out->layout.rank, out->layout.extent, index));
#ifdef FAULT_REFERENCE_GUARDS
    tn_set_f64(out, out->layout.offset - 1, 1);
#endif
#ifdef FAULT_REFERENCE_INPUTS
    tn_set_f64(x, x->layout.offset, 42);
#endif
    return TN_OK;
}

static tn_status decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    const attrs *a = rule->attrs;
    double sign = sign_of(a);
#ifdef FAULT_REFERENCE_MEANINGS
    sign = 1;
#endif
    outputs[0] = build->expr(build, "x, y -> alpha * x + sign * y",
                             TN_IN(rule->inputs[0], rule->inputs[1]),
                             tn_attrs("alpha", a->alpha, "sign", sign));
    return TN_OK;
}

// --- rules -----------------------------------------------------------------------------

static tn_array *scaled(const tn_build *build, double factor, const tn_array *array)
{
    return build->expr(build, "g -> factor * g", TN_IN(array), tn_attrs("factor", factor));
}

static tn_status vjp(const tn_build *build, const tn_rule *rule,
                     tn_array *const *cotangents, const uint64_t *wanted,
                     tn_array **gradients)
{
    const attrs *a = rule->attrs;
    if (!cotangents[0])
        return TN_OK;
    if (wanted[0] & 1)
        gradients[0] = scaled(build, a->alpha, cotangents[0]);
#ifdef FAULT_RULES_SECOND // right, but for its own derivative
    if (wanted[0] & 1) {
        tn_array *still =
            build->op(build, "base.stop_gradient", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
        gradients[0] =
            build->expr(build, "g, x, s -> g + x * x - s * s",
                        TN_IN(gradients[0], rule->inputs[0], still), TN_NO_ATTRS);
    }
#endif
#ifdef FAULT_RULES_VJP
    if (wanted[0] & 2)
        gradients[1] = cotangents[0];
#else
    if (wanted[0] & 2)
        gradients[1] = scaled(build, sign_of(a), cotangents[0]);
#endif
#ifdef FAULT_RULES_FAILURE
    if (wanted[0] & 1 && build->type(gradients[0])->rank == 7)
        gradients[0] = NULL;
#endif
    return TN_OK;
}

static tn_status jvp(const tn_build *build, const tn_rule *rule, tn_array *const *tangents,
                     tn_array **out_tangents)
{
    const attrs *a = rule->attrs;
    tn_array *x = tangents[0] ? scaled(build, a->alpha, tangents[0]) : NULL;
    tn_array *y = tangents[1] ? scaled(build, sign_of(a), tangents[1]) : NULL;
#ifdef FAULT_RULES_PARTIAL
    if (!tangents[1])
        x = NULL;
#endif
#ifdef FAULT_RULES_JVP
    if (x && y)
        y = NULL;
#endif
    out_tangents[0] = x && y ? build->expr(build, "a, b -> a + b", TN_IN(x, y), TN_NO_ATTRS)
                      : x    ? x
                             : y;
    return TN_OK;
}

// The input with its batch first; one that has none is repeated.
static tn_array *batch_first(const tn_build *build, tn_array *array, int32_t axis,
                             int64_t size)
{
    const tn_type *type = build->type(array);
    tn_ints list = {.given = 1};
    if (!type)
        return NULL;
    if (axis < 0) {
        list.value[list.count++] = size;
        for (int32_t i = 0; i < type->rank; i++)
            list.value[list.count++] = type->extent[i];
        return build->op(build, "base.broadcast_to", TN_IN(array),
                         tn_attrs("shape", (const tn_ints *)&list));
    }
    list.value[list.count++] = axis;
    for (int32_t i = 0; i < type->rank; i++)
        if (i != axis)
            list.value[list.count++] = i;
    return build->op(build, "base.transpose", TN_IN(array),
                     tn_attrs("axes", (const tn_ints *)&list));
}

static tn_status vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                      int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const attrs *a = rule->attrs;
#ifdef FAULT_RULES_VMAP
    tn_array *x =
        axes[0] > 0 ? rule->inputs[0] : batch_first(build, rule->inputs[0], axes[0], size);
    tn_array *y =
        axes[0] > 0 ? rule->inputs[1] : batch_first(build, rule->inputs[1], axes[1], size);
#else
    tn_array *x = batch_first(build, rule->inputs[0], axes[0], size);
    tn_array *y = batch_first(build, rule->inputs[1], axes[1], size);
#endif
#ifdef FAULT_RULES_NESTED // right, but for the derivative of the batch
    x = build->op(build, "base.stop_gradient", TN_IN(x), TN_NO_ATTRS);
#endif
    outputs[0] = build->op(build, "acme.scale/1", TN_IN(x, y),
                           tn_attrs("alpha", a->alpha, "sign", a->sign));
    out_axes[0] = 0;
    return TN_OK;
}

// --- kernels ---------------------------------------------------------------------------

struct work {
    const tn_cpu_call *call;
    double alpha, sign;
};

// What is wrong with a kernel when a runtime launches it.
#if defined(FAULT_DEVICE_VALUES) || defined(FAULT_KERNEL_VALUES)
#define EXTRA 1e-4
#else
#define EXTRA 0
#endif

static void run(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct work *work = context;
    const tn_cpu_call *call = work->call;
    const float *x = (const float *)call->inputs[0].data + call->inputs[0].layout.offset;
    const float *y = (const float *)call->inputs[1].data + call->inputs[1].layout.offset;
    float *out = (float *)call->outputs[0].data + call->outputs[0].layout.offset;
    float *kept = call->scratch; // alpha * x
#ifdef FAULT_KERNEL_THREADS
    end -= begin;
    begin = 0;
#endif
    for (int64_t i = begin; i < end; i++)
        kept[i] = (float)work->alpha * x[i];
#if defined(FAULT_KERNEL_IN_PLACE) || defined(FAULT_DEVICE_DONATED)
    memcpy(out + begin, kept + begin, (size_t)(end - begin) * sizeof(float));
#endif
    for (int64_t i = begin; i < end; i++)
        out[i] = kept[i] + (float)work->sign * y[i];
}

static tn_status launch(const tn_cpu_call *call)
{
    const attrs *a = call->attrs;
    struct work work = {call, *(const double *)call->state, sign_of(a)};
    int64_t count = tn_layout_count(&call->outputs[0].layout);
    work.alpha += count > 3 ? EXTRA : 0;
    call->parallel_for(call, count, 4, run, &work);
#ifdef FAULT_KERNEL_GUARDS
    ((float *)call->scratch)[count] = 0;
#endif
#ifdef FAULT_KERNEL_INPUTS
    float *x = (float *)call->inputs[0].data + call->inputs[0].layout.offset;
    x[0] = count ? 42 : x[0];
#endif
    return TN_OK;
}

static tn_status prepare(const tn_cpu_call *call, void **out_state)
{
    double *alpha = call->host->alloc(call->host, sizeof(*alpha), 0);
    if (!alpha)
        return TN_ERR_MEMORY;
    *alpha = ((const attrs *)call->attrs)->alpha;
    *out_state = alpha;
    return TN_OK;
}

static void finish(const tn_host *host, void *state)
{
#ifdef FAULT_KERNEL_VALUES_FINISH
    return;
#endif
    host->free(host, state);
}

static uint64_t scratch_size(const tn_kernel_query *query)
{
    return (uint64_t)tn_layout_count(&query->outputs[0]) * sizeof(float);
}

static const tn_operand_rule operands[] = {
#if defined(FAULT_KERNEL_LAYOUTS) || defined(FAULT_DEVICE_LAYOUTS) ||                      \
    defined(FAULT_DEVICE_REPEATED)
    {.dtypes = TN_DTYPE_BIT(TN_F32), .needs = TN_NEEDS_ANY},
#else
    {.dtypes = TN_DTYPE_BIT(TN_F32), .needs = TN_NEEDS_CONTIGUOUS},
#endif
};

static const tn_kernel kernel = {
    .struct_size = sizeof(kernel),
    .flags = TN_KERNEL_SAME_DTYPE,
    .primitive = "acme.scale/1",
    .family = TN_FAMILY_CPU,
    .name = "acme",
    .priority = 500,
    TN_OPERANDS(operands),
    .scratch_size = scratch_size,
    .payload = &(const tn_cpu_kernel){.struct_size = sizeof(tn_cpu_kernel),
                                      .launch = launch,
                                      .prepare = prepare,
                                      .finish = finish},
};

// Not chosen beside the one above, unless by name.
static tn_status launch_plainly(const tn_cpu_call *call)
{
    const attrs *a = call->attrs;
    const float *x = (const float *)call->inputs[0].data + call->inputs[0].layout.offset;
    const float *y = (const float *)call->inputs[1].data + call->inputs[1].layout.offset;
    float *out = (float *)call->outputs[0].data + call->outputs[0].layout.offset;
    int64_t count = tn_layout_count(&call->outputs[0].layout);
    for (int64_t i = 0; i < count; i++)
#ifdef FAULT_DEVICE_KERNEL
        out[i] = (float)(a->alpha * x[i]) + y[i];
#else
        out[i] = (float)(a->alpha * x[i] + sign_of(a) * y[i]);
#endif
    return TN_OK;
}

static const tn_kernel plain_kernel = {
    .struct_size = sizeof(plain_kernel),
    .flags = TN_KERNEL_SAME_DTYPE,
    .primitive = "acme.scale/1",
    .family = TN_FAMILY_CPU,
    .name = "plain",
    .priority = 200,
    TN_OPERANDS(((const tn_operand_rule[]){
        {.dtypes = TN_DTYPE_BIT(TN_F32), .needs = TN_NEEDS_CONTIGUOUS}})),
    .payload = &(const tn_cpu_kernel){.struct_size = sizeof(tn_cpu_kernel),
                                      .launch = launch_plainly},
};

// --- the pack --------------------------------------------------------------------------

static const tn_input_info inputs[] = {
    {.name = "x", .doc = "what is scaled"},
    {.name = "y", .doc = "what is added; of the same shape"},
};
static const tn_primitive scale = {
    .struct_size = sizeof(scale),
    .id = "acme.scale/1",
    .doc = "alpha * x, plus or minus y.",
    TN_INPUTS(inputs),
    .num_outputs = 1,
    .attrs = TN_ATTR_TABLE(attrs, fields),
    .in_place = &(const tn_in_place){.input = 1, .output = 0},
    .num_in_place = 1,
    .in_place_size = sizeof(tn_in_place),
    .decompose = decompose,
    .reference = reference,
    .infer = infer,
    .vjp = vjp,
    .jvp = jvp,
    .vmap = vmap,
};
static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = (const tn_primitive *const[]){&scale},
    .kernels = (const tn_kernel *const[]){&kernel, &plain_kernel},
    .num_primitives = 1,
    .num_kernels = 2,
};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("com.acme.scale", "1.0.0", "Acme", .query = query);
