// SPDX-License-Identifier: MIT
// Opening models, failures, and the devices of a model.
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/lm_adapter.h>
#include <tenon/lm_dist.h>
#include <time.h>
#include <unistd.h>
#include "lm.h"

#define MOST_BYTES (INT64_C(1) << 30)

int stop(const char *format, ...)
{
    char text[4096], shown[4 * sizeof(text)];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    tn_text_printable(text, TN_TEXT_INDENT, shown, sizeof(shown));
    fprintf(stderr, "tenon: %s\n", shown);
    return 1;
}

int stop_lm(void)
{
    return stop("%s", tn_lm_error());
}

int stop_memory(void)
{
    return stop("out of memory");
}

double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void clear_progress(struct opened *opened)
{
    if (opened->is_drawn)
        fprintf(stderr, "\r\033[K");
    opened->is_drawn = false;
}

// Weights that are loaded, as a line that is written over: on a terminal, where it takes
// long enough to be seen.
static void draw_progress(void *context, uint64_t loaded, uint64_t total)
{
    enum { CELLS = 30 };
    struct opened *opened = context;
    if (!isatty(STDERR_FILENO) || now() - opened->begin < 0.2)
        return;
    if (loaded == total) {
        clear_progress(opened);
        return;
    }
    opened->is_drawn = true;
    int full = (int)((double)loaded / (double)total * CELLS);
    bool is_large = total >= 1000000000;
    double unit = is_large ? 1e-9 : 1e-6;
    int digits = is_large ? 1 : 0;
    fprintf(stderr, "\rloading [%.*s%.*s] %.*f of %.*f %s", full,
            "##############################", CELLS - full,
            "..............................", digits, unit * (double)loaded, digits,
            unit * (double)total, is_large ? "GB" : "MB");
    fflush(stderr);
}

// Clears the line of progress, so that the failure stands on a line of its own.
static int fail_open(struct opened *opened)
{
    clear_progress(opened);
    if (tn_lm_error()[0])
        stop_lm();
    close_model(opened);
    return 1;
}

// How processes divide the model, TN_LM_PIPELINE or the like; 0: they do not.
static int32_t parallel_kind(const struct lm_options *given)
{
    const char *run = getenv("TENON_RUN"), *size = run ? strstr(run, "size=") : NULL;
    bool has_others = size && strtol(size + strlen("size="), NULL, 10) > 1;
    if (!given->parallel)
        return has_others ? TN_LM_PIPELINE : 0;
    return strcmp(given->parallel, "pipeline") == 0 ? TN_LM_PIPELINE
           : strcmp(given->parallel, "tensor") == 0 ? TN_LM_TENSOR
                                                    : 0;
}

static tn_status open_lm(const struct lm_options *given, bool is_alone, struct opened *out)
{
    const tn_lm_options options = {.struct_size = sizeof(options),
                                   .context = given->context,
                                   .cache = given->cache,
                                   .sequences = given->sequences,
                                   .split = is_alone ? given->split : NULL,
                                   .progress = draw_progress,
                                   .progress_context = out};
    tn_lm_source source;
    if (!given->random)
        return tn_lm_open(out->runtime, given->items[0], &options, &out->lm);
    if (random_source(out->runtime, given->random, &source))
        return TN_ERR_ARGUMENT;
    return tn_lm_open_source(out->runtime, &source, &options, &out->lm);
}

// Notes a context beyond the positions that the model was trained for; a user may want it.
static void tell_context(const struct lm_options *given, const struct opened *opened)
{
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(opened->lm, &info);
    if (given->context > info.trained)
        fprintf(stderr,
                "tenon: note: --context %" PRId64 " is more than the %" PRId64
                " positions that the model was trained for: what it writes beyond them may "
                "make no sense\n",
                given->context, info.trained);
}

static tn_status open_adapter(const struct lm_options *given, struct opened *out)
{
    return given->adapter
               ? tn_lm_adapter_load(out->lm, given->adapter, given->adapter_scale)
               : TN_OK;
}

// A rank above 0 serves rank 0's requests until rank 0 closes the model, then exits.
static void lm_open_serve(struct opened *opened)
{
    int failed = tn_lm_serve(opened->lm) ? stop_lm() : 0;
    close_model(opened);
    exit(failed);
}

// Divides the model among the processes of `tenon run`.
static tn_status lm_open_distribute(const struct lm_options *given, int32_t kind,
                                    struct opened *out)
{
    const tn_lm_dist_options options = {
        .struct_size = sizeof(options), .kind = kind, .split = given->split};
    tn_lm_rank rank = {.struct_size = sizeof(rank)};
    tn_status status = tn_lm_distribute(out->lm, &options, &rank);
    if (status == TN_OK && rank.rank > 0) {
        status = open_adapter(given, out);
        if (status == TN_OK)
            lm_open_serve(out);
    }
    return status;
}

