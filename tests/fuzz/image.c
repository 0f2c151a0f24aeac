// SPDX-License-Identifier: MIT
// Images: PNG, JPEG and Netpbm's; the first byte says which. What is listed is one array of
// bytes, whose elements can be read or are refused with a reason.
#include "fuzz.h"
#include "../tools/formats.h"

static const char *const plugins[] = {"org.tenon.png", "org.tenon.jpeg", "org.tenon.pnm"};

// The most pixels that are read here: more are allowed, and take their time.
#define MOST_READ (INT64_C(1) << 18)

static void use(const tn_file *file)
{
    const tn_type *type = tn_file_type(file, 0);
    FUZZ_CHECK(type && !tn_file_name(file, 1), "one array");
    FUZZ_CHECK(type->dtype == TN_U8 && type->rank == 3 && type->extent[2] == 3, "type");
    int64_t pixels = type->extent[0] * type->extent[1];
    FUZZ_CHECK(pixels > 0 && pixels <= INT64_C(1) << 27, "%lld pixels", (long long)pixels);
    if (pixels > MOST_READ)
        return;
    tn_scope *scope = tn_scope_open(formats_runtime());
    tn_array *array = tn_file_array(scope, file, NULL);
    FUZZ_CHECK((array && tn_data(scope, array)) || tn_scope_error(scope)[0], "a reason");
    FUZZ_CHECK(tn_scope_status(scope) != TN_ERR_INTERNAL, "%s", tn_scope_error(scope));
    tn_scope_close(scope);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    tn_file *file = NULL;
    if (size == 0)
        return;
    const tn_file_options options = {.struct_size = sizeof(options),
                                     .plugin = plugins[data[0] % 3]};
    const char *path = fuzz_path(data + 1, size - 1);
    tn_status status = tn_file_open(formats_runtime(), path, &options, &file);
    FUZZ_CHECK(status == TN_OK || (!file && tn_last_error()[0]), "status %d", status);
    FUZZ_CHECK(status != TN_ERR_INTERNAL, "%s", tn_last_error());
    if (status == TN_OK)
        use(file);
    tn_file_close(file);
}
