// SPDX-License-Identifier: MIT
// Arrays to Python's objects: buffers, DLPack tensors, numbers, nested lists.
#include "core.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/dlpack.h>
#include <tenon/retain.h>

// Whether Python has no format for a dtype: it is read as f32, which is exact.
static bool py_read_is_narrow(tn_dtype dtype)
{
    return tn_dtype_in(dtype, TN_FLOAT8_DTYPES) || dtype == TN_BF16 || dtype == TN_F16;
}

// --- memory that is lent ---

static atomic_ulong lent_tensors;

bool has_exports(void)
{
    return atomic_load(&lent_tensors) > 0;
}

// A tensor for another library whose deleter also counts down lent_tensors.
struct counted_tensor {
    DLManagedTensorVersioned versioned;
    DLManagedTensor plain;           // instead of `versioned`, for an old library
    DLManagedTensorVersioned *inner; // the core's tensor, owned
};

static void py_read_counted_free(struct counted_tensor *t)
{
    if (t->inner->deleter)
        t->inner->deleter(t->inner);
    free(t);
    atomic_fetch_sub(&lent_tensors, 1);
}

static void versioned_free(DLManagedTensorVersioned *self)
{
    py_read_counted_free(self->manager_ctx);
}

static void plain_free(DLManagedTensor *self)
{
    py_read_counted_free(self->manager_ctx);
}

// Takes `inner`; NULL without memory.
static struct counted_tensor *py_read_counted(DLManagedTensorVersioned *inner)
{
    struct counted_tensor *t = malloc(sizeof(*t));
    if (!t) {
        if (inner->deleter)
            inner->deleter(inner);
        return NULL;
    }
    t->inner = inner;
    t->versioned = *inner;
    t->versioned.manager_ctx = t;
    t->versioned.deleter = versioned_free;
    t->plain = (DLManagedTensor){inner->dl_tensor, t, plain_free};
    atomic_fetch_add(&lent_tensors, 1);
    return t;
}

static void tensor_free(DLManagedTensorVersioned *tensor)
{
    if (tensor && tensor->deleter)
        tensor->deleter(tensor);
}

// An array on its way to the host.
struct py_export {
    struct py_work work;
    tn_scope *scope;
    tn_array *array; // with a reference
    bool is_copied;  // a copy is computed, so that derivatives go on through the array
    bool is_widened; // dtypes of py_read_is_narrow() become f32
    DLManagedTensorVersioned *tensor;
};

static void export_run(struct py_work *work)
{
    struct py_export *e = (struct py_export *)work;
    tn_array *x = e->array;
    if (e->is_copied)
        x = tn_op(e->scope, "base.copy/1", TN_IN(x), TN_NO_ATTRS);
    // Evaluated first: a program that also converts would not round to the array's dtype.
    if (x && e->is_widened && py_read_is_narrow(tn_array_type(x)->dtype) &&
        tn_eval(e->scope, x) == TN_OK)
        x = tn_op(e->scope, "base.astype/1", TN_IN(x), tn_attrs("dtype", (int64_t)TN_F32));
    e->tensor = x ? tn_array_export_versioned(e->scope, x) : NULL;
}

static void export_finish(struct py_work *work)
{
    struct py_export *e = (struct py_export *)work;
    tensor_free(e->tensor);
    tn_scope_close(e->scope);
    tn_release(e->array);
    free(e);
}

static struct py_export *export_begin(PyObject *self, tn_array *array, bool widened)
{
    struct py_building b;
    if (!building_begin_apart(&b))
        return NULL;
    struct py_export *e = malloc(sizeof(*e));
    tn_array *retained = e ? tn_retain(NULL, array) : NULL;
    if (!retained) {
        PyObject *raised =
            e ? raise_status(TN_ERR_ARGUMENT, tn_last_error()) : PyErr_NoMemory();
        building_end(&b);
        free(e);
        return (void *)raised;
    }
    *e = (struct py_export){.work = {.run = export_run, .finish = export_finish},
                            .scope = b.scope,
                            .array = retained,
                            .is_copied = ((struct py_array *)self)->is_watched,
                            .is_widened = widened};
    return e;
}

