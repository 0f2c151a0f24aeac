// SPDX-License-Identifier: MIT
// Opens an operator pack for its checks.
#include "pack.h"

// True when the runtime has a backend that computes.
static bool conformance_pack_computes(tn_runtime *runtime)
{
    tn_scope *scope = tn_scope_open(runtime);
    double got =
        tn_item(scope, tn_expr(scope, "x -> x + 1", TN_IN(tn_f32(scope, 1)), TN_NO_ATTRS));
    tn_scope_close(scope);
    return got == 2;
}

bool pack_open(struct pack *pack, struct kit *k)
{
    const char *why;
    *pack = (struct pack){.ops = NULL};
    if (!subject_open(&pack->subject, &pack->host, k))
        return false;
    pack->ops = subject_ops(&pack->subject);
    pack->maker = (struct sample_maker){
        .kit = k,
        .host = &pack->host,
        .runtime = subject_runtime(k, "TENON_BACKEND=cpu-blas", &why),
    };
    if (pack->maker.runtime && !conformance_pack_computes(pack->maker.runtime)) {
        tn_runtime_close(pack->maker.runtime);
        pack->maker.runtime = NULL;
    }
    return true;
}

void pack_close(struct pack *pack)
{
    tn_runtime_close(pack->maker.runtime);
    subject_unload(&pack->subject, &pack->host);
    fake_host_finish(&pack->host);
}

const tn_primitive *pack_primitive(const struct pack *pack, const char *id)
{
    for (uint32_t i = 0; pack->ops && i < pack->ops->num_primitives; i++)
        if (strcmp(pack->ops->primitives[i]->id, id) == 0)
            return pack->ops->primitives[i];
    return pack->maker.runtime ? tn_primitive_find(pack->maker.runtime, id) : NULL;
}
