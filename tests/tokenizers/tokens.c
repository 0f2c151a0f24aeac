// SPDX-License-Identifier: MIT
// tokens FILE.gguf|FOLDER [FAMILY]: encodes texts, for oracle.py and folders.py.
//
// Reads records from standard input: bytes of text, flags of TN_ENCODE_... (with 256 marks
// are left out when ids are decoded), both u32, and the text. Writes for each: the number
// of ids, the ids, the bytes of the decoded ids, and these, numbers as u32.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <tenon/file.h>
#include "vocabulary_file.h"

enum { HIDE = 256 };

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tn_last_error());
    return 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put(uint64_t number)
{
    uint32_t word = (uint32_t)number;
    fwrite(&word, sizeof(word), 1, stdout);
}

// Encodes, decodes and writes one text; adds the seconds of encoding.
static int run(const struct open_tokenizer *t, const char *text, uint32_t size,
               uint32_t flags, double *seconds)
{
    int32_t *ids;
    uint64_t count, bytes;
    char *back;
    double start = now();
    bool shows = flags & TN_ENCODE_PARSE_SPECIAL && !(flags & HIDE);
    if (t->ops->encode(t->host, t->tokenizer, text, size, flags & ~(uint32_t)HIDE, &ids,
                       &count))
        return failed("encode");
    *seconds += now() - start;
    if (t->ops->decode(t->host, t->tokenizer, ids, count, shows ? TN_DECODE_SPECIAL : 0,
                       &back, &bytes))
        return failed("decode");
    put(count);
    fwrite(ids, sizeof(*ids), count, stdout);
    put(bytes);
    fwrite(back, 1, bytes, stdout);
    t->host->free(t->host, ids);
    t->host->free(t->host, back);
    return 0;
}

static int run_all(const struct open_tokenizer *t)
{
    uint32_t head[2];
    double seconds = 0;
    uint64_t bytes = 0;
    while (fread(head, sizeof(head), 1, stdin) == 1) {
        char *text = malloc(head[0] + 1u);
        if (!text || fread(text, 1, head[0], stdin) != head[0] ||
            run(t, text, head[0], head[1], &seconds))
            return 1;
        free(text);
        bytes += head[0];
    }
    fprintf(stderr, "%.3f MB in %.3f s\n", (double)bytes / 1e6, seconds);
    return 0;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static int run_list(tn_runtime *runtime, const tn_metadata_list *list)
{
    struct open_tokenizer t;
    double start = now();
    if (open_tokenizer(runtime, list, &t))
        return failed(list->name);
    fprintf(stderr, "%s, %d tokens, opened in %.1f ms\n", t.ops->facts(t.tokenizer)->name,
            t.ops->facts(t.tokenizer)->count, 1e3 * (now() - start));
    int result = run_all(&t);
    t.ops->close(t.host, t.tokenizer);
    return result;
}

static int run_folder(tn_runtime *runtime, const char *path)
{
    tn_file *folder;
    if (tn_file_open(runtime, path, NULL, &folder))
        return failed(path);
    int result = run_list(runtime, tn_file_metadata(folder));
    tn_file_close(folder);
    return result;
}

int main(int count, char **args)
{
    struct vocabulary_file file = {0};
    tn_runtime *runtime;
    if (count < 2 || (!is_folder(args[1]) && !vocabulary_file_read(args[1], &file)))
        return 2;
    if (count > 2)
        vocabulary_file_set(&file, "tokenizer.ggml.pre", args[2]);
    if (tn_runtime_open(NULL, &runtime))
        return failed("runtime");
    int result = file.pairs ? run_list(runtime, &file.list) : run_folder(runtime, args[1]);
    tn_runtime_close(runtime);
    vocabulary_file_finish(&file);
    return result;
}
