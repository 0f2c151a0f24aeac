// SPDX-License-Identifier: MIT
// Evaluating, derivatives, explanations, files, devices.
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include <tenon/retain.h>
#include <tenon/stats.h>

// --- evaluating ---

// Arrays of a tree, each in use.
struct py_leaves {
    PyObject **objects;
    tn_array **arrays;
    uint32_t count, max;
    PyObject *few_objects[16];
    tn_array *few_arrays[16];
};

static bool leaves_grow(struct py_leaves *l)
{
    uint32_t max = l->max * 4;
    PyObject **objects = malloc(max * sizeof(*objects));
    tn_array **arrays = malloc(max * sizeof(*arrays));
    if (!objects || !arrays) {
        free(objects);
        free(arrays);
        return PyErr_NoMemory(), false;
    }
    memcpy(objects, l->objects, l->count * sizeof(*objects));
    memcpy(arrays, l->arrays, l->count * sizeof(*arrays));
    if (l->objects != l->few_objects) {
        free(l->objects);
        free(l->arrays);
    }
    l->objects = objects;
    l->arrays = arrays;
    l->max = max;
    return true;
}

// Adds an Array and marks it as used. Skips watched ones, which are computed when read.
static bool leaves_add(struct py_leaves *l, PyObject *object)
{
    static const struct py_building nowhere;
    tn_array *array = array_get(object, &nowhere);
    if (array && ((struct py_array *)object)->is_watched)
        return true;
    if (!array || (l->count == l->max && !leaves_grow(l)))
        return false;
    array_use(object);
    l->objects[l->count] = object;
    l->arrays[l->count++] = array;
    return true;
}

static bool leaves_collect(struct py_leaves *l, PyObject *tree);

static bool collect_parts(struct py_leaves *l, PyObject *tree)
{
    bool is_dict = PyDict_Check(tree);
    PyObject *values = is_dict ? PyDict_Values(tree) : NULL;
    bool collected = !is_dict || (values && collect_parts(l, values));
    Py_XDECREF(values);
    Py_ssize_t count = is_dict ? 0 : PySequence_Size(tree);
    for (Py_ssize_t at = 0; collected && at < count; at++) {
        PyObject *item = PySequence_GetItem(tree, at);
        collected = item && leaves_collect(l, item);
        Py_XDECREF(item);
    }
    return collected;
}

static bool leaves_collect(struct py_leaves *l, PyObject *tree)
{
    if (array_check(tree))
        return leaves_add(l, tree);
    if (!PyDict_Check(tree) && !PyList_Check(tree) && !PyTuple_Check(tree))
        return true;
    if (Py_EnterRecursiveCall(" in a tree"))
        return false;
    bool collected = collect_parts(l, tree);
    Py_LeaveRecursiveCall();
    return collected;
}

static void leaves_end(struct py_leaves *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        array_unuse(l->objects[i]);
    if (l->objects == l->few_objects)
        return;
    free(l->objects);
    free(l->arrays);
}

// An evaluation that may last.
struct py_evaluation {
    struct py_work work;
    tn_scope *scope;
    tn_array **arrays; // with references
    uint64_t count;
};

static void evaluation_run(struct py_work *work)
{
    struct py_evaluation *e = (struct py_evaluation *)work;
    tn_eval_held_n(e->scope, e->arrays, e->count, 0);
}

static void evaluation_finish(struct py_work *work)
{
    struct py_evaluation *e = (struct py_evaluation *)work;
    tn_scope_close(e->scope);
    for (uint64_t i = 0; i < e->count; i++)
        tn_release(e->arrays[i]);
    free(e);
}

static bool evaluate_apart(tn_array *const *arrays, uint64_t count)
{
    struct py_building b;
    if (!building_begin_apart(&b))
        return false;
    struct py_evaluation *e = malloc(sizeof(*e) + count * sizeof(tn_array *));
    if (!e) {
        building_end(&b);
        return PyErr_NoMemory(), false;
    }
    *e =
        (struct py_evaluation){.work = {.run = evaluation_run, .finish = evaluation_finish},
                               .scope = b.scope,
                               .arrays = (tn_array **)(e + 1)};
    for (; e->count < count; e->count++)
        if (!(e->arrays[e->count] = tn_retain(NULL, arrays[e->count])))
            break;
    bool is_retained = e->count == count;
    if (!is_retained)
        raise_status(TN_ERR_ARGUMENT, tn_last_error());
    else if (!work_wait(&e->work))
        return false;
    bool is_done = is_retained && tn_scope_status(e->scope) == TN_OK;
    if (is_retained && !is_done)
        raise_scope(e->scope);
    evaluation_finish(&e->work);
    return is_done;
}

static bool are_there(tn_array *const *arrays, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!tn_array_elements(arrays[i]))
            return false;
    return true;
}

