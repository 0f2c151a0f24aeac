// SPDX-License-Identifier: MIT
// Any primitive as a function of Python: one trampoline over the tables of inputs and
// attributes.
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define MAX_INPUTS 64
#define MAX_APPLIED 1024 // arrays of one application, as the core takes them

// An operator as a function of Python: its primitive, and its texts for CPython.
struct py_operator {
    PyObject ob_base;
    const tn_primitive *primitive; // the runtime's; NULL until the first call
    PyMethodDef method;
    char *id, *name, *document;
    PyTypeObject *held; // type of operands and results, derived from Held; NULL: Array
    PyObject *check;    // called before a result of float64 is given; NULL: none
};

static PyTypeObject *operator_type;

static const tn_input_info *input_at(const tn_primitive *p, uint32_t i)
{
    return (const tn_input_info *)((const char *)p->inputs + (size_t)i * p->input_size);
}

static const tn_attr_field *py_operators_field_at(const tn_primitive *p, uint32_t i)
{
    return (const tn_attr_field *)((const char *)p->attrs.fields + i * p->attrs.field_size);
}

// --- applying ---

// The arguments of a call by parameter: inputs, then attributes. NULL: not given.
struct py_arguments {
    PyObject *value[MAX_INPUTS + MAX_ATTRS];
};

static int32_t parameter_named(const tn_primitive *p, const char *name)
{
    for (uint32_t i = 0; i < p->num_inputs; i++)
        if (strcmp(input_at(p, i)->name, name) == 0)
            return (int32_t)i;
    for (uint32_t i = 0; i < p->attrs.num_fields; i++)
        if (strcmp(py_operators_field_at(p, i)->name, name) == 0)
            return (int32_t)(p->num_inputs + i);
    return -1;
}

static bool py_operators_bind_names(const struct py_operator *op, struct py_arguments *a,
                                    PyObject *const *values, PyObject *names)
{
    for (Py_ssize_t i = 0, n = names ? PyTuple_Size(names) : 0; i < n; i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
        if (!name)
            return false;
        int32_t at = parameter_named(op->primitive, name);
        if (at < 0 || a->value[at]) {
            PyErr_Format(PyExc_TypeError,
                         at < 0 ? "%s() got an unexpected argument '%s'"
                                : "%s() got two values for argument '%s'",
                         op->name, name);
            return false;
        }
        a->value[at] = values[i];
    }
    return true;
}

static bool bind_arguments(const struct py_operator *op, struct py_arguments *a,
                           PyObject *const *values, Py_ssize_t count, PyObject *names)
{
    const tn_primitive *p = op->primitive;
    uint32_t parameters = p->num_inputs + p->attrs.num_fields;
    if (count > (Py_ssize_t)parameters) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %u arguments, got %zd", op->name,
                     parameters, count);
        return false;
    }
    memcpy(a->value, values, (size_t)count * sizeof(*values));
    memset(a->value + count, 0, (parameters - (size_t)count) * sizeof(*values));
    return py_operators_bind_names(op, a, values + count, names);
}

// Arrays of one application, in the scope of `b`.
struct applied {
    tn_array *few[MAX_INPUTS];
    tn_array **all; // `few`, or a longer list
    uint32_t count;
};

static bool py_operators_is_number(PyObject *object)
{
    return PyFloat_CheckExact(object) || PyLong_CheckExact(object) ||
           PyBool_Check(object) || PyComplex_CheckExact(object);
}

// Whether all operands are Arrays, numbers or None: such nodes leave nothing in a scope.
static bool are_plain(PyObject *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i] && !array_check(values[i]) && !py_operators_is_number(values[i]) &&
            values[i] != Py_None)
            return false;
    return true;
}

// Whether an input is an array: beside one, numbers have no dtype of their own.
static bool has_array(const struct py_arguments *a, uint32_t num_inputs)
{
    for (uint32_t i = 0; i < num_inputs; i++)
        if (a->value[i] && a->value[i] != Py_None && !py_operators_is_number(a->value[i]))
            return true;
    return false;
}