// Elements that can be read on the host without waiting or copying; NULL: none, or the
// array is watched or in use without the GIL.
static const void *py_read_elements_of(PyObject *self, const tn_array *array)
{
    const struct py_array *a = (const struct py_array *)self;
    return a->is_watched || a->uses > 0 ? NULL : tn_array_elements(array);
}

// A tensor of an array for which py_read_elements_of() gives elements.
static DLManagedTensorVersioned *tensor_of_elements(tn_array *array)
{
    struct py_building b;
    if (!building_begin_kept(&b))
        return NULL;
    DLManagedTensorVersioned *tensor = tn_array_export_versioned(b.scope, array);
    if (!tensor)
        raise_scope(b.scope);
    building_end(&b);
    return tensor;
}

// The elements on the host, as a tensor, owned. `widened`: dtypes of py_read_is_narrow()
// become f32.
static DLManagedTensorVersioned *py_read_tensor_of(PyObject *self, bool widened)
{
    static const struct py_building nowhere;
    tn_array *array = array_get(self, &nowhere);
    if (array && py_read_elements_of(self, array) &&
        !(widened && py_read_is_narrow(tn_array_type(array)->dtype)))
        return tensor_of_elements(array);
    struct py_export *e = array ? export_begin(self, array, widened) : NULL;
    if (!e)
        return NULL;
    // A watched array stays a node: a copy is computed, which may last.
    bool is_apart = e->is_copied;
    if (!is_apart && !evaluate_array(e->array)) {
        export_finish(&e->work);
        return NULL;
    }
    if (is_apart && !work_wait(&e->work))
        return NULL;
    if (!is_apart) {
        Py_BEGIN_ALLOW_THREADS;
        export_run(&e->work);
        Py_END_ALLOW_THREADS;
    }
    DLManagedTensorVersioned *tensor = e->tensor;
    e->tensor = NULL;
    if (!tensor)
        raise_scope(e->scope);
    export_finish(&e->work);
    return tensor;
}

static const char *py_read_first_byte(const DLTensor *t)
{
    return (const char *)t->data + t->byte_offset;
}

// --- numbers and lists ---

// The DLPack type of a dtype that element_of() reads. False: the dtype is widened.
static bool plain_type(tn_dtype dtype, DLDataType *out)
{
    static const uint8_t codes[] = {[TN_KIND_BOOL] = kDLBool,
                                    [TN_KIND_UNSIGNED] = kDLUInt,
                                    [TN_KIND_SIGNED] = kDLInt,
                                    [TN_KIND_FLOAT] = kDLFloat,
                                    [TN_KIND_COMPLEX] = kDLComplex};
    uint32_t kind = tn_dtype_kind(dtype);
    if (py_read_is_narrow(dtype) || kind == TN_KIND_NONE || kind >= sizeof(codes))
        return false;
    *out = (DLDataType){codes[kind], (uint8_t)(8 * tn_dtype_bytes(dtype)), 1};
    return true;
}

// The nested list where py_read_elements_of() gives elements. NULL without an exception:
// they have to be computed or copied.
static PyObject *list_there(PyObject *self)
{
    static const struct py_building nowhere;
    tn_array *array = array_get(self, &nowhere);
    const void *elements = array ? py_read_elements_of(self, array) : NULL;
    DLTensor t = {.data = (void *)(uintptr_t)elements};
    if (!elements || !plain_type(tn_array_type(array)->dtype, &t.dtype))
        return NULL;
    tn_type type = *tn_array_type(array);
    t.shape = type.extent;
    t.ndim = type.rank;
    array_use(self); // making objects may run Python code
    PyObject *list = lists_of(&t, 0, elements);
    array_unuse(self);
    return list;
}

