// SPDX-License-Identifier: MIT
// Records for the core. Its rules get no pointer of the plugin's own, so each rule of each
// function is a closure of libffi: an address of its own that carries the function along.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pack.h"
#include "rule.h"

struct closure {
    struct closure *next;
    ffi_closure *memory;
    ffi_cif cif;
};

// --- types for libffi ------------------------------------------------------------------

static ffi_type *type_of(tn_dtype dtype)
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

static tn_status bind_signature(struct function *function, uint32_t variant,
                                struct problem *problem)
{
    ffi_type **types = function->types[variant], *result = &ffi_type_void;
    for (uint32_t i = 0; i < function->num_args; i++) {
        const struct argument *arg = &function->args[i];
        types[i] = arg->by_pointer ? &ffi_type_pointer
                                   : type_of(dtype_or(arg->type, function, variant));
    }
    if (function->returns != RETURNS_VOID)
        result = type_of(dtype_or(function->return_type, function, variant));
    if (ffi_prep_cif(&function->cifs[variant], FFI_DEFAULT_ABI, function->num_args, result,
                     types) != FFI_OK)
        return problem_set(problem, TN_ERR_UNSUPPORTED,
                           "%s: libffi cannot call this signature", function->id);
    return TN_OK;
}

// --- rules -----------------------------------------------------------------------------

static tn_status infer(const struct function *function, const tn_infer *given,
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
    if (status != TN_OK)
        return given->host->fail(given->host, status, "%s", problem.text);
    memcpy(types, outputs, function->num_outputs * sizeof(types[0]));
    return TN_OK;
}

// Status codes are returned as libffi wants integers: widened.
static void infer_rule(ffi_cif *cif, void *result, void **args, void *function)
{
    (void)cif;
    *(ffi_sarg *)result =
        infer(function, *(const tn_infer **)args[0], *(tn_type **)args[1]);
}

static tn_status run_function(struct function *function, const tn_cpu_call *call)
{
    return function->callback ? callback_call(function, call)
                              : function_call(function, call);
}

static void launch_rule(ffi_cif *cif, void *result, void **args, void *function)
{
    (void)cif;
    *(ffi_sarg *)result = run_function(function, *(const tn_cpu_call **)args[0]);
}

static void scratch_rule(ffi_cif *cif, void *result, void **args, void *function)
{
    (void)cif;
    *(uint64_t *)result = function_scratch(function, *(const tn_kernel_query **)args[0]);
}

static void vjp_rule(ffi_cif *cif, void *result, void **args, void *function)
{
    (void)cif;
    *(ffi_sarg *)result = gradients_build(
        function, *(const tn_build **)args[0], *(const tn_rule **)args[1],
        *(tn_array *const **)args[2], *(const uint64_t **)args[3], *(tn_array ***)args[4]);
}

typedef void (*rule)(ffi_cif *, void *, void **, void *);

// libffi never gives back the pages of its closures: it stays when this code is unloaded,
// so that the next to be loaded uses them again.
static void keep_libffi(void)
{
    Dl_info info;
    if (dladdr((const void *)&ffi_type_void, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
}

// An address that is called with `num_args` pointers and calls `code` with the function.
static void *bind_rule(struct function *function, rule code, uint32_t num_args,
                       ffi_type *result, struct problem *problem)
{
    static ffi_type *pointers[] = {&ffi_type_pointer, &ffi_type_pointer, &ffi_type_pointer,
                                   &ffi_type_pointer, &ffi_type_pointer};
    struct closure *closure = calloc(1, sizeof(*closure));
    void *address = NULL;
    if (!function->closures)
        keep_libffi();
    if (closure)
        closure->memory = ffi_closure_alloc(sizeof(ffi_closure), &address);
    if (!closure || !closure->memory) {
        free(closure);
        problem_set(problem, TN_ERR_MEMORY, "out of memory for closures");
        return NULL;
    }
    closure->next = function->closures;
    function->closures = closure;
    if (ffi_prep_cif(&closure->cif, FFI_DEFAULT_ABI, num_args, result, pointers) !=
            FFI_OK ||
        ffi_prep_closure_loc(closure->memory, &closure->cif, code, function, address) !=
            FFI_OK) {
        problem_set(problem, TN_ERR_UNSUPPORTED, "libffi cannot make closures here");
        return NULL;
    }
    return address;
}

// --- records ---------------------------------------------------------------------------

// What a kernel asks of an operand's memory: the core copies what does not suit. Broadcast
// and column-major operands are copied in the call.
static uint32_t needs_of(const struct operand *operand)
{
    if (operand->lead == LEAD_WHOLE)
        return TN_NEEDS_CONTIGUOUS;
    if (operand->rank == 0 || operand->lead == LEAD_BATCH)
        return TN_NEEDS_ANY;
    return operand->layout == LAYOUT_CONTIGUOUS ? TN_NEEDS_CONTIGUOUS
           : operand->layout == LAYOUT_ROWS     ? TN_NEEDS_ROWS
                                                : TN_NEEDS_ANY;
}

static void bind_operands(struct function *function)
{
    uint32_t own = 0, num_pairs = 0;
    for (uint32_t i = 0; i < function->num_variants; i++)
        own |= TN_DTYPE_BIT(function->variants[i].dtype);
    for (uint32_t k = 0; k < function->num_inputs + function->num_outputs; k++) {
        const struct operand *operand = &function->operands[k];
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
            function->pairs[num_pairs++] = (tn_in_place){
                (int32_t)operand->overwrites - 1, (int32_t)(k - function->num_inputs)};
    }
    function->primitive.num_in_place = num_pairs;
}

static void bind_records(struct function *function)
{
    function->primitive = (tn_primitive){
        .struct_size = sizeof(tn_primitive),
        .id = function->id,
        .doc = function->doc,
        .inputs = function->input_infos,
        .outputs = function->output_infos,
        .num_inputs = function->num_inputs,
        .num_outputs = function->num_outputs,
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
        .payload = &function->payload,
    };
    function->payload = (tn_cpu_kernel){.struct_size = sizeof(tn_cpu_kernel)};
}

tn_status function_bind(struct function *function, struct problem *problem)
{
    for (uint32_t i = 0; i < function->num_variants && problem->status == TN_OK; i++)
        bind_signature(function, i, problem);
    if (problem->status != TN_OK)
        return problem->status;
    bind_records(function);
    bind_operands(function);
    void *launch = bind_rule(function, launch_rule, 1, &ffi_type_sint32, problem);
    void *types = bind_rule(function, infer_rule, 2, &ffi_type_sint32, problem);
    void *scratch = bind_rule(function, scratch_rule, 1, &ffi_type_uint64, problem);
    void *vjp = function->gradients
                    ? bind_rule(function, vjp_rule, 5, &ffi_type_sint32, problem)
                    : NULL;
    if (problem->status != TN_OK)
        return problem->status;
    // POSIX lets addresses of functions be kept as pointers to data; C alone does not.
    memcpy(&function->primitive.reference, &launch, sizeof(launch));
    memcpy(&function->payload.launch, &launch, sizeof(launch));
    memcpy(&function->primitive.infer, &types, sizeof(types));
    memcpy(&function->kernel.scratch_size, &scratch, sizeof(scratch));
    memcpy(&function->primitive.vjp, &vjp, sizeof(vjp));
    return TN_OK;
}

void function_unbind(struct function *function)
{
    for (struct closure *closure = function->closures, *next; closure; closure = next) {
        next = closure->next;
        ffi_closure_free(closure->memory);
        free(closure);
    }
    function->closures = NULL;
}