// A number as an operand. For a primitive that is decomposed, the number gets the dtype of
// the first array where that dtype holds its kind, as beside this array alone.
static tn_array *number_get(struct py_building *b, const tn_primitive *p, PyObject *number,
                            const struct py_arguments *a)
{
    const tn_type *first = NULL;
    for (uint32_t i = 0; i < p->num_inputs && !first; i++)
        if (a->value[i] && array_check(a->value[i]))
            first = tn_array_type(((struct py_array *)a->value[i])->array);
    uint32_t kind = first ? tn_dtype_kind(first->dtype) : TN_KIND_NONE;
    bool holds = PyComplex_Check(number) ? kind == TN_KIND_COMPLEX
                 : PyFloat_Check(number) ? kind == TN_KIND_FLOAT || kind == TN_KIND_COMPLEX
                                         : kind != TN_KIND_NONE && kind != TN_KIND_BOOL;
    if (p->infer || p->expr || !holds)
        return operand_get(b, number, true);
    tn_array *x = array_from_object(b, number, first->dtype);
    if (!x && !PyErr_Occurred())
        raise_scope(b->scope);
    return x;
}

static bool add_many(struct py_building *b, struct applied *in, PyObject *sequence)
{
    Py_ssize_t more = PySequence_Size(sequence);
    if (in->count + more > MAX_APPLIED) {
        PyErr_Format(PyExc_ValueError, "%zd arrays, expected at most %d", more,
                     MAX_APPLIED);
        return false;
    }
    if (in->count + more > MAX_INPUTS) {
        in->all = malloc((in->count + (size_t)more) * sizeof(*in->all));
        if (!in->all)
            return PyErr_NoMemory(), false;
        memcpy(in->all, in->few, in->count * sizeof(*in->all));
    }
    for (Py_ssize_t i = 0; i < more; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        in->all[in->count] = item ? operand_get(b, item, false) : NULL;
        Py_XDECREF(item);
        if (!in->all[in->count++])
            return false;
    }
    return true;
}

static bool add_inputs(const struct py_operator *op, struct py_building *b,
                       const struct py_arguments *a, struct applied *in)
{
    const tn_primitive *p = op->primitive;
    bool weak = has_array(a, p->num_inputs);
    for (uint32_t i = 0; i < p->num_inputs; i++) {
        const tn_input_info *info = input_at(p, i);
        PyObject *value = a->value[i];
        if (value == Py_None)
            value = NULL;
        if (!value && !(info->flags & TN_INPUT_OPTIONAL)) {
            PyErr_Format(PyExc_TypeError, "%s() misses argument '%s': %s", op->name,
                         info->name, info->doc);
            return false;
        }
        if (value && (info->flags & TN_INPUT_VARIADIC) &&
            (PyList_Check(value) || PyTuple_Check(value))) {
            if (!add_many(b, in, value))
                return false;
            continue;
        }
        in->all[in->count] = !value ? NULL
                             : weak && py_operators_is_number(value)
                                 ? number_get(b, p, value, a)
                                 : operand_get(b, value, weak);
        if (value && !in->all[in->count])
            return false;
        in->count++;
    }
    while (in->count > 0 && !in->all[in->count - 1])
        in->count--;
    return true;
}

static bool add_attrs(const struct py_operator *op, struct py_building *b,
                      const struct py_arguments *a, struct attr_room *room)
{
    const tn_primitive *p = op->primitive;
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        PyObject *value = a->value[p->num_inputs + i];
        if (value && value != Py_None &&
            !attr_add(b, room, py_operators_field_at(p, i), value))
            return false;
    }
    return true;
}

static PyObject *apply_many(struct py_building *b, const tn_primitive *p,
                            const struct applied *in, tn_attr_list attrs)
{
    PyObject *outputs[MAX_APPLIED];
    const tn_array *const *inputs = (const tn_array *const *)in->all;
    uint64_t count = p->count_outputs
                         ? tn_op_outputs(b->scope, p->id, inputs, in->count, attrs)
                         : p->num_outputs;
    if (count == 0 || count > MAX_APPLIED)
        return raise_scope(b->scope);
    if (!building_apply_n(b, p->id, inputs, in->count, attrs, outputs, count))
        return NULL;
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (uint64_t i = 0; i < count; i++) {
        if (tuple)
            PyTuple_SetItem(tuple, (Py_ssize_t)i, outputs[i]);
        else
            Py_DECREF(outputs[i]);
    }
    return tuple;
}

