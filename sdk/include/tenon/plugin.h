// SPDX-License-Identifier: MIT
// Plugins: the one symbol that a shared object exports, and the interfaces that it offers
// by id.
//
//   #include <tenon/plugin.h>
//
//   static const tn_ops ops = {.struct_size = sizeof(ops), ...};
//   static const void *query(const char *id)
//   {
//       return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
//   }
//   TN_PLUGIN("com.acme.axpby", "1.0.0", "Acme", .query = query);
//
// <tenon/pack.h> writes all of this for op packs. A plugin links no library of Tenon.
//
// The identity (id, version, vendor, ABI) is in the file twice: in the symbol, and in an
// ELF note. The core reads the note before dlopen(), so an incompatible plugin is refused
// without running a byte of its code. Symbol and note have to agree.
//
// Lifetime. init is called once for each runtime that loads the plugin, with the host table
// of that runtime; deinit is called once for each init that succeeded. init may follow a
// deinit in the same process. Everything that a plugin hands out (records, tables, texts)
// is constant from init to the last deinit.
//
// Threads. init and deinit are called by one thread at a time for each plugin; query from
// any thread, after the first init and before the last deinit. init starts no thread, opens
// no device and reads no environment variable: tn_host.config does that.
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#include <tenon/backend.h>
#include <tenon/host.h>
#include <tenon/kernel.h>
#include <tenon/primitive.h>

// The version of the ABI that these headers describe. A minor version only adds: slots and
// fields at the ends of tables, interfaces, numbers. Another major version is another
// symbol.
#define TN_ABI_MAJOR 1
#define TN_ABI_MINOR 0

// The first 8 bytes of every tn_plugin and of every note. The two control characters in
// front tell a reader of files that this is no text.
#define TN_PLUGIN_MAGIC UINT64_C(0x314e4f4e45540a1a) // 1a 0a "TENON1" in memory

// The sanitizer that a shared object is instrumented with. A plugin whose number is not the
// host's is refused: AddressSanitizer and ThreadSanitizer need every object in the process.
enum {
    TN_SANITIZER_NONE = 0,
    TN_SANITIZER_ADDRESS = 1,
    TN_SANITIZER_THREAD = 2,
};

// The object that a plugin exports under the name tn_plugin_v1. Written by TN_PLUGIN(), or
// by hand in C++. Constant; the core reads it only.
typedef struct tn_plugin {
    uint64_t magic;         // TN_PLUGIN_MAGIC
    uint32_t struct_size;   // sizeof(tn_plugin) as the plugin was compiled
    uint32_t flags;         // 0
    uint32_t abi_minor_min; // the oldest minor version of a host that the plugin works with
    uint32_t abi_minor_max; // the newest minor version that the plugin knows
    uint32_t sanitizer;     // TN_SANITIZER_...
    uint32_t reserved;      // 0
    const char *id;         // reverse domain, [a-z0-9.-], at most 63 bytes
    const char *version;    // Semantic Versioning 2.0.0, at most 31 bytes
    const char *vendor;     // for people, at most 63 bytes

    // Optional. Prepares the plugin for one runtime, whose host table it keeps until
    // deinit. On failure it has recorded the reason through host->fail, has freed whatever
    // it took, and deinit is not called. [one thread]
    tn_status (*init)(const tn_host *host);

    // Optional. Joins the threads that the plugin started for this host, and frees what it
    // took from it. [one thread]
    void (*deinit)(const tn_host *host);

    // Gives an interface by id and revision ("tn.ops/1", "tn.backend/1"), or NULL when the
    // plugin does not have it. Called after init has succeeded and until the last deinit;
    // gives the same table all that time, for every runtime. Pure and instant: no
    // allocation, no log. [any-thread]
    const void *(*query)(const char *id);
} tn_plugin;

// Interface of an op pack, given by query(): primitives and kernels. The plugin owns the
// table and all records; both are constant until deinit. A record that is wrong is refused
// with a message when the plugin is loaded, and the plugin with it.
#define TN_IFACE_OPS "tn.ops/1"
typedef struct tn_ops {
    uint32_t struct_size;                  // sizeof(tn_ops)
    uint32_t flags;                        // 0
    const tn_primitive *const *primitives; // num_primitives addresses
    const tn_kernel *const *kernels;       // for these primitives or for any other pack's
    uint32_t num_primitives;
    uint32_t num_kernels;
} tn_ops;

// Optional interface: whether a primitive of this plugin could run now, for plugins that
// call libraries of the system. Tools ask it (tenon doctor, tn_primitive_check); evaluating
// never does.
#define TN_IFACE_OPS_CHECK "tn.ops.check/1"
typedef struct tn_ops_check {
    uint32_t struct_size; // sizeof(tn_ops_check)
    uint32_t flags;       // 0

    // Returns TN_OK when everything is there that `primitive` ("acme.fft/1") needs from the
    // system. Otherwise fails with a message that says what is missing and how to get it.
    // Borrows the text. [any-thread]
    tn_status (*check)(const tn_host *host, const char *primitive);
} tn_ops_check;