// Computes arrays in use, and with them the arrays of their graph that other Arrays hold;
// watched ones are not held.
static bool py_evaluate(tn_array *const *arrays, uint64_t count, bool is_async)
{
    uint32_t flags = is_async ? TN_EVAL_ASYNC : TN_EVAL_BRIEF;
    struct py_building b;
    tn_status status;
    if (are_there(arrays, count))
        return true;
    if (!building_begin_kept(&b))
        return false;
    Py_BEGIN_ALLOW_THREADS;
    status = tn_eval_held_n(b.scope, arrays, count, flags);
    Py_END_ALLOW_THREADS;
    bool is_long = status == TN_ERR_UNSUPPORTED && !is_async;
    if (is_long)
        tn_scope_clear_error(b.scope);
    else if (status != TN_OK)
        raise_scope(b.scope);
    building_end(&b);
    return is_long ? evaluate_apart(arrays, count) : status == TN_OK;
}

bool evaluate_array(tn_array *array)
{
    return py_evaluate(&array, 1, false);
}

static PyObject *evaluate_trees(PyObject *const *trees, Py_ssize_t count, bool is_async)
{
    struct py_leaves l;
    l.objects = l.few_objects;
    l.arrays = l.few_arrays;
    l.count = 0;
    l.max = sizeof(l.few_arrays) / sizeof(l.few_arrays[0]);
    bool done = true;
    for (Py_ssize_t i = 0; done && i < count; i++)
        done = leaves_collect(&l, trees[i]);
    done = done && py_evaluate(l.arrays, l.count, is_async);
    leaves_end(&l);
    return done ? Py_NewRef(Py_None) : NULL;
}

PyObject *arrays_have_values(PyObject *module, PyObject *list)
{
    PY_GUARD;
    (void)module;
    bool have = PyList_Check(list);
    Py_ssize_t count = have ? PyList_Size(list) : 0;
    for (Py_ssize_t i = 0; have && i < count; i++) {
        PyObject *object = PyList_GetItem(list, i);
        const struct py_array *array =
            array_check(object) ? (struct py_array *)object : NULL;
        have = array && array->array && !array->trace && !array->is_watched &&
               (tn_array_op(array->array)[0] == '\0' || tn_array_elements(array->array));
    }
    return PyBool_FromLong(have);
}

PyObject *array_address(PyObject *module, PyObject *object)
{
    PY_GUARD;
    (void)module;
    if (!array_check(object)) {
        PyErr_SetString(PyExc_TypeError, "expected an Array");
        return NULL;
    }
    return PyLong_FromVoidPtr(((struct py_array *)object)->array);
}

PyObject *eval_arrays(PyObject *module, PyObject *const *trees, Py_ssize_t count)
{
    PY_GUARD;
    (void)module;
    return evaluate_trees(trees, count, false);
}

PyObject *async_eval_arrays(PyObject *module, PyObject *const *trees, Py_ssize_t count)
{
    PY_GUARD;
    (void)module;
    return evaluate_trees(trees, count, true);
}

// --- derivatives, explanations ---

// Three lists: `outputs` and `wrt` of arrays, `given` cotangents of outputs or tangents of
// wrt, or None.
static PyObject *py_evaluate_differentiate(PyObject *args, bool forward)
{
    PyObject *lists[3];
    struct py_building b;
    if (!PyArg_ParseTuple(args, "OOO", &lists[0], &lists[1], &lists[2]) ||
        !building_begin(&b))
        return NULL;
    struct array_list outputs = {0}, given = {0}, wrt = {0};
    bool has_lists = array_list_get(&b, lists[0], &outputs) &&
                     (lists[1] == Py_None || array_list_get(&b, lists[1], &given)) &&
                     array_list_get(&b, lists[2], &wrt);
    uint64_t count = forward ? outputs.count : wrt.count;
    tn_array **results = has_lists ? calloc(count + 1, sizeof(*results)) : NULL;
    PyObject *result = NULL;
    if (results) {
        tn_status status = forward ? tn_jvp(b.scope, outputs.items, outputs.count,
                                            wrt.items, given.items, wrt.count, results)
                                   : tn_vjp(b.scope, outputs.items, given.items,
                                            outputs.count, wrt.items, wrt.count, results);
        result =
            status == TN_OK ? array_list_wrap(&b, results, count) : raise_scope(b.scope);
    } else if (has_lists) {
        PyErr_NoMemory();
    }
    free(results);
    free(wrt.items);
    free(given.items);
    free(outputs.items);
    building_end(&b);
    return result;
}

PyObject *vjp_arrays(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    return py_evaluate_differentiate(args, false);
}

PyObject *jvp_arrays(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    return py_evaluate_differentiate(args, true);
}

// explain(list, as_dot): JSON of tn_explain, or DOT of the graph.
PyObject *explain_arrays(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *list;
    int as_dot;
    struct py_building b;
    if (!PyArg_ParseTuple(args, "Op:explain", &list, &as_dot) || !building_begin_apart(&b))
        return NULL;
    char *text = NULL;
    struct array_list arrays;
    PyObject *result = NULL;
    if (array_list_get(&b, list, &arrays)) {
        tn_status status = as_dot
                               ? tn_graph_dot(b.scope, arrays.items, arrays.count, 1, &text)
                               : tn_explain(b.scope, arrays.items, arrays.count, &text);
        result = status == TN_OK ? PyUnicode_FromString(text) : raise_scope(b.scope);
    }
    tn_text_free(text);
    free(arrays.items);
    building_end(&b);
    return result;
}

