// SPDX-License-Identifier: MIT
// Weights and metadata of a model from a file; a source in the form that plugins take.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tenon/file.h>
#include <unistd.h>
#include "../base/fail.h"
#include "model.h"
#include "source.h"

// The number of the array of this name; -1: there is none.
static int64_t array_of(const tn_file *file, const char *name)
{
    for (uint64_t i = 0; tn_file_name(file, i); i++)
        if (strcmp(tn_file_name(file, i), name) == 0)
            return (int64_t)i;
    return -1;
}

static int32_t file_find(const tn_lm_source *source, const char *name, tn_type *out_type,
                         const char **out_format)
{
    const tn_file *file = source->context;
    int64_t found = array_of(file, name);
    if (found < 0)
        return 0;
    uint64_t index = (uint64_t)found;
    *out_type = *tn_file_type(file, index);
    *out_format = tn_file_format(file, index);
    if (*out_format && out_type->rank > 0) {
        out_type->dtype = TN_F32;
        out_type->extent[out_type->rank - 1] = tn_file_columns(file, index);
    }
    return 1;
}

static tn_array *file_load(const tn_lm_source *source, tn_scope *scope, const char *name)
{
    return tn_file_array(scope, source->context, name);
}

bool lm_source_is_file(const tn_lm *model)
{
    return model->source.load == file_load;
}

// Safe only for arrays of a file that nothing else refers to: mapped pages are read again
// at their next use, and copies are about to be freed.
void lm_source_forget(const tn_lm *model, tn_scope *scope, tn_array *read)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const tn_type *type = tn_array_type(read);
    if (!lm_source_is_file(model) || !read)
        return;
    uint64_t size = (uint64_t)tn_dtype_bytes(type->dtype);
    for (int32_t i = 0; i < type->rank; i++)
        size *= (uint64_t)type->extent[i];
    uintptr_t begin = (uintptr_t)tn_data(scope, read), end = begin + size;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED); // a failure is harmless
}

static void file_close(const tn_lm_source *source)
{
    tn_file_close(source->context);
}

tn_status lm_source_open(tn_runtime *runtime, const char *path, tn_lm_source *out_source)
{
    const tn_file_options options = {.struct_size = sizeof(options), .flags = TN_FILE_MAP};
    tn_file *file = NULL;
    tn_status status = tn_file_open(runtime, path, &options, &file);
    if (status != TN_OK)
        return lm_fail_core(status);
    *out_source = (tn_lm_source){.struct_size = sizeof(*out_source),
                                 .metadata = tn_file_metadata(file),
                                 .context = file,
                                 .find = file_find,
                                 .load = file_load,
                                 .close = file_close};
    return TN_OK;
}

static int32_t source_weight(const tn_model_source *base, const char *name,
                             tn_type *out_type)
{
    const struct lm_model_source *mine = (const struct lm_model_source *)(const void *)base;
    const char *format;
    return mine->source->find(mine->source, name, out_type, &format);
}

void lm_model_source_init(const tn_lm_source *source, struct lm_model_source *out)
{
    *out = (struct lm_model_source){{sizeof(out->base), 0, source->metadata, source_weight},
                                    source};
}
