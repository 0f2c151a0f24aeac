// SPDX-License-Identifier: MIT
// How the small backend of backend.c runs a segment: programs are interpreted, kernels
// called.
#ifndef BACKEND_RUN_H
#define BACKEND_RUN_H

#include <tenon/ops/program_rows.h>
#include <tenon/plugin.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct tn_buffer {
    uint64_t size;
    unsigned char *bytes;
    bool is_imported; // `bytes` are the host's
    int fd;           // 1 + the file descriptor of memory that others use, too; 0: none
};

struct tn_executable {
    tn_segment segment;
    const tn_segment *seen; // as the caller had it
    void **states;          // by step: what its kernel's prepare gave
};

#ifdef PLANS
#include "backend_plan.h"
#define FAMILIES TN_FAMILY_EXPR, TN_FAMILY_CPU, TN_FAMILY_VULKAN_GLSL, NULL
#else
#define FAMILIES TN_FAMILY_EXPR, TN_FAMILY_CPU, NULL
#endif

// --- programs --------------------------------------------------------------------------

static const uint16_t known[] = {TN_EXPR_LOAD, TN_EXPR_CONST,      TN_EXPR_PARAM,
                                 TN_EXPR_ADD,  TN_EXPR_SUB,        TN_EXPR_MUL,
                                 TN_EXPR_NEG,  TN_EXPR_NOT,        TN_EXPR_XOR,
                                 TN_EXPR_TAKE, TN_EXPR_REDUCE_SUM, TN_EXPR_REDUCE_MAX};

static int is_known(uint16_t op)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i] == op)
            return 1;
    return 0;
}

// NULL, or why a step is not taken.
static const char *reason_against(const tn_step *step)
{
    for (uint32_t i = 0; step->program && i < step->program->num_insns; i++)
        if (!is_known(step->program->insns[i].op))
            return "it adds and multiplies, and little else";
#ifdef PLANS
    const tn_vulkan_kernel *kernel = is_vulkan(step) ? step->kernel->payload : NULL;
    if (kernel && shader_of(&kernel->modules[0]) == UNKNOWN)
        return "it knows two shaders, and this is neither";
#endif
    return NULL;
}

static tn_status check_step(const tn_host *host, const tn_step *step)
{
#ifdef PLANS
    if (is_vulkan(step))
        return check_planned(host, step);
#endif
    const char *reason = reason_against(step);
    return reason ? host->fail(host, TN_ERR_UNSUPPORTED, "%s", reason) : TN_OK;
}

static tn_scalar_value load(const tn_tensor *x, const int64_t *index)
{
    tn_scalar_value out;
    int64_t at = tn_offset_at(&x->layout, index);
#ifdef FAULT_SEGMENT_VALUES
    at = at < 0 || x->layout.stride[0] < 0 ? 0 : at; // strides are never negative
#endif
    if (tn_is_float(x->layout.dtype))
        out.f = tn_get_f64(x, at);
    else
        out.i = tn_get_i64(x, at);
    return out;
}

static tn_scalar_value calculate(const tn_step *step, uint32_t i,
                                 const tn_scalar_value *values)
{
#if defined(FAULT_SUITE_TEST) || defined(FAULT_SUITE_ENDS) ||                              \
    defined(FAULT_PRIMITIVE_VALUES)
    const tn_expr_insn *insn = &step->program->insns[i];
    if (insn->op == TN_EXPR_SUB) {
#ifdef FAULT_SUITE_ENDS
        abort();
#endif
#ifdef FAULT_SUITE_TEST
        int is_wrong = !tn_is_float(insn->dtype);
#else
        int is_wrong = tn_is_float(insn->dtype);
#endif
        if (is_wrong)
            return tn_operation(TN_EXPR_SUB, insn->dtype, insn->dtype, values[insn->b],
                                values[insn->a], values[insn->a]);
    }
#endif
    return tn_program_step(step->program, i, step->params, values);
}

