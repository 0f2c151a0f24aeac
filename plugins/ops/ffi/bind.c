// SPDX-License-Identifier: MIT
// The core's tables of a function (primitive and kernel), and call forms for libffi.
#include <string.h>
#include "rules.h"

// --- types for libffi ------------------------------------------------------------------

static ffi_type *ffi_bind_type_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_I8:
        return &ffi_type_sint8;
    case TN_I16:
        return &ffi_type_sint16;
    case TN_I32:
        return &ffi_type_sint32;
    case TN_I64:
        return &ffi_type_sint64;
    case TN_BOOL:
    case TN_U8:
        return &ffi_type_uint8;
    case TN_U16:
        return &ffi_type_uint16;
    case TN_U32:
        return &ffi_type_uint32;
    case TN_U64:
        return &ffi_type_uint64;
    case TN_F32:
        return &ffi_type_float;
    case TN_F64:
        return &ffi_type_double;
    default:
        return &ffi_type_pointer;
    }
}

// Prepares the call of one variant.
static tn_status bind_signature(struct ffi_function *function, struct variant *variant,
                                struct problem *problem)
{
    uint32_t index = (uint32_t)(variant - function->variants);
    ffi_type *result = &ffi_type_void;
    ffi_type **types =
        arena_alloc(&function->pack->arena, (function->num_args + 1) * sizeof(*types));
    if (!types)
        return problem_set(problem, TN_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < function->num_args; i++) {
        const struct argument *arg = &function->args[i];
        types[i] = arg->by_pointer ? &ffi_type_pointer
                                   : ffi_bind_type_of(dtype_or(arg->type, function, index));
    }
    if (function->returns != RETURNS_VOID)
        result = ffi_bind_type_of(dtype_or(function->return_type, function, index));
    if (ffi_prep_cif(&variant->cif, FFI_DEFAULT_ABI, function->num_args, result, types) !=
        FFI_OK)
        return problem_set(problem, TN_ERR_UNSUPPORTED,
                           "%s: libffi cannot call this signature", function->id);
    return TN_OK;
}

static tn_status bind_callee(struct callee *callee, struct ffi_arena *arena,
                             const struct ffi_function *function, uint32_t variant,
                             struct problem *problem)
{
    ffi_type *result = callee->returns == RETURNS_STATUS
                           ? ffi_bind_type_of(callee->return_type)
                       : callee->returns == RETURNS_HANDLE ? &ffi_type_pointer
                                                           : &ffi_type_void;
    ffi_type **types = arena_alloc(arena, (callee->num_args + 1) * sizeof(*types));
    if (!types)
        return problem_set(problem, TN_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < callee->num_args; i++) {
        const struct argument *arg = &callee->args[i];
        tn_dtype type = function ? dtype_or(arg->type, function, variant) : arg->type;
        types[i] = arg->by_pointer || arg->kind == ARG_HANDLE ? &ffi_type_pointer
                                                              : ffi_bind_type_of(type);
    }
    if (ffi_prep_cif(&callee->cifs[variant], FFI_DEFAULT_ABI, callee->num_args, result,
                     types) != FFI_OK)
        return problem_set(problem, TN_ERR_UNSUPPORTED,
                           "%s: libffi cannot call this signature",
                           callee->symbols[variant]);
    return TN_OK;
}

tn_status callee_bind(struct callee *callee, struct ffi_arena *arena,
                      const struct ffi_function *function, struct problem *problem)
{
    for (uint32_t i = 0; i < callee->num_variants && problem->status == TN_OK; i++)
        bind_callee(callee, arena, function, i, problem);
    return problem->status;
}

// --- rules -----------------------------------------------------------------------------

tn_status function_infer(const struct ffi_function *function, const tn_infer *given,
                         tn_type *types)
{
    struct bound bound;
    struct problem problem = {0};
    tn_type outputs[MAX_OUTPUTS];
    tn_status status = bind_types(function, given->types, given->attrs, &bound, &problem);
    for (uint32_t i = 0; i < function->num_outputs && status == TN_OK; i++)
        status = output_type(function, &bound, i, &outputs[i], &problem);
    if (status == TN_OK)
        status = check_extents(function, &bound, &problem);
    if (status == TN_OK)
        status = check_attributes(function, given->attrs, &problem);
    if (status != TN_OK)
        return given->host->fail(given->host, status, "%s", problem.text);
    memcpy(types, outputs, function->num_outputs * sizeof(*types));
    return TN_OK;
}

