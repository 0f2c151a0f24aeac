// SPDX-License-Identifier: MIT
// tenon model tokens: a text as the tokens of a model.
#include "model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tokenizer.h>

// A vocabulary, with the plugin that knows its kind.
struct model_tokens_vocabulary {
    const tn_tokenizer_ops *ops;
    const tn_host *host; // of the plugin
    tn_tokenizer *tokenizer;
};

static int open_vocabulary(tn_runtime *runtime, const tn_file *file, const char *path,
                           struct model_tokens_vocabulary *out)
{
    const tn_metadata_list *list = tn_file_metadata(file);
    const char *plugin;
    const void *interface;
    tn_text kind;
    if (!tn_metadata_text(tn_metadata_find(list, "tokenizer.ggml.model"), &kind))
        return oops("%s has no vocabulary that can be read: tokenizer.ggml.model is "
                    "missing",
                    path);
    if (tn_provider_find(runtime, TN_IFACE_TOKENIZER, "model", kind.data, &plugin) ||
        tn_provider_load(runtime, TN_IFACE_TOKENIZER, plugin, &interface, &out->host))
        return oops_library();
    out->ops = interface;
    return out->ops->open(out->host, list, &out->tokenizer) ? oops_library() : 0;
}

static const char *model_tokens_kind_of(const tn_token *token)
{
    static const char *const kinds[] = {"",        "normal", "unknown", "control",
                                        "defined", "unused", "byte"};
    return token->kind < (int32_t)COUNT(kinds) ? kinds[token->kind] : "?";
}

// Prints a line: the number, and the text between quotes, as spaces matter. say() escapes
// bytes that are no UTF-8, so they are not escaped before.
static void print_token(int32_t id, const tn_token *token)
{
    json_t *text = json_string(token->bytes.data);
    char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    bool is_normal = token->kind == TN_TOKEN_NORMAL;
    const char *mark = quoted ? "" : "\"";
    say_line("%7d  %s%s%s%s%s", id, mark, quoted ? quoted : token->bytes.data, mark,
             is_normal ? "" : "  ", is_normal ? "" : model_tokens_kind_of(token));
    free(quoted);
    json_decref(text);
}

// Appends tokens to `rows` as {"id", "text", "kind"}; NULL: prints them.
static int list_tokens(const struct model_tokens_vocabulary *v, const char *text,
                       uint32_t flags, json_t *rows)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    if (v->ops->encode(v->host, v->tokenizer, text, strlen(text), flags, &ids, &count))
        return oops_library();
    int failed = 0;
    for (uint64_t i = 0; i < count && !failed; i++) {
        tn_token token = {.kind = 0};
        if (v->ops->token(v->host, v->tokenizer, ids[i], &token, sizeof(token)))
            failed = oops_library();
        else if (rows)
            json_array_append_new(rows, json_pack("{s:i, s:o, s:s}", "id", ids[i], "text",
                                                  json_text(token.bytes.data), "kind",
                                                  model_tokens_kind_of(&token)));
        else
            print_token(ids[i], &token);
    }
    v->host->free(v->host, ids);
    return failed;
}

static int show_tokens(tn_runtime *runtime, const struct args *args, uint32_t flags,
                       bool json)
{
    static const tn_file_options map = {.struct_size = sizeof(map), .flags = TN_FILE_MAP};
    struct model_tokens_vocabulary v = {.ops = NULL};
    tn_file *file = NULL;
    json_t *rows = json ? json_array() : NULL;
    int failed = rows || !json ? 0 : oops_memory();
    if (!failed && tn_file_open(runtime, args->items[0], &map, &file))
        failed = oops_library();
    if (!failed)
        failed = open_vocabulary(runtime, file, args->items[0], &v);
    if (!failed)
        failed = list_tokens(&v, args->items[1], flags, rows);
    if (!failed && json)
        failed = json_print(rows);
    if (v.tokenizer)
        v.ops->close(v.host, v.tokenizer);
    json_decref(rows);
    tn_file_close(file);
    return failed;
}

int cmd_model_tokens(const struct command *self, int argc, char **argv)
{
    bool json = false, raw = false, special = false;
    const struct option options[] = {
        {"special", 0, NULL, "texts of control tokens, such as <|im_end|>, become these",
         NULL, &special},
        {"raw", 0, NULL, "do not begin and end as prompts of this model do", NULL, &raw},
        {"json", 0, NULL, "print JSON", NULL, &json}};
    struct args args;
    tn_runtime *runtime;
    int failed = args_parse(self, options, COUNT(options), 2, 2, argc, argv, &args);
    if (failed || args.help_shown)
        return failed;
    failed = open_runtime(&runtime);
    if (failed)
        return failed;
    failed = show_tokens(runtime, &args,
                         (raw ? 0u : TN_ENCODE_ADD_SPECIAL) |
                             (special ? TN_ENCODE_PARSE_SPECIAL : 0u),
                         json);
    tn_runtime_close(runtime);
    return failed;
}
