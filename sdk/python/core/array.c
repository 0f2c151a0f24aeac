// SPDX-License-Identifier: MIT
// The type Array: its life, its properties, and the operators of Python's syntax. Methods
// with the names of operators are added by the package, in Python.
#include "trace.h"

#include <string.h>
#include <structmember.h>
#include <tenon/retain.h>

PyTypeObject *array_type;
static allocfunc array_alloc; // of array_type
static freefunc array_free;

// A watched array, through which derivatives go, is not held: evaluating other arrays does
// not compute it.
static void set_watched(struct py_array *self, bool is_watched)
{
    if (self->is_watched != is_watched && self->array && !self->trace)
        tn_hold(self->array, !is_watched);
    self->is_watched = is_watched;
}

// Drops the object's references.
static void py_array_drop(struct py_array *self)
{
    set_watched(self, false);
    if (self->trace)
        trace_release(self->trace);
    else
        tn_release(self->array);
    self->array = NULL;
    self->trace = NULL;
}

static void drop_held(struct py_held *held)
{
    struct py_array *self =
        (struct py_array *)((char *)held - offsetof(struct py_array, held));
    if (self->uses == 0) // else another thread still uses it
        py_array_drop(self);
}

void array_set_watched(PyObject *array, bool is_watched)
{
    set_watched((struct py_array *)array, is_watched);
}

PyObject *watch_arrays(PyObject *module, PyObject *change)
{
    PY_GUARD;
    (void)module;
    long by = PyLong_AsLong(change);
    if (by == -1 && PyErr_Occurred())
        return NULL;
    py_thread.watching += by;
    Py_RETURN_NONE;
}

PyObject *unwatch_array(PyObject *module, PyObject *array)
{
    PY_GUARD;
    (void)module;
    if (array_check(array))
        set_watched((struct py_array *)array, py_thread.watching > 0);
    Py_RETURN_NONE;
}

void array_use(PyObject *array)
{
    struct py_array *self = (struct py_array *)array;
    Py_INCREF(array);
    self->uses++;
    self->is_used = true;
}

void array_unuse(PyObject *array)
{
    struct py_array *self = (struct py_array *)array;
    if (--self->uses == 0) {
        self->is_used = false;
        Py_CLEAR(self->older);
    }
    Py_DECREF(array);
}

PyObject *array_wrap(tn_array *array, struct py_trace *trace)
{
    struct py_array *self = (struct py_array *)array_alloc(array_type, 0);
    if (!self) {
        if (trace)
            trace_release(trace);
        else
            tn_release(array);
        return NULL;
    }
    self->array = array;
    self->trace = trace;
    set_watched(self, py_thread.watching > 0);
    held_add(&self->held, drop_held);
    return (PyObject *)self;
}

static void array_dealloc(PyObject *object)
{
    PY_GUARD;
    struct py_array *self = (struct py_array *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->weakrefs)
        PyObject_ClearWeakRefs(object);
    held_remove(&self->held);
    py_array_drop(self);
    Py_XDECREF(self->older);
    array_free(object);
    Py_DECREF(type);
}

// The line of the application that is running, as "train.py:12"; None where it is not
// known.
static PyObject *line_running(void)
{
    PyObject *package = PyImport_ImportModule("tenon._where");
    PyObject *line = package ? PyObject_CallMethod(package, "line", NULL) : NULL;
    Py_XDECREF(package);
    PyErr_Clear();
    return line ? line : Py_NewRef(Py_None);
}

static void raise_without_value(const char *what)
{
    PyObject *line = line_running();
    PyErr_Format(
        PyExc_ValueError,
        strcmp(what, "vmap") == 0
            ? "tenon: %S: an array within the body of a %s stands for each slice, so it "
              "has no one value to read or branch on; use tenon.where or tenon.cond, or "
              "return it"
            : "tenon: %S: an array within the body of a %s has no value yet: nothing there "
              "can be printed, read or branched on; use tenon.where or tenon.cond, or "
              "return it",
        line, what);
    Py_DECREF(line);
}

