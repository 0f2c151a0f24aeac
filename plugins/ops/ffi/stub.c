// SPDX-License-Identifier: MIT
// The shared object that each pack is a copy of, with a manifest behind its last byte and
// another identity in its note. It has entry points for 256 functions, each of which passes
// its function's number to the engine, the plugin org.tenon.ffi. All are compiled: unlike
// closures, they need no memory that is both writable and executable.
#include <dlfcn.h>
#include <string.h>
#include "engine.h"

static struct {
    const struct engine *engine; // the host keeps its plugin loaded until the last deinit
    struct ffi_pack *pack;
    uint32_t num_runtimes; // runtimes between init and deinit
} self;

// --- entry points ----------------------------------------------------------------------

// The number is the last parameter: an entry point leaves the core's arguments where they
// are, loads one register, and jumps to one of these. Hence noinline.
__attribute__((noinline)) static tn_status ffi_stub_launch(const tn_cpu_call *call,
                                                           uint64_t number)
{
    return self.engine->launch(self.pack, number, call);
}

__attribute__((noinline)) static tn_status ffi_stub_infer(const tn_infer *asked,
                                                          tn_type *types, uint64_t number)
{
    return self.engine->infer(self.pack, number, asked, types);
}

__attribute__((noinline)) static uint64_t
ffi_stub_scratch_size(const tn_kernel_query *query, uint64_t number)
{
    return self.engine->scratch_size(self.pack, number, query);
}

__attribute__((noinline)) static tn_status
ffi_stub_vjp(const tn_build *build, const tn_rule *rule, tn_array *const *cotangents,
             const uint64_t *wanted, tn_array **gradients, uint64_t number)
{
    return self.engine->vjp(self.pack, number, build, rule, cotangents, wanted, gradients);
}

// `number` stands where the core passes `size`, which this rule does not need.
__attribute__((noinline)) static tn_status
ffi_stub_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
              uint64_t number, tn_array **outputs, int32_t *out_axes)
{
    return self.engine->vmap(self.pack, number, build, rule, axes, outputs, out_axes);
}

