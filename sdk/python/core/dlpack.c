// SPDX-License-Identifier: MIT
// Tensors of other libraries by DLPack: capsules of both names, taken once each.
#include "core.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/dlpack.h>

// --- copies ---

struct copied_tensor {
    DLManagedTensorVersioned tensor;
    int64_t shape[TN_MAX_RANK], strides[TN_MAX_RANK];
    char elements[];
};

static void copied_free(DLManagedTensorVersioned *self)
{
    free(self->manager_ctx);
}

static char *py_dlpack_copy_axis(char *to, const char *from, const DLTensor *t,
                                 const int64_t *strides, int axis)
{
    size_t size = t->dtype.bits / 8;
    if (axis == t->ndim)
        return (char *)memcpy(to, from, size) + size;
    for (int64_t i = 0; i < t->shape[axis]; i++)
        to = py_dlpack_copy_axis(to, from + i * strides[axis] * (int64_t)size, t, strides,
                                 axis + 1);
    return to;
}

DLManagedTensorVersioned *dlpack_copy(const DLTensor *t)
{
    uint64_t count = 1, bytes = t->dtype.bits / 8;
    for (int i = 0; i < t->ndim; i++)
        count *= (uint64_t)t->shape[i];
    bytes *= count;
    struct copied_tensor *copy = malloc(sizeof(*copy) + bytes);
    if (!copy)
        return (void *)PyErr_NoMemory();
    copy->tensor = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
        .manager_ctx = copy,
        .deleter = copied_free,
        .flags = DLPACK_FLAG_BITMASK_IS_COPIED,
        .dl_tensor = *t,
    };
    DLTensor *own = &copy->tensor.dl_tensor;
    own->data = copy->elements;
    own->byte_offset = 0;
    own->shape = copy->shape;
    own->strides = copy->strides;
    int64_t stride = 1;
    bool is_compact = true;
    for (int i = t->ndim - 1; i >= 0; i--) {
        own->shape[i] = t->shape[i];
        own->strides[i] = stride;
        is_compact =
            is_compact && (!t->strides || t->shape[i] == 1 || t->strides[i] == stride);
        stride *= t->shape[i];
    }
    const char *first = (const char *)t->data + t->byte_offset;
    if (count > 0 && is_compact)
        memcpy(copy->elements, first, bytes);
    else if (count > 0)
        py_dlpack_copy_axis(copy->elements, first, t, t->strides, 0);
    return &copy->tensor;
}

// Whether dlpack_copy() can read a tensor of another library. Importing any other tensor
// fails in the core, with the reason.
static bool is_readable(const DLTensor *t)
{
    uint64_t bytes = t->dtype.bits / 8;
    bool is_host = t->device.device_type == kDLCPU || t->device.device_type == kDLCUDAHost;
    bool is_readable = is_host && t->ndim >= 0 && t->ndim <= TN_MAX_RANK &&
                       (t->ndim == 0 || t->shape) && t->dtype.lanes == 1 &&
                       t->dtype.bits % 8 == 0;
    for (int i = 0; is_readable && i < t->ndim; i++)
        is_readable = t->shape[i] >= 0 &&
                      tn_checked_multiply(bytes, (uint64_t)t->shape[i], &bytes) &&
                      bytes <= INT64_MAX;
    return is_readable &&
           (bytes == 0 || (t->data && t->byte_offset <= UINTPTR_MAX - (uintptr_t)t->data));
}

// --- capsules ---

// The tensor of a capsule, owned: one of the two is NULL.
struct taken {
    DLManagedTensor *plain;
    DLManagedTensorVersioned *versioned;
};

static void *take_named(PyObject *capsule, const char *name, const char *used)
{
    void *tensor = PyCapsule_GetPointer(capsule, name);
    return tensor && PyCapsule_SetName(capsule, used) == 0 ? tensor : NULL;
}

// False with an exception set.
static bool py_dlpack_take(PyObject *capsule, struct taken *out)
{
    *out = (struct taken){0};
    if (PyCapsule_IsValid(capsule, "dltensor"))
        out->plain = take_named(capsule, "dltensor", "used_dltensor");
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        out->versioned =
            take_named(capsule, "dltensor_versioned", "used_dltensor_versioned");
    if (out->plain || out->versioned || PyErr_Occurred())
        return out->plain || out->versioned;
    const char *name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
    if (name && strncmp(name, "used_dltensor", 13) == 0)
        PyErr_SetString(PyExc_ValueError,
                        "a DLPack capsule that was taken before: each is taken once");
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError,
                     "%R is no DLPack capsule: expected one named \"dltensor\" or "
                     "\"dltensor_versioned\"",
                     capsule);
    return false;
}

