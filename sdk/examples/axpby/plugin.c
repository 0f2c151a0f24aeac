// SPDX-License-Identifier: MIT
// An op pack outside of Tenon's tree: alpha * x + beta * y, as three primitives.
//
//   acme.axpby_expr/1   an expression; runs, differentiates and fuses on every device
//   acme.axpby/1        the expression, with kernels for the CPU and for Vulkan
//   acme.axpby_rules/1  the expression, with derivatives and batching written by hand
//
// The pack links nothing of Tenon: it calls Tenon through tables of functions that it is
// given.
#include <cblas.h>
#include <tenon/ops/rows.h>
#include <tenon/ops/rules.h>
#include "axpby_shader.h" // axpby_glsl_code and axpby_spirv_code, made from axpby.comp

// --- one line --------------------------------------------------------------------------

// A whole primitive: its inputs, its attributes with their defaults, and its meaning, an
// expression. The host checks the line when the pack is loaded, and derives from it shape,
// dtype, derivatives, batching, and code for each device.
TN_EXPR_OP(axpby, "acme.axpby_expr/1", (x, y), (alpha, 1, beta, 1), "alpha * x + beta * y");

// --- kernels ---------------------------------------------------------------------------

// The same primitive under another id, for the kernels below. The output may take over the
// memory of y.
TN_OP(tuned, "acme.axpby/1", (x, y), .attrs = TN_ATTRS_OF(axpby), TN_IN_PLACE(1, 0),
      TN_MEANS("alpha * x + beta * y"));

// cpu.c/1: BLAS, which writes its result over y, so y is copied to the output first, unless
// both are the same memory. To BLAS a factor of 0 means "do not read", while in the
// expression 0 * NaN is NaN. A kernel has to agree with the expression, so factors of 0 go
// to the plain loop, as do rows that are not dense.
//
// OpenBLAS also has cblas_saxpby, which is both calls in one; but in 0.3.21 it is a loop
// without vector instructions, and takes some four times as long as the two calls.
static void row(const tn_row *r)
{
    const axpby_attrs *attrs = r->call->attrs;
    const float alpha = (float)attrs->alpha, beta = (float)attrs->beta;
    float *x = r->data[0], *y = r->data[1], *out = r->data[2];
    if (alpha != 0 && beta != 0 && tn_row_copy(r, 1, 2)) {
        cblas_sscal((blasint)r->count, beta, out, 1);
        cblas_saxpy((blasint)r->count, alpha, x, 1, out, 1);
        return;
    }
    for (int64_t i = 0; i < r->count; i++)
        out[i * r->step[2]] = alpha * x[i * r->step[0]] + beta * y[i * r->step[1]];
}

TN_ROW_KERNEL(axpby_cblas, "acme.axpby/1", row, TN_TAKES_ANY(TN_DTYPE_BIT(TN_F32)));

// Two kernels of one shader: as GLSL for backends that compile at run time, and as SPIR-V
// for the others. Push constants are listed in the order of the shader's block. The shader
// reads x and y at the same element, so applications with broadcast inputs are refused, and
// run the expression. Inputs that are not contiguous are copied first.
TN_SHADER_KERNELS(axpby, "acme.axpby/1", 256,
                  (TN_PUSH_THE_COUNT, TN_PUSH_OFFSETS(3), TN_PUSH_NUMBERS(2)),
                  TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)), .accepts = tn_same_extents);

// --- rules -----------------------------------------------------------------------------

// Rules build graph through the tn_build that they are given, and so run on any device. A
// derivative that is NULL is zero, as an argument and as a result.

// Reverse mode: d loss/dx = alpha * g and d loss/dy = beta * g. Where x or y was broadcast,
// the host sums the gradient down to its shape.
TN_VJP(vjp)
{
    const axpby_attrs *attrs = rule->attrs;
    gradients[0] = tn_scaled(build, cotangents[0], attrs->alpha);
    gradients[1] = tn_scaled(build, cotangents[0], attrs->beta);
    return TN_OK;
}

// Forward mode: out' = alpha * x' + beta * y'.
TN_JVP(jvp)
{
    const axpby_attrs *attrs = rule->attrs;
    out_tangents[0] = tn_add_terms(build, tn_scaled(build, tangents[0], attrs->alpha),
                                   tn_scaled(build, tangents[1], attrs->beta));
    return TN_OK;
}

// Batching: the primitive works element by element, so a batch is one more leading axis.
TN_VMAP(vmap)
{
    const axpby_attrs *attrs = rule->attrs;
    return tn_vmap_elementwise(build, rule, axes, outputs, out_axes, "acme.axpby_rules/1",
                               tn_attrs("alpha", attrs->alpha, "beta", attrs->beta));
}

TN_OP(ruled, "acme.axpby_rules/1", (x, y), .attrs = TN_ATTRS_OF(axpby), .vjp = vjp,
      .jvp = jvp, .vmap = vmap, TN_MEANS("alpha * x + beta * y"));

TN_PACK("com.acme.axpby", "1.0.0", "Acme", TN_PRIMITIVES(&axpby, &tuned, &ruled),
        TN_KERNELS(&axpby_cblas, &axpby_glsl, &axpby_spirv));
