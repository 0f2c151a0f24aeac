// SPDX-License-Identifier: MIT
// A plugin of the next ABI minor: museum.py makes headers in which every table has one more
// member, `museum`, and compiles this with them. Macros:
//   NEWER_ID         the last part of its id
//   NEWER_MIN        the oldest host minor that it can live with
//   NEWER_PLUGIN, NEWER_OPS, NEWER_PRIMITIVE, NEWER_KERNEL, NEWER_CPU_KERNEL
//                    what it sets `museum` to, there
//   NEWER_CARELESS   it calls what is new without asking whether it is there
#ifdef NEWER_MIN
#define TN_PLUGIN_MINOR_MIN NEWER_MIN
#endif
#include <tenon/pack.h>

#ifndef NEWER_PLUGIN
#define NEWER_PLUGIN 0
#endif
#ifndef NEWER_OPS
#define NEWER_OPS 0
#endif
#ifndef NEWER_PRIMITIVE
#define NEWER_PRIMITIVE 0
#endif
#ifndef NEWER_KERNEL
#define NEWER_KERNEL 0
#endif
#ifndef NEWER_CPU_KERNEL
#define NEWER_CPU_KERNEL 0
#endif

static tn_status init(const tn_host *host)
{
#ifdef NEWER_CARELESS
    int32_t is_newer = host->museum != 0;
#else
    int32_t is_newer = TN_HAS(host, museum);
#endif
    host->log(host, TN_LOG_DEBUG, "museum", "the host is %s", is_newer ? "newer" : "older");
    return TN_OK;
}

static tn_status launch(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    for (int64_t i = 0; i < x->layout.extent[0]; i++)
        ((float *)out->data)[out->layout.offset + i] =
            2 * ((const float *)x->data)[x->layout.offset + i];
    return TN_OK;
}

TN_OP(twice, "museum.twice/1", (x), TN_MEANS("x + x"), .museum = NEWER_PRIMITIVE);

static int32_t accepts(const tn_kernel_query *query)
{
    return query->inputs[0].rank == 1;
}
static const tn_cpu_kernel payload = {
    .struct_size = sizeof(payload), .launch = launch, .museum = NEWER_CPU_KERNEL};
static const tn_operand_rule rules[] = {{TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS}};
static const tn_kernel doubles = {.struct_size = sizeof(doubles),
                                  .flags = TN_KERNEL_SAME_DTYPE,
                                  .primitive = "museum.twice/1",
                                  .family = TN_FAMILY_CPU,
                                  .name = "doubles",
                                  .priority = 500,
                                  TN_OPERANDS(rules),
                                  .accepts = accepts,
                                  .payload = &payload,
                                  .museum = NEWER_KERNEL};
static const tn_ops ops = {.struct_size = sizeof(ops),
                           TN_PRIMITIVES(&twice),
                           TN_KERNELS(&doubles),
                           .museum = NEWER_OPS};

static const void *query(const char *id)
{
    return __builtin_strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("org.tenon.museum." NEWER_ID, "1.0.0", "Tenon", .init = init, .query = query,
          .museum = NEWER_PLUGIN);