tn_status function_launch(struct ffi_function *function, const tn_cpu_call *call)
{
    return function->callback ? callback_call(function, call)
                              : function_call(function, call);
}

// --- tables for the core ---------------------------------------------------------------

// The layout that the kernel requires of an input; the core copies inputs that do not have
// that layout. Batches, columns and strided vectors are copied by the call instead
// (call.c).
static uint32_t needs_of(const struct ffi_operand *operand)
{
    if (operand->lead == LEAD_WHOLE)
        return TN_NEEDS_CONTIGUOUS;
    if (operand->rank == 0 || operand->lead == LEAD_BATCH)
        return TN_NEEDS_ANY;
    return operand->layout == LAYOUT_CONTIGUOUS ? TN_NEEDS_CONTIGUOUS
           : operand->layout == LAYOUT_ROWS     ? TN_NEEDS_ROWS
                                                : TN_NEEDS_ANY;
}

static void bind_operands(struct ffi_function *function)
{
    uint32_t own = 0, num_pairs = 0; // own: the dtypes that T may be, as bits
    for (uint32_t i = 0; i < function->num_variants; i++)
        own |= TN_DTYPE_BIT(function->variants[i].dtype);
    for (uint32_t k = 0; k < function->num_inputs + function->num_outputs; k++) {
        const struct ffi_operand *operand = &function->operands[k];
        bool is_input = k < function->num_inputs;
        function->rules[k].dtypes =
            operand->dtype != TN_DTYPE_NONE ? TN_DTYPE_BIT(operand->dtype) : own;
        function->rules[k].needs = is_input ? needs_of(operand) : TN_NEEDS_ANY;
        if (is_input)
            function->input_infos[k] =
                (tn_input_info){operand->name, operand->doc,
                                operand->is_constant ? TN_INPUT_CONSTANT : 0, 0};
        else
            function->output_infos[k - function->num_inputs] =
                (tn_output_info){operand->name, operand->doc, 0, 0};
        if (!is_input && operand->overwrites)
            function->pairs[num_pairs++] =
                (tn_in_place){.input = (int32_t)operand->overwrites - 1,
                              .output = (int32_t)(k - function->num_inputs)};
    }
    function->primitive.num_in_place = num_pairs;
    function->primitive.in_place_size = sizeof(tn_in_place);
}

static void bind_records(struct ffi_function *function)
{
    function->primitive = (tn_primitive){
        .struct_size = sizeof(tn_primitive),
        .id = function->id,
        .doc = function->doc,
        .inputs = function->input_infos,
        .outputs = function->output_infos,
        .num_inputs = function->num_inputs,
        .num_outputs = function->num_outputs,
        .input_size = sizeof(tn_input_info),
        .output_size = sizeof(tn_output_info),
        .attrs = {.size = function->num_fields * (uint32_t)sizeof(int64_t),
                  .num_fields = function->num_fields,
                  .field_size = sizeof(tn_attr_field),
                  .fields = function->fields},
        .in_place = function->pairs,
    };
    function->kernel = (tn_kernel){
        .struct_size = sizeof(tn_kernel),
        .primitive = function->id,
        .family = TN_FAMILY_CPU,
        .name = "ffi",
        .priority = 300,
        .num_operands = function->num_inputs + function->num_outputs,
        .operands = function->rules,
        .operand_size = sizeof(tn_operand_rule),
        .payload = &function->payload,
    };
    function->payload = (tn_cpu_kernel){.struct_size = sizeof(tn_cpu_kernel)};
}

tn_status function_bind(struct ffi_function *function, const struct rules *rules,
                        struct problem *problem)
{
    for (uint32_t i = 0; i < function->num_variants && problem->status == TN_OK; i++)
        bind_signature(function, &function->variants[i], problem);
    for (uint32_t i = 0; i < function->num_handles; i++) {
        callee_bind(&function->handles[i].create, &function->pack->arena, function,
                    problem);
        callee_bind(&function->handles[i].destroy, &function->pack->arena, function,
                    problem);
    }
    if (problem->status != TN_OK)
        return problem->status;
    bind_records(function);
    bind_operands(function);
    function->primitive.reference = rules->launch;
    function->primitive.infer = rules->infer;
    function->primitive.vjp = function->gradients ? rules->vjp : NULL;
    function->primitive.vmap = function->lead == LEAD_BATCH ? rules->vmap : NULL;
    function->kernel.scratch_size = rules->scratch_size;
    function->payload.launch = rules->launch;
    return TN_OK;
}
