// SPDX-License-Identifier: MIT
// Kernels of GPUs from texts of Python: compiled to SPIR-V, and registered for the family
// vulkan.spirv/1 of every Vulkan backend.
//
// Everything that differs between applications is in the attribute `launch`, integers:
//
//   flags, hash of the kernel's module, workgroups x, y, z, invocations of a workgroup,
//   number of pushed words, the pushed words, number of outputs; of each output: dtype,
//   rank, extents; with SHADER_FILLS, of each output: the four words of its fill value.
//
// The kernel's own module is number 0. It expects each array at the first element of its
// binding: one of modules 1 to 5, by the size of elements, copies an input with an offset
// to scratch memory; one of modules 6 to 10 fills an output.
#include "define.h"
#include "../core/trace.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/checked.h>
#include <tenon/glsl.h>
#include <tenon/kernel.h>
#include <tenon/vulkan.h>

enum {
    SHADER_FILLS = 1, // outputs are filled before the kernel runs
    SHADER_ROWS = 2,  // workgroups x is the number of all workgroups, laid out in rows
};
enum { MOST_RESULTS = 8 }; // of a kernel
enum { COPY_MODULE = 1, FILL_MODULE = 6, MODULES = 11, COPY_GROUP = 256 };

struct py_shader_attrs {
    const tn_int_list *launch;
    const tn_graph *body; // the computation on other devices; NULL: none
};

struct py_shader {
    struct py_definition definition; // first: definition_create() allocates this struct
    tn_kernel kernel;
    tn_vulkan_kernel payload;
    tn_vulkan_module modules[MODULES];
    int64_t code; // hash of the kernel's module
};

// --- reading `launch` ---

struct py_launch_reader {
    const tn_int_list *list;
    uint64_t at;
};

// The next integer; 0 behind the end.
static int64_t py_shader_next(struct py_launch_reader *r)
{
    return r->at < r->list->count ? r->list->value[r->at++] : 0;
}

struct py_shader_launch {
    int64_t flags, code;
    uint32_t groups[3];
    uint32_t num_push;
    uint32_t push[64];
    int64_t num_outputs;
    struct py_launch_reader rest; // at the outputs' types
};

static struct py_shader_launch py_shader_read_launch(const void *attrs)
{
    struct py_launch_reader r = {((const struct py_shader_attrs *)attrs)->launch, 0};
    struct py_shader_launch launch = {.flags = py_shader_next(&r)};
    launch.code = py_shader_next(&r);
    for (int i = 0; i < 3; i++)
        launch.groups[i] = (uint32_t)py_shader_next(&r);
    launch.num_push = (uint32_t)py_shader_next(&r);
    for (uint32_t i = 0; i < launch.num_push && i < 64; i++)
        launch.push[i] = (uint32_t)py_shader_next(&r);
    launch.num_outputs = py_shader_next(&r);
    launch.rest = r;
    return launch;
}

static tn_type py_shader_read_type(struct py_launch_reader *r)
{
    tn_type type = {.dtype = (tn_dtype)py_shader_next(r),
                    .rank = (int32_t)py_shader_next(r)};
    for (int32_t i = 0; i < type.rank && i < TN_MAX_RANK; i++)
        type.extent[i] = py_shader_next(r);
    return type;
}

// --- the record ---

static tn_status shader_infer(const tn_infer *infer, tn_type *types)
{
    struct py_shader_launch launch = py_shader_read_launch(infer->attrs);
    if (launch.num_push > 64 || launch.num_outputs != infer->num_outputs)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "launch is for %lld outputs and %u pushed words",
                                 (long long)launch.num_outputs, launch.num_push);
    for (uint32_t i = 0; i < infer->num_outputs; i++)
        types[i] = py_shader_read_type(&launch.rest);
    return TN_OK;
}

static tn_status shader_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs)
{
    const tn_graph *body = ((const struct py_shader_attrs *)rule->attrs)->body;
    return build->call(build, body, rule->inputs, rule->num_inputs, outputs,
                       rule->num_outputs);
}

