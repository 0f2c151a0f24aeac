// SPDX-License-Identifier: MIT
// Plans the dispatch of an expression program's kernel.
#include "plan_program.h"

#include "../program/program_rows.h"

const char *program_device_lacks(tn_device *device, const tn_expr_program *program)
{
    uint32_t dtypes = program_dtypes(program);
    if (program->flags & TN_EXPR_TAKES && !device->flavour->takes)
        return "it gathers, which its programs do not";
    if ((dtypes & (TN_DTYPE_BIT(TN_I64) | TN_DTYPE_BIT(TN_U64))) && !device->facts.i64)
        return "it computes with 64-bit integers, which the device's shaders lack";
    if ((dtypes & TN_DTYPE_BIT(TN_COMPLEX128)) && !device->facts.f64)
        return "it computes with complex128, whose f64 the device's shaders lack: cast to "
               "complex64";
    if ((dtypes & TN_DTYPE_BIT(TN_F64)) && !device->facts.f64)
        return "it computes with f64, which the device's shaders lack: cast to f32";
    return NULL;
}

static struct rows_device rows_device(const tn_device *device)
{
    const struct vk_facts *facts = &device->facts;
    uint32_t most = facts->properties.limits.maxComputeWorkGroupInvocations;
    uint32_t along_x = facts->properties.limits.maxComputeWorkGroupSize[0];
    most = most < along_x ? most : along_x;
    return (struct rows_device){
        .subgroup = facts->shuffle && !device->is_software ? facts->subgroup_size : 0,
        .max_group = most >= 1024  ? 1024
                     : most >= 512 ? 512
                     : most >= 256 ? 256
                                   : 128,
        .is_software = device->is_software,
    };
}

// A copy of floats of 8 bits is one of bytes, so that NaNs keep their bits.
static const tn_expr_program *program_of(const tn_expr_program *program)
{
    static const tn_expr_insn load = {TN_EXPR_LOAD, TN_U8, 0, 0, 0};
    static const tn_dtype dtype = TN_U8;
    static const uint32_t position;
    static const tn_expr_program copy = {.struct_size = sizeof(copy),
                                         .insns = &load,
                                         .input_dtypes = &dtype,
                                         .output_dtypes = &dtype,
                                         .outputs = &position,
                                         .num_insns = 1,
                                         .num_inputs = 1,
                                         .num_outputs = 1,
                                         .name = "copy of bytes"};
    bool is_copy = program->num_insns == 1 && program->insns[0].op == TN_EXPR_LOAD &&
                   program->num_inputs == 1 && program->num_outputs == 1 &&
                   program->input_dtypes[0] == program->output_dtypes[0];
    return is_copy && tn_dtype_in(program->input_dtypes[0], TN_FLOAT8_DTYPES) ? &copy
                                                                              : program;
}

tn_status plan_program_launch(struct vk_plan *plan, const tn_step *step,
                              tn_status (*get_code)(tn_device *device, void *context,
                                                    struct vk_code *out))
{
    struct program_class found, *class = &found;
    struct program_args list, *args = &list;
    bool has_rows = step->program->flags & TN_EXPR_ROWS;
    uint32_t push_words = plan->device->facts.limits.max_push / 4;
    const struct rows_device device = rows_device(plan->device);
    const tn_expr_program *program = program_of(step->program);
    if (has_rows)
        program_classify_rows(step, &device, push_words, class, args);
    else
        program_classify(step, push_words, class, args);
    struct program_source source = {program, class};
    struct vk_launch launch = {
        .pipeline = {.name = program->name ? program->name : "program",
                     .key = program_class_hash(program, class),
                     .code = get_code,
                     .context = &source}};
    for (uint32_t i = 0; i < step->num_inputs; i++)
        launch_bind(&launch, plan_program_input(step, i));
    for (uint32_t i = 0; i < step->num_outputs; i++)
        launch_bind(&launch, plan_operand(tn_step_output(step, i), VK_WRITES));
    if (class->args_in_buffer) {
        uint32_t at;
        tn_status status = plan_constants(plan, args->words, args->num_words, &at);
        if (status != TN_OK)
            return status;
        launch_bind(&launch,
                    (struct vk_operand){.slot = VK_SLOT_CONSTANTS, .access = VK_READS});
        launch_push(&launch, at);
    } else {
        for (uint32_t i = 0; i < args->num_words; i++)
            launch_push(&launch, args->words[i]);
        launch.pipeline.values = args->values;
    }
    uint64_t per_group = program_per_group(class);
    uint64_t count = has_rows ? program_rows(step) : program_elements(step);
    launch.groups = (count + per_group - 1) / per_group;
    return plan_launch(plan, &launch);
}