#define SLOT(digits)                                                                       \
    static tn_status launch_##digits(const tn_cpu_call *call)                              \
    {                                                                                      \
        return ffi_stub_launch(call, 0x##digits);                                          \
    }                                                                                      \
    static tn_status infer_##digits(const tn_infer *asked, tn_type *types)                 \
    {                                                                                      \
        return ffi_stub_infer(asked, types, 0x##digits);                                   \
    }                                                                                      \
    static uint64_t scratch_##digits(const tn_kernel_query *query)                         \
    {                                                                                      \
        return ffi_stub_scratch_size(query, 0x##digits);                                   \
    }                                                                                      \
    static tn_status vjp_##digits(const tn_build *build, const tn_rule *rule,              \
                                  tn_array *const *cotangents, const uint64_t *wanted,     \
                                  tn_array **gradients)                                    \
    {                                                                                      \
        return ffi_stub_vjp(build, rule, cotangents, wanted, gradients, 0x##digits);       \
    }                                                                                      \
    static tn_status vmap_##digits(const tn_build *build, const tn_rule *rule,             \
                                   const int32_t *axes, int64_t size, tn_array **outputs,  \
                                   int32_t *out_axes)                                      \
    {                                                                                      \
        (void)size;                                                                        \
        return ffi_stub_vmap(build, rule, axes, 0x##digits, outputs, out_axes);            \
    }
#define RULES(digits)                                                                      \
    {launch_##digits, infer_##digits, scratch_##digits, vjp_##digits, vmap_##digits},

// M for each number of two hexadecimal digits: 256 times.
// clang-format off
#define OF_DIGIT(M, high)                                  \
    M(high##0) M(high##1) M(high##2) M(high##3) M(high##4) \
    M(high##5) M(high##6) M(high##7) M(high##8) M(high##9) \
    M(high##a) M(high##b) M(high##c) M(high##d) M(high##e) M(high##f)
#define ALL(M)                                                              \
    OF_DIGIT(M, 0) OF_DIGIT(M, 1) OF_DIGIT(M, 2) OF_DIGIT(M, 3) OF_DIGIT(M, 4) \
    OF_DIGIT(M, 5) OF_DIGIT(M, 6) OF_DIGIT(M, 7) OF_DIGIT(M, 8) OF_DIGIT(M, 9) \
    OF_DIGIT(M, a) OF_DIGIT(M, b) OF_DIGIT(M, c) OF_DIGIT(M, d) OF_DIGIT(M, e) \
    OF_DIGIT(M, f)
// clang-format on

ALL(SLOT)
static const struct rules slots[] = {ALL(RULES)};
#undef SLOT
#undef RULES
#undef OF_DIGIT
#undef ALL

// --- the plugin ------------------------------------------------------------------------

static const tn_plugin *ffi_stub_identity(void);

static tn_status find_engine(const tn_host *host, const struct engine **out_engine)
{
    const tn_host_interfaces *service = host->query(host, TN_HOST_INTERFACES);
    const tn_host *owner = NULL;
    const void *table = NULL;
    if (!TN_HAS(service, find))
        return host->fail(host, TN_ERR_UNSUPPORTED,
                          "a pack of C functions needs a host with " TN_HOST_INTERFACES
                          ": update Tenon");
    tn_status status =
        service->find(host, FFI_IFACE_ENGINE, "the plugin org.tenon.ffi", &table, &owner);
    if (status != TN_OK)
        return status;
    const struct engine *engine = table;
    if (!TN_HAS(engine, vmap))
        return host->fail(host, TN_ERR_REFUSED,
                          "the plugin org.tenon.ffi is older than this pack: update it");
    *out_engine = engine;
    return TN_OK;
}

static tn_status open_pack(const tn_host *host, const struct engine *engine)
{
    Dl_info info;
    if (!dladdr(ffi_stub_identity(), &info) || !info.dli_fname)
        return host->fail(host, TN_ERR_IO, "its file is unknown");
    tn_status status = engine->open(host, info.dli_fname, slots,
                                    sizeof(slots) / sizeof(slots[0]), &self.pack);
    if (status == TN_OK)
        self.engine = engine;
    return status;
}

// All runtimes of a process share this shared object's `self`, so they need the same
// engine.
static tn_status pack_init(const tn_host *host)
{
    const struct engine *engine = NULL;
    tn_status status = find_engine(host, &engine);
    if (status == TN_OK && self.num_runtimes == 0)
        status = open_pack(host, engine);
    if (status != TN_OK)
        return status;
    if (engine != self.engine)
        return host->fail(host, TN_ERR_REFUSED,
                          "another runtime of this process uses the pack with another "
                          "version of org.tenon.ffi: let both find the same plugin");
    self.num_runtimes++;
    return TN_OK;
}

static void pack_deinit(const tn_host *host)
{
    (void)host;
    if (--self.num_runtimes)
        return;
    self.engine->close(self.pack);
    self.pack = NULL;
    self.engine = NULL;
}

static tn_status check_primitive(const tn_host *host, const char *primitive)
{
    return self.engine->check(self.pack, host, primitive);
}

static const void *pack_query(const char *id)
{
    static const tn_ops_check check = {.struct_size = sizeof(check),
                                       .check = check_primitive};
    if (strcmp(id, TN_IFACE_OPS) == 0)
        return self.engine->ops(self.pack);
    return strcmp(id, TN_IFACE_OPS_CHECK) == 0 ? &check : NULL;
}

// The id, version and vendor point into the note, so making a pack changes the note alone.
#pragma GCC diagnostic ignored "-Woverride-init"
TN_PLUGIN(FFI_STUB_ID, "0.0.0", "nobody", .id = tn_note_image_.content.id,
          .version = tn_note_image_.content.version,
          .vendor = tn_note_image_.content.vendor, .init = pack_init, .deinit = pack_deinit,
          .query = pack_query);

static const tn_plugin *ffi_stub_identity(void)
{
    // Making a pack changes the note after compiling, so the compiler must not fold its
    // text.
    const tn_plugin *plugin = &tn_plugin_v1;
    __asm__("" : "+r"(plugin));
    return plugin;
}
