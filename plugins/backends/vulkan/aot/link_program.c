// SPDX-License-Identifier: MIT
// Plans expression programs. A kernel is linked if the device has none yet for the
// program's class.
#include "link_program.h"

#include <stdlib.h>
#include "program_spirv.h"

static void release_words(struct vk_code *code)
{
    free((void *)(uintptr_t)code->words);
}

tn_status link_program(tn_device *device, void *context, struct vk_code *out)
{
    const struct program_source *source = context;
    const tn_host *host = device->host;
    struct spirv_module module;
    tn_status status = TN_OK;
    spirv_begin(&module);
    uint32_t entry = program_write_spirv(&module, source->program, source->class);
    *out = (struct vk_code){.release = release_words};
    out->words = spirv_link(&module, entry, program_group(source->class), &out->size);
    if (!out->words)
        status = host->fail(host, TN_ERR_MEMORY, "out of memory");
    else if (module.missing[0]) {
        status = host->fail(host, TN_ERR_INTERNAL, "%s: no SPIR-V function named %s",
                            source->program->name ? source->program->name : "program",
                            module.missing);
        release_words(out);
    }
    spirv_finish(&module);
    return status;
}

tn_status link_plan_program(struct vk_plan *plan, const tn_step *step)
{
    return plan_program_launch(plan, step, link_program);
}
