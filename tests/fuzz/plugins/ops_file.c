// SPDX-License-Identifier: MIT
// ops.json: what is accepted is a record that the command can print.
#include "fuzz.h"
#include "base/tool.h"
#include "ops/describe.h"
#include "ops/described.h"

static void check_record(const tn_primitive *p)
{
    char *text = signature(p), value[64];
    FUZZ_CHECK(p->id && p->doc && num_outputs(p) > 0, "'%s'", p->id);
    FUZZ_CHECK(text && strchr(text, '('), "'%s'", p->id);
    for (uint32_t i = 0; i < p->attrs.num_fields; i++) {
        tn_attr_field field = attr_field(&p->attrs, i);
        FUZZ_CHECK(attr_default(&field, value, sizeof(value))[0], "'%s'", field.name);
        FUZZ_CHECK(attr_kind_name(&field)[0] != '?', "'%s'", field.name);
    }
    free(text);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct ops_file *file = NULL;
    char *text = fuzz_text(data, size);
    forget_oops();
    int failed = ops_file_parse(text, size, "ops.json", &file);
    FUZZ_CHECK(!failed || (oops_text()[0] && !file), "a failure has a text");
    for (uint32_t i = 0; file && i < ops_file_count(file); i++)
        check_record(ops_file_at(file, i));
    ops_file_free(file);
    free(text);
}
