// SPDX-License-Identifier: MIT
// plugin.json: what a plugin is and provides, known without loading it.
//
// {
//   "format": 1,
//   "id": "org.tenon.null", "version": "0.1.0", "vendor": "Tenon",
//   "abi": {"major": 1, "minor_min": 0, "minor_max": 0},
//   "sanitizer": 0,
//   "file": "org.tenon.null.so",
//   "files": [{"name": "org.tenon.null.so", "size": 16384, "sha256": "..."}],
//   "interfaces": ["tn.backend/1"],
//   "selectors": [{"interface": "tn.format/1", "kind": "extension", "value": "npy"}],
//   "backends": [{"name": "null", "default": false, "families": ["expr/1"]}],
//   "primitives": [{"id": "base.sum_to/1", "role": "tn.sum_to/1"}],
//   "kernels": [{"primitive": "base.matmul/1", "family": "cpu.c/1", "name": "cblas"}]
// }
//
// interfaces, selectors, backends, primitives and kernels are optional. Unknown keys are
// ignored: a later format may only add keys.
#ifndef CORE_PLUGIN_FIND_MANIFEST_H
#define CORE_PLUGIN_FIND_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>
#include "../../base/memory.h"
#include "reason.h"

#define MANIFEST_FILE "plugin.json"
#define MANIFEST_FORMAT 1
#define MANIFEST_MAX_SIZE ((uint64_t)1 << 20)
#define MANIFEST_MAX_DEPTH 8
#define MANIFEST_MAX_RECORDS 16384 // elements of one array

struct abi_range {
    uint32_t major, minor_min, minor_max;
};

struct manifest_file {
    const char *name;
    uint64_t size;
    unsigned char sha256[32];
};

struct manifest_backend {
    const char *name;
    bool is_default; // TN_BACKEND_DEFAULT
};

struct manifest_primitive {
    const char *id;
    const char *role; // or NULL
};

struct manifest_kernel {
    const char *primitive, *family, *name;
};

struct manifest_selector {
    const char *interface, *kind, *value;
};

// A parsed plugin.json. The arena owns all arrays and texts. Zero is an empty manifest.
struct manifest {
    struct arena arena;
    const char *id, *version, *vendor;
    struct abi_range abi;
    uint32_t sanitizer;
    const char *file; // name of the shared object, one of `files`
    struct manifest_file *files;
    struct manifest_backend *backends;
    struct manifest_primitive *primitives;
    struct manifest_kernel *kernels;
    const char **interfaces; // NULL-terminated
    struct manifest_selector *selectors;
    uint32_t num_selectors;
    uint32_t num_files, num_backends, num_primitives, num_kernels;
    // For tn_plugin_info and tn_provider; NULL-terminated. kernel_texts: "PRIMITIVE FAMILY
    // NAME"; selector_texts: "INTERFACE KIND VALUE".
    const char **backend_names, **primitive_ids, **kernel_texts, **selector_texts;
};

// Parses `size` bytes of JSON. `path` is for messages. On failure *out is unchanged.
tn_status manifest_parse(const char *text, size_t size, const char *path,
                         struct manifest *out, struct reason *reason);
void manifest_finish(struct manifest *manifest);

// The entry of `files` for the shared object. Never NULL after manifest_parse().
const struct manifest_file *manifest_object(const struct manifest *manifest);

#endif // CORE_PLUGIN_FIND_MANIFEST_H