// TAKE.
static tn_scalar_value take(const tn_step *step, uint32_t i, const tn_tensor *in,
                            const int64_t *index, tn_scalar_value *values)
{
    const tn_expr_insn *insn = &step->program->insns[i];
    tn_tensor from = in[insn->a];
#ifdef FAULT_SEGMENT_TAKES
    values[insn->b].i = values[insn->b].i < 0 ? 0 : values[insn->b].i; // not from the end
#endif
#ifdef FAULT_SEGMENT_TAKES_WIDE
    if (tn_is_signed(step->program->insns[insn->b].dtype))
        values[insn->b].i = (int32_t)values[insn->b].i;
#endif
    int64_t place = tn_taken_offset(step->program, i, step->params, values);
#ifdef FAULT_SEGMENT_TAKES_STRIDE
    if (step->params[insn->c + 1] > 0) // as if neighbours were adjacent
        place /= (int64_t)step->params[insn->c + 1];
#endif
    from.layout.offset += place;
    return load(&from, index);
}

static void run_element(const tn_step *step, const tn_tensor *in, const tn_tensor *out,
                        const int64_t *index)
{
    tn_scalar_value values[TN_EXPR_MAX_INSNS];
    const tn_expr_program *p = step->program;
    for (uint32_t i = 0; i < p->num_insns; i++)
        values[i] = p->insns[i].op == TN_EXPR_LOAD   ? load(&in[p->insns[i].a], index)
                    : p->insns[i].op == TN_EXPR_TAKE ? take(step, i, in, index, values)
                                                     : calculate(step, i, values);
    for (uint32_t i = 0; i < p->num_outputs; i++) {
        int64_t at = tn_offset_at(&out[i].layout, index);
        if (tn_is_float(out[i].layout.dtype))
            tn_set_f64(&out[i], at, values[p->outputs[i]].f);
        else
            tn_set_i64(&out[i], at, values[p->outputs[i]].i);
    }
}

// An index is taken for the row's, with FAULT_SEGMENT_TAKES_ROWS.
static void run_rows(const tn_step *step, tn_tensor *in, const tn_tensor *out)
{
#ifdef FAULT_SEGMENT_TAKES_ROWS
    const tn_expr_program *p = step->program;
    for (uint32_t i = 0; i < p->num_insns; i++)
        if (p->insns[i].op == TN_EXPR_TAKE && p->insns[p->insns[i].b].op == TN_EXPR_LOAD) {
            tn_layout *layout = &in[p->insns[p->insns[i].b].a].layout;
            layout->stride[layout->rank - 1] = 0;
        }
#endif
    tn_program_run_rows(step->program, step->params, in, out);
}

static void run_program(const tn_step *step, tn_tensor *in, const tn_tensor *out)
{
    int64_t index[TN_MAX_RANK] = {0};
    if (step->program->flags & TN_EXPR_ROWS) {
        run_rows(step, in, out);
        return;
    }
#ifndef FAULT_SEGMENT_EMPTY
    if (tn_layout_count(&out->layout) == 0)
        return;
#endif
    do
        run_element(step, in, out, index);
    while (tn_index_next(out->layout.rank, out->layout.extent, index));
}

// --- kernels ---------------------------------------------------------------------------

static void *address(const tn_binding *bindings, uint32_t slot, uint64_t offset)
{
    return bindings[slot].buffer->bytes + bindings[slot].offset + offset;
}

static tn_tensor tensor_of(const tn_value *value, const tn_binding *bindings)
{
    tn_tensor tensor = {.data = NULL, .layout = value->layout};
    if (value->layout.dtype != TN_DTYPE_NONE && !(value->flags & TN_VALUE_FUSED))
        tensor.data = address(bindings, value->slot, value->offset);
    return tensor;
}

static void parallel_for(const tn_cpu_call *call, int64_t n, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end,
                                      uint32_t worker),
                         void *context)
{
    (void)call;
    int64_t half = n / 2 > grain ? n / 2 : n;
    if (half > 0)
        body(context, 0, half, 0);
#ifndef FAULT_FAMILY_CPU_LOOP
#ifdef FAULT_FAMILY_CPU_LOOP_WORKER
    if (half < n)
        body(context, half, n, 1); // of one thread
#else
    if (half < n)
        body(context, half, n, 0);
#endif
#endif
}

// A call, and what load and store need.
struct kernel_call {
    tn_cpu_call call; // first
    const tn_step *step;
    const tn_binding *bindings;
};

// Elements from `first` on lie at `values`.
static tn_tensor through(const tn_value *value, const struct kernel_call *k, void *values,
                         int64_t first)
{
    tn_tensor tensor = tensor_of(value, k->bindings);
    if (value->flags & TN_VALUE_FUSED) {
        tensor.data = values;
        tensor.layout.offset = -first;
    }
    return tensor;
}