bool array_leave_trace(struct py_array *self)
{
    struct py_trace *trace = self->trace;
    if (strcmp(trace->what, "vmap") != 0)
        return false;
    tn_array *retained = tn_retain(trace->scope, self->array);
    if (!retained) {
        tn_scope_clear_error(trace->scope);
        return false;
    }
    self->array = retained;
    self->trace = NULL;
    self->has_left = true;
    if (self->is_watched)
        tn_hold(retained, 0);
    trace_release(trace);
    return true;
}

tn_array *array_get(PyObject *object, const struct py_building *b)
{
    struct py_array *self = (struct py_array *)object;
    if (self->trace && !self->trace->scope) {
        PyErr_Format(
            PyExc_ValueError,
            "tenon: this array belongs to the body of a %s that has ended; return it "
            "from the body instead of keeping it",
            self->trace->what);
        return NULL;
    }
    if (self->trace && !b->trace && !array_leave_trace(self)) {
        raise_without_value(self->trace->what);
        return NULL;
    }
    if (!self->array)
        PyErr_SetString(PyExc_ValueError,
                        "tenon: this array was donated (donate=), so it has no value");
    return self->array;
}

PyObject *alias_array(PyObject *module, PyObject *object)
{
    PY_GUARD;
    (void)module;
    struct py_array *self = (struct py_array *)object;
    if (!array_check(object))
        return Py_NewRef(object);
    PyObject *other = self->trace ? array_wrap(self->array, trace_retain(self->trace))
                                  : array_wrap(tn_retain(NULL, self->array), NULL);
    if (other)
        set_watched((struct py_array *)other, self->is_watched);
    return other;
}

PyObject *arrays_of_body(PyObject *module, PyObject *unused)
{
    PY_GUARD;
    (void)module, (void)unused;
    const struct py_trace *trace = trace_current();
    PyObject *list = PyList_New(0);
    for (struct py_held *held = held_next(NULL); list && held; held = held_next(held)) {
        struct py_array *self =
            (struct py_array *)((char *)held - offsetof(struct py_array, held));
        if (held->drop == drop_held && trace && self->trace == trace &&
            PyList_Append(list, (PyObject *)self) != 0)
            Py_CLEAR(list);
    }
    return list;
}

// --- other values ---

// A value that a body assigns to an Array from outside would be lost when the body ends.
static void raise_changed_outside(const char *what)
{
    PyObject *line = line_running();
    PyErr_Format(
        PyExc_ValueError,
        "tenon: %S: the body of a %s changes an array that was made outside of it; "
        "return the new value instead, or change a copy",
        line, what);
    Py_DECREF(line);
}

// Moves the value that a call without the GIL uses to `older`, for array_unuse() to free.
static bool keep_used(struct py_array *self, struct py_array *before)
{
    PyObject *kept = array_wrap(before->array, before->trace);
    if (!kept)
        return false;
    ((struct py_array *)kept)->older = self->older;
    self->older = kept;
    self->is_used = false;
    return true;
}

PyObject *array_replace(PyObject *object, PyObject *other)
{
    PY_GUARD;
    struct py_array *self = (struct py_array *)object, *from = (struct py_array *)other;
    bool is_watched = array_check(other) && from->is_watched;
    struct py_building b;
    if (!array_check(other)) {
        PyErr_SetString(PyExc_TypeError, "expected an Array");
        return NULL;
    }
    if (!building_begin(&b))
        return NULL;
    tn_array *array = array_get(other, &b);
    bool is_outside = array && b.trace && self->trace != b.trace && !self->has_left;
    tn_array *taken = !array || is_outside ? NULL
                      : from->trace        ? array
                                           : tn_retain(NULL, array);
    building_end(&b);
    if (is_outside)
        raise_changed_outside(b.trace->what);
    else if (array && !taken)
        raise_status(TN_ERR_ARGUMENT, tn_last_error());
    if (!taken)
        return NULL;
    // The object's own array is released, so the other's graph is its only holder.
    set_watched(self, false);
    struct py_array before = *self;
    self->trace = from->trace ? trace_retain(from->trace) : NULL;
    self->array = taken;
    set_watched(self, is_watched);
    if (!self->is_used)
        py_array_drop(&before);
    else if (!keep_used(self, &before))
        return NULL;
    return Py_NewRef(object);
}

