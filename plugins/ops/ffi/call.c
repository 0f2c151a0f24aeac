// SPDX-License-Identifier: MIT
// Calls of C functions. A launch of the kernel calls the function once for each item, which
// is an index of the batch axes.
//
// An operand whose layout the function takes is passed in place. Any other is copied to and
// from working memory, one item at a time (view.c).
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/ops/reference.h>
#include "callback.h"
#include "openblas/openblas.h"
#include "view.h"

// One launch. Threads that run items share it and only read it, but for `problem` and
// `has_failed`.
struct ffi_run {
    struct ffi_function *function;
    const tn_cpu_call *call;
    struct bound bound;
    struct view views[MAX_OPERANDS];
    uint64_t work_offsets[MAX_WORK];
    uint64_t work_size;
    char *work;                         // working memory: the call's scratch, or allocated
    void *address;                      // of the function
    const tn_host_callbacks *callbacks; // NULL: not a callback, or the host has no service
    int64_t num_items;
    bool has_copies; // some operand is copied before a call
    struct problem problem;
    pthread_mutex_t lock;       // of problem
    _Atomic int32_t has_failed; // an item has failed: no more ranges of items are started
};

// --- arguments -------------------------------------------------------------------------

static tn_status set_attribute(const struct ffi_run *run, const struct argument *arg,
                               tn_dtype type, union argument_value *value,
                               struct problem *problem)
{
    const tn_attr_field *field = &run->function->fields[arg->index];
    const char *bytes = (const char *)run->call->attrs + field->offset;
    int64_t integer = 0;
    double real = 0;
    if (field->kind == TN_ATTR_F64) {
        memcpy(&real, bytes, sizeof(real));
        integer = tn_i64_of_f64(real);
    } else {
        memcpy(&integer, bytes, sizeof(integer));
        if (arg->by_choice)
            integer = arg->by_choice[integer];
        real = (double)integer;
    }
    if (field->kind != TN_ATTR_F64 && !fits(type, integer))
        return problem_set(problem, TN_ERR_ARGUMENT, "%s = %" PRId64 " does not fit %s",
                           field->name, integer, tn_dtype_name(type));
    number_store(value, type, integer, real);
    return TN_OK;
}

static tn_status set_integer(const struct ffi_run *run, const struct argument *arg,
                             int64_t number, union argument_value *value,
                             struct problem *problem)
{
    if (!fits(arg->type, number))
        return problem_set(problem, TN_ERR_ARGUMENT,
                           "an argument of %s is %" PRId64 ", which does not fit %s",
                           run->function->variants[run->bound.variant].symbol, number,
                           tn_dtype_name(arg->type));
    number_store(value, arg->type, number, (double)number);
    return TN_OK;
}

// Stores the arguments that are the same for all items: the function's or a callee's.
static tn_status set_constants(const struct ffi_run *run, const struct argument *args,
                               uint32_t num_args, union argument_value *values,
                               struct problem *problem)
{
    const struct ffi_function *function = run->function;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < num_args && status == TN_OK; i++) {
        const struct argument *arg = &args[i];
        tn_dtype type = dtype_or(arg->type, function, run->bound.variant);
        int64_t number = 0;
        switch (arg->kind) {
        case ARG_EXTENT:
            status = extent_eval(&arg->value, run->bound.values, &number, problem);
            if (status == TN_OK)
                status = set_integer(run, arg, number, &values[i], problem);
            break;
        case ARG_STRIDE:
            number = run->views[arg->index].passed[arg->axis];
            status = set_integer(run, arg, number, &values[i], problem);
            break;
        case ARG_ATTRIBUTE:
            status = set_attribute(run, arg, type, &values[i], problem);
            break;
        case ARG_CHARACTER:
            if (arg->by_choice) {
                status = set_attribute(run, arg, TN_I8, &values[i], problem);
                break;
            }
            number_store(&values[i], TN_I8, arg->integer, 0);
            break;
        case ARG_CONSTANT:
            number_store(&values[i], type, arg->integer, arg->real);
            break;
        case ARG_WORK:
            values[i].pointer = run->work + run->work_offsets[arg->index];
            break;
        case ARG_USER:
            values[i].pointer = function->user;
            break;
        default:
            values[i].i = 0;
        }
    }
    return status;
}