// The capsule of an object: a versioned one, whose flags tell read-only and copied memory,
// or an unversioned one of an old library. `copy`: None, or a bool for that library.
static PyObject *capsule_of(PyObject *object, PyObject *copy)
{
    if (PyCapsule_CheckExact(object))
        return Py_NewRef(object);
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = method ? PyTuple_New(0) : NULL;
    PyObject *named = none ? Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR_VERSION,
                                           DLPACK_MINOR_VERSION)
                           : NULL;
    bool is_ready =
        named && (copy == Py_None || !PyDict_SetItemString(named, "copy", copy));
    PyObject *capsule = is_ready ? PyObject_Call(method, none, named) : NULL;
    if (!capsule && is_ready && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(named);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

// The array in the tensor's memory where the device permits; NULL with an exception or the
// scope's failure set.
static tn_array *import_taken(struct py_building *b, const struct taken *taken)
{
    return taken->plain ? tn_array_import(b->scope, taken->plain)
                        : tn_array_import_versioned(b->scope, taken->versioned);
}

static void delete_taken(const struct taken *taken)
{
    if (taken->plain && taken->plain->deleter)
        taken->plain->deleter(taken->plain);
    if (taken->versioned && taken->versioned->deleter)
        taken->versioned->deleter(taken->versioned);
}

static const DLTensor *tensor_of_taken(const struct taken *taken)
{
    if (taken->plain)
        return &taken->plain->dl_tensor;
    return taken->versioned->version.major == DLPACK_MAJOR_VERSION
               ? &taken->versioned->dl_tensor
               : NULL;
}

// An array of a copy: the other library may write to the tensor before Tenon reads it.
static tn_array *import_copied(struct py_building *b, const struct taken *taken)
{
    const DLTensor *t = tensor_of_taken(taken);
    if (!t || !is_readable(t))
        return import_taken(b, taken);
    DLManagedTensorVersioned *copy = dlpack_copy(t);
    delete_taken(taken);
    return copy ? tn_array_import_versioned(b->scope, copy) : NULL;
}

tn_array *dlpack_copied(struct py_building *b, PyObject *object)
{
    PyObject *capsule = capsule_of(object, Py_None);
    struct taken taken;
    bool is_taken = capsule && py_dlpack_take(capsule, &taken);
    tn_array *x = is_taken ? import_copied(b, &taken) : NULL;
    Py_XDECREF(capsule);
    return x;
}

// Whether the array's first element is at `first`, the tensor's; true for an empty array.
static bool py_dlpack_is_in_place(struct py_building *b, tn_array *x, const void *first)
{
    const tn_type *type = tn_array_type(x);
    for (int32_t i = 0; i < type->rank; i++)
        if (type->extent[i] == 0)
            return true;
    DLManagedTensorVersioned *seen = tn_array_export_versioned(b->scope, x);
    bool is_same =
        seen && (const char *)seen->dl_tensor.data + seen->dl_tensor.byte_offset ==
                    (const char *)first;
    if (seen && seen->deleter)
        seen->deleter(seen);
    tn_scope_clear_error(b->scope);
    return is_same;
}

static PyObject *import_capsule(struct py_building *b, PyObject *capsule, int copy)
{
    struct taken taken;
    if (!py_dlpack_take(capsule, &taken))
        return NULL;
    const DLTensor *t = tensor_of_taken(&taken);
    const char *data = t ? t->data : NULL;
    uint64_t offset = t ? t->byte_offset : 0;
    tn_array *x = copy == 1 ? import_copied(b, &taken) : import_taken(b, &taken);
    if (x && copy == 0 && !py_dlpack_is_in_place(b, x, data ? data + offset : NULL))
        PyErr_SetString(PyExc_BufferError, "from_dlpack: copy=False, and the device has "
                                           "memory of its own: it can only be copied");
    return PyErr_Occurred() ? NULL : building_array(b, x);
}

PyObject *from_dlpack(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    PyObject *object, *wanted = Py_None;
    struct py_building b;
    if (!PyArg_ParseTuple(args, "O|O:from_dlpack", &object, &wanted))
        return NULL;
    if (!PyCapsule_CheckExact(object) && !PyObject_HasAttrString(object, "__dlpack__"))
        return PyErr_Format(PyExc_TypeError, "from_dlpack: %R has no __dlpack__", object);
    int copy = wanted == Py_None ? -1 : PyObject_IsTrue(wanted);
    bool is_known = copy >= 0 || !PyErr_Occurred();
    // copy=True: import_capsule() copies, since not every library can.
    PyObject *capsule = is_known ? capsule_of(object, copy ? Py_None : wanted) : NULL;
    PyObject *result = NULL;
    if (capsule && building_begin(&b)) {
        result = import_capsule(&b, capsule, copy);
        building_end(&b);
    }
    Py_XDECREF(capsule);
    return result;
}
