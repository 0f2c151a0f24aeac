// SPDX-License-Identifier: @LICENSE@
// @NAME@.@OP@: alpha * x + beta * y.
%if c
#include <tenon/ops/rows.h>
%end
%if vjp
#include <tenon/ops/rules.h>
%end
#include <tenon/pack.h>
%if glsl
#include "@OP@_shader.h" // @OP@_glsl_code and @OP@_spirv_code, made from @OP@.comp
%end

%if vjp
// The attributes, all numbers, with their defaults.
TN_NUMBER_ATTRS(@OP@, alpha, 1, beta, 1);

// The derivative: d loss/dx = alpha * g and d loss/dy = beta * g. Where x or y was broadcast,
// the host sums the gradient down to its shape.
TN_VJP(@OP@_vjp)
{
    const @OP@_attrs *attrs = rule->attrs;
    gradients[0] = tn_scaled(build, cotangents[0], attrs->alpha);
    gradients[1] = tn_scaled(build, cotangents[0], attrs->beta);
    return TN_OK;
}

// The primitive: its inputs and its meaning, an expression. From the expression the host derives
// shape, dtype, batching, and code for each device.
TN_OP(@OP@, "@NAME@.@OP@/1", (x, y), .attrs = TN_ATTRS_OF(@OP@), .vjp = @OP@_vjp,
      TN_MEANS("alpha * x + beta * y"));
%else
// The primitive: its inputs, its attributes with their defaults, and its meaning, an expression.
// From the expression the host derives shape, dtype, derivatives, batching, and code for each
// device.
TN_EXPR_OP(@OP@, "@NAME@.@OP@/1", (x, y), (alpha, 1, beta, 1), "alpha * x + beta * y");
%end
%if c

// A cpu.c/1 kernel for f32. Other dtypes run the expression.
static void @OP@_row(const tn_row *row)
{
    const @OP@_attrs *attrs = row->call->attrs;
    const float alpha = (float)attrs->alpha, beta = (float)attrs->beta;
    const float *x = row->data[0], *y = row->data[1];
    float *out = row->data[2];
    for (int64_t i = 0; i < row->count; i++)
        out[i * row->step[2]] = alpha * x[i * row->step[0]] + beta * y[i * row->step[1]];
}

TN_ROW_KERNEL(@OP@_c, "@NAME@.@OP@/1", @OP@_row, TN_TAKES_ANY(TN_DTYPE_BIT(TN_F32)));
%end
%if glsl

// Two kernels of the shader: as text for backends that compile at run time, and as SPIR-V for the
// others. Push constants are in the order of the shader's block. The shader reads x and y at the
// same element, so where one of them is broadcast, the expression runs.
TN_SHADER_KERNELS(@OP@, "@NAME@.@OP@/1", 256,
                  (TN_PUSH_THE_COUNT, TN_PUSH_OFFSETS(3), TN_PUSH_NUMBERS(2)),
                  TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)), .accepts = tn_same_extents);
%end

%if c
%if glsl
TN_PACK("@ID@", "0.1.0", "@VENDOR@", TN_PRIMITIVES(&@OP@),
        TN_KERNELS(&@OP@_c, &@OP@_glsl, &@OP@_spirv));
%else
TN_PACK("@ID@", "0.1.0", "@VENDOR@", TN_PRIMITIVES(&@OP@), TN_KERNELS(&@OP@_c));
%end
%else
%if glsl
TN_PACK("@ID@", "0.1.0", "@VENDOR@", TN_PRIMITIVES(&@OP@),
        TN_KERNELS(&@OP@_glsl, &@OP@_spirv));
%else
TN_PACK("@ID@", "0.1.0", "@VENDOR@", TN_PRIMITIVES(&@OP@));
%end
%end
