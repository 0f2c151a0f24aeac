// SPDX-License-Identifier: MIT
// An op pack with one primitive: try `tenon eval 'example.swish(x, beta=2)' x=1.5`.
#include <string.h>
#include <tenon/plugin.h>

typedef struct swish_attrs {
    double beta;
} swish_attrs;

static const tn_attr_field swish_fields[] = {
    TN_F64_FIELD(swish_attrs, beta, 1.0, "steepness"),
};

static const tn_input_info swish_inputs[] = {{.name = "x", .doc = "any floats"}};

static const tn_primitive swish = {
    .struct_size = sizeof(tn_primitive),
    .id = "example.swish/1",
    .doc = "x * sigmoid(beta * x).",
    .inputs = swish_inputs,
    .num_inputs = 1,
    .attrs = TN_ATTR_TABLE(swish_attrs, swish_fields),
    .expr = "x / (1 + exp(-beta * x))",
};

static const tn_primitive *const primitives[] = {&swish};

static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = primitives,
    .num_primitives = sizeof(primitives) / sizeof(primitives[0]),
};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("com.example.pack", "0.1.0", "Example", .query = query);
