// SPDX-License-Identifier: MIT
// A host as it was: compiled with the headers of one ABI minor alone, it loads plugins that
// were built with others, and uses what they bring as a host of its minor would.
//
//   host PLUGIN.so ...
//
// Every table that it gives has the size that its headers know, and stands at the end of a
// page whose neighbour cannot be touched: who reads further is caught. Records that plugins
// give may be larger, if what is unknown is zero. A line a plugin tells what came of it;
// the exit status is 0 when all worked, 3 when one was refused, 1 when one is at fault.
//
// This file uses what ABI 1.0 has, and nothing newer.
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <tenon/plugin.h>

enum { WORKED = 0, AT_FAULT = 1, REFUSED = 3 };

static const char *id = "no plugin yet"; // of the plugin that is being used
static int verdict;                      // of it
static char said[512];                   // the last failure that it recorded
static int64_t live;                     // blocks that it has

static void tell(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(int status, const char *format, ...)
{
    va_list list;
    if (verdict != WORKED)
        return; // the first reason is the one
    verdict = status;
    printf("%s: %s: ", status == REFUSED ? "refused" : "at fault", id);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
}

// --- memory at the end of a page -------------------------------------------------------

static void *at_end_of_page(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE))
        abort();
    return pages + page - size;
}

// A copy of a struct that ends where its page ends.
#define AT_END(type, ...) ((type *)copy_at_end(&(type)__VA_ARGS__, sizeof(type)))
static void *copy_at_end(const void *from, size_t size)
{
    return memcpy(at_end_of_page(size), from, size);
}

static void caught(int number)
{
    char text[256];
    int size = snprintf(text, sizeof(text),
                        "at fault: %s: touched what is beyond the tables of ABI %d.%d "
                        "(signal %d)\n",
                        id, TN_ABI_MAJOR, TN_ABI_MINOR, number);
    if (write(STDOUT_FILENO, text, (size_t)size) < 0)
        _exit(AT_FAULT + 1);
    _exit(AT_FAULT);
}

// --- the table -------------------------------------------------------------------------

static void *host_alloc(const tn_host *host, uint64_t size, uint64_t alignment)
{
    void *memory = NULL;
    (void)host;
    if (posix_memalign(&memory, alignment > 16 ? alignment : 16, size ? size : 1))
        return NULL;
    live++;
    return memory;
}

static void host_free(const tn_host *host, void *memory)
{
    (void)host;
    live -= memory != NULL;
    free(memory);
}

static tn_status host_fail(const tn_host *host, tn_status status, const char *format, ...)
{
    va_list list;
    (void)host;
    va_start(list, format);
    vsnprintf(said, sizeof(said), format, list);
    va_end(list);
    return status;
}

static void host_log(const tn_host *host, int32_t level, const char *topic,
                     const char *format, ...)
{
    (void)host, (void)level, (void)topic, (void)format;
}

static const char *host_config(const tn_host *host, const char *name)
{
    (void)host, (void)name;
    return NULL;
}

static const void *host_query(const tn_host *host, const char *service)
{
    (void)host, (void)service;
    return NULL; // services are optional
}

static const tn_host *make_host(uint32_t minor)
{
    return AT_END(tn_host, {.struct_size = sizeof(tn_host),
                            .abi_minor = minor,
                            .alloc = host_alloc,
                            .free = host_free,
                            .fail = host_fail,
                            .log = host_log,
                            .config = host_config,
                            .query = host_query});
}

// --- records that plugins give ---------------------------------------------------------

