// SPDX-License-Identifier: MIT
// Folders of models: one file of a folder is the input, its first byte says which, and the
// others are sound. What is listed can be read.
#include "fuzz.h"
#include "../tools/formats.h"

#include <sys/stat.h>

#define CONFIG                                                                             \
    "{\"model_type\": \"gemma2\", \"hidden_size\": 8, \"intermediate_size\": 16, "         \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"rms_norm_eps\": 1e-5, "       \
    "\"quantization\": {\"group_size\": 32, \"bits\": 4, \"six\": {\"bits\": 6}}}"
#define TOKENIZER                                                                          \
    "{\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, "          \
    "\"content\": \"\u2581\"}, \"added_tokens\": [{\"id\": 0, \"content\": \"<s>\", "      \
    "\"special\": true}], "                                                                \
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"<s>\": 0, \"a\": 1, \"b\": 2, \"ab\": "  \
    "3}, "                                                                                 \
    "\"merges\": [\"a b\"]}}"
#define HEADER                                                                             \
    "{\"model.norm.weight\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [0, "  \
    "4]}}"

static const struct {
    const char *name, *sound;
} parts[] = {{"config.json", CONFIG},
             {"tokenizer.json", TOKENIZER},
             {"tokenizer_config.json", "{\"bos_token\": \"<s>\"}"},
             {"model.safetensors.index.json",
              "{\"weight_map\": {\"model.norm.weight\": \"a.safetensors\"}}"},
             {"a.safetensors", NULL},
             {"generation_config.json", "{\"eos_token_id\": [1, 2]}"}};
#define NUM_PARTS (sizeof(parts) / sizeof(parts[0]))

static void write_part(const char *folder, const char *name, const void *data, size_t size)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "%s",
               path);
}

static void write_sound(const char *folder, size_t part)
{
    unsigned char weights[sizeof(HEADER) - 1 + 12] = {sizeof(HEADER) - 1};
    memcpy(weights + 8, HEADER, sizeof(HEADER) - 1);
    if (parts[part].sound)
        write_part(folder, parts[part].name, parts[part].sound, strlen(parts[part].sound));
    else
        write_part(folder, parts[part].name, weights, sizeof(weights));
}

// Looks at all that was listed.
static void use(const tn_file *file)
{
    const tn_metadata_list *list = tn_file_metadata(file);
    tn_scope *scope = tn_scope_open(formats_runtime());
    for (uint64_t i = 0; i < list->count; i++) {
        const tn_metadata *pair = tn_metadata_at(list, i);
        FUZZ_CHECK(tn_metadata_find(list, pair->key) == pair, "key '%s' twice", pair->key);
        const tn_text *texts = pair->data;
        for (uint64_t k = 0; pair->kind == TN_METADATA_TEXT && k < pair->count; k++)
            FUZZ_CHECK(strlen(texts[k].data) == texts[k].size, "'%s'", pair->key);
    }
    for (uint64_t i = 0; tn_file_name(file, i); i++) {
        tn_array *array = tn_file_array(scope, file, tn_file_name(file, i));
        FUZZ_CHECK(array && tn_data(scope, array), "%s", tn_scope_error(scope));
    }
    tn_scope_close(scope);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    static char folder[96];
    tn_file *file = NULL;
    size_t chosen = size ? data[0] % NUM_PARTS : 0;
    if (!folder[0]) {
        snprintf(folder, sizeof(folder), "%s/model", fuzz_folder());
        FUZZ_CHECK(mkdir(folder, 0700) == 0, "%s", folder);
        for (size_t i = 0; i < NUM_PARTS; i++)
            write_sound(folder, i);
    }
    write_part(folder, parts[chosen].name, data + (size > 0), size - (size > 0));
    tn_status status = tn_file_open(formats_runtime(), folder, NULL, &file);
    FUZZ_CHECK(status == TN_OK || tn_last_error()[0], "status %d", status);
    FUZZ_CHECK(status != TN_ERR_INTERNAL, "%s", tn_last_error());
    if (file)
        use(file);
    tn_file_close(file);
    write_sound(folder, chosen);
}