// Optional interface: a `const char *const *`, ended by NULL, of the ids of the plugin's
// own interfaces ("com.vendor.thing/1"), which query() answers beside the standard ones.
// `tenon` writes them into plugin.json, where tn_interface_find() looks them up without
// loading code.
#define TN_IFACE_LIST "tn.interfaces/1"

// A selector tells one provider of an interface from the others: any number of plugins may
// offer an interface of one id, each with selectors of its own. The interface says which
// kinds it has, and who is meant by them: formats of files by "extension", "magic" and
// "folder".
typedef struct tn_selector {
    const char *interface; // "tn.format/1": one that query() answers
    const char *kind;      // [a-z][a-z0-9-]*, at most 31 bytes
    const char *value;     // 1 .. 127 bytes of UTF-8 without control characters
} tn_selector;

// The kind whose value is the beginning of a file: bytes as two hexadecimal digits each,
// "??" for any byte, at most 63 bytes. "934e554d5059" is "\x93NUMPY".
#define TN_SELECT_MAGIC "magic"

// Optional interface: the selectors of the plugin's interfaces. `tenon` writes them into
// plugin.json, where tn_provider_find() looks them up without loading code.
#define TN_IFACE_SELECTORS "tn.selectors/1"
typedef struct tn_selectors {
    uint32_t struct_size; // sizeof(tn_selectors)
    uint32_t flags;       // 0
    const tn_selector *items;
    uint32_t num_items;
    uint32_t item_size; // sizeof(tn_selector): item i is at byte i * item_size of `items`
} tn_selectors;

// Service of the host, from tn_host.query: registers primitives while the plugin runs, such
// as callbacks of the application. They are in no manifest, so no other plugin or tool
// finds them before they are registered.
#define TN_HOST_PRIMITIVES "tn.host.primitives/1"
typedef struct tn_host_primitives {
    uint32_t struct_size; // set by the host
    uint32_t flags;       // 0

    // Registers `record` and its kernels, as if query(TN_IFACE_OPS) listed them. Keeps the
    // records until deinit, whatever is returned. TN_ERR_REFUSED when a record is wrong or
    // its id is taken; kernels before a wrong one stay registered. [any-thread]
    tn_status (*add)(const tn_host *host, const tn_primitive *record,
                     const tn_kernel *const *kernels, uint64_t num_kernels);
} tn_host_primitives;

// --- identity, in the symbol and in the note -------------------------------------------

// The content (the "descriptor" of the ELF specification, gABI chapter 5, "Note Section")
// of the note with the name "TENON" and type 1 in section .note.tenon: the identity in
// fixed sizes, without pointers, so that it can be read from the file. Fields mean what
// those of tn_plugin mean.
#define TN_NOTE_NAME "TENON"
#define TN_NOTE_TYPE 1
typedef struct tn_note {
    uint64_t magic;         // TN_PLUGIN_MAGIC
    uint32_t struct_size;   // sizeof(tn_note)
    uint32_t abi_major;     // TN_ABI_MAJOR
    uint32_t abi_minor_min; // as in tn_plugin
    uint32_t abi_minor_max; // as in tn_plugin
    uint32_t sanitizer;     // TN_SANITIZER_...
    uint32_t reserved;      // 0
    char id[64];            // this and the next two end in a NUL, and NULs fill the rest
    char version[32];
    char vendor[64];
} tn_note;

// The TN_SANITIZER_ of the translation unit that includes this header: GCC defines
// __SANITIZE_..., Clang answers __has_feature().
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

// Makes the symbol visible although the plugin is compiled with -fvisibility=hidden.
#ifdef __cplusplus
#define TN_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define TN_EXPORT extern __attribute__((visibility("default")))
#endif

// The one symbol that a plugin exports. TN_PLUGIN() defines it; the core finds it by
// dlsym().
TN_EXPORT const tn_plugin tn_plugin_v1;

#ifndef __cplusplus

// The note as it lies in the file: ELF's header of a note, the padded name, and a tn_note.
// Its magic is split in two words of 4 bytes, since the image is aligned to 4, as ELF wants
// notes, and a uint64_t member would align it to 8. Filled by TN_PLUGIN() alone.
struct tn_note_image {
    uint32_t name_size, content_size, type; // bytes; 6, sizeof(tn_note), TN_NOTE_TYPE
    char name[8];                           // "TENON", its NUL, and 2 bytes of padding
    struct {
        uint32_t magic[2];
        uint32_t struct_size, abi_major, abi_minor_min, abi_minor_max, sanitizer, reserved;
        char id[64], version[32], vendor[64];
    } content;
};

// The oldest minor version of a host that this plugin works with, for abi_minor_min. A
// plugin that cannot do without a slot of minor version 2 defines it as 2 before this
// header.
#ifndef TN_PLUGIN_MINOR_MIN
#define TN_PLUGIN_MINOR_MIN 0
#endif

// Defines the exported symbol and the note, once a plugin, at file scope. The three texts
// are string literals that fit the arrays of tn_note with their NUL; further arguments are
// designated initialisers of tn_plugin: .query, which is required, .init and .deinit. C
// only.
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
