// SPDX-License-Identifier: MIT
// A primitive with a kernel for the CPU, which uses all that a call offers, and with rules
// written by hand.
#include <tenon/ops/rules.h>
#include <tenon/pack.h>

#define CUBE "museum.cube/1"

struct work {
    const float *x;
    float *square, *out;
};

static void cube_piece(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    const struct work *work = context;
    for (int64_t i = begin; i < end; i++) {
        work->square[i] = work->x[i] * work->x[i];
        work->out[i] = work->square[i] * work->x[i];
    }
}

static int64_t elements(const tn_layout *layout)
{
    int64_t count = 1;
    for (int32_t i = 0; i < layout->rank; i++)
        count *= layout->extent[i];
    return count;
}

static uint64_t cube_scratch(const tn_kernel_query *query)
{
    return (uint64_t)elements(&query->outputs[0]) * sizeof(float);
}

static int32_t cube_accepts(const tn_kernel_query *query)
{
    return query->inputs[0].rank <= 2;
}

static tn_status cube_launch(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    struct work work = {(const float *)x->data + x->layout.offset, call->scratch,
                        (float *)out->data + out->layout.offset};
    if (call->scratch_size < (uint64_t)elements(&x->layout) * sizeof(float))
        return call->host->fail(call->host, TN_ERR_INTERNAL, "%llu bytes of scratch",
                                (unsigned long long)call->scratch_size);
    call->parallel_for(call, elements(&x->layout), 1024, cube_piece, &work);
    return TN_OK;
}

static TN_CPU_KERNEL(cubes, CUBE, cube_launch, TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)),
                     .accepts = cube_accepts, .scratch_size = cube_scratch);

// 3 x^2 g, in the three ways of building.
TN_VJP(cube_vjp)
{
    tn_array *x = rule->inputs[0];
    tn_array *square = build->op(build, "base.multiply", TN_IN(x, x), TN_NO_ATTRS);
    tn_array *three = build->scalar(build, build->type(x)->dtype, 3);
    gradients[0] = build->expr(build, "g, s, c -> c * s * g",
                               TN_IN(cotangents[0], square, three), TN_NO_ATTRS);
    return TN_OK;
}

TN_JVP(cube_jvp)
{
    tn_array *x = rule->inputs[0];
    out_tangents[0] =
        build->expr(build, "x, t -> 3 * x * x * t", TN_IN(x, tangents[0]), TN_NO_ATTRS);
    return TN_OK;
}

TN_VMAP(cube_vmap)
{
    return tn_vmap_elementwise(build, rule, axes, outputs, out_axes, CUBE, TN_NO_ATTRS);
}

TN_OP(cube, CUBE, (x), TN_MEANS("x * x * x"), TN_IN_PLACE(0, 0), .vjp = cube_vjp,
      .jvp = cube_jvp, .vmap = cube_vmap);

TN_PACK("org.tenon.museum.rules", "1.0.0", "Tenon", TN_PRIMITIVES(&cube),
        TN_KERNELS(&cubes));
