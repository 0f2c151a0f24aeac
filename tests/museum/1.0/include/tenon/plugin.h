// SPDX-License-Identifier: MIT
// Plugins: the one symbol that a shared object exports, and what it offers by name.
//
//   static const void *query(const char *id) { ... }
//   TN_PLUGIN("com.acme.axpby", "1.0.0", "Acme", .query = query);
//
// The identity stands twice: in the symbol, and in an ELF note that is read without
// executing a byte of the plugin.
//
// Threads. init and deinit are called by one thread, alone for this plugin; query from any.
// init may be called again after deinit; it is called once a runtime, with that runtime's
// host, and deinit once for each successful init. It starts no thread, opens no device, and
// reads no environment.
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#include <tenon/backend.h>
#include <tenon/host.h>
#include <tenon/kernel.h>
#include <tenon/primitive.h>

// The ABI of these headers. Minor numbers only add.
#define TN_ABI_MAJOR 1
#define TN_ABI_MINOR 0

// How every tn_plugin and every note begins.
#define TN_PLUGIN_MAGIC UINT64_C(0x314e4f4e45540a1a) // 1a 0a "TENON1" in memory

// How the plugin was instrumented. Both sides must agree on ASan and TSan.
enum {
    TN_SANITIZER_NONE = 0,
    TN_SANITIZER_ADDRESS = 1,
    TN_SANITIZER_THREAD = 2,
};

// What a shared object exports, under the name tn_plugin_v1. Constant.
typedef struct tn_plugin {
    uint64_t magic;
    uint32_t struct_size;
    uint32_t flags;         // 0
    uint32_t abi_minor_min; // the oldest host minor it can live with
    uint32_t abi_minor_max; // the newest it knows
    uint32_t sanitizer;     // TN_SANITIZER_...
    uint32_t reserved;      // 0
    const char *id;         // reverse domain, [a-z0-9.-], at most 63 bytes
    const char *version;    // semantic version, at most 31 bytes
    const char *vendor;     // at most 63 bytes

    // Optional. Keeps `host` until deinit. On failure it has recorded why through
    // host->fail, and deinit is not called.
    tn_status (*init)(const tn_host *host);
    // Optional. Joins what was started, frees what was taken.
    void (*deinit)(const tn_host *host);

    // An interface by id and revision ("tn.ops/1", "tn.backend/1"), or NULL. Static
    // tables: pure, instant, no allocation.
    const void *(*query)(const char *id);
} tn_plugin;

// Primitives and kernels: what op packs bring.
#define TN_IFACE_OPS "tn.ops/1"
typedef struct tn_ops {
    uint32_t struct_size;
    uint32_t flags; // 0
    const tn_primitive *const *primitives;
    const tn_kernel *const *kernels; // for these primitives or for any other pack's
    uint32_t num_primitives;
    uint32_t num_kernels;
} tn_ops;

// Optional: whether a primitive of this plugin could run now. Asked by tools, never before
// each use.
#define TN_IFACE_OPS_CHECK "tn.ops.check/1"
typedef struct tn_ops_check {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Fails when something that the primitive needs is missing from the system, with the
    // remedy in the text. [any-thread]
    tn_status (*check)(const tn_host *host, const char *primitive);
} tn_ops_check;

// Optional: the ids of interfaces beside the standard ones ("com.vendor.thing/1") that
// query() answers: a `const char *const *`, ended by NULL. They go into plugin.json, where
// tn_interface_find() looks.
#define TN_IFACE_LIST "tn.interfaces/1"

// Service: primitives that a plugin makes while it runs. They are not in its manifest: who
// uses them has made them.
#define TN_HOST_PRIMITIVES "tn.host.primitives/1"
typedef struct tn_host_primitives {
    uint32_t struct_size;
    uint32_t flags; // 0

    // Registers a primitive and kernels for it, as if query(TN_IFACE_OPS) listed them.
    // Keeps the records until deinit, whatever is returned. TN_ERR_REFUSED when a record is
    // wrong or its id is taken; kernels before a wrong one stay. [any-thread]
    tn_status (*add)(const tn_host *host, const tn_primitive *record,
                     const tn_kernel *const *kernels, uint64_t num_kernels);
} tn_host_primitives;