static PyObject *py_operators_apply(const struct py_operator *op, struct py_building *b,
                                    const struct py_arguments *a)
{
    const tn_primitive *p = op->primitive;
    struct applied in = {.all = in.few};
    struct attr_room room;
    PyObject *result = NULL;
    room.count = 0;
    if (add_inputs(op, b, a, &in) && add_attrs(op, b, a, &room)) {
        tn_attr_list attrs = TN_ATTR_LIST(room.items, room.count);
        if (p->count_outputs || p->num_outputs > 1)
            result = apply_many(b, p, &in, attrs);
        else
            result =
                building_apply(b, p->id, (const tn_array *const *)in.all, in.count, attrs);
    }
    attr_room_free(&room);
    if (in.all != in.few)
        free(in.all);
    return result;
}

static bool py_operators_is_listed(tn_runtime *runtime, const char *id)
{
    const char *const *listed = tn_primitive_names(runtime);
    while (listed && *listed && strcmp(*listed, id) != 0)
        listed++;
    return listed && *listed;
}

static bool find_primitive(struct py_operator *op)
{
    tn_runtime *runtime = runtime_get();
    if (!runtime)
        return false;
    op->primitive = tn_primitive_find(runtime, op->id);
    if (op->primitive)
        return true;
    // A manifest lists the operator, so its plugin failed to load: refused, not unknown.
    bool is_fault = py_operators_is_listed(runtime, op->id);
    raise_status(is_fault ? TN_ERR_REFUSED : TN_ERR_NOT_FOUND, tn_last_error());
    return false;
}

// Replaces inputs of type `held` by the Arrays that they hold, with references: converting
// another input may run Python code that changes them. `taken` has a bit for each replaced
// input, after a failure too. False with an AttributeError: an input holds nothing.
static bool py_operators_take_held(const struct py_operator *op, struct py_arguments *a,
                                   uint64_t *taken)
{
    for (uint32_t i = 0; i < op->primitive->num_inputs; i++) {
        if (!a->value[i] || Py_TYPE(a->value[i]) != op->held)
            continue;
        PyObject *value = held_value(a->value[i]);
        if (!value) {
            PyErr_Format(PyExc_AttributeError, "%s(): an array without a value", op->name);
            return false;
        }
        a->value[i] = Py_NewRef(value);
        *taken |= UINT64_C(1) << i;
    }
    return true;
}

static void py_operators_drop_held(const struct py_arguments *a, uint64_t taken)
{
    for (; taken; taken &= taken - 1)
        Py_DECREF(a->value[__builtin_ctzll(taken)]);
}

// An object that holds the one result of an operator. Takes `result`, and gives NULL for
// NULL.
static PyObject *py_operators_give_held(const struct py_operator *op, PyObject *result)
{
    const tn_type *type = result && array_check(result) ? array_type_of(result) : NULL;
    if (type && type->dtype == TN_F64 && op->check) {
        PyObject *checked = PyObject_CallNoArgs(op->check);
        if (!checked)
            Py_CLEAR(result);
        Py_XDECREF(checked);
    }
    return held_make(op->held, result);
}

static PyObject *operator_call(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *names)
{
    PY_GUARD;
    struct py_operator *op = (struct py_operator *)self;
    struct py_arguments a;
    struct py_building b;
    if (!op->primitive && !find_primitive(op))
        return NULL;
    if (!bind_arguments(op, &a, args, count, names))
        return NULL;
    uint64_t taken = 0;
    PyObject *result = NULL;
    if ((!op->held || py_operators_take_held(op, &a, &taken)) &&
        (are_plain(a.value, op->primitive->num_inputs) ? building_begin_node(&b)
                                                       : building_begin(&b))) {
        result = py_operators_apply(op, &b, &a);
        building_end(&b);
    }
    py_operators_drop_held(&a, taken);
    return op->held ? py_operators_give_held(op, result) : result;
}

