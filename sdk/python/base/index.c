// SPDX-License-Identifier: MIT
// Indices of numbers, slices, None and ...: which elements, and the result's shape.
#include "base.h"

static void add_bounds(struct py_index *x, int64_t start, int64_t stop, int64_t step)
{
    x->is_whole = x->is_whole && start == 0 && step == 1 && stop == x->extent[x->axis];
    x->start.value[x->axis] = start;
    x->stop.value[x->axis] = stop;
    x->step.value[x->axis++] = step;
}

static bool add_extent(struct py_index *x, int64_t extent)
{
    if (x->shape.count == TN_MAX_RANK)
        return false;
    x->shape.value[x->shape.count++] = extent;
    return true;
}

static bool index_add_number(struct py_index *x, PyObject *item)
{
    int64_t extent = x->extent[x->axis], at = PyLong_AsLongLong(item);
    if (at == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    if (at < -extent || at >= extent)
        return false;
    at += at < 0 ? extent : 0;
    add_bounds(x, at, at + 1, 1);
    return true;
}

// Bounds of a Python slice may be objects whose __index__ raises.
static bool index_add_slice(struct py_index *x, PyObject *item)
{
    Py_ssize_t start, stop, step;
    int64_t extent = x->extent[x->axis];
    if (PySlice_Unpack(item, &start, &stop, &step) != 0)
        return false;
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)extent, &start, &stop, step);
    if (count == 0)
        start = stop = 0, step = 1;
    else if (step < 0 && stop < 0)
        stop = (Py_ssize_t)(-extent - 1); // before the first element
    add_bounds(x, start, stop, step);
    return add_extent(x, count);
}

static bool index_add_rest(struct py_index *x, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        int64_t extent = x->extent[x->axis];
        add_bounds(x, 0, extent, 1);
        if (!add_extent(x, extent))
            return false;
    }
    return true;
}

static bool index_add_all(struct py_index *x, PyObject *const *items, Py_ssize_t count)
{
    int32_t used = 0;
    bool has_rest = false;
    for (Py_ssize_t i = 0; i < count; i++) {
        bool is_rest = items[i] == Py_Ellipsis;
        if ((is_rest && has_rest) ||
            (!is_rest && items[i] != Py_None && !PyLong_CheckExact(items[i]) &&
             !PySlice_Check(items[i])))
            return false;
        has_rest |= is_rest;
        used += !is_rest && items[i] != Py_None;
    }
    if (used > x->rank)
        return false;
    bool is_read = true;
    for (Py_ssize_t i = 0; i < count && is_read; i++)
        is_read = items[i] == Py_None           ? add_extent(x, 1)
                  : items[i] == Py_Ellipsis     ? index_add_rest(x, x->rank - used)
                  : PyLong_CheckExact(items[i]) ? index_add_number(x, items[i])
                                                : index_add_slice(x, items[i]);
    return is_read && index_add_rest(x, x->rank - x->axis);
}

bool index_read(struct py_index *x, PyObject *index)
{
    PyObject *few[2 * TN_MAX_RANK] = {index};
    Py_ssize_t most = sizeof(few) / sizeof(few[0]);
    Py_ssize_t count = PyTuple_Check(index) ? PyTuple_Size(index) : 1;
    for (Py_ssize_t i = 0; PyTuple_Check(index) && i < count && i < most; i++)
        few[i] = PyTuple_GetItem(index, i);
    return count <= most && index_add_all(x, few, count);
}