// --- identity, in the symbol and in the note -------------------------------------------

// The note's content: fixed size, no pointers. Name "TENON", type 1, section .note.tenon.
#define TN_NOTE_NAME "TENON"
#define TN_NOTE_TYPE 1
typedef struct tn_note {
    uint64_t magic;
    uint32_t struct_size;
    uint32_t abi_major;
    uint32_t abi_minor_min;
    uint32_t abi_minor_max;
    uint32_t sanitizer;
    uint32_t reserved; // 0
    char id[64];       // ended by NUL, as are the others
    char version[32];
    char vendor[64];
} tn_note;

// How this translation unit is instrumented.
#if defined(__SANITIZE_THREAD__)
#define TN_SANITIZER_HERE TN_SANITIZER_THREAD
#elif defined(__SANITIZE_ADDRESS__)
#define TN_SANITIZER_HERE TN_SANITIZER_ADDRESS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TN_SANITIZER_HERE TN_SANITIZER_THREAD
#elif __has_feature(address_sanitizer)
#define TN_SANITIZER_HERE TN_SANITIZER_ADDRESS
#endif
#endif
#ifndef TN_SANITIZER_HERE
#define TN_SANITIZER_HERE TN_SANITIZER_NONE
#endif

#ifdef __cplusplus
#define TN_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define TN_EXPORT extern __attribute__((visibility("default")))
#endif

// The one symbol that a plugin exports: TN_PLUGIN() defines it.
TN_EXPORT const tn_plugin tn_plugin_v1;

#ifndef __cplusplus

// The note as it lies in the file: header, padded name, and a tn_note whose magic is cut in
// two, so that the whole is aligned to 4 as ELF wants it.
struct tn_note_image {
    uint32_t name_size, content_size, type;
    char name[8];
    struct {
        uint32_t magic[2];
        uint32_t struct_size, abi_major, abi_minor_min, abi_minor_max, sanitizer, reserved;
        char id[64], version[32], vendor[64];
    } content;
};

// The oldest host minor that this plugin can live with: define it before this header when
// it is not 0.
#ifndef TN_PLUGIN_MINOR_MIN
#define TN_PLUGIN_MINOR_MIN 0
#endif

// Defines the exported symbol and the note. The rest are designated initialisers of
// tn_plugin: .query, .init, .deinit.
#define TN_PLUGIN(plugin_id, plugin_version, plugin_vendor, ...)                           \
    __attribute__((used, section(".note.tenon"),                                           \
                   aligned(4))) static const struct tn_note_image tn_note_image_ = {       \
        .name_size = 6,                                                                    \
        .content_size = sizeof(tn_note),                                                   \
        .type = TN_NOTE_TYPE,                                                              \
        .name = TN_NOTE_NAME,                                                              \
        .content = {                                                                       \
            .magic = {(uint32_t)TN_PLUGIN_MAGIC, (uint32_t)(TN_PLUGIN_MAGIC >> 32)},       \
            .struct_size = sizeof(tn_note),                                                \
            .abi_major = TN_ABI_MAJOR,                                                     \
            .abi_minor_min = TN_PLUGIN_MINOR_MIN,                                          \
            .abi_minor_max = TN_ABI_MINOR,                                                 \
            .sanitizer = TN_SANITIZER_HERE,                                                \
            .id = plugin_id,                                                               \
            .version = plugin_version,                                                     \
            .vendor = plugin_vendor}};                                                     \
    const tn_plugin tn_plugin_v1 = {.magic = TN_PLUGIN_MAGIC,                              \
                                    .struct_size = sizeof(tn_plugin),                      \
                                    .abi_minor_min = TN_PLUGIN_MINOR_MIN,                  \
                                    .abi_minor_max = TN_ABI_MINOR,                         \
                                    .sanitizer = TN_SANITIZER_HERE,                        \
                                    .id = plugin_id,                                       \
                                    .version = plugin_version,                             \
                                    .vendor = plugin_vendor,                               \
                                    __VA_ARGS__}
#endif // __cplusplus

#endif // TENON_PLUGIN_H
