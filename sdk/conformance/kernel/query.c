// SPDX-License-Identifier: MIT
// A kernel's rules and predicates, asked about samples.
#include "query.h"

static const tn_operand_rule *kernel_query_rule_of(const tn_kernel *kernel,
                                                   uint32_t operand)
{
    static const tn_operand_rule anything = {0, TN_NEEDS_ANY};
    if (!kernel->operands || !kernel->num_operands)
        return &anything;
    return &kernel->operands[operand < kernel->num_operands ? operand
                                                            : kernel->num_operands - 1];
}

static bool dtypes_fit(const tn_kernel *kernel, const struct sample *s)
{
    tn_dtype one = TN_DTYPE_NONE;
    for (uint32_t i = 0; i < s->num_inputs + s->num_outputs; i++) {
        bool is_input = i < s->num_inputs;
        tn_dtype dtype = is_input ? s->types[i].dtype : s->outputs[i - s->num_inputs].dtype;
        // Operand rules are in order: first the inputs, then the outputs.
        uint32_t operand = is_input ? i : s->primitive->num_inputs + (i - s->num_inputs);
        const tn_operand_rule *rule = kernel_query_rule_of(kernel, operand);
        if (dtype == TN_DTYPE_NONE)
            continue;
        if (!tn_dtype_in(dtype, rule->dtypes ? rule->dtypes : TN_FIRST_DTYPES))
            return false;
        if (kernel->flags & TN_KERNEL_SAME_DTYPE && one != TN_DTYPE_NONE && one != dtype)
            return false;
        one = dtype;
    }
    return true;
}

static tn_layout kernel_query_contiguous(const tn_type *type)
{
    tn_layout layout = {.dtype = type->dtype, .rank = type->rank};
    int64_t next = 1;
    for (int32_t axis = type->rank - 1; axis >= 0; axis--) {
        layout.extent[axis] = type->extent[axis];
        layout.stride[axis] = next;
        next *= type->extent[axis] ? type->extent[axis] : 1;
    }
    return layout;
}

// The query for a sample. `in` NULL: with contiguous inputs.
static tn_kernel_query query_of(const struct sample *s, const struct array *in,
                                tn_layout *in_layouts, tn_layout *out_layouts)
{
    for (uint32_t i = 0; i < sample_operands(s); i++)
        in_layouts[i] = in ? (i < s->num_inputs ? in : s->in)[i].tensor.layout
                           : kernel_query_contiguous(&s->types[i]);
    for (uint32_t i = 0; i < s->num_outputs; i++)
        out_layouts[i] = kernel_query_contiguous(&s->outputs[i]);
    return (tn_kernel_query){.struct_size = sizeof(tn_kernel_query),
                             .inputs = in_layouts,
                             .outputs = out_layouts,
                             .attrs = s->attrs,
                             .num_inputs = sample_operands(s),
                             .num_outputs = s->num_outputs,
                             .num_workers = 3}; // as apply_cpu has at most
}

bool kernel_accepts(const tn_kernel *kernel, const struct sample *s, const struct array *in)
{
    tn_layout in_layouts[MAX_IN] = {0}, out_layouts[MAX_OUT];
    tn_kernel_query query = query_of(s, in, in_layouts, out_layouts);
    return dtypes_fit(kernel, s) && (!kernel->accepts || kernel->accepts(&query));
}

static bool takes_sample(const struct sample *s, const void *kernel)
{
    return kernel_accepts(kernel, s, NULL);
}

uint32_t kernel_samples(struct sample_maker *maker, const tn_kernel *kernel,
                        const tn_primitive *primitive, struct sample *out, uint32_t max)
{
    return samples_make_for(maker, primitive, takes_sample, kernel, out, max);
}

uint64_t kernel_scratch(const tn_kernel *kernel, const struct sample *s,
                        const struct array *in)
{
    tn_layout in_layouts[MAX_IN] = {0}, out_layouts[MAX_OUT];
    tn_kernel_query query = query_of(s, in, in_layouts, out_layouts);
    return kernel->scratch_size ? kernel->scratch_size(&query) : 0;
}

static bool kernel_query_is_contiguous(const tn_layout *layout)
{
    int64_t next = 1;
    for (int32_t axis = layout->rank - 1; axis >= 0; axis--) {
        if (layout->extent[axis] != 1 && layout->stride[axis] != next)
            return false;
        next *= layout->extent[axis];
    }
    return true;
}

bool kernel_layouts_fit(const tn_kernel *kernel, const struct sample *s,
                        const struct array *in)
{
    for (uint32_t i = 0; i < s->num_inputs; i++) {
        const tn_layout *layout = &in[i].tensor.layout;
        uint32_t needs = kernel_query_rule_of(kernel, i)->needs;
        int32_t last = layout->rank - 1;
        bool rows = last < 0 || layout->stride[last] == 1 || layout->extent[last] == 1;
        if ((needs == TN_NEEDS_CONTIGUOUS && !kernel_query_is_contiguous(layout)) ||
            (needs == TN_NEEDS_ROWS && !rows))
            return false;
    }
    return true;
}

bool kernel_says_fuses(const tn_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->num_operands; i++)
        if (kernel_query_rule_of(kernel, i)->flags & TN_OPERAND_FUSES)
            return true;
    return false;
}

uint64_t kernel_fused(const tn_kernel *kernel, const struct sample *s,
                      const struct array *in)
{
    tn_layout in_layouts[MAX_IN] = {0}, out_layouts[MAX_OUT];
    tn_kernel_query query = query_of(s, in, in_layouts, out_layouts);
    uint64_t all = 0, output = 0;
    for (uint32_t i = 0; i < s->num_inputs; i++)
        if (kernel_query_rule_of(kernel, i)->flags & TN_OPERAND_FUSES &&
            in_layouts[i].offset == 0 && in_layouts[i].dtype != TN_DTYPE_NONE &&
            kernel_query_is_contiguous(&in_layouts[i]))
            all |= UINT64_C(1) << i;
    if (s->num_outputs == 1 &&
        kernel_query_rule_of(kernel, s->num_inputs)->flags & TN_OPERAND_FUSES)
        output = UINT64_C(1) << query.num_inputs;
    const uint64_t sets[] = {all | output, output};
    for (size_t i = 0; i < COUNT(sets); i++) {
        query.fused = sets[i];
        if (sets[i] && (!kernel->accepts || kernel->accepts(&query)))
            return sets[i];
    }
    return 0;
}