PyObject *array_tolist(PyObject *self, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    PyObject *there = list_there(self);
    if (there || PyErr_Occurred())
        return there;
    DLManagedTensorVersioned *tensor = py_read_tensor_of(self, true);
    PyObject *list =
        tensor ? lists_of(&tensor->dl_tensor, 0, py_read_first_byte(&tensor->dl_tensor))
               : NULL;
    tensor_free(tensor);
    return list;
}

// The one element as a number. NULL without an exception: it has to be converted or copied,
// or there are several elements.
static PyObject *number_there(PyObject *self)
{
    static const struct py_building nowhere;
    tn_array *array = array_get(self, &nowhere);
    const tn_type *type = tn_array_type(array);
    DLDataType plain;
    if (!type || !plain_type(type->dtype, &plain))
        return NULL;
    for (int32_t i = 0; i < type->rank; i++)
        if (type->extent[i] != 1)
            return NULL;
    if (!((struct py_array *)self)->is_watched && !tn_array_elements(array)) {
        // In use: another thread may evaluate the array meanwhile, but not donate it.
        array_use(self);
        bool is_there = evaluate_array(array);
        array_unuse(self);
        if (!is_there)
            return NULL;
    }
    const void *elements = py_read_elements_of(self, array);
    return elements ? element_of(elements, plain) : NULL;
}

PyObject *array_number(PyObject *self)
{
    PyObject *there = number_there(self);
    DLManagedTensorVersioned *tensor =
        there || PyErr_Occurred() ? NULL : py_read_tensor_of(self, true);
    if (there)
        return there;
    if (!tensor)
        return NULL;
    const DLTensor *t = &tensor->dl_tensor;
    int64_t count = 1;
    for (int i = 0; i < t->ndim; i++)
        count *= t->shape[i];
    PyObject *number = count == 1 ? element_of(py_read_first_byte(t), t->dtype) : NULL;
    if (count != 1)
        PyErr_Format(PyExc_ValueError, "an array of %lld elements is no single number",
                     (long long)count);
    tensor_free(tensor);
    return number;
}

PyObject *array_item(PyObject *self, PyObject *unused)
{
    PY_GUARD;
    (void)unused;
    return array_number(self);
}

// --- buffers ---

// Memory that a view of the buffer protocol points to until it is released.
struct lent {
    DLManagedTensorVersioned *tensor;
    Py_ssize_t shape[TN_MAX_RANK + 1], strides[TN_MAX_RANK + 1];
};

static const char *py_read_format_of(DLDataType type)
{
    bool is_integer = type.code == kDLInt || type.code == kDLUInt;
    static const char *const integers[][2] = {
        [1] = {"b", "B"}, [2] = {"h", "H"}, [4] = {"i", "I"}, [8] = {"q", "Q"}};
    if (is_integer)
        return integers[type.bits / 8][type.code == kDLUInt];
    if (type.code == kDLBool)
        return "?";
    if (type.code == kDLComplex)
        return type.bits == 64 ? "Zf" : "Zd";
    if (type.code == kDLFloat)
        return type.bits == 16 ? "e" : type.bits == 32 ? "f" : "d";
    return NULL;
}

static void fill_view(Py_buffer *view, struct lent *lent, const char *format)
{
    const DLTensor *t = &lent->tensor->dl_tensor;
    Py_ssize_t size = t->dtype.bits / 8, count = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        lent->shape[i] = (Py_ssize_t)t->shape[i];
        lent->strides[i] = t->strides ? (Py_ssize_t)t->strides[i] * size : count * size;
        count *= lent->shape[i];
    }
    *view = (Py_buffer){.buf = (void *)(uintptr_t)py_read_first_byte(t),
                        .len = count * size,
                        .itemsize = size,
                        .readonly = 1,
                        .ndim = t->ndim,
                        .format = (char *)(uintptr_t)format,
                        .shape = lent->shape,
                        .strides = lent->strides,
                        .internal = lent};
}