// --- one item --------------------------------------------------------------------------

// The memory of operand `k` of item `index`.
static char *ffi_call_item_of(const struct ffi_run *run, uint32_t k, const int64_t *index)
{
    const struct view *view = &run->views[k];
    int64_t offset = 0;
    for (int32_t i = 0; run->function->lead == LEAD_BATCH && i < run->bound.lead_rank; i++)
        offset += index[i] * view->batch_stride[i];
    return view->data + offset * view->bytes;
}

// The memory that is passed for `item` of operand `k`: the item itself, or its copy.
static char *passed_of(const struct ffi_run *run, uint32_t k, char *item)
{
    const struct view *view = &run->views[k];
    return view->is_copied ? run->work + view->work_offset : item;
}

// Copies the inputs that cannot be passed in place, and overwritten inputs to their
// outputs.
static void copy_in(const struct ffi_run *run, char *const *items)
{
    const struct ffi_function *function = run->function;
    for (uint32_t k = 0; k < function->num_inputs + function->num_outputs; k++) {
        const struct ffi_operand *operand = &function->operands[k];
        const struct view *view = &run->views[k];
        char *to = passed_of(run, k, items[k]);
        if (k < function->num_inputs && view->is_copied)
            view_copy(view, to, view->passed, items[k], view->stride);
        else if (k >= function->num_inputs && operand->overwrites)
            view_copy(view, to, view->passed, items[operand->overwrites - 1],
                      run->views[operand->overwrites - 1].stride);
    }
}

static void copy_out(const struct ffi_run *run, char *const *items)
{
    const struct ffi_function *function = run->function;
    for (uint32_t k = function->num_inputs;
         k < function->num_inputs + function->num_outputs; k++) {
        const struct view *view = &run->views[k];
        if (view->is_copied)
            view_copy(view, items[k], view->stride, run->work + view->work_offset,
                      view->passed);
    }
}

static tn_status check_status(const struct ffi_run *run, int64_t status,
                              struct problem *problem)
{
    const struct ffi_function *function = run->function;
    const char *remedy = status ? function->remedies[status > 0] : NULL;
    if (!status_fails(function->fails, status))
        return TN_OK;
    return problem_set(problem, TN_ERR_ARGUMENT, "%s returned status %" PRId64 "%s%s",
                       function->variants[run->bound.variant].symbol, status,
                       remedy ? ": " : "", remedy ? remedy : "");
}

// Stores a returned output, or checks a returned status.
static tn_status take_result(const struct ffi_run *run, const union result *result,
                             char *output, struct problem *problem)
{
    const struct ffi_function *function = run->function;
    tn_dtype type = dtype_or(function->return_type, function, run->bound.variant);
    if (function->returns == RETURNS_STATUS)
        return check_status(run, integer_load(result, type), problem);
    if (function->returns == RETURNS_OUTPUT)
        memcpy(output, result, (size_t)tn_dtype_bytes(type));
    return TN_OK;
}

// The arguments of a call, one frame a thread. libffi reads argument i at slots[i]: the
// value itself, or for an argument by pointer pointers[i], which points at the value.
struct ffi_call_frame {
    union argument_value values[MAX_ARGS]; // of arguments that are not operands or handles
    void *pointers[MAX_ARGS];
    void *slots[MAX_ARGS];
    void **handles; // of the function, by number; NULL: not created
};

