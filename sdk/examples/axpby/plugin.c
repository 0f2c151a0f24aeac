// SPDX-License-Identifier: MIT
// An op pack from outside Tenon's tree: alpha * x + beta * y, brought in three ways.
//
//   acme.axpby_expr/1   one line; runs, differentiates and fuses on every device
//   acme.axpby/1        the same line, and kernels of its own where they are worth it
//   acme.axpby_rules/1  the same line, and derivatives and batching written by hand
//
// The pack links nothing of Tenon: all that it calls arrives in tables.
#include "axpby.h"

#include <string.h>

const tn_attr_field axpby_fields[2] = {
    TN_F64_FIELD(axpby_attrs, alpha, 1.0, "factor of x"),
    TN_F64_FIELD(axpby_attrs, beta, 1.0, "factor of y"),
};

const tn_input_info axpby_inputs[2] = {
    {.name = "x", .doc = "first term"},
    {.name = "y", .doc = "second term; broadcast against x"},
};

// The whole of a primitive, if you want no more than this. The names in the expression are
// those of the inputs and attributes. The host checks the line when the pack is loaded, and
// derives from it the shape, the dtype, both kinds of derivative, and code for each device.
static const tn_primitive axpby_expr = {
    .struct_size = sizeof(tn_primitive),
    .id = "acme.axpby_expr/1",
    .doc = "alpha * x + beta * y, as an expression and nothing else.",
    .inputs = axpby_inputs,
    .num_inputs = 2,
    .attrs = AXPBY_TABLE,
    .expr = "alpha * x + beta * y",
};

// Kernels are records of their own, which name this primitive: see cpu.c and vulkan.c. What
// they do not take (other dtypes, say) runs as the expression.
static const tn_primitive axpby = {
    .struct_size = sizeof(tn_primitive),
    .id = "acme.axpby/1",
    .doc = "alpha * x + beta * y, with kernels for BLAS and Vulkan.",
    .inputs = axpby_inputs,
    .num_inputs = 2,
    .attrs = AXPBY_TABLE,
    .in_place =
        &(const tn_in_place){.input = 1, .output = 0}, // as BLAS does: y becomes out
    .num_in_place = 1,
    .expr = "alpha * x + beta * y",
};

static const tn_primitive *const primitives[] = {&axpby_expr, &axpby, &axpby_with_rules};
static const tn_kernel *const kernels[] = {&axpby_cpu, &axpby_vulkan_glsl,
                                           &axpby_vulkan_spirv};

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .kernels = kernels,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
    .num_kernels = sizeof(kernels) / sizeof(kernels[0]),
};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("com.acme.axpby", "1.0.0", "Acme", .query = query);