// `least` is what the record had in 1.0.
static bool is_known(const void *record, uint32_t size, size_t least, size_t known,
                     const char *what)
{
    if (size < least)
        tell(AT_FAULT, "%s has %u bytes, and had %zu in 1.0", what, size, least);
    for (size_t i = known; i < size && verdict == WORKED; i++)
        if (((const unsigned char *)record)[i])
            tell(REFUSED,
                 "byte %zu of %s is set, which this host (%zu bytes) does not know", i,
                 what, known);
    return verdict == WORKED;
}
#define IS_KNOWN(record, last)                                                             \
    is_known(record, (record)->struct_size, TN_END_OF(record, last), sizeof(*(record)),    \
             #record)

// --- operators that this host knows ----------------------------------------------------

// Elementwise, of f32, with attributes that are numbers.
static const struct known {
    const char *primitive;
    uint32_t num_inputs;
    double attrs[2];
    float result[3]; // for x = 1, 2, 3 and y = 2, 3, 4
} known[] = {
    {"museum.axpby/1", 2, {2, 3}, {8, 13, 18}},
    {"museum.cube/1", 1, {0, 0}, {1, 8, 27}},
    {"museum.twice/1", 1, {0, 0}, {2, 4, 6}},
};

static const struct known *find(const char *primitive)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(primitive, known[i].primitive) == 0)
            return &known[i];
    return NULL;
}

static const tn_layout row = {.dtype = TN_F32, .rank = 1, .extent = {3}, .stride = {1}};
static float operands[3][3];

static void in_one_piece(const tn_cpu_call *call, int64_t n, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end,
                                      uint32_t worker),
                         void *context)
{
    (void)call, (void)grain;
    body(context, 0, n, 0);
}

static void set_operands(void)
{
    for (int i = 0; i < 3; i++) {
        operands[0][i] = (float)(i + 1);
        operands[1][i] = (float)(i + 2);
        operands[2][i] = -1;
    }
}

static void check_result(const struct known *op, const float *result, const char *what)
{
    for (int i = 0; i < 3; i++)
        if (result[i] != op->result[i])
            tell(AT_FAULT, "%s: [%d] of %s is %g, expected %g", what, i, op->primitive,
                 (double)result[i], (double)op->result[i]);
}

static void use_kernel(const tn_host *host, const tn_kernel *kernel)
{
    const tn_cpu_kernel *payload = kernel->payload;
    const struct known *op = find(kernel->primitive);
    if (strcmp(kernel->family, TN_FAMILY_CPU) != 0 || !IS_KNOWN(payload, launch) || !op)
        return;
    set_operands();
    const tn_layout layouts[] = {row, row, row};
    const tn_kernel_query *query =
        AT_END(tn_kernel_query, {.struct_size = sizeof(tn_kernel_query),
                                 .inputs = layouts,
                                 .outputs = layouts,
                                 .attrs = op->attrs,
                                 .num_inputs = op->num_inputs,
                                 .num_outputs = 1});
    if (kernel->accepts && !kernel->accepts(query))
        tell(AT_FAULT, "kernel %s does not accept three f32", kernel->name);
    uint64_t scratch = kernel->scratch_size ? kernel->scratch_size(query) : 0;
    const tn_tensor inputs[] = {{operands[0], row}, {operands[1], row}};
    const tn_tensor output = {operands[2], row};
    const tn_cpu_call *call = AT_END(
        tn_cpu_call, {.struct_size = sizeof(tn_cpu_call),
                      .host = host,
                      .inputs = inputs,
                      .outputs = &output,
                      .attrs = op->attrs,
                      .scratch = scratch ? at_end_of_page((scratch + 63) / 64 * 64) : NULL,
                      .scratch_size = scratch,
                      .num_inputs = op->num_inputs,
                      .num_outputs = 1,
                      .num_threads = 1,
                      .parallel_for = in_one_piece});
    if (payload->launch(call) != TN_OK)
        tell(AT_FAULT, "kernel %s fails: %s", kernel->name, said);
    check_result(op, operands[2], kernel->name);
}

// --- rules -----------------------------------------------------------------------------

static const tn_type row_type = {.dtype = TN_F32, .rank = 1, .extent = {3}};
static int64_t built;

static tn_array *some_array(void)
{
    static char array;
    built++;
    return (tn_array *)(void *)&array;
}

static tn_array *build_op(const tn_build *build, const char *primitive,
                          const tn_array *const *inputs, uint64_t num_inputs,
                          tn_attr_list attrs)
{
    (void)build, (void)primitive, (void)inputs, (void)num_inputs, (void)attrs;
    return some_array();
}