static void set_slots(const struct ffi_run *run, const struct argument *args,
                      uint32_t num_args, struct ffi_call_frame *frame, char *const *items)
{
    for (uint32_t i = 0; i < num_args; i++) {
        const struct argument *arg = &args[i];
        frame->slots[i] = &frame->values[i];
        if (arg->kind == ARG_HANDLE) {
            frame->pointers[i] = &frame->handles[arg->index];
            frame->slots[i] =
                arg->by_pointer ? (void *)&frame->pointers[i] : &frame->handles[arg->index];
        } else if (arg->kind == ARG_OPERAND) {
            frame->pointers[i] = passed_of(run, arg->index, items[arg->index]);
            frame->slots[i] =
                arg->by_pointer ? (void *)&frame->pointers[i] : frame->pointers[i];
        } else if (arg->by_pointer && arg->kind != ARG_WORK && arg->kind != ARG_USER) {
            frame->pointers[i] = &frame->values[i];
            frame->slots[i] = &frame->pointers[i];
        }
    }
}

static tn_status check_statuses(const struct ffi_run *run,
                                const struct ffi_call_frame *frame, struct problem *problem)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < run->function->num_args && status == TN_OK; i++)
        if (run->function->args[i].kind == ARG_STATUS)
            status = check_status(
                run, integer_load(&frame->values[i], run->function->args[i].type), problem);
    return status;
}

// --- handles ---------------------------------------------------------------------------

// Calls a callee. `items` are the operands of an item; NULL outside of items, where no
// argument is an operand.
static tn_status call_callee(const struct ffi_run *run, const struct callee *callee,
                             void **handles, char *const *items, union result *result,
                             struct problem *problem)
{
    struct ffi_call_frame frame = {.handles = handles};
    uint32_t variant = run->bound.variant;
    tn_status status =
        set_constants(run, callee->args, callee->num_args, frame.values, problem);
    if (status != TN_OK)
        return status;
    set_slots(run, callee->args, callee->num_args, &frame, items);
    ffi_call(
        &callee->cifs[variant],
        FFI_FN(atomic_load_explicit(&callee->addresses[variant], memory_order_acquire)),
        result, frame.slots);
    return TN_OK;
}

static tn_status ffi_call_create_handle(const struct ffi_run *run, uint32_t index,
                                        void **handles, char *const *items,
                                        struct problem *problem)
{
    const struct handle *handle = &run->function->handles[index];
    const struct callee *create = &handle->create;
    const char *symbol = create->symbols[run->bound.variant];
    union result result = {.bytes = {0}};
    int64_t failure = 0;
    tn_status status = call_callee(run, create, handles, items, &result, problem);
    if (status != TN_OK)
        return status;
    if (create->returns == RETURNS_STATUS)
        failure = integer_load(&result, create->return_type);
    if (create->returns == RETURNS_HANDLE)
        handles[index] = result.pointer;
    if (status_fails(create->fails, failure)) {
        handles[index] = NULL;
        return problem_set(problem, TN_ERR_ARGUMENT, "%s returned status %" PRId64 "%s%s",
                           symbol, failure, handle->remedy ? ": " : "",
                           handle->remedy ? handle->remedy : "");
    }
    return handles[index] ? TN_OK
                          : problem_set(problem, TN_ERR_ARGUMENT, "%s gave no %s%s%s",
                                        symbol, handle->name, handle->remedy ? ": " : "",
                                        handle->remedy ? handle->remedy : "");
}

static void lock_handle(const struct ffi_run *run, const struct handle *handle)
{
    if (handle->is_serial || run->function->is_serial)
        pthread_mutex_lock(&run->function->pack->serial);
}

static void unlock_handle(const struct ffi_run *run, const struct handle *handle)
{
    if (handle->is_serial || run->function->is_serial)
        pthread_mutex_unlock(&run->function->pack->serial);
}