static tn_status shader_reference(const tn_cpu_call *call)
{
    return call->host->fail(call->host, TN_ERR_UNSUPPORTED,
                            "this kernel is for Vulkan devices: name one in TENON_BACKEND, "
                            "or give the kernel reference=, a function that computes the "
                            "same");
}

// --- launches ---

static uint64_t py_shader_bytes_of(const tn_layout *layout)
{
    uint64_t bytes = tn_dtype_bytes(layout->dtype);
    for (int32_t i = 0; i < layout->rank; i++)
        bytes = tn_saturated_multiply(bytes, (uint64_t)layout->extent[i]);
    return bytes;
}

// Scratch bytes for the copy of an input: 0 for an input without an offset.
static uint64_t copied_bytes(const tn_layout *layout)
{
    uint64_t bytes = layout->offset ? py_shader_bytes_of(layout) : 0;
    return tn_saturated_add(bytes, TN_VULKAN_ALIGNMENT - 1) &
           ~(uint64_t)(TN_VULKAN_ALIGNMENT - 1);
}

static uint64_t shader_scratch(const tn_kernel_query *query)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < query->num_inputs; i++)
        bytes = tn_saturated_add(bytes, copied_bytes(&query->inputs[i]));
    return bytes;
}

// The module for the element size of a dtype; `first`: the module for 1 byte.
static uint32_t module_for(uint32_t first, tn_dtype dtype)
{
    uint32_t size = tn_dtype_bytes(dtype), module = first;
    for (; size > 1; size /= 2)
        module++;
    return module;
}

static tn_status copy_input(const tn_vulkan_plan *plan, uint32_t input, uint64_t to,
                            uint64_t size)
{
    const tn_layout *layout = &tn_step_input(plan->step, input)->layout;
    uint64_t count = py_shader_bytes_of(layout) / tn_dtype_bytes(layout->dtype);
    if (count + (uint64_t)layout->offset > UINT32_MAX)
        return plan->host->fail(plan->host, TN_ERR_UNSUPPORTED,
                                "input %u begins at element %lld of %llu: over 2^32", input,
                                (long long)layout->offset, (unsigned long long)count);
    const tn_vulkan_operand operands[] = {tn_vulkan_input(input),
                                          tn_vulkan_scratch(to, size, TN_VULKAN_WRITES)};
    const uint32_t push[] = {(uint32_t)count, (uint32_t)layout->offset};
    tn_vulkan_launch launch = {.struct_size = sizeof(launch),
                               .module = module_for(COPY_MODULE, layout->dtype),
                               TN_VULKAN_OPERANDS(operands),
                               TN_VULKAN_PUSH(push)};
    tn_vulkan_rows(plan->limits, count / COPY_GROUP + (count % COPY_GROUP > 0),
                   launch.groups);
    return plan->launch(plan, &launch);
}

static tn_status fill_output(const tn_vulkan_plan *plan, uint32_t output,
                             struct py_launch_reader *words)
{
    const tn_layout *layout = &tn_step_output(plan->step, output)->layout;
    uint64_t count = py_shader_bytes_of(layout) / tn_dtype_bytes(layout->dtype);
    uint32_t push[8] = {(uint32_t)count};
    for (int i = 4; i < 8; i++)
        push[i] = (uint32_t)py_shader_next(words);
    if (count > UINT32_MAX)
        return plan->host->fail(plan->host, TN_ERR_UNSUPPORTED,
                                "output %u has %llu elements: over 2^32", output,
                                (unsigned long long)count);
    const tn_vulkan_operand operands[] = {tn_vulkan_output(output)};
    tn_vulkan_launch launch = {.struct_size = sizeof(launch),
                               .module = module_for(FILL_MODULE, layout->dtype),
                               TN_VULKAN_OPERANDS(operands),
                               TN_VULKAN_PUSH(push)};
    tn_vulkan_rows(plan->limits, count / COPY_GROUP + (count % COPY_GROUP > 0),
                   launch.groups);
    return plan->launch(plan, &launch);
}

