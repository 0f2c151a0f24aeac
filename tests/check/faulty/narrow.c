// SPDX-License-Identifier: MIT
// A pack of one kernel for another pack's primitive, which takes little of it: products of
// two f32 matrices of contiguous rows. With NEVER it takes nothing.
#include <string.h>
#include <tenon/ops/reference.h>
#include <tenon/plugin.h>

static int32_t are_matrices(const tn_kernel_query *query)
{
#ifdef NEVER
    return query->inputs[0].rank < 0;
#endif
    return query->inputs[0].rank == 2 && query->inputs[1].rank == 2;
}

static tn_status launch(const tn_cpu_call *call)
{
    const tn_tensor *a = &call->inputs[0], *b = &call->inputs[1], *out = &call->outputs[0];
    const int64_t rows = a->layout.extent[0], columns = b->layout.extent[1];
    int64_t terms = a->layout.extent[1];
#ifdef FAULT_KERNEL_VALUES_NARROW
    terms -= rows == 3; // the last term is lost
#endif
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) {
            double sum = 0;
            for (int64_t n = 0; n < terms; n++)
                sum += tn_get_f64(a, tn_offset_at(&a->layout, (int64_t[]){i, n})) *
                       tn_get_f64(b, tn_offset_at(&b->layout, (int64_t[]){n, k}));
            tn_set_f64(out, tn_offset_at(&out->layout, (int64_t[]){i, k}), sum);
        }
    return TN_OK;
}

static const tn_kernel kernel = {
    .struct_size = sizeof(kernel),
    .primitive = "base.matmul/1",
    .family = TN_FAMILY_CPU,
    .name = "narrow",
    .priority = 500,
    TN_OPERANDS(((const tn_operand_rule[]){
        {.dtypes = TN_DTYPE_BIT(TN_F32), .needs = TN_NEEDS_CONTIGUOUS}})),
    .accepts = are_matrices,
    .payload =
        &(const tn_cpu_kernel){.struct_size = sizeof(tn_cpu_kernel), .launch = launch},
};

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .kernels = (const tn_kernel *const[]){&kernel},
    .num_kernels = 1,
};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("com.acme.narrow", "1.0.0", "Acme", .query = query);