// Creates the handles of one item, or with NULL `items` the handles that all items of a
// thread share.
static tn_status create_handles(const struct ffi_run *run, void **handles,
                                char *const *items, struct problem *problem)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < run->function->num_handles && status == TN_OK; i++) {
        const struct handle *handle = &run->function->handles[i];
        if (handle->is_per_item != (items != NULL))
            continue;
        lock_handle(run, handle);
        status = ffi_call_create_handle(run, i, handles, items, problem);
        unlock_handle(run, handle);
    }
    return status;
}

// In reverse order, because a handle may have been created from an earlier one.
static void destroy_handles(const struct ffi_run *run, void **handles, bool per_item)
{
    struct problem unlikely = {0}; // cannot fail: arguments are constants and handles alone
    for (int64_t i = (int64_t)run->function->num_handles - 1; i >= 0; i--) {
        const struct handle *handle = &run->function->handles[i];
        union result result;
        if (handle->is_per_item != per_item || !handles[i])
            continue;
        lock_handle(run, handle);
        call_callee(run, &handle->destroy, handles, NULL, &result, &unlikely);
        unlock_handle(run, handle);
        handles[i] = NULL;
    }
}

// --- one item, with its handles --------------------------------------------------------

static tn_status call_item(struct ffi_run *run, struct ffi_call_frame *frame,
                           char *const *items, struct problem *problem)
{
    struct ffi_function *function = run->function;
    union result result = {.bytes = {0}};
    set_slots(run, function->args, function->num_args, frame, items);
    if (function->is_serial)
        pthread_mutex_lock(&function->pack->serial);
    ffi_call(&function->variants[run->bound.variant].cif, FFI_FN(run->address), &result,
             frame->slots);
    if (function->is_serial)
        pthread_mutex_unlock(&function->pack->serial);
    tn_status status = check_statuses(run, frame, problem);
    if (status == TN_OK)
        status = take_result(run, &result, items[function->num_inputs], problem);
    return status;
}

static tn_status ffi_call_run_item(struct ffi_run *run, struct ffi_call_frame *frame,
                                   const int64_t *index, struct problem *problem)
{
    const struct ffi_function *function = run->function;
    char *items[MAX_OPERANDS];
    for (uint32_t k = 0; k < function->num_inputs + function->num_outputs; k++)
        items[k] = ffi_call_item_of(run, k, index);
    tn_status status = create_handles(run, frame->handles, items, problem);
    // Creating a handle may write to the operands that it takes, so inputs are copied
    // after.
    if (status == TN_OK && run->has_copies)
        copy_in(run, items);
    if (status == TN_OK)
        status = call_item(run, frame, items, problem);
    destroy_handles(run, frame->handles, true);
    if (status == TN_OK && run->work_size)
        copy_out(run, items);
    return status;
}

// --- all items -------------------------------------------------------------------------

// Runs items [begin, end) of the batch in row-major order, with handles and arguments of
// its own.
static void ffi_call_run_items(struct ffi_run *run, int64_t begin, int64_t end)
{
    void *handles[MAX_HANDLES] = {NULL};
    struct ffi_call_frame frame = {.handles = handles};
    struct problem problem = {0};
    int64_t index[TN_MAX_RANK] = {0};
    int64_t rest = begin;
    if (begin >= end || atomic_load_explicit(&run->has_failed, memory_order_relaxed))
        return;
    for (int32_t i = run->bound.lead_rank; i-- > 0 && run->num_items > 1;) {
        index[i] = rest % run->bound.lead[i];
        rest /= run->bound.lead[i];
    }
    const struct ffi_function *function = run->function;
    tn_status status =
        set_constants(run, function->args, function->num_args, frame.values, &problem);
    if (status == TN_OK)
        status = create_handles(run, handles, NULL, &problem);
    for (int64_t n = begin; n < end && status == TN_OK; n++) {
        status = ffi_call_run_item(run, &frame, index, &problem);
        tn_index_next(run->bound.lead_rank, run->bound.lead, index);
    }
    destroy_handles(run, handles, false);
    if (status == TN_OK)
        return;
    pthread_mutex_lock(&run->lock);
    problem_set(&run->problem, status, "%s", problem.text);
    pthread_mutex_unlock(&run->lock);
    atomic_store_explicit(&run->has_failed, 1, memory_order_relaxed);
}

