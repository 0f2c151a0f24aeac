// SPDX-License-Identifier: @LICENSE@
// Kernels in f32 for @FOR@, a primitive of another pack:
//
//   @EXPR@
//
@SIGNATURE@
//
// Applications that these kernels do not take run as before. Of several kernels that fit, the one
// with the highest priority runs: 900 and more come before Tenon's own.
#define TN_KERNEL_PRIORITY 900
%if c
#include <math.h>
#include <tenon/ops/rows.h>
%end
#include <tenon/pack.h>
%if glsl
#include "@NAME@_shader.h" // @NAME@_glsl_code and @NAME@_spirv_code, made from @NAME@.comp
%end
%if c
%if ATTRS

// The primitive's attribute struct.
@ATTRS@
%end
%if max

static inline float max_of(float a, float b)
{
    return a > b || isnan(a) ? a : b; // a NaN when either is
}
%end
%if min

static inline float min_of(float a, float b)
{
    return a < b || isnan(a) ? a : b; // a NaN when either is
}
%end
%if choose

static inline float choose(int condition, float a, float b)
{
    return condition ? a : b;
}
%end

static void @NAME@_row(const tn_row *row)
{
%if ATTRS
    const @NAME@_attrs *attrs = row->call->attrs;
%end
@LOCALS@
    for (int64_t i = 0; i < row->count; i++)
        out[i * row->step[@OUT@]] = @C_EXPR@;
}

TN_ROW_KERNEL(@NAME@_c, "@FOR@", @NAME@_row, TN_TAKES_ANY(TN_DTYPE_BIT(TN_F32)));
%end
%if glsl

// Two kernels of the shader: as text for backends that compile at run time, and as SPIR-V for the
// others. Push constants are in the order of the shader's block. Broadcast inputs are refused.
TN_SHADER_KERNELS(@NAME@, "@FOR@", 256, (@PUSH_FIELDS@),
                  TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)), .accepts = tn_same_extents);
%end

%if c
%if glsl
TN_PACK("@ID@", "0.1.0", "@VENDOR@",
        TN_KERNELS(&@NAME@_c, &@NAME@_glsl, &@NAME@_spirv));
%else
TN_PACK("@ID@", "0.1.0", "@VENDOR@", TN_KERNELS(&@NAME@_c));
%end
%else
TN_PACK("@ID@", "0.1.0", "@VENDOR@", TN_KERNELS(&@NAME@_glsl, &@NAME@_spirv));
%end
