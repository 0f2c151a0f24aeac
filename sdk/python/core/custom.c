// SPDX-License-Identifier: MIT
// Graphs with rules of derivatives and batching in Python (tn_custom_call). The core may
// call a rule as long as a graph with it lives. The core and the capsule hold references to
// the rules; a thread that must not wait for the GIL may drop the last one, so unused rules
// are freed by the next call that has the GIL.
#include "trace.h"

#include <stdatomic.h>
#include <stdlib.h>

static const char capsule_name[] = "tenon.rules";

struct py_rules {
    tn_custom_rules record;
    PyObject *vjp, *jvp, *vmap; // references
    atomic_uint references;
    struct py_rules *next; // in rules_unused
};

// Rules without references.
static _Atomic(struct py_rules *) rules_unused;

static void rules_release(void *user)
{
    struct py_rules *rules = user;
    if (atomic_fetch_sub(&rules->references, 1) > 1)
        return;
    rules->next = atomic_load(&rules_unused);
    while (!atomic_compare_exchange_weak(&rules_unused, &rules->next, rules))
        ;
}

// Called with the GIL. A freed callable may release other rules, so this loops.
static void rules_free_unused(void)
{
    struct py_rules *rules;
    while ((rules = atomic_exchange(&rules_unused, NULL)))
        while (rules) {
            struct py_rules *next = rules->next;
            Py_DECREF(rules->vjp);
            Py_DECREF(rules->jvp);
            Py_DECREF(rules->vmap);
            free(rules);
            rules = next;
        }
}

static void capsule_destroy(PyObject *capsule)
{
    rules_release(PyCapsule_GetPointer(capsule, capsule_name));
    rules_free_unused();
}

// A call of a rule, which builds in the scope of a trace.
struct py_rule_call {
    PyGILState_STATE gil;
    struct py_guard guard;
    struct py_building b;
};

static bool rule_begin(struct py_rule_call *c, tn_scope *scope)
{
    c->gil = PyGILState_Ensure();
    guard_begin(&c->guard);
    c->b = (struct py_building){.scope = scope, .trace = trace_begin("rule", scope)};
    if (c->b.trace)
        return true;
    guard_end(&c->guard);
    PyGILState_Release(c->gil);
    return false;
}

// Ends the call. A set exception becomes the cause of the scope's failure.
static tn_status rule_end(struct py_rule_call *c, bool succeeded, const char *rule)
{
    tn_status status =
        succeeded ? TN_OK
                  : tn_scope_fail(c->b.scope, TN_ERR_ARGUMENT, "rule %s raised", rule);
    trace_end(c->b.trace);
    guard_end(&c->guard);
    PyGILState_Release(c->gil);
    return status;
}

// Arrays as a list with None for NULL.
static PyObject *list_of(struct py_building *b, tn_array *const *arrays, uint64_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        PyObject *item = arrays[i] ? building_array(b, arrays[i]) : Py_NewRef(Py_None);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// The arrays of a list of `count` items, NULL for None. False with an exception set.
static bool arrays_of(struct py_building *b, PyObject *list, const char *rule,
                      tn_array **out, uint64_t count)
{
    Py_ssize_t given = list ? PySequence_Size(list) : -1;
    if (given >= 0 && (uint64_t)given != count)
        PyErr_Format(PyExc_ValueError, "rule %s gave %zd arrays, expected %llu", rule,
                     given, (unsigned long long)count);
    if (given < 0 || (uint64_t)given != count)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(list, (Py_ssize_t)i);
        out[i] = item && item != Py_None ? operand_get(b, item, false) : NULL;
        bool failed = !item || (item != Py_None && !out[i]);
        Py_XDECREF(item);
        if (failed && !PyErr_Occurred())
            raise_scope(b->scope);
        if (failed)
            return false;
    }
    return true;
}

static PyObject *wanted_list(const uint64_t *wanted, uint32_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; list && i < count; i++)
        PyList_SetItem(list, (Py_ssize_t)i, PyBool_FromLong(wanted[i / 64] >> i % 64 & 1));
    return list;
}

// Calls a rule with lists, which it takes; NULL among them: an exception is set.
static PyObject *py_custom_call_rule(PyObject *rule, PyObject *const *lists, int count)
{
    PyObject *args = PyTuple_New(count), *result = NULL;
    bool complete = args != NULL;
    for (int i = 0; i < count; i++) {
        complete = complete && lists[i];
        if (args && lists[i])
            PyTuple_SetItem(args, i, lists[i]);
        else
            Py_XDECREF(lists[i]);
    }
    if (complete)
        result = PyObject_CallObject(rule, args);
    Py_XDECREF(args);
    return result;
}

static tn_status py_custom_rule_vjp(tn_scope *scope, const tn_rule *rule,
                                    tn_array *const *cotangents, const uint64_t *wanted,
                                    tn_array **gradients, void *user)
{
    const struct py_rules *rules = user;
    struct py_rule_call c;
    if (!rule_begin(&c, scope))
        return TN_ERR_MEMORY;
    PyObject *const lists[] = {list_of(&c.b, rule->inputs, rule->num_inputs),
                               list_of(&c.b, rule->outputs, rule->num_outputs),
                               list_of(&c.b, cotangents, rule->num_outputs),
                               wanted_list(wanted, rule->num_inputs)};
    PyObject *result = py_custom_call_rule(rules->vjp, lists, 4);
    bool done = arrays_of(&c.b, result, "vjp", gradients, rule->num_inputs);
    Py_XDECREF(result);
    return rule_end(&c, done, "vjp");
}