struct ffi_call_piece {
    struct ffi_run *run;
    int64_t begin, end;
};

static void ffi_call_run_piece(void *context)
{
    const struct ffi_call_piece *piece = context;
    ffi_call_run_items(piece->run, piece->begin, piece->end);
}

// Runs on any thread. The host has to know when a thread is inside application code.
static void ffi_call_run_range(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    struct ffi_run *run = context;
    struct ffi_call_piece piece = {run, begin, end};
    if (run->callbacks)
        run->callbacks->call(run->call->host, ffi_call_run_piece, &piece);
    else
        ffi_call_run_piece(&piece);
}

// --- working memory --------------------------------------------------------------------

// Reserves `size` bytes of working memory, aligned to 64. False: too much.
static bool ffi_call_reserve(uint64_t *at, uint64_t size, uint64_t *out_offset)
{
    *out_offset = *at;
    if (size > UINT64_MAX / 8 || *at > UINT64_MAX / 8)
        return false;
    *at += (size + 63) / 64 * 64;
    return true;
}

// Assigns offsets in working memory to copies of operands and to work arrays.
static tn_status plan_work(struct ffi_run *run, struct problem *problem)
{
    const struct ffi_function *function = run->function;
    bool good = true;
    run->work_size = 0;
    for (uint32_t k = 0; k < function->num_inputs + function->num_outputs; k++)
        if (run->views[k].is_copied)
            good &= ffi_call_reserve(&run->work_size, view_bytes(&run->views[k]),
                                     &run->views[k].work_offset);
    for (uint32_t i = 0; i < function->num_work && good; i++) {
        const struct work_array *work = &function->work[i];
        int64_t count = 0, bytes = 0;
        tn_status status = extent_eval(&work->count, run->bound.values, &count, problem);
        if (status != TN_OK)
            return status;
        tn_dtype dtype = dtype_or(work->dtype, function, run->bound.variant);
        good &=
            count >= 0 &&
            tn_checked_multiply_extents(count, tn_dtype_bytes(dtype), &bytes) &&
            ffi_call_reserve(&run->work_size, (uint64_t)bytes + 1, &run->work_offsets[i]);
        if (!good)
            return problem_set(problem, TN_ERR_ARGUMENT,
                               "work array %s: %s = %" PRId64 " elements, expected 0 or "
                               "more, and less than memory has",
                               work->name, work->count.text, count);
    }
    return good ? TN_OK
                : problem_set(problem, TN_ERR_MEMORY, "working memory overflows 63 bits");
}

// Fills what the operands' layouts determine: bindings, views, items and the offsets in
// working memory. The tensors' data may be NULL.
static tn_status ffi_call_prepare(struct ffi_run *run, const tn_tensor *inputs,
                                  const tn_tensor *outputs)
{
    struct ffi_function *function = run->function;
    tn_type types[MAX_INPUTS];
    for (uint32_t i = 0; i < function->num_inputs; i++) {
        types[i].dtype = inputs[i].layout.dtype;
        types[i].rank = inputs[i].layout.rank;
        memcpy(types[i].extent, inputs[i].layout.extent, sizeof(types[i].extent));
    }
    tn_status status =
        bind_types(function, types, run->call->attrs, &run->bound, &run->problem);
    if (status != TN_OK)
        return status;
    for (uint32_t k = 0; k < function->num_inputs + function->num_outputs; k++) {
        const tn_tensor *tensor =
            k < function->num_inputs ? &inputs[k] : &outputs[k - function->num_inputs];
        view_set(&run->views[k], &function->operands[k], &run->bound, &tensor->layout,
                 tensor->data);
        run->has_copies |= run->views[k].is_copied || function->operands[k].overwrites;
    }
    run->num_items = 1;
    for (int32_t i = 0; function->lead == LEAD_BATCH && i < run->bound.lead_rank; i++)
        run->num_items *= run->bound.lead[i];
    return plan_work(run, &run->problem);
}