static tn_status build_op_n(const tn_build *build, const char *primitive,
                            const tn_array *const *inputs, uint64_t num_inputs,
                            tn_attr_list attrs, tn_array **outputs, uint64_t num_outputs)
{
    for (uint64_t i = 0; i < num_outputs; i++)
        outputs[i] = build_op(build, primitive, inputs, num_inputs, attrs);
    return TN_OK;
}

static tn_array *build_scalar(const tn_build *build, tn_dtype dtype, double value)
{
    (void)build, (void)dtype, (void)value;
    return some_array();
}

static const tn_type *build_type(const tn_array *array)
{
    return array ? &row_type : NULL;
}

static void use_rules(const tn_host *host, const tn_primitive *primitive)
{
    const struct known *op = find(primitive->id);
    if (!op)
        return;
    const tn_build *build = AT_END(tn_build, {.struct_size = sizeof(tn_build),
                                              .host = host,
                                              .op = build_op,
                                              .op_n = build_op_n,
                                              .expr = build_op,
                                              .scalar = build_scalar,
                                              .type = build_type});
    tn_array *arrays[] = {some_array(), some_array()}, *made[2] = {NULL, NULL};
    const tn_rule *rule = AT_END(tn_rule, {.struct_size = sizeof(tn_rule),
                                           .attrs = op->attrs,
                                           .inputs = arrays,
                                           .outputs = arrays,
                                           .num_inputs = op->num_inputs,
                                           .num_outputs = 1});
    const uint64_t wanted = UINT64_MAX;
    const int32_t axes[] = {0, 0};
    int32_t out_axes[1];
    bool good = true;
    built = 0;
    if (primitive->vjp)
        good &= primitive->vjp(build, rule, arrays, &wanted, made) == TN_OK && made[0];
    if (primitive->jvp)
        good &= primitive->jvp(build, rule, arrays, made) == TN_OK && made[0];
    if (primitive->vmap)
        good &= primitive->vmap(build, rule, axes, 3, made, out_axes) == TN_OK && made[0];
    if (!good)
        tell(AT_FAULT, "a rule of %s fails: %s", primitive->id, said);
}

static void use_meaning(const tn_host *host, const tn_primitive *primitive)
{
    if (!primitive->infer || primitive->num_inputs != 1)
        return;
    const tn_attr_table *table = &primitive->attrs;
    char attrs[4096] = {0};
    for (uint32_t i = 0; i < table->num_fields && table->size <= sizeof(attrs); i++) {
        const void *at = (const char *)table->fields + i * table->field_size;
        const tn_attr_field *field = at;
        if (field->flags & TN_ATTR_REQUIRED)
            return; // there is no value that every primitive takes
        if (field->kind == TN_ATTR_F64)
            memcpy(attrs + field->offset, &field->default_f, sizeof(double));
        else if (field->kind != TN_ATTR_INTS)
            memcpy(attrs + field->offset, &field->default_i, sizeof(int64_t));
    }
    const tn_infer *infer = AT_END(
        tn_infer, {.struct_size = sizeof(tn_infer),
                   .host = host,
                   .types = &row_type,
                   .attrs = attrs,
                   .num_inputs = 1,
                   .num_outputs = primitive->num_outputs ? primitive->num_outputs : 1});
    tn_type types[8];
    said[0] = 0;
    tn_status status = primitive->infer(infer, types);
    if (status != TN_OK && !said[0])
        tell(AT_FAULT, "infer of %s fails and does not say why", primitive->id);
}

static void use_ops(const tn_host *host, const tn_ops *ops)
{
    if (!IS_KNOWN(ops, num_kernels))
        return;
    for (uint32_t i = 0; i < ops->num_primitives && verdict == WORKED; i++) {
        const tn_primitive *primitive = ops->primitives[i];
        if (!IS_KNOWN(primitive, vmap))
            return;
        use_meaning(host, primitive);
        use_rules(host, primitive);
    }
    for (uint32_t i = 0; i < ops->num_kernels && verdict == WORKED; i++) {
        const tn_kernel *kernel = ops->kernels[i];
        if (IS_KNOWN(kernel, payload))
            use_kernel(host, kernel);
    }
}