// --- files ---

static PyObject *file_arrays(struct py_building *b, const tn_file *file)
{
    PyObject *dict = PyDict_New();
    const char *name;
    for (uint64_t i = 0; dict && (name = tn_file_name(file, i)); i++) {
        PyObject *array = building_array(b, tn_file_array(b->scope, file, name));
        if (!array || PyDict_SetItemString(dict, name, array) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(array);
    }
    return dict;
}

// load(path): a dict of arrays by name.
PyObject *load_file(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *path;
    struct py_building b;
    tn_file *file;
    if (!PyArg_ParseTuple(args, "O&:load", PyUnicode_FSConverter, &path))
        return NULL;
    PyObject *dict = NULL;
    if (building_begin_apart(&b)) {
        tn_status status =
            tn_file_open(tn_scope_runtime(b.scope), PyBytes_AsString(path), NULL, &file);
        if (status == TN_OK) {
            dict = file_arrays(&b, file);
            tn_file_close(file);
        } else {
            raise_status(status, tn_last_error());
        }
        building_end(&b);
    }
    Py_DECREF(path);
    return dict;
}

// save(path, names, arrays).
PyObject *save_file(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *path, *names, *list;
    struct py_building b;
    if (!PyArg_ParseTuple(args, "O&OO:save", PyUnicode_FSConverter, &path, &names, &list))
        return NULL;
    struct array_list arrays = {0};
    bool begun = building_begin_apart(&b);
    bool has_names = begun && array_list_get(&b, list, &arrays);
    const char **texts = has_names ? calloc(arrays.count + 1, sizeof(*texts)) : NULL;
    if (has_names && !texts)
        PyErr_NoMemory();
    has_names = texts != NULL;
    for (uint64_t i = 0; has_names && i < arrays.count; i++) {
        PyObject *name = PyList_GetItem(names, (Py_ssize_t)i);
        texts[i] = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
        has_names = texts[i] != NULL;
    }
    PyObject *result = NULL;
    if (has_names) {
        bool is_one = arrays.count == 1 && texts[0][0] == '\0';
        tn_status status;
        Py_BEGIN_ALLOW_THREADS;
        status = tn_save(b.scope, PyBytes_AsString(path), arrays.items,
                         is_one ? NULL : texts, arrays.count, NULL);
        Py_END_ALLOW_THREADS;
        result = status == TN_OK ? Py_NewRef(Py_None) : raise_scope(b.scope);
    }
    free(texts);
    free(arrays.items);
    if (begun)
        building_end(&b);
    Py_DECREF(path);
    return result;
}

// --- devices, statistics ---

// devices(): dicts of every device of every installed backend. Loads the backends.
PyObject *list_devices(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    tn_device_summary devices[64];
    uint64_t count = 64;
    tn_runtime *runtime = runtime_get();
    if (!runtime)
        return NULL;
    memset(devices, 0, sizeof(devices));
    devices[0].struct_size = sizeof(devices[0]);
    tn_status status = tn_devices(runtime, devices, &count);
    if (status != TN_OK)
        return raise_status(status, tn_last_error());
    PyObject *list = PyList_New(0);
    for (uint64_t i = 0; list && i < count && i < 64; i++) {
        const tn_device_summary *d = &devices[i];
        PyObject *row = Py_BuildValue(
            "{s:s,s:I,s:s,s:s,s:I,s:K,s:s,s:s,s:s,s:s}", "backend", d->backend, "index",
            d->index, "name", d->name, "driver", d->driver, "selected", d->selected,
            "memory_size", (unsigned long long)d->memory_size, "reason", d->reason,
            "warning", d->warning, "remedy", d->remedy, "plugin", d->plugin);
        if (!row || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

// stats(): counters of the runtime, and the memory that it holds.
PyObject *trim_runtime(PyObject *module, PyObject *flags)
{
    PY_GUARD;
    (void)module;
    unsigned long what = PyLong_AsUnsignedLong(flags);
    tn_runtime *runtime = PyErr_Occurred() ? NULL : runtime_get();
    if (!runtime)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    tn_runtime_trim(runtime, (uint32_t)what);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyObject *runtime_stats(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    tn_runtime *runtime = runtime_get();
    if (!runtime)
        return NULL;
    tn_stats s = {.struct_size = sizeof(s)};
    tn_runtime_stats(runtime, &s);
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {{"plans_made", s.plans_made},   {"plan_hits", s.plan_hits},
                    {"submissions", s.submissions}, {"steps", s.steps},
                    {"transfers", s.transfers},     {"buffer_bytes", s.buffer_bytes},
                    {"buffer_peak", s.buffer_peak}, {"spare_bytes", s.spare_bytes},
                    {"plan_bytes", s.plan_bytes},   {"bytes_written", s.bytes_written},
                    {"traces_made", s.traces_made}};
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof(counters) / sizeof(counters[0]); i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(counters[i].value);
        if (!value || PyDict_SetItemString(dict, counters[i].name, value) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}