// Whether no output has an element: then nothing is called.
static bool ffi_call_is_empty(const struct ffi_run *run)
{
    const struct ffi_function *function = run->function;
    uint64_t size = 0;
    for (uint32_t i = 0; i < function->num_outputs; i++)
        size |= view_bytes(&run->views[function->num_inputs + i]);
    return size == 0 || run->num_items == 0;
}

// Runs all items, on several threads unless they share working memory or the function is
// not thread-safe.
static tn_status ffi_call_launch(struct ffi_run *run)
{
    const tn_cpu_call *call = run->call;
    void *own = NULL;
    bool fits_scratch = call->scratch && call->scratch_size >= run->work_size;
    run->work = call->scratch;
    if (run->work_size && !fits_scratch)
        run->work = own = aligned_alloc(64, run->work_size);
    if (run->work_size && !run->work)
        return problem_set(&run->problem, TN_ERR_MEMORY,
                           "out of memory: %" PRIu64 " bytes of working memory",
                           run->work_size);
    bool alone = run->work_size || run->function->is_serial || !call->parallel_for;
    if (alone || run->num_items < 2)
        ffi_call_run_range(run, 0, run->num_items, 0);
    else
        call->parallel_for(call, run->num_items,
                           run->function->lead == LEAD_BATCH ? 256 : 1, ffi_call_run_range,
                           run);
    free(own);
    return run->problem.status;
}

// Runs all items. When the process has OpenBLAS, which the function's library may call,
// reserves the memory that OpenBLAS needs for each thread (openblas.h).
static tn_status launch_reserved(struct ffi_run *run)
{
    char message[OPENBLAS_MESSAGE];
    uint32_t callers = openblas_find() ? run->call->num_threads : 0;
    if (callers == 0)
        return ffi_call_launch(run);
    openblas_warn(run->call->host);
    tn_status status = openblas_reserve(callers, message);
    if (status != TN_OK)
        return problem_set(&run->problem, status, "%s", message);
    status = ffi_call_launch(run);
    openblas_release(callers);
    return status;
}

tn_status function_call(struct ffi_function *function, const tn_cpu_call *call)
{
    struct ffi_run run = {.function = function, .call = call};
    tn_status status = ffi_call_prepare(&run, call->inputs, call->outputs);
    if (status == TN_OK && !ffi_call_is_empty(&run))
        status = variant_find(function, run.bound.variant, &run.address, &run.problem);
    if (status == TN_OK && !ffi_call_is_empty(&run)) {
        run.callbacks = function->callback ? callbacks_of(call->host) : NULL;
        pthread_mutex_init(&run.lock, NULL);
        status = launch_reserved(&run);
        pthread_mutex_destroy(&run.lock);
    }
    return status == TN_OK ? TN_OK
                           : call->host->fail(call->host, status, "%s: %s", function->id,
                                              run.problem.text);
}

uint64_t function_scratch(const struct ffi_function *function, const tn_kernel_query *query)
{
    tn_tensor inputs[MAX_INPUTS], outputs[MAX_OUTPUTS];
    tn_cpu_call call = {.attrs = query->attrs};
    struct ffi_run run = {.function = (struct ffi_function *)function, .call = &call};
    for (uint32_t i = 0; i < function->num_inputs; i++)
        inputs[i] = (tn_tensor){NULL, query->inputs[i]};
    for (uint32_t i = 0; i < function->num_outputs; i++)
        outputs[i] = (tn_tensor){NULL, query->outputs[i]};
    return ffi_call_prepare(&run, inputs, outputs) == TN_OK ? run.work_size : 0;
}