// --- backends --------------------------------------------------------------------------

// out = x + y, as a program.
static const tn_step *make_step(void)
{
    static const tn_expr_insn insns[] = {{TN_EXPR_LOAD, TN_F32, 0, 0, 0},
                                         {TN_EXPR_LOAD, TN_F32, 1, 0, 0},
                                         {TN_EXPR_ADD, TN_F32, 0, 1, 0}};
    static const tn_dtype dtypes[] = {TN_F32, TN_F32};
    static const uint32_t outputs[] = {2};
    static tn_value values[3];
    for (uint32_t i = 0; i < 3; i++)
        values[i] = (tn_value){.slot = i, .id = i + 1, .layout = row};
    const tn_expr_program *program =
        AT_END(tn_expr_program, {.struct_size = sizeof(tn_expr_program),
                                 .insns = insns,
                                 .input_dtypes = dtypes,
                                 .output_dtypes = dtypes,
                                 .outputs = outputs,
                                 .num_insns = 3,
                                 .num_inputs = 2,
                                 .num_outputs = 1,
                                 .name = "add"});
    return AT_END(tn_step, {.struct_size = sizeof(tn_step),
                            .program = program,
                            .inputs = values,
                            .outputs = values + 2,
                            .num_inputs = 2,
                            .num_outputs = 1,
                            .value_size = sizeof(tn_value),
                            .label = "add"});
}

static tn_status run_step(const tn_backend *backend, tn_device *device, tn_buffer **buffers)
{
    const tn_slot slots[] = {
        {TN_SLOT_READ, 0, 12}, {TN_SLOT_READ, 0, 12}, {TN_SLOT_WRITE, 0, 12}};
    const tn_segment *segment =
        AT_END(tn_segment, {.struct_size = sizeof(tn_segment),
                            .steps = make_step(),
                            .slots = copy_at_end(slots, sizeof(slots)),
                            .num_steps = 1,
                            .num_slots = 3,
                            .step_size = sizeof(tn_step),
                            .slot_size = sizeof(tn_slot)});
    tn_executable *executable = NULL;
    tn_status status = backend->segment_compile(device, segment, &executable);
    if (status != TN_OK)
        return status;
    const tn_binding bindings[] = {{buffers[0], 0}, {buffers[1], 0}, {buffers[2], 0}};
    const tn_submission *submission =
        AT_END(tn_submission, {.struct_size = sizeof(tn_submission),
                               .executable = executable,
                               .bindings = copy_at_end(bindings, sizeof(bindings)),
                               .num_bindings = 3,
                               .binding_size = sizeof(tn_binding)});
    uint64_t point = 0;
    status = backend->submit(device, submission, &point);
    if (status == TN_OK)
        status = backend->wait(device, 0, point);
    backend->executable_destroy(device, executable);
    return status;
}

static tn_status use_device(const tn_backend *backend, tn_device *device, bool computes)
{
    tn_buffer *buffers[3] = {NULL, NULL, NULL};
    tn_status status = TN_OK;
    set_operands();
    for (int i = 0; i < 3 && status == TN_OK; i++) {
        status = backend->buffer_create(device, sizeof(operands[i]), &buffers[i]);
        if (status == TN_OK)
            status = backend->buffer_write(device, buffers[i], 0, operands[i],
                                           sizeof(operands[i]));
    }
    if (status == TN_OK)
        status = run_step(backend, device, buffers);
    if (status == TN_OK)
        status =
            backend->buffer_read(device, buffers[2], 0, operands[2], sizeof(operands[2]));
    for (int i = 0; i < 3; i++)
        if (status == TN_OK && computes && operands[2][i] != (float)(2 * i + 3))
            tell(AT_FAULT, "[%d] of x + y is %g, expected %d", i, (double)operands[2][i],
                 2 * i + 3);
    if (TN_HAS(backend, memory_info)) {
        tn_memory_info *info =
            AT_END(tn_memory_info, {.struct_size = sizeof(tn_memory_info)});
        status = status == TN_OK ? backend->memory_info(device, info) : status;
    }
    for (int i = 0; i < 3; i++)
        backend->buffer_destroy(device, buffers[i]);
    return status;
}