const tn_type *array_type_of(PyObject *object)
{
    const struct py_array *self = (struct py_array *)object;
    if (self->trace && !self->trace->scope) {
        struct py_building none = {0};
        array_get(object, &none);
        return NULL;
    }
    const tn_type *type = self->array ? tn_array_type(self->array) : NULL;
    if (!type)
        PyErr_SetString(PyExc_ValueError,
                        "tenon: this array was donated (donate=), so it has no type");
    return type;
}

// --- properties ---

static PyObject *get_shape(PyObject *self, void *unused)
{
    PY_GUARD;
    (void)unused;
    const tn_type *type = array_type_of(self);
    PyObject *shape = type ? PyTuple_New(type->rank) : NULL;
    for (int32_t i = 0; shape && i < type->rank; i++) {
        PyObject *extent = PyLong_FromLongLong(type->extent[i]);
        if (!extent || PyTuple_SetItem(shape, i, extent) != 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    PY_GUARD;
    (void)unused;
    const tn_type *type = array_type_of(self);
    return type ? dtype_object(type->dtype) : NULL;
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    PY_GUARD;
    (void)unused;
    const tn_type *type = array_type_of(self);
    return type ? PyLong_FromLong(type->rank) : NULL;
}

static int64_t py_array_elements_of(const tn_type *type)
{
    int64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= type->extent[i];
    return count;
}

static PyObject *get_size(PyObject *self, void *unused)
{
    PY_GUARD;
    (void)unused;
    const tn_type *type = array_type_of(self);
    return type ? PyLong_FromLongLong(py_array_elements_of(type)) : NULL;
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
    PY_GUARD;
    (void)unused;
    const tn_type *type = array_type_of(self);
    return type ? PyLong_FromLongLong(py_array_elements_of(type) *
                                      tn_dtype_bytes(type->dtype))
                : NULL;
}

static PyObject *get_op(PyObject *self, void *unused)
{
    PY_GUARD;
    (void)unused;
    return array_type_of(self)
               ? PyUnicode_FromString(tn_array_op(((struct py_array *)self)->array))
               : NULL;
}

static Py_ssize_t array_length(PyObject *self)
{
    PY_GUARD;
    const tn_type *type = array_type_of(self);
    if (type && type->rank == 0)
        PyErr_SetString(PyExc_TypeError, "len() of an array without axes");
    return type && type->rank > 0 ? (Py_ssize_t)type->extent[0] : -1;
}

// --- operators ---

#define UNARY(slot, name)                                                                  \
    static PyObject *slot(PyObject *x)                                                     \
    {                                                                                      \
        return apply_unary(name, x);                                                       \
    }
#define BINARY(slot, name)                                                                 \
    static PyObject *slot(PyObject *x, PyObject *y)                                        \
    {                                                                                      \
        return apply_binary(name, x, y);                                                   \
    }
UNARY(array_negative, "base.negative/1")
UNARY(array_positive, "base.positive/1")
UNARY(array_absolute, "base.abs/1")
UNARY(array_invert, "base.invert/1")
BINARY(array_add, "base.add/1")
BINARY(array_subtract, "base.subtract/1")
BINARY(array_multiply, "base.multiply/1")
BINARY(array_divide, "base.divide/1")
BINARY(array_floor_divide, "base.floor_divide/1")
BINARY(array_remainder, "base.remainder/1")
BINARY(array_matmul_alike, "base.matmul/1")
BINARY(array_and, "base.bitwise_and/1")
BINARY(array_or, "base.bitwise_or/1")
BINARY(array_xor, "base.bitwise_xor/1")
BINARY(array_left_shift, "base.left_shift/1")
BINARY(array_right_shift, "base.right_shift/1")
#define IN_PLACE(slot, name)                                                               \
    static PyObject *slot(PyObject *x, PyObject *y)                                        \
    {                                                                                      \
        return apply_in_place(name, x, y);                                                 \
    }
IN_PLACE(array_add_to, "base.add/1")
IN_PLACE(array_subtract_from, "base.subtract/1")
IN_PLACE(array_multiply_by, "base.multiply/1")
IN_PLACE(array_divide_by, "base.divide/1")
IN_PLACE(array_floor_divide_by, "base.floor_divide/1")
IN_PLACE(array_remainder_by, "base.remainder/1")
IN_PLACE(array_matmul_by, "base.matmul/1")
IN_PLACE(array_and_with, "base.bitwise_and/1")
IN_PLACE(array_or_with, "base.bitwise_or/1")
IN_PLACE(array_xor_with, "base.bitwise_xor/1")
IN_PLACE(array_left_shift_by, "base.left_shift/1")
IN_PLACE(array_right_shift_by, "base.right_shift/1")
#undef UNARY
#undef BINARY
#undef IN_PLACE

// Products take arrays of one dtype: the package's matmul in Python converts others.
static PyObject *array_matmul(PyObject *x, PyObject *y)
{
    if (!array_check(x) || !array_check(y))
        return array_matmul_alike(x, y);
    const tn_type *left = array_type_of(x), *right = left ? array_type_of(y) : NULL;
    if (!right)
        return NULL;
    if (left->dtype == right->dtype)
        return array_matmul_alike(x, y);
    PyObject *module = PyImport_ImportModule("tenon._standard");
    PyObject *result = module ? PyObject_CallMethod(module, "matmul", "OO", x, y) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *array_power(PyObject *x, PyObject *y, PyObject *modulus)
{
    if (modulus == Py_None)
        return apply_binary("base.power/1", x, y);
    PyErr_SetString(PyExc_TypeError, "pow() of arrays takes no modulus");
    return NULL;
}

static PyObject *array_power_by(PyObject *x, PyObject *y, PyObject *modulus)
{
    (void)modulus;
    return apply_in_place("base.power/1", x, y);
}

static PyObject *py_array_compare(PyObject *x, PyObject *y, int op)
{
    PY_GUARD;
    static const char *const names[] = {
        [Py_LT] = "base.less/1",    [Py_LE] = "base.less_equal/1",
        [Py_EQ] = "base.equal/1",   [Py_NE] = "base.not_equal/1",
        [Py_GT] = "base.greater/1", [Py_GE] = "base.greater_equal/1"};
    return apply_binary(names[op], x, y);
}

static int array_bool(PyObject *self)
{
    PY_GUARD;
    PyObject *number = array_number(self);
    int truth = number ? PyObject_IsTrue(number) : -1;
    Py_XDECREF(number);
    return truth;
}

// The element converted by a function of Python's numbers.
static PyObject *element_as(PyObject *self, PyObject *(*convert)(PyObject *))
{
    PY_GUARD;
    PyObject *number = array_number(self);
    PyObject *result = number ? convert(number) : NULL;
    Py_XDECREF(number);
    return result;
}

static PyObject *array_int(PyObject *self)
{
    return element_as(self, PyNumber_Long);
}

static PyObject *array_float(PyObject *self)
{
    return element_as(self, PyNumber_Float);
}

static PyObject *array_index(PyObject *self)
{
    return element_as(self, PyNumber_Index);
}

static PyObject *array_complex(PyObject *self, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    PyObject *number = array_number(self);
    PyObject *result =
        number ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, number, NULL)
               : NULL;
    Py_XDECREF(number);
    return result;
}

static PyMethodDef array_methods[] = {
    {"item", array_item, METH_NOARGS,
     "item()\n--\n\nThe one element as a number of Python."},
    {"tolist", array_tolist, METH_NOARGS, "tolist()\n--\n\nNested lists of numbers."},
    {"_replace", array_replace, METH_O, NULL},
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
     "The array as a DLPack tensor of the host."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, "(1, 0): the host."},
    {"__complex__", array_complex, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef array_properties[] = {
    {"shape", get_shape, NULL, "The extents, outermost axis first.", NULL},
    {"dtype", get_dtype, NULL, "The element type.", NULL},
    {"ndim", get_ndim, NULL, "The number of axes.", NULL},
    {"size", get_size, NULL, "The number of elements.", NULL},
    {"nbytes", get_nbytes, NULL, "The bytes of all elements.", NULL},
    {"op", get_op, NULL, "The id of the operator that made it; \"\" for data.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef array_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct py_array, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static const char documentation[] =
    "An array: lazy, immutable data behind an object that may take another value.";

static PyType_Slot array_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)documentation},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_methods, array_methods},
    {Py_tp_getset, array_properties},
    {Py_tp_members, array_members},
    {Py_tp_richcompare, py_array_compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_sq_length, array_length},
    {Py_mp_length, array_length},
    {Py_mp_subscript, array_subscript},
    {Py_nb_add, array_add},
    {Py_nb_subtract, array_subtract},
    {Py_nb_multiply, array_multiply},
    {Py_nb_true_divide, array_divide},
    {Py_nb_floor_divide, array_floor_divide},
    {Py_nb_remainder, array_remainder},
    {Py_nb_power, array_power},
    {Py_nb_matrix_multiply, array_matmul},
    {Py_nb_and, array_and},
    {Py_nb_or, array_or},
    {Py_nb_xor, array_xor},
    {Py_nb_lshift, array_left_shift},
    {Py_nb_rshift, array_right_shift},
    {Py_nb_inplace_add, array_add_to},
    {Py_nb_inplace_subtract, array_subtract_from},
    {Py_nb_inplace_multiply, array_multiply_by},
    {Py_nb_inplace_true_divide, array_divide_by},
    {Py_nb_inplace_floor_divide, array_floor_divide_by},
    {Py_nb_inplace_remainder, array_remainder_by},
    {Py_nb_inplace_power, array_power_by},
    {Py_nb_inplace_matrix_multiply, array_matmul_by},
    {Py_nb_inplace_and, array_and_with},
    {Py_nb_inplace_or, array_or_with},
    {Py_nb_inplace_xor, array_xor_with},
    {Py_nb_inplace_lshift, array_left_shift_by},
    {Py_nb_inplace_rshift, array_right_shift_by},
    {Py_nb_negative, array_negative},
    {Py_nb_positive, array_positive},
    {Py_nb_absolute, array_absolute},
    {Py_nb_invert, array_invert},
    {Py_nb_bool, array_bool},
    {Py_nb_int, array_int},
    {Py_nb_float, array_float},
    {Py_nb_index, array_index},
    {Py_bf_getbuffer, array_getbuffer},
    {Py_bf_releasebuffer, array_releasebuffer},
    {0, NULL},
};

static PyType_Spec array_spec = {
    .name = "tenon.Array",
    .basicsize = sizeof(struct py_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = array_slots,
};

bool array_init(PyObject *module)
{
    array_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
    if (!array_type)
        return false;
    array_alloc = (allocfunc)PyType_GetSlot(array_type, Py_tp_alloc);
    array_free = (freefunc)PyType_GetSlot(array_type, Py_tp_free);
    return PyModule_AddObjectRef(module, "Array", (PyObject *)array_type) == 0;
}