static void pass(const tn_cpu_call *call, uint32_t operand, int64_t first, int64_t count,
                 void *values)
{
    const struct kernel_call *k = (const struct kernel_call *)(const void *)call;
    const tn_fused *fused = tn_step_fused(k->step, 0);
    for (uint32_t i = 1; fused->operand != operand; i++)
        fused = tn_step_fused(k->step, i);
    tn_tensor in[TN_EXPR_MAX_INPUTS], out[TN_EXPR_MAX_OUTPUTS];
    for (uint32_t i = 0; i < fused->num_inputs; i++)
        in[i] = through(tn_fused_input(k->step, fused, i), k, values, first);
    for (uint32_t i = 0; i < fused->num_outputs; i++)
        out[i] = through(tn_fused_output(k->step, fused, i), k, values, first);
    const tn_step alone = {.program = fused->program, .params = fused->params};
    for (int64_t n = first; n < first + count; n++) {
        int64_t index[TN_MAX_RANK] = {0}, rest = n;
        for (int32_t axis = out->layout.rank - 1; axis >= 0; axis--) {
            index[axis] = rest % out->layout.extent[axis];
            rest /= out->layout.extent[axis];
        }
        run_element(&alone, in, out, index);
    }
}

#ifdef PLANS
static void pass_element(const tn_step *step, const tn_binding *bindings, uint32_t operand,
                         int64_t n, void *value)
{
    struct kernel_call k = {.step = step, .bindings = bindings};
    pass(&k.call, operand, n, 1, value);
}
#endif

static void load_operand(const tn_cpu_call *call, uint32_t input, int64_t first,
                         int64_t count, void *values, uint32_t worker)
{
    (void)worker;
    pass(call, input, first, count, values);
}

static void store_operand(const tn_cpu_call *call, uint32_t output, int64_t first,
                          int64_t count, const void *values, uint32_t worker)
{
    (void)worker;
#ifdef FAULT_FAMILY_CPU_FUSED
    first = 0; // each range is taken for the first one
#endif
    pass(call, call->num_inputs + output, first, count, (void *)(uintptr_t)values);
}

static tn_status run_kernel(const tn_host *host, const tn_step *step, void *state,
                            const tn_binding *bindings, const tn_tensor *in,
                            const tn_tensor *out, void *scratch)
{
    const tn_cpu_kernel *kernel = step->kernel ? step->kernel->payload : NULL;
    struct kernel_call k = {.step = step, .bindings = bindings};
    k.call = (tn_cpu_call){.struct_size = sizeof(tn_cpu_call),
                           .host = host,
                           .inputs = in,
                           .outputs = out,
                           .attrs = step->attrs,
                           .scratch = scratch,
                           .scratch_size = step->scratch_size,
                           .num_inputs = step->num_inputs,
                           .num_outputs = step->num_outputs,
                           .num_threads = 1,
                           .parallel_for = parallel_for,
                           .state = state,
                           .load = load_operand,
                           .store = store_operand};
#ifdef FAULT_FAMILY_CPU_CALL
    k.call.num_threads = 0;
#endif
#ifdef FAULT_FAMILY_CPU_REFERENCE
    return kernel ? kernel->launch(&k.call) : TN_OK; // references are not known
#endif
    return kernel ? kernel->launch(&k.call) : step->primitive->reference(&k.call);
}

// --- stages ----------------------------------------------------------------------------

static const tn_cpu_kernel *staged(const tn_step *step)
{
    bool is_cpu = step->kernel && strcmp(step->kernel->family, TN_FAMILY_CPU) == 0;
    const tn_cpu_kernel *kernel = is_cpu ? step->kernel->payload : NULL;
    return kernel && TN_HAS(kernel, prepare) ? kernel : NULL;
}

static tn_status prepare_step(const tn_host *host, const tn_step *step, void **out_state)
{
    tn_tensor in[16], out[8];
    for (uint32_t i = 0; i < step->num_inputs; i++) {
        const tn_value *value = tn_step_input(step, i);
        in[i] = (tn_tensor){(void *)(uintptr_t)value->constant, value->layout};
#ifdef FAULT_FAMILY_CPU_CONSTANTS
        if (value->layout.rank > 0) // numbers only
            in[i].data = NULL;
#endif
    }
    for (uint32_t i = 0; i < step->num_outputs; i++)
        out[i] = (tn_tensor){NULL, tn_step_output(step, i)->layout};
    const tn_cpu_call call = {.struct_size = sizeof(call),
                              .host = host,
                              .inputs = in,
                              .outputs = out,
                              .attrs = step->attrs,
                              .num_inputs = step->num_inputs,
                              .num_outputs = step->num_outputs,
                              .num_threads = 1,
                              .parallel_for = parallel_for};
    return staged(step)->prepare(&call, out_state);
}