static int check_parallel(const struct lm_options *given)
{
    static const char *const known[] = {"pipeline", "tensor", "none"};
    for (size_t i = 0; i < COUNT(known) && given->parallel; i++)
        if (strcmp(given->parallel, known[i]) == 0)
            return 0;
    return given->parallel ? stop("--parallel is '%s', expected pipeline, tensor or none",
                                  given->parallel)
                           : 0;
}

// `kind`: how processes divide the model; 0: each process has a whole one.
static int open_as(const struct lm_options *given, int32_t kind, struct opened *out)
{
    *out = (struct opened){.begin = now()};
    if (check_parallel(given))
        return 1;
    if (tn_runtime_open(NULL, &out->runtime))
        return stop("%s", tn_last_error());
    int failed = open_lm(given, kind == 0, out);
    if (!failed && kind)
        failed = lm_open_distribute(given, kind, out) != TN_OK;
    if (!failed)
        failed = open_adapter(given, out) != TN_OK;
    if (!failed && given->mmproj)
        failed = tn_lm_vision_load(out->lm, given->mmproj) != TN_OK;
    if (failed)
        return fail_open(out);
    tell_context(given, out);
    out->seconds = now() - out->begin;
    return 0;
}

int open_alone(const struct lm_options *given, struct opened *out)
{
    return open_as(given, 0, out);
}

int open_model(const struct lm_options *given, struct opened *out)
{
    if (open_as(given, parallel_kind(given), out))
        return 1;
    if (tn_lm_sequence_open(out->lm, &out->sequence))
        return fail_open(out);
    out->seconds = now() - out->begin;
    return 0;
}

void close_model(struct opened *opened)
{
    tn_lm_sequence_close(opened->sequence);
    tn_lm_close(opened->lm);
    tn_runtime_close(opened->runtime);
}

int list_parts(const struct opened *opened, tn_lm_part **out_parts, uint64_t *out_count)
{
    uint64_t count = 0;
    *out_parts = NULL;
    if (tn_lm_parts(opened->lm, NULL, &count))
        return stop_lm();
    tn_lm_part *parts = calloc(count + 1, sizeof(*parts));
    if (!parts)
        return stop_memory();
    parts[0].struct_size = sizeof(*parts);
    *out_parts = parts;
    *out_count = count;
    return tn_lm_parts(opened->lm, parts, out_count) ? stop_lm() : 0;
}

// Names the devices of the layers: "vulkan:0 (NVIDIA H200)", of several devices with their
// layers.
static void devices_text(const tn_lm_part *parts, uint64_t count, char *out, size_t size)
{
    size_t used = 0;
    *out = 0;
    for (uint64_t i = 0; i < count && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s (%s)", i ? ", " : "",
                                 parts[i].device, parts[i].name);
        if (count > 1 && used < size)
            used +=
                (size_t)snprintf(out + used, size - used, " layers %lld to %lld",
                                 (long long)parts[i].first, (long long)parts[i].end - 1);
    }
}

// Tells the layers of each process, where there are several.
static void tell_ranks(const struct opened *opened)
{
    tn_lm_rank rank = {.struct_size = sizeof(rank), .size = 1};
    char line[512], shown[4 * sizeof(line)];
    for (int32_t i = 0; i < rank.size; i++) {
        if (tn_lm_rank_of(opened->lm, i, &rank) || rank.size == 1)
            return;
        snprintf(line, sizeof(line), "rank %d: layers %lld to %lld, on %s", i,
                 (long long)rank.first, (long long)rank.end - 1, rank.devices);
        tn_text_printable(line, TN_TEXT_ONE_LINE, shown, sizeof(shown));
        fprintf(stderr, "%s\n", shown);
    }
}

void tell_model(const struct opened *opened)
{
    char devices[1024], line[2048], shown[4 * sizeof(line)];
    tn_lm_part *parts;
    uint64_t count = 0;
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(opened->lm, &info);
    if (list_parts(opened, &parts, &count) == 0) {
        devices_text(parts, count, devices, sizeof(devices));
        snprintf(line, sizeof(line),
                 "%s%s%s: %lld layers of %lld, %.1f MB of weights, on %s", info.name,
                 info.name[0] ? ", " : "", info.architecture, (long long)info.layers,
                 (long long)info.width, 1e-6 * (double)info.weight_bytes, devices);
        tn_text_printable(line, TN_TEXT_ONE_LINE, shown, sizeof(shown));
        fprintf(stderr, "%s\n", shown);
    }
    tell_ranks(opened);
    free(parts);
}

