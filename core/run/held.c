// SPDX-License-Identifier: MIT
// tn_eval_held_n: evaluates named arrays with those of their graph that the application
// holds, in the memory of data that nothing else refers to.
//
// A graph of a plan that is known is computed as it is, without a scope that refers to it:
// walking, numbering and looking who refers to it are one hold of the lock. To make a plan
// takes a scope, whose arrays stand for the graph's.
#include <string.h>
#include <tenon/checked.h>
#include <tenon/retain.h>
#include "../base/fail.h"
#include "../base/shape.h"
#include "../device/device.h"
#include "../graph/counted.h"
#include "../graph/held.h"
#include "eval.h"

// Fails unless the work is brief: it has no loop, reads and writes at most MOST_BRIEF
// bytes, and waits for nothing but brief work.
static tn_status check_brief(const struct task *task, const struct plan *plan)
{
    uint64_t bytes = 0;
    bool is_brief = plan && plan->num_hosts == 0;
    for (uint32_t i = 0; is_brief && i < plan->num_segments; i++)
        bytes = tn_saturated_add(bytes, plan->segments[i].bytes_written);
    for (uint32_t i = 0; is_brief && i < task->num_leaves; i++) {
        bytes = tn_saturated_add(bytes, type_bytes(&task->leaves[i]->type));
        is_brief = storage_ends_soon(task->leaves[i]->value->storage);
    }
    return is_brief && bytes <= MOST_BRIEF
               ? TN_OK
               : fail(TN_ERR_UNSUPPORTED, "eval_held: it may take longer than a moment");
}

// An evaluation on its way.
struct held_run {
    tn_scope *scope;
    uint32_t flags;
    struct task task;        // of counted arrays
    struct held_graph graph; // the same
    struct plan *plan;       // NULL: it has to be made
};

// --- the graph, under the lock ----------------------------------------------------------

// Adds the held arrays to the outputs.
static tn_status add_held(tn_scope *scope, uint32_t named, struct task *task)
{
    uint32_t held = held_outputs(task->nodes, task->num_nodes, named, 0, NULL);
    if (held == 0)
        return TN_OK;
    tn_array **all =
        arena_alloc(&scope->scratch, ((uint64_t)task->num_outputs + held) * sizeof(*all));
    if (!all)
        return TN_ERR_MEMORY;
    memcpy(all, task->outputs, task->num_outputs * sizeof(*all));
    // The application may have released some meanwhile, so fewer may be found than were
    // counted.
    uint32_t found =
        held_outputs(task->nodes, task->num_nodes, named, held, all + task->num_outputs);
    task->outputs = all;
    task->num_outputs += found < held ? found : held;
    return TN_OK;
}

// Gives the arrays that have no value, each once, and marks them.
static tn_status list_pending(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                              tn_array **pending, uint32_t *out_count, bool *out_effects)
{
    uint32_t named = ++scope->epoch;
    for (uint64_t i = 0; i < num_arrays; i++) {
        if (arrays[i]->donated)
            scope_refuse_donated(scope);
        if (arrays[i]->value || arrays[i]->mark == named || arrays[i]->donated)
            continue;
        arrays[i]->mark = named;
        *out_effects |= counted_of(arrays[i])->has_effects;
        pending[(*out_count)++] = arrays[i];
    }
    return scope->status;
}

static tn_status run_held_number_graph(struct held_run *run, uint32_t named)
{
    struct task *task = &run->task;
    tn_scope *scope = run->scope;
    tn_status status = add_held(scope, named, task);
    if (status == TN_OK)
        status = task_number(task, NULL, 0);
    if (status == TN_OK)
        status = eval_check_leaves(task);
    if (status != TN_OK)
        return status;
    uint32_t *edges = arena_alloc(&scope->scratch, task->num_ids * sizeof(*edges));
    struct value **values =
        arena_alloc(&scope->scratch,
                    ((uint64_t)task->num_leaves + task->num_outputs) * sizeof(*values));
    uint8_t *given = arena_alloc(&scope->scratch, (uint64_t)task->num_leaves + 1);
    if (!edges || !values || !given)
        return TN_ERR_MEMORY;
    run->graph = (struct held_graph){.runtime = scope->runtime,
                                     .nodes = task->nodes,
                                     .leaves = task->leaves,
                                     .outputs = task->outputs,
                                     .num_nodes = task->num_nodes,
                                     .num_leaves = task->num_leaves,
                                     .num_outputs = task->num_outputs,
                                     .num_ids = task->num_ids,
                                     .donated = given,
                                     .values = values};
    held_find(&run->graph, edges);
    if (run->graph.donates)
        task_donate(task, given);
    return TN_OK;
}