static PyObject *apply_operands(const char *name, PyObject *const *operands, uint32_t count)
{
    tn_array *in[2];
    struct py_building b;
    if (!(are_plain(operands, count) ? building_begin_node(&b) : building_begin(&b)))
        return NULL;
    PyObject *result = NULL;
    uint32_t done = 0;
    while (done < count && (in[done] = operand_get(&b, operands[done], true)))
        done++;
    if (done == count)
        result = building_apply(&b, name, (const tn_array *const *)in, count, TN_NO_ATTRS);
    building_end(&b);
    return result;
}

PyObject *apply_unary(const char *name, PyObject *x)
{
    PY_GUARD;
    return apply_operands(name, &x, 1);
}

// Whether an object may be the other operand of an Array in Python's infix syntax.
static bool is_operand(PyObject *object)
{
    return array_check(object) || py_operators_is_number(object) ||
           PyObject_CheckBuffer(object) || PyObject_HasAttrString(object, "__dlpack__");
}

PyObject *apply_binary(const char *name, PyObject *x, PyObject *y)
{
    PY_GUARD;
    PyObject *const operands[] = {x, y};
    if (!is_operand(x) || !is_operand(y))
        Py_RETURN_NOTIMPLEMENTED;
    return apply_operands(name, operands, 2);
}

// The order in which NumPy's "same_kind" converts.
static int rank_of_kind(tn_dtype dtype)
{
    static const int ranks[] = {
        [TN_KIND_BOOL] = 1,   [TN_KIND_UNSIGNED] = 2, [TN_KIND_SIGNED] = 3,
        [TN_KIND_FLOAT8] = 4, [TN_KIND_FLOAT] = 4,    [TN_KIND_COMPLEX] = 5};
    return ranks[tn_dtype_kind(dtype)];
}

// The result in the dtype of `x`, as NumPy's "same_kind" allows. Takes `result`.
static PyObject *fit_in_place(PyObject *x, PyObject *result)
{
    struct py_building b;
    const tn_type *to = tn_array_type(((struct py_array *)x)->array);
    const tn_type *from = tn_array_type(((struct py_array *)result)->array);
    bool fits = to && from->rank == to->rank;
    for (int32_t i = 0; fits && i < to->rank; i++)
        fits = from->extent[i] == to->extent[i];
    if (!fits) {
        PyErr_SetString(PyExc_ValueError,
                        "the result has another shape than the array that takes it: write "
                        "x = x + y instead of x += y");
        Py_DECREF(result);
        return NULL;
    }
    if (from->dtype == to->dtype)
        return result;
    if (rank_of_kind(from->dtype) > rank_of_kind(to->dtype)) {
        PyErr_Format(PyExc_TypeError,
                     "the result is %s, which an array of %s cannot take: write x = x + y "
                     "instead of x += y",
                     tn_dtype_name(from->dtype), tn_dtype_name(to->dtype));
        Py_DECREF(result);
        return NULL;
    }
    PyObject *fitted = NULL;
    if (building_begin_node(&b)) {
        const tn_array *in[] = {((struct py_array *)result)->array};
        fitted = building_apply(&b, "base.astype/1", in, 1,
                                tn_attrs("dtype", (int64_t)to->dtype));
        building_end(&b);
    }
    Py_DECREF(result);
    return fitted;
}

PyObject *apply_in_place(const char *name, PyObject *x, PyObject *y)
{
    PY_GUARD;
    PyObject *result = apply_binary(name, x, y);
    if (!result || !array_check(result) || !array_check(x))
        return result;
    result = fit_in_place(x, result);
    PyObject *same = result ? array_replace(x, result) : NULL;
    Py_XDECREF(result);
    return same;
}

// --- expressions ---