static tn_status shader_plan(const tn_vulkan_plan *plan)
{
    const tn_step *step = plan->step;
    struct py_shader_launch given = py_shader_read_launch(step->attrs);
    tn_vulkan_operand operands[64 + MOST_RESULTS];
    uint64_t scratch = 0;
    const tn_vulkan_kernel *payload = step->kernel->payload;
    const struct py_shader *shader =
        (const struct py_shader *)((const char *)payload -
                                   offsetof(struct py_shader, payload));
    tn_status status =
        shader->code == given.code
            ? TN_OK
            : plan->host->fail(plan->host, TN_ERR_REFUSED,
                               "the graph was saved with another text of this kernel");
    for (uint32_t i = 0; i < step->num_inputs && status == TN_OK; i++) {
        uint64_t size = copied_bytes(&tn_step_input(step, i)->layout);
        operands[i] =
            size ? tn_vulkan_scratch(scratch, size, TN_VULKAN_READS) : tn_vulkan_input(i);
        status = size ? copy_input(plan, i, scratch, size) : TN_OK;
        scratch += size;
    }
    for (uint32_t i = 0; i < step->num_outputs; i++)
        (void)py_shader_read_type(&given.rest);
    for (uint32_t i = 0; i < step->num_outputs && status == TN_OK; i++) {
        operands[step->num_inputs + i] = tn_vulkan_output(i);
        operands[step->num_inputs + i].access |= TN_VULKAN_READS;
        if (tn_step_output(step, i)->layout.offset)
            status = plan->host->fail(plan->host, TN_ERR_INTERNAL,
                                      "output %u does not begin with its memory", i);
        else if (given.flags & SHADER_FILLS)
            status = fill_output(plan, i, &given.rest);
    }
    tn_vulkan_launch launch = {
        .struct_size = sizeof(launch),
        .groups = {given.groups[0], given.groups[1], given.groups[2]},
        .num_operands = step->num_inputs + step->num_outputs,
        .num_push = given.num_push,
        .operand_size = sizeof(tn_vulkan_operand),
        .operands = operands,
        .push = given.push};
    if (given.flags & SHADER_ROWS)
        tn_vulkan_rows(plan->limits, given.groups[0], launch.groups);
    return status == TN_OK ? plan->launch(plan, &launch) : status;
}

// --- defining and applying ---

PyObject *compile_glsl(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    const char *text, *name;
    Py_ssize_t size;
    const void *table;
    const tn_host *host;
    if (!PyArg_ParseTuple(args, "s#s:glsl", &text, &size, &name))
        return NULL;
    tn_runtime *runtime = runtime_get();
    if (!runtime)
        return NULL;
    tn_status status = tn_interface_find(runtime, TN_IFACE_GLSL, &table, &host);
    if (status != TN_OK)
        return raise_status(status, tn_last_error());
    const tn_glsl *glsl = table;
    tn_glsl_code code = {.struct_size = sizeof(code)};
    Py_BEGIN_ALLOW_THREADS;
    status = glsl->compile(host, text, (uint64_t)size, name, &code);
    Py_END_ALLOW_THREADS;
    PyObject *result =
        status == TN_OK
            ? PyBytes_FromStringAndSize((const char *)code.words,
                                        (Py_ssize_t)(code.num_words * sizeof(uint32_t)))
            : Py_BuildValue("ssII", code.message, code.file, code.line, code.column);
    glsl->release(host, &code);
    return result;
}

static bool add_modules(struct py_shader *shader, PyObject *modules)
{
    Py_ssize_t count = PySequence_Size(modules);
    if (count < 1 || count > MODULES) {
        PyErr_Format(PyExc_ValueError, "%zd modules", count);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(modules, i);
        char *bytes = NULL;
        Py_ssize_t size = 0;
        bool has_bytes = item && PyBytes_AsStringAndSize(item, &bytes, &size) == 0;
        void *code =
            has_bytes ? definition_keep(&shader->definition, bytes, (size_t)size) : NULL;
        Py_XDECREF(item);
        if (!code)
            return false;
        shader->modules[i] = (tn_vulkan_module){.code = code, .code_size = (uint64_t)size};
    }
    shader->payload = (tn_vulkan_kernel){.struct_size = sizeof(shader->payload),
                                         .modules = shader->modules,
                                         .num_modules = (uint32_t)count,
                                         .module_size = sizeof(tn_vulkan_module),
                                         .plan = shader_plan};
    return true;
}