// Orders the graph, and says whether another evaluation has some of it.
static tn_status order_graph(struct held_run *run, tn_array *const *arrays,
                             uint64_t num_arrays, tn_array **pending, bool *out_is_taken)
{
    bool has_effects = false;
    uint32_t count = 0;
    tn_status status =
        list_pending(run->scope, arrays, num_arrays, pending, &count, &has_effects);
    uint32_t named = run->scope->epoch;
    if (status == TN_OK)
        status = task_order(run->scope, pending, count, &has_effects, &run->task);
    if (status == TN_OK &&
        !(*out_is_taken = held_is_taken(run->task.nodes, run->task.num_nodes)))
        status = run_held_number_graph(run, named);
    return status;
}

// Gives the graph's plan, if it has one, and refers to what is needed to compute it.
static tn_status held_start(struct held_run *run, tn_array *const *arrays,
                            uint64_t num_arrays)
{
    tn_status status = TN_OK;
    bool is_taken = true;
    tn_array **pending =
        arena_alloc(&run->scope->scratch, (num_arrays + 1) * sizeof(*pending));
    if (!pending)
        return TN_ERR_MEMORY;
    counted_lock(run->scope->runtime);
    while (status == TN_OK && is_taken) {
        status = order_graph(run, arrays, num_arrays, pending, &is_taken);
        held_unmark(run->task.nodes, run->task.num_nodes, arrays, num_arrays);
        if (status != TN_OK || !is_taken)
            break;
        task_finish(&run->task);
        status = run->flags & TN_EVAL_BRIEF ? check_brief(NULL, NULL)
                                            : counted_wait(run->scope->runtime);
    }
    if (status == TN_OK && run->task.num_outputs > 0) {
        run->plan = plan_cache_get(run->scope->runtime, run->task.signature);
        if (run->flags & TN_EVAL_BRIEF)
            status = check_brief(&run->task, run->plan);
        if (status == TN_OK)
            held_begin(&run->graph);
    }
    counted_unlock(run->scope->runtime);
    return status;
}

// --- making a plan ----------------------------------------------------------------------

// *out_again: another thread has computed some of the graph meanwhile.
static tn_status held_make_plan(struct held_run *run, tn_scope *inner, bool *out_again)
{
    const struct held_graph *graph = &run->graph;
    struct task task;
    tn_array **locals = arena_alloc(&inner->scratch, graph->num_outputs * sizeof(*locals));
    if (!locals)
        return TN_ERR_MEMORY;
    for (uint32_t i = 0; i < graph->num_outputs; i++)
        if (!(locals[i] = scope_local(inner, graph->outputs[i])))
            return inner->status;
    tn_status status = task_create(inner, locals, graph->num_outputs, NULL, 0, &task);
    if (status != TN_OK)
        return status;
    if (graph->donates && task.num_leaves == graph->num_leaves)
        task_donate(&task, graph->donated);
    *out_again = !hash_equal(task.signature, run->task.signature);
    if (!*out_again)
        status = plan_create(inner->runtime, &task, NULL, &run->plan);
    if (run->plan)
        plan_cache_put(inner->runtime, run->plan);
    task_finish(&task);
    return status;
}

static tn_status held_find_plan(struct held_run *run, bool *out_again)
{
    tn_scope *inner = run->plan ? NULL : tn_scope_open(run->scope->runtime);
    if (run->plan)
        return TN_OK;
    if (!inner)
        return TN_ERR_MEMORY;
    inner->device = run->scope->device;
    inner->taking = &run->graph;
    tn_status status = held_make_plan(run, inner, out_again);
    tn_scope_close(inner);
    return status;
}

// --- computing --------------------------------------------------------------------------