int read_text(const char *path, char **out_text, uint64_t *out_size)
{
    struct stat info;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file)
        return stop("%s: %s", path, strerror(errno));
    if (file != stdin && fstat(fileno(file), &info) == 0 &&
        (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) && !isatty(fileno(file))) {
        fclose(file); // /dev/zero never ends
        return stop("%s: it is a device, expected a file or a pipe", path);
    }
    char *text = NULL;
    uint64_t size = 0, room = 0;
    int failed = 0;
    while (!failed && !feof(file) && !ferror(file)) {
        if (size == room) {
            room = room ? 2 * room : 65536;
            char *more = room <= (uint64_t)MOST_BYTES ? realloc(text, room) : NULL;
            failed = more ? 0 : stop("%s: more than %" PRId64 " bytes", path, MOST_BYTES);
            text = more ? more : text;
        }
        size += failed ? 0 : fread(text + size, 1, room - size, file);
    }
    if (!failed && ferror(file))
        failed = stop("%s: %s", path, strerror(errno));
    if (file != stdin)
        fclose(file);
    if (failed) {
        free(text);
        return failed;
    }
    *out_text = text;
    *out_size = size;
    return 0;
}

int read_argument(const char *argument, char **out_text)
{
    uint64_t size = 0;
    if (strcmp(argument, "-") != 0) {
        *out_text = strdup(argument);
        return *out_text ? 0 : stop_memory();
    }
    char *text = NULL;
    if (read_text(argument, &text, &size))
        return 1;
    size -= size > 0 && text[size - 1] == '\n';
    char *more = realloc(text, size + 1);
    if (!more || memchr(more, 0, size)) {
        int failed =
            more ? stop("standard input has a zero byte: expected a text") : stop_memory();
        free(more ? more : text);
        return failed;
    }
    more[size] = 0;
    *out_text = more;
    return 0;
}

void write_piece(const char *text, uint64_t size)
{
    if (!isatty(STDOUT_FILENO)) {
        fwrite(text, 1, size, stdout);
    } else {
        uint64_t room = tn_text_printable(text, 0, NULL, 0) + 1;
        char *shown = malloc(room);
        if (shown) {
            tn_text_printable(text, 0, shown, room);
            fputs(shown, stdout);
        }
        free(shown);
    }
    fflush(stdout);
}

int open_grammar(const struct lm_options *given, tn_lm_grammar **out_grammar)
{
    const char *path = given->schema ? given->schema : given->grammar;
    char *text;
    uint64_t size;
    *out_grammar = NULL;
    if (!path)
        return 0;
    if (given->schema && given->grammar)
        return stop("--grammar and --json-schema: expected one of them");
    if (read_text(path, &text, &size))
        return 1;
    tn_status status = tn_lm_grammar_open(
        text, size, given->schema ? TN_LM_JSON_SCHEMA : TN_LM_GBNF, out_grammar);
    free(text);
    return status == TN_OK ? 0 : stop("%s: %s", path, tn_lm_error());
}

int read_biases(const struct lm_options *given, tn_lm_bias *out)
{
    for (int i = 0; i < given->biases.count; i++) {
        const char *text = given->biases.items[i];
        char *end;
        long long id = strtoll(text, &end, 10);
        bool is_id = end != text && *end == '=' && id >= 0 && id <= INT32_MAX;
        const char *number = is_id ? end + 1 : text;
        double value = strtod(number, &end);
        if (!is_id || end == number || *end)
            return stop("--bias is '%s', expected TOKEN=NUMBER", text);
        out[i] = (tn_lm_bias){.id = (int32_t)id, .value = (float)value};
    }
    return 0;
}

int add_picture(const struct opened *opened, const char *path, struct pictures *pictures)
{
    if (pictures->count == COUNT(pictures->items))
        return stop("%s: more than %zu images", path, COUNT(pictures->items));
    if (tn_lm_image_open(opened->lm, path, &pictures->items[pictures->count]))
        return stop_lm();
    pictures->count++;
    return 0;
}

int open_pictures(const struct opened *opened, const struct lm_options *given,
                  struct pictures *pictures)
{
    int failed = 0;
    *pictures = (struct pictures){.count = 0};
    for (int i = 0; i < given->images.count && !failed; i++)
        failed = add_picture(opened, given->images.items[i], pictures);
    return failed;
}

void close_pictures(struct pictures *pictures)
{
    while (pictures->count > 0)
        tn_lm_image_close(pictures->items[--pictures->count]);
}