static tn_status py_custom_rule_jvp(tn_scope *scope, const tn_rule *rule,
                                    tn_array *const *tangents, tn_array **out_tangents,
                                    void *user)
{
    const struct py_rules *rules = user;
    struct py_rule_call c;
    if (!rule_begin(&c, scope))
        return TN_ERR_MEMORY;
    PyObject *const lists[] = {list_of(&c.b, rule->inputs, rule->num_inputs),
                               list_of(&c.b, rule->outputs, rule->num_outputs),
                               list_of(&c.b, tangents, rule->num_inputs)};
    PyObject *result = py_custom_call_rule(rules->jvp, lists, 3);
    bool done = arrays_of(&c.b, result, "jvp", out_tangents, rule->num_outputs);
    Py_XDECREF(result);
    return rule_end(&c, done, "jvp");
}

static PyObject *axes_list(const int32_t *axes, uint32_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; list && i < count; i++)
        PyList_SetItem(list, (Py_ssize_t)i,
                       axes[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(axes[i]));
    return list;
}

static bool axes_of(PyObject *list, int32_t *out, uint32_t count)
{
    Py_ssize_t given = PySequence_Size(list);
    if (given >= 0 && given != (Py_ssize_t)count)
        PyErr_Format(PyExc_ValueError, "rule vmap gave %zd axes, expected %u", given,
                     count);
    for (uint32_t i = 0; given == (Py_ssize_t)count && i < count; i++) {
        PyObject *item = PySequence_GetItem(list, (Py_ssize_t)i);
        out[i] = item && item != Py_None ? (int32_t)PyLong_AsLong(item) : -1;
        Py_XDECREF(item);
    }
    return !PyErr_Occurred();
}

static tn_status py_custom_rule_vmap(tn_scope *scope, const tn_rule *rule,
                                     const int32_t *axes, int64_t size, tn_array **outputs,
                                     int32_t *out_axes, void *user)
{
    const struct py_rules *rules = user;
    struct py_rule_call c;
    PyObject *arrays, *positions;
    if (!rule_begin(&c, scope))
        return TN_ERR_MEMORY;
    PyObject *const lists[] = {list_of(&c.b, rule->inputs, rule->num_inputs),
                               axes_list(axes, rule->num_inputs),
                               PyLong_FromLongLong(size)};
    PyObject *result = py_custom_call_rule(rules->vmap, lists, 3);
    bool done = result && PyArg_ParseTuple(result, "OO", &arrays, &positions) &&
                arrays_of(&c.b, arrays, "vmap", outputs, rule->num_outputs) &&
                axes_of(positions, out_axes, rule->num_outputs);
    Py_XDECREF(result);
    return rule_end(&c, done, "vmap");
}

PyObject *custom_rules(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *vjp, *jvp, *vmap;
    if (!PyArg_ParseTuple(args, "OOO:custom_rules", &vjp, &jvp, &vmap))
        return NULL;
    rules_free_unused();
    struct py_rules *rules = malloc(sizeof(*rules));
    if (!rules)
        return PyErr_NoMemory();
    *rules = (struct py_rules){
        .record = {.struct_size = sizeof(rules->record),
                   .user = rules,
                   .vjp = vjp == Py_None ? NULL : py_custom_rule_vjp,
                   .jvp = jvp == Py_None ? NULL : py_custom_rule_jvp,
                   .vmap = vmap == Py_None ? NULL : py_custom_rule_vmap,
                   .destroy = rules_release},
        .vjp = Py_NewRef(vjp),
        .jvp = Py_NewRef(jvp),
        .vmap = Py_NewRef(vmap),
        .references = 1,
    };
    PyObject *capsule = PyCapsule_New(rules, capsule_name, capsule_destroy);
    if (!capsule)
        rules_release(rules);
    return capsule;
}

static tn_status py_custom_run_graph(tn_scope *scope, tn_array *const *inputs,
                                     uint64_t num_inputs, tn_array **outputs,
                                     uint64_t num_outputs, void *user)
{
    return tn_graph_call(scope, user, inputs, num_inputs, outputs, num_outputs);
}

PyObject *custom_call(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *object, *capsule, *list;
    if (!PyArg_ParseTuple(args, "OOO:custom_call", &object, &capsule, &list))
        return NULL;
    struct py_rules *rules = PyCapsule_GetPointer(capsule, capsule_name);
    const tn_graph *graph = rules ? graph_get(object) : NULL;
    struct py_building b;
    struct array_list inputs;
    if (!graph || !building_begin(&b))
        return NULL;
    PyObject *result = NULL;
    bool has_inputs = array_list_get(&b, list, &inputs);
    tn_array **outputs =
        has_inputs ? calloc(graph->num_outputs + 1, sizeof(*outputs)) : NULL;
    if (outputs)
        atomic_fetch_add(&rules->references, 1); // the call's
    if (outputs)
        result = tn_custom_call(b.scope, py_custom_run_graph, (void *)(uintptr_t)graph,
                                &rules->record, inputs.items, inputs.count, outputs,
                                graph->num_outputs) == TN_OK
                     ? array_list_wrap(&b, outputs, graph->num_outputs)
                     : raise_scope(b.scope);
    else if (has_inputs)
        PyErr_NoMemory();
    free(outputs);
    free(inputs.items);
    building_end(&b);
    return result;
}