PyObject *define_shader(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    static const tn_operand_rule rules[] = {{TN_ALL_DTYPES, TN_NEEDS_CONTIGUOUS, 0, 0}};
    const char *id, *doc;
    PyObject *inputs, *outputs, *features, *modules;
    long long code;
    int has_body;
    if (!PyArg_ParseTuple(args, "ssOOOOLp:define_shader", &id, &doc, &inputs, &outputs,
                          &features, &modules, &code, &has_body))
        return NULL;
    struct py_shader *shader = (struct py_shader *)definition_create(
        id, doc, inputs, outputs, sizeof(struct py_shader) - sizeof(struct py_definition));
    if (!shader || !add_modules(shader, modules))
        return definition_free((struct py_definition *)shader);
    shader->code = code;
    tn_attr_field *fields = shader->definition.fields;
    fields[0] = (tn_attr_field)TN_INT_LIST_FIELD(struct py_shader_attrs, launch,
                                                 "what differs between applications");
    fields[1] = (tn_attr_field){"body",
                                "what it computes on other devices",
                                TN_ATTR_GRAPH,
                                0,
                                offsetof(struct py_shader_attrs, body),
                                0,
                                0.0,
                                NULL};
    fields[0].flags = TN_ATTR_REQUIRED;
    tn_primitive *record = &shader->definition.record;
    record->attrs =
        (tn_attr_table){sizeof(struct py_shader_attrs), 2, sizeof(*fields), fields};
    record->infer = shader_infer;
    record->decompose = has_body ? shader_decompose : NULL;
    record->reference = has_body ? NULL : shader_reference;
    shader->kernel = (tn_kernel){.struct_size = sizeof(shader->kernel),
                                 .primitive = record->id,
                                 .family = TN_FAMILY_VULKAN_SPIRV,
                                 .name = "python",
                                 .priority = 900,
                                 TN_OPERANDS(rules),
                                 .features = text_keep(&shader->definition, features),
                                 .scratch_size = shader_scratch,
                                 .payload = &shader->payload};
    return shader->kernel.features &&
                   definition_register(&shader->definition, &shader->kernel)
               ? Py_NewRef(Py_None)
               : definition_free(&shader->definition);
}

PyObject *apply_shader(PyObject *module, PyObject *args)
{
    PY_GUARD;
    (void)module;
    const char *id;
    PyObject *list, *launch, *object, *outputs[MOST_RESULTS];
    unsigned int count;
    if (!PyArg_ParseTuple(args, "sOOOI:apply_shader", &id, &list, &launch, &object, &count))
        return NULL;
    if (count > MOST_RESULTS) {
        PyErr_Format(PyExc_ValueError,
                     "a shader kernel has %u results, expected at most %d", count,
                     MOST_RESULTS);
        return NULL;
    }
    const tn_graph *body = object == Py_None ? NULL : graph_get(object);
    struct py_building b;
    if (PyErr_Occurred() || !building_begin(&b))
        return NULL;
    struct attr_room room;
    room.count = 0;
    struct array_list inputs;
    static const tn_attr_field field = {.name = "launch", .kind = TN_ATTR_INT_LIST};
    PyObject *tuple = NULL;
    bool given = array_list_get(&b, list, &inputs) && attr_add(&b, &room, &field, launch);
    if (given && body)
        room.items[room.count++] =
            (tn_attr){.name = "body", .kind = TN_ATTR_GRAPH, .graph = body};
    if (given &&
        building_apply_n(&b, id, (const tn_array *const *)inputs.items, inputs.count,
                         TN_ATTR_LIST(room.items, room.count), outputs, count)) {
        tuple = PyTuple_New((Py_ssize_t)count);
        for (unsigned int i = 0; i < count; i++)
            if (!tuple)
                Py_DECREF(outputs[i]);
            else if (PyTuple_SetItem(tuple, (Py_ssize_t)i, outputs[i]) != 0)
                Py_CLEAR(tuple);
    }
    room.count = room.count > 1 ? 1 : room.count; // attribute 1, the graph, owns no list
    attr_room_free(&room);
    free(inputs.items);
    building_end(&b);
    return tuple;
}
