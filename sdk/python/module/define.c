// SPDX-License-Identifier: MIT
// Primitives that are defined while the process runs: records made of Python texts, which
// the host registers as if the plugin of <tenon/ffi.h> listed them.
#include "define.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/ffi.h>

static struct py_definition *registered;

void *definition_keep(struct py_definition *d, const void *bytes, size_t size)
{
    bool has_room = d->num_kept < sizeof(d->kept) / sizeof(d->kept[0]);
    void *copy = has_room ? malloc(size + 1) : NULL;
    if (!copy)
        return PyErr_NoMemory();
    memcpy(copy, bytes, size);
    ((char *)copy)[size] = 0;
    return d->kept[d->num_kept++] = copy;
}

char *text_keep(struct py_definition *d, PyObject *text)
{
    const char *bytes = PyUnicode_AsUTF8AndSize(text, NULL);
    return bytes ? definition_keep(d, bytes, strlen(bytes)) : NULL;
}

PyObject *definition_free(struct py_definition *d)
{
    for (uint32_t i = 0; d && i < d->num_kept; i++)
        free(d->kept[i]);
    free(d);
    return NULL;
}

// The name at position i of a sequence, kept; NULL with an exception set.
static char *name_at(struct py_definition *d, PyObject *names, Py_ssize_t i)
{
    PyObject *item = PySequence_GetItem(names, i);
    char *name = item ? text_keep(d, item) : NULL;
    Py_XDECREF(item);
    return name;
}

static bool count_names(PyObject *names, const char *what, Py_ssize_t most, uint32_t *out)
{
    Py_ssize_t count = PySequence_Size(names);
    *out = (uint32_t)count;
    if (count >= 0 && count <= most)
        return true;
    if (count > most)
        PyErr_Format(PyExc_ValueError, "%zd %s, expected at most %zd", count, what, most);
    return false;
}

struct py_definition *definition_create(const char *id, const char *doc, PyObject *inputs,
                                        PyObject *outputs, size_t more)
{
    uint32_t num_inputs, num_outputs;
    if (!count_names(inputs, "inputs", 64, &num_inputs) ||
        !count_names(outputs, "outputs", 8, &num_outputs))
        return NULL;
    struct py_definition *d = calloc(1, sizeof(*d) + more);
    if (!d)
        return PyErr_NoMemory(), NULL;
    d->record = (tn_primitive){
        .struct_size = sizeof(d->record),
        .id = definition_keep(d, id, strlen(id)),
        .doc = definition_keep(d, doc, strlen(doc)),
        .inputs = num_inputs ? d->inputs : NULL,
        .outputs = d->outputs,
        .num_inputs = num_inputs,
        .num_outputs = num_outputs,
        .input_size = num_inputs ? sizeof(tn_input_info) : 0,
        .output_size = sizeof(tn_output_info),
    };
    bool complete = d->record.id && d->record.doc;
    for (uint32_t i = 0; complete && i < num_inputs; i++) {
        d->inputs[i] = (tn_input_info){name_at(d, inputs, i), "an array", 0, TN_ALL_DTYPES};
        complete = d->inputs[i].name != NULL;
    }
    for (uint32_t i = 0; complete && i < num_outputs; i++) {
        d->outputs[i] = (tn_output_info){.name = name_at(d, outputs, i), .doc = "an array"};
        complete = d->outputs[i].name != NULL;
    }
    return complete ? d : (void *)definition_free(d);
}

// The host table by which primitives are registered; NULL with an exception set.
static const tn_host *find_host(void)
{
    tn_runtime *runtime = runtime_get();
    const tn_ffi *ffi;
    const tn_host *host;
    if (!runtime)
        return NULL;
    tn_status status = tn_ffi_find(runtime, &ffi, &host);
    return status == TN_OK ? host : (raise_status(status, tn_last_error()), NULL);
}

bool definition_register(struct py_definition *definition, const tn_kernel *kernel)
{
    const tn_host *host = find_host();
    const tn_host_primitives *service = host ? host->query(host, TN_HOST_PRIMITIVES) : NULL;
    if (host && !service)
        raise_status(TN_ERR_UNSUPPORTED, "this library registers no primitives");
    if (!service)
        return false;
    tn_status status = service->add(host, &definition->record, &kernel, kernel ? 1 : 0);
    // A refused record is a wrong argument of the author, not a broken plugin.
    if (status != TN_OK) {
        raise_status(status == TN_ERR_REFUSED ? TN_ERR_ARGUMENT : status, tn_last_error());
        return false;
    }
    definition->next = registered;
    registered = definition;
    return true;
}

// --- expressions ---

// Each attribute is a double; its default comes from the dict.
static bool add_fields(struct py_definition *d, PyObject *attributes)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    uint32_t count = 0;
    while (PyDict_Next(attributes, &at, &key, &value)) {
        double number = PyFloat_AsDouble(value);
        if (PyErr_Occurred())
            return false;
        if (count == MAX_ATTRS) {
            PyErr_Format(PyExc_ValueError, "more than %d attributes", MAX_ATTRS);
            return false;
        }
        d->fields[count] = (tn_attr_field){.name = text_keep(d, key),
                                           .doc = "a number",
                                           .kind = TN_ATTR_F64,
                                           .offset = count * sizeof(double),
                                           .default_f = number};
        if (!d->fields[count++].name)
            return false;
    }
    if (count)
        d->record.attrs = (tn_attr_table){.size = count * (uint32_t)sizeof(double),
                                          .num_fields = count,
                                          .field_size = sizeof(tn_attr_field),
                                          .fields = d->fields};
    return true;
}

PyObject *define_expression(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    const char *id, *doc, *text;
    PyObject *inputs, *outputs, *attributes;
    if (!PyArg_ParseTuple(args, "sssOOO!:define_expression", &id, &doc, &text, &inputs,
                          &outputs, &PyDict_Type, &attributes))
        return NULL;
    struct py_definition *d = definition_create(id, doc, inputs, outputs, 0);
    if (!d || !add_fields(d, attributes))
        return definition_free(d);
    d->record.expr = definition_keep(d, text, strlen(text));
    return d->record.expr && definition_register(d, NULL) ? Py_NewRef(Py_None)
                                                          : definition_free(d);
}

// --- C functions ---

PyObject *define_callback(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    const char *id, *signature;
    PyObject *number;
    int is_serial;
    tn_runtime *runtime;
    const tn_ffi *ffi;
    const tn_host *host;
    if (!PyArg_ParseTuple(args, "ssOp:define_callback", &id, &signature, &number,
                          &is_serial))
        return NULL;
    void *address = PyLong_AsVoidPtr(number);
    if (PyErr_Occurred() || !(runtime = runtime_get()))
        return NULL;
    tn_callback callback = {.struct_size = sizeof(callback),
                            .flags = is_serial ? TN_CALLBACK_SERIAL : 0,
                            .primitive = id,
                            .signature = signature};
    memcpy(&callback.function, &address, sizeof(address));
    tn_status status = tn_ffi_find(runtime, &ffi, &host);
    if (status == TN_OK)
        status = ffi->callback_add(host, &callback);
    return status == TN_OK ? Py_NewRef(Py_None) : raise_status(status, tn_last_error());
}