// Every attribute of an expression is a number.
static bool add_expression_attrs(struct py_building *b, struct attr_room *room,
                                 PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (!name)
            return false;
        if (room->count == MAX_ATTRS) {
            PyErr_Format(PyExc_ValueError, "more than %d attributes", MAX_ATTRS);
            return false;
        }
        const tn_attr_field field = {
            .name = name, .kind = PyLong_Check(value) ? TN_ATTR_I64 : TN_ATTR_F64};
        if (!attr_add(b, room, &field, value))
            return false;
    }
    return true;
}

PyObject *apply_expression(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    const char *text;
    PyObject *arrays, *dict;
    if (!PyArg_ParseTuple(args, "sO!O!:expr", &text, &PyTuple_Type, &arrays, &PyDict_Type,
                          &dict))
        return NULL;
    struct py_building b;
    if (!building_begin(&b))
        return NULL;
    struct applied in = {.all = in.few};
    struct attr_room room;
    room.count = 0;
    PyObject *result = NULL;
    if (add_many(&b, &in, arrays) && add_expression_attrs(&b, &room, dict))
        result =
            building_array(&b, tn_expr(b.scope, text, (const tn_array *const *)in.all,
                                       in.count, TN_ATTR_LIST(room.items, room.count)));
    attr_room_free(&room);
    if (in.all != in.few)
        free(in.all);
    building_end(&b);
    return result;
}

// --- functions of Python ---

static void operator_dealloc(PyObject *object)
{
    PY_GUARD;
    struct py_operator *op = (struct py_operator *)object;
    PyTypeObject *type = Py_TYPE(object);
    free(op->id);
    free(op->name);
    free(op->document);
    Py_XDECREF((PyObject *)op->held);
    Py_XDECREF(op->check);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static bool operator_init(void)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, operator_dealloc}, {0, NULL}};
    static PyType_Spec spec = {.name = "tenon._core.Operator",
                               .basicsize = sizeof(struct py_operator),
                               .flags =
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    if (!operator_type)
        operator_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return operator_type != NULL;
}

// "softmax" of "nn.softmax/1".
static char *py_operators_short_name(const char *id)
{
    const char *dot = strchr(id, '.');
    const char *name = dot ? dot + 1 : id;
    return strndup(name, strcspn(name, "/"));
}

// Its primitive is looked for when the function is first called: that may load a plugin.
static PyObject *py_operators_function_of(const char *id, const char *document,
                                          PyTypeObject *held, PyObject *check)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(operator_type, Py_tp_alloc);
    struct py_operator *op = (struct py_operator *)alloc(operator_type, 0);
    if (!op)
        return NULL;
    op->primitive = NULL;
    op->held = (PyTypeObject *)Py_XNewRef((PyObject *)held);
    op->check = Py_XNewRef(check);
    op->id = strdup(id);
    op->name = py_operators_short_name(id);
    op->document = strdup(document);
    op->method = (PyMethodDef){op->name, (PyCFunction)(void (*)(void))operator_call,
                               METH_FASTCALL | METH_KEYWORDS, op->document};
    PyObject *pack = PyUnicode_FromFormat("tenon.%.*s", (int)strcspn(id, "."), id);
    PyObject *function = NULL;
    if (!op->id || !op->name || !op->document)
        PyErr_NoMemory();
    else if (pack)
        function = PyCFunction_NewEx(&op->method, (PyObject *)op, pack);
    Py_XDECREF(pack);
    Py_DECREF((PyObject *)op);
    return function;
}

PyObject *make_operator(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *id, *document = "";
    (void)module;
    if (!PyArg_ParseTuple(args, "s|s:operator", &id, &document) || !operator_init())
        return NULL;
    return py_operators_function_of(id, document, NULL, NULL);
}

PyObject *make_held_operator(PyObject *module, PyObject *args)
{
    PY_GUARD;
    const char *id;
    PyObject *type, *check;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!O:held_operator", &id, &PyType_Type, &type, &check) ||
        !operator_init())
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, held_type)) {
        PyErr_SetString(PyExc_TypeError,
                        "held_operator: a type derived from Held is needed");
        return NULL;
    }
    return py_operators_function_of(id, "", (PyTypeObject *)type,
                                    check == Py_None ? NULL : check);
}