static tn_status held_run_once(tn_scope *scope, tn_array *const *arrays,
                               uint64_t num_arrays, uint32_t flags, bool *out_again)
{
    struct held_run run = {.scope = scope, .flags = flags};
    bool is_over = false;
    *out_again = false;
    tn_status status = held_start(&run, arrays, num_arrays);
    if (status == TN_OK && run.task.num_outputs > 0) {
        struct value **results = run.graph.values + run.graph.num_leaves;
        bool has_results = false;
        status = held_find_plan(&run, out_again);
        if (status == TN_OK && !*out_again) {
            status = plan_run(run.plan, run.graph.values, results,
                              flags & TN_EVAL_ASYNC ? RUN_ASYNC : RUN_WAIT, &is_over);
            has_results = status == TN_OK;
        }
        held_end(&run.graph, has_results ? results : NULL, is_over || has_results);
    }
    plan_release(run.plan);
    task_finish(&run.task);
    return status;
}

// Numbers need no plan.
static tn_status write_numbers(tn_scope *scope, tn_array *const *arrays,
                               uint64_t num_arrays)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < num_arrays && status == TN_OK; i++) {
        struct value *value;
        if (arrays[i]->node->kind != NODE_NUMBER || array_value(arrays[i]))
            continue;
        status = eval_number(scope, arrays[i], &value);
        if (status != TN_OK)
            break;
        counted_publish(arrays[i], value);
        value_release(value);
    }
    return status;
}

static tn_status held_compute(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                              uint32_t flags)
{
    struct arena_mark mark = arena_mark(&scope->scratch);
    tn_status status = write_numbers(scope, arrays, num_arrays);
    bool again = true;
    while (status == TN_OK && again) {
        status = held_run_once(scope, arrays, num_arrays, flags, &again);
        arena_rewind(&scope->scratch, mark);
    }
    return status;
}

static tn_status run_held_check_arrays(tn_array *const *arrays, uint64_t num_arrays,
                                       uint32_t flags)
{
    if (flags & ~(uint32_t)(TN_EVAL_ASYNC | TN_EVAL_BRIEF))
        return fail(TN_ERR_ARGUMENT,
                    "eval_held: flags are 0x%x, expected TN_EVAL_ASYNC and TN_EVAL_BRIEF",
                    flags);
    for (uint64_t i = 0; i < num_arrays; i++)
        if (!arrays[i] || arrays[i]->scope)
            return fail(TN_ERR_ARGUMENT, "eval_held: array %llu %s", (unsigned long long)i,
                        arrays[i]
                            ? "belongs to a scope: tn_retain gives one that outlives it"
                            : "is NULL");
    return TN_OK;
}

// Waits for arrays that have values, unless the call must be brief.
static tn_status wait_held(tn_array *const *arrays, uint64_t num_arrays, uint32_t flags)
{
    tn_status status = TN_OK;
    for (uint64_t i = 0; i < num_arrays && status == TN_OK; i++) {
        struct storage *storage = array_value(arrays[i])->storage;
        if ((flags & TN_EVAL_BRIEF) && !storage_is_written(storage) &&
            !storage_ends_soon(storage))
            return check_brief(NULL, NULL);
        status = storage_wait_written(storage);
    }
    return status;
}

static bool have_values(tn_array *const *arrays, uint64_t num_arrays)
{
    for (uint64_t i = 0; i < num_arrays; i++)
        if (!array_value(arrays[i]))
            return false;
    return true;
}

tn_status tn_eval_held_n(tn_scope *scope, tn_array *const *arrays, uint64_t num_arrays,
                         uint32_t flags)
{
    tn_status status =
        scope_begin(scope, "eval_held", GIVEN({"arrays", arrays, num_arrays}));
    if (status != TN_OK)
        return status;
    if (scope->tracing)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "eval_held: a function's body builds graph; it cannot "
                             "evaluate");
    status = life_check(&scope->runtime->life);
    if (status == TN_OK)
        status = run_held_check_arrays(arrays, num_arrays, flags);
    if (status == TN_OK && !have_values(arrays, num_arrays))
        status = held_compute(scope, arrays, num_arrays, flags);
    if (status == TN_OK && !(flags & TN_EVAL_ASYNC))
        status = wait_held(arrays, num_arrays, flags);
    return scope_take_failure(scope, status);
}