static void use_backend(const tn_host *host, const tn_backend *backend)
{
    if (!IS_KNOWN(backend, memory_info))
        return;
    uint32_t count = 0;
    tn_device_info *info = AT_END(tn_device_info, {.struct_size = sizeof(tn_device_info)});
    tn_device *device = NULL;
    tn_status status = backend->device_count(host, &count);
    if (status == TN_OK && count > 0)
        status = backend->device_info(host, 0, info);
    if (status == TN_OK && count > 0)
        status = backend->device_open(host, 0, &device);
    if (status == TN_OK && count > 0)
        status = use_device(backend, device, !(info->flags & TN_DEVICE_COMPUTES_NOTHING));
    backend->device_close(device);
    if (status != TN_OK)
        tell(AT_FAULT, "the backend fails (%d): %s", status, said);
}

// --- one plugin ------------------------------------------------------------------------

static bool negotiate(const tn_plugin *plugin, uint32_t *out_minor)
{
    uint32_t newest = TN_ABI_MINOR;
    uint32_t minor = plugin->abi_minor_max < newest ? plugin->abi_minor_max : newest;
    if (minor < plugin->abi_minor_min)
        tell(REFUSED, "it speaks ABI %d.%u to %d.%u, this host %d.0 to %d.%d", TN_ABI_MAJOR,
             plugin->abi_minor_min, TN_ABI_MAJOR, plugin->abi_minor_max, TN_ABI_MAJOR,
             TN_ABI_MAJOR, TN_ABI_MINOR);
    *out_minor = minor;
    return verdict == WORKED;
}

static void use_interfaces(const tn_plugin *plugin)
{
    const void *list = plugin->query(TN_IFACE_LIST);
    for (const char *const *name = list; name && *name; name++)
        if (!plugin->query(*name))
            tell(AT_FAULT, "it lists %s and does not have it", *name);
    if (plugin->query("com.nobody.nothing/1"))
        tell(AT_FAULT, "it has an interface that nobody ever heard of");
}

static void use_plugin(const tn_plugin *plugin)
{
    uint32_t minor;
    if (!negotiate(plugin, &minor) || !IS_KNOWN(plugin, query))
        return;
    const tn_host *host = make_host(minor);
    live = 0;
    said[0] = 0;
    if (plugin->init && plugin->init(host) != TN_OK) {
        tell(AT_FAULT, "init fails: %s", said);
        return;
    }
    const void *ops = plugin->query(TN_IFACE_OPS);
    const void *backend = plugin->query(TN_IFACE_BACKEND);
    use_interfaces(plugin);
    if (ops)
        use_ops(host, ops);
    if (backend)
        use_backend(host, backend);
    if (plugin->deinit)
        plugin->deinit(host);
    if (live)
        tell(AT_FAULT, "%lld blocks are left after deinit", (long long)live);
}

int main(int argc, char **argv)
{
    int worst = WORKED;
    signal(SIGSEGV, caught);
    signal(SIGBUS, caught);
    for (int i = 1; i < argc; i++) {
        id = argv[i];
        verdict = WORKED;
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        const tn_plugin *plugin = library ? dlsym(library, "tn_plugin_v1") : NULL;
        if (!plugin || plugin->magic != TN_PLUGIN_MAGIC) {
            tell(AT_FAULT, "%s", library ? "it is no plugin" : dlerror());
        } else {
            id = plugin->id;
            use_plugin(plugin);
        }
        if (verdict == WORKED)
            printf("works: %s\n", id);
        fflush(stdout);
        worst = worst == AT_FAULT || verdict == WORKED ? worst : verdict;
    }
    return worst;
}