int array_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    PY_GUARD;
    view->obj = NULL;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError,
                        "arrays of tenon are immutable: copy the elements");
        return -1;
    }
    struct lent *lent = calloc(1, sizeof(*lent));
    if (!lent)
        return PyErr_NoMemory(), -1;
    lent->tensor = py_read_tensor_of(self, false);
    struct counted_tensor *t = lent->tensor ? py_read_counted(lent->tensor) : NULL;
    if (lent->tensor && !t)
        PyErr_NoMemory();
    lent->tensor = t ? &t->versioned : NULL;
    const char *format =
        lent->tensor ? py_read_format_of(lent->tensor->dl_tensor.dtype) : NULL;
    if (!format) {
        if (lent->tensor)
            PyErr_SetString(
                PyExc_BufferError,
                "Python has no format of this dtype: use astype(tenon.float32)");
        tensor_free(lent->tensor);
        free(lent);
        return -1;
    }
    fill_view(view, lent, format);
    view->obj = Py_NewRef(self);
    bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    if (!wants_strides && !PyBuffer_IsContiguous(view, 'C')) {
        PyErr_SetString(PyExc_BufferError, "the array is not contiguous");
        Py_CLEAR(view->obj);
        tensor_free(lent->tensor);
        free(lent);
        return -1;
    }
    if (!(flags & PyBUF_FORMAT))
        view->format = NULL;
    if (!(flags & PyBUF_ND))
        view->shape = NULL;
    if (!wants_strides)
        view->strides = NULL;
    return 0;
}

void array_releasebuffer(PyObject *self, Py_buffer *view)
{
    PY_GUARD;
    (void)self;
    struct lent *lent = view->internal;
    tensor_free(lent->tensor);
    free(lent);
}

// --- DLPack ---

static void free_capsule(PyObject *capsule)
{
    PY_GUARD;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        tensor_free(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, "dltensor");
        if (tensor->deleter)
            tensor->deleter(tensor);
    }
}

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    PY_GUARD;
    static char stream_name[] = "stream", version_name[] = "max_version";
    static char device_name[] = "dl_device", copy_name[] = "copy";
    static char *names[] = {stream_name, version_name, device_name, copy_name, NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream,
                                     &version, &device, &copy))
        return NULL;
    int kind = 1, index = 0;
    if ((device != Py_None && !PyTuple_Check(device)) ||
        (version != Py_None && !PyTuple_Check(version))) {
        PyErr_SetString(
            PyExc_TypeError,
            "__dlpack__: expected dl_device and max_version as pairs of integers");
        return NULL;
    }
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &kind, &index))
        return NULL;
    if (stream != Py_None || kind != 1) {
        PyErr_SetString(PyExc_BufferError,
                        "__dlpack__: expected no stream, and the host as device");
        return NULL;
    }
    int major = 0, minor = 0;
    if (version != Py_None && !PyArg_ParseTuple(version, "ii", &major, &minor))
        return NULL;
    int is_copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    DLManagedTensorVersioned *tensor =
        is_copied < 0 ? NULL : py_read_tensor_of(self, false);
    if (tensor && is_copied) {
        DLManagedTensorVersioned *own = dlpack_copy(&tensor->dl_tensor);
        tensor_free(tensor);
        tensor = own;
    }
    struct counted_tensor *t = tensor ? py_read_counted(tensor) : NULL;
    if (!t)
        return tensor ? PyErr_NoMemory() : NULL;
    PyObject *capsule =
        major < 1 ? PyCapsule_New(&t->plain, "dltensor", free_capsule)
                  : PyCapsule_New(&t->versioned, "dltensor_versioned", free_capsule);
    if (!capsule)
        py_read_counted_free(t);
    return capsule;
}

PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", 1, 0);
}