// Of the first `count` steps.
static void finish_steps(const tn_host *host, tn_executable *executable, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const tn_cpu_kernel *kernel = staged(tn_segment_step(&executable->segment, i));
        if (kernel && TN_HAS(kernel, finish))
            kernel->finish(host, executable->states[i]);
    }
    host->free(host, executable->states);
}

// Makes the states of an executable, or frees it.
static tn_status prepare_steps(const tn_host *host, tn_executable *executable,
                               tn_executable **out_executable)
{
    uint32_t count = executable->segment.num_steps;
    executable->states = host->alloc(host, (count + 1) * sizeof(void *), 0);
    if (!executable->states) {
        host->free(host, executable);
        return TN_ERR_MEMORY;
    }
    memset(executable->states, 0, (count + 1) * sizeof(void *));
#ifdef FAULT_FAMILY_CPU_STAGES
    count = 0; // kernels have no stages
#endif
    for (uint32_t i = 0; i < count; i++) {
        const tn_step *step = tn_segment_step(&executable->segment, i);
        tn_status status =
            staged(step) ? prepare_step(host, step, &executable->states[i]) : TN_OK;
        if (status != TN_OK) {
#ifdef FAULT_FAMILY_CPU_STAGES_HALF
            i = 0;
#endif
            finish_steps(host, executable, i);
            host->free(host, executable);
            return status;
        }
    }
    *out_executable = executable;
    return TN_OK;
}

// --- segments --------------------------------------------------------------------------

static const tn_step *step_at(const tn_segment *segment, uint32_t i)
{
#ifdef FAULT_SEGMENT_RECORDS
    return segment->steps + i;
#endif
    return tn_segment_step(segment, i);
}

static const tn_value *input_of(const tn_step *step, uint32_t i)
{
#ifdef FAULT_SEGMENT_RECORDS_VALUES
    return &step->inputs[i];
#endif
    return tn_step_input(step, i);
}

static tn_status run_step(const tn_host *host, const tn_step *step, void *state,
                          const tn_binding *bindings)
{
#ifdef FAULT_QUEUE_AT_ONCE_STATE
    static tn_tensor in[16], out[8]; // of all runs
#else
    tn_tensor in[16], out[8];
#endif
    for (uint32_t i = 0; i < step->num_inputs; i++)
        in[i] = tensor_of(input_of(step, i), bindings);
    for (uint32_t i = 0; i < step->num_outputs; i++)
        out[i] = tensor_of(tn_step_output(step, i), bindings);
#ifdef FAULT_QUEUE_AT_ONCE_STATE
    nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
#endif
#ifdef PLANS
    if (is_vulkan(step))
        return run_planned(host, step, bindings);
#endif
    if (!step->program) {
        void *scratch = step->scratch_size
                            ? address(bindings, step->scratch_slot, step->scratch_offset)
                            : NULL;
#ifdef FAULT_FAMILY_CPU_SCRATCH
        scratch = NULL;
#endif
        return run_kernel(host, step, state, bindings, in, out, scratch);
    }
    run_program(step, in, out);
    return TN_OK;
}

static tn_status run_segment(const tn_host *host, const tn_executable *executable,
                             const tn_binding *bindings)
{
    const tn_segment *segment = &executable->segment;
#ifdef FAULT_SEGMENT_BORROWS
    segment = executable->seen;
#endif
    for (uint32_t i = 0; i < segment->num_steps; i++) {
        uint32_t at = i;
#ifdef FAULT_SEGMENT_ORDER
        at = i % 2 == 0 && i + 1 < segment->num_steps ? i + 1 : i % 2 ? i - 1 : i;
#endif
#ifdef FAULT_FAMILY_CPU_EFFECTS
        at = segment->num_steps - 1 - i; // where no bytes forbid it
        if (step_at(segment, at)->num_outputs > 0)
            at = i;
#endif
#ifdef FAULT_SEGMENT_ALIAS
        at = segment->num_steps - 1 - i; // what may overwrite an input goes first
#endif
        tn_status status =
            run_step(host, step_at(segment, at), executable->states[at], bindings);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

#endif // BACKEND_RUN_H
