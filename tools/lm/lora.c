// SPDX-License-Identifier: MIT
// tenon train lora: trains an adapter on a file of text, and draws its losses.
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include <tenon/lm_adapter.h>
#include <unistd.h>
#include "lm.h"

#define MOST_WEIGHTS 32

struct losses {
    double *items;
    int64_t count, room;
    double shown; // seconds at which a line was last written
    bool json;
    bool is_quiet; // a rank above 0: rank 0 reports and draws
};

static volatile sig_atomic_t was_interrupted;

static void lora_interrupt(int number)
{
    (void)number;
    was_interrupted = 1;
}

// The mean of the last 16 losses, for reports and the drawing: single losses vary from
// window to window.
static double lora_smooth(const struct losses *l, int64_t at)
{
    int64_t first = at < 15 ? 0 : at - 15;
    double sum = 0;
    for (int64_t i = first; i <= at; i++)
        sum += l->items[i];
    return sum / (double)(at - first + 1);
}

static int32_t lora_note(void *context, const tn_lm_trained *now)
{
    struct losses *l = context;
    if (l->count == l->room) {
        double *more = realloc(l->items, 2 * (size_t)(l->room + 64) * sizeof(*more));
        if (!more)
            return 1;
        l->items = more;
        l->room = 2 * (l->room + 64);
    }
    l->items[l->count++] = now->loss;
    bool is_last = now->step == now->steps;
    if (l->is_quiet)
        return was_interrupted;
    if (l->json) {
        printf("{\"step\": %lld, \"loss\": %.6f, \"seconds\": %.3f}\n",
               (long long)now->step, now->loss, now->seconds);
    } else if (is_last || now->seconds - l->shown >= (isatty(STDERR_FILENO) ? 0.2 : 5)) {
        fprintf(stderr, "%sstep %lld/%lld  loss %.4f  %.1f steps/s%s",
                isatty(STDERR_FILENO) ? "\r" : "", (long long)now->step,
                (long long)now->steps, lora_smooth(l, l->count - 1),
                (double)now->step / now->seconds,
                isatty(STDERR_FILENO) && !is_last ? "\x1b[K" : "\n");
        l->shown = now->seconds;
    }
    return was_interrupted || ferror(stdout);
}

// --- the drawing -----------------------------------------------------------------------

enum { WIDTH = 720, HEIGHT = 360, LEFT = 64, RIGHT = 16, TOP = 24, BOTTOM = 40 };

static void lora_draw_line(FILE *file, const struct losses *l, bool smoothed, double least,
                           double most, const char *style)
{
    fprintf(file, "<polyline fill=\"none\" %s points=\"", style);
    for (int64_t i = 0; i < l->count; i++) {
        double value = smoothed ? lora_smooth(l, i) : l->items[i];
        double along = l->count > 1 ? (double)i / (double)(l->count - 1) : 0;
        fprintf(file, "%s%.1f,%.1f", i ? " " : "", LEFT + along * (WIDTH - LEFT - RIGHT),
                TOP + (most - value) / (most - least) * (HEIGHT - TOP - BOTTOM));
    }
    fprintf(file, "\"/>\n");
}

static void lora_draw(FILE *file, const struct losses *l)
{
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < l->count; i++) {
        least = fmin(least, l->items[i]);
        most = fmax(most, l->items[i]);
    }
    if (!(most > least)) {
        least -= 1;
        most += 1;
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"16\">loss (nats a token)</text>\n"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step</text>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, HEIGHT - 8);
    for (int i = 0; i <= 4; i++) {
        double value = least + (most - least) * i / 4.0;
        double y = TOP + (4 - i) / 4.0 * (HEIGHT - TOP - BOTTOM);
        double x = LEFT + i / 4.0 * (WIDTH - LEFT - RIGHT);
        long long step = 1 + llround((double)(l->count - 1) * i / 4.0);
        fprintf(file,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>\n",
                LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, value);
        if (i < 4)
            fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%lld</text>\n",
                    x, HEIGHT - BOTTOM + 18, step);
    }
    lora_draw_line(file, l, false, least, most, "stroke=\"#bcd\"");
    lora_draw_line(file, l, true, least, most, "stroke=\"#14a\" stroke-width=\"2\"");
    fprintf(file, "</svg>\n");
}

static int write_drawing(const char *path, const struct losses *l)
{
    tn_new_file *file = NULL;
    if (tn_new_file_open(path, NULL, &file))
        return stop("%s", tn_last_error());
    int copy = fcntl(file->descriptor, F_DUPFD_CLOEXEC, 0);
    FILE *stream = copy < 0 ? NULL : fdopen(copy, "w");
    bool failed = !stream;
    if (stream) {
        lora_draw(stream, l);
        failed = ferror(stream);
        failed |= fclose(stream) != 0;
    } else if (copy >= 0) {
        close(copy);
    }
    int status = failed                     ? stop("%s: cannot be written", path)
                 : tn_new_file_commit(file) ? stop("%s", tn_last_error())
                                            : 0;
    tn_new_file_close(file);
    return status;
}

// --- the command -----------------------------------------------------------------------

static bool is_one_of_several(void)
{
    return getenv("TENON_RUN") != NULL; // `tenon run` started it
}

// This process's rank among those of `tenon run`, or 0.
static int find_rank(tn_runtime *runtime, int *out_rank)
{
    if (!is_one_of_several())
        return 0;
    tn_scope *scope = tn_scope_open(runtime);
    *out_rank = (int)tn_item(scope, tn_op(scope, "dist.rank/1", NULL, 0, TN_NO_ATTRS));
    int failed = tn_scope_status(scope) ? stop("%s", tn_scope_error(scope)) : 0;
    tn_scope_close(scope);
    return failed;
}

// Cuts "attn_q,attn_v" in place.
static uint64_t lora_split(char *list, const char *out[MOST_WEIGHTS])
{
    uint64_t count = 0;
    char *rest = list;
    for (char *name; (name = strsep(&rest, ",")) && count < MOST_WEIGHTS;)
        if (*name)
            out[count++] = name;
    return count;
}

static int lora_train(const struct lm_options *given, const struct opened *opened,
                      struct losses *l)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    const char *names[MOST_WEIGHTS];
    char *list = given->weights ? strdup(given->weights) : NULL;
    char *text = NULL;
    uint64_t size = 0;
    int failed = read_text(given->items[1], &text, &size);
    if (!failed && tn_lm_tokenize(opened->lm, text, size, TN_LM_ADD_SPECIAL, &ids, &count))
        failed = stop_lm();
    free(text);
    tn_lm_training how = {.struct_size = sizeof(how),
                          .rank = given->rank,
                          .alpha = given->alpha,
                          .window = given->window,
                          .steps = given->steps,
                          .rate = given->rate,
                          .seed = given->sampling.seed,
                          .progress = lora_note,
                          .context = l,
                          .batch = given->batch,
                          .group = is_one_of_several() ? "world" : NULL};
    if (given->weights && !list)
        failed = stop_memory();
    if (list) {
        how.num_weights = lora_split(list, names);
        how.weights = names;
    }
    signal(SIGINT, lora_interrupt);
    if (!failed && tn_lm_train_adapter(opened->lm, ids, count, &how))
        failed = stop_lm();
    tn_lm_free(ids);
    free(list);
    return failed;
}

// Fails before hours of training where the adapter's folder cannot be written.
static int check_folder(const char *path)
{
    const char *end = strrchr(path, '/');
    size_t size = end ? (size_t)(end - path) + 1 : 2;
    char *folder = strndup(end ? path : "./", size);
    if (!folder)
        return stop_memory();
    int failed = access(folder, W_OK) ? stop("%s: %m, for %s", folder, path) : 0;
    free(folder);
    return failed;
}

static int lora_check_outputs(const struct lm_options *given, const struct opened *opened,
                              const char *path)
{
    const char *plugin, *extension = strrchr(path, '.');
    size_t size = strlen(path);
    if (size > 1 && path[size - 1] == '/') { // a folder as PEFT reads it, made if absent
        char *folder = strndup(path, size - 1);
        int failed = folder ? check_folder(folder) : stop_memory();
        free(folder);
        return failed ? failed : given->plot ? check_folder(given->plot) : 0;
    }
    if (check_folder(path) || (given->plot && check_folder(given->plot)))
        return 1;
    if (!extension || strchr(extension, '/'))
        return stop("%s: expected an extension that says the format, such as .safetensors, "
                    "or a / for a folder of PEFT",
                    path);
    return tn_provider_find(opened->runtime, "tn.format/1", "extension", extension + 1,
                            &plugin)
               ? stop("%s: %s", path, tn_last_error())
               : 0;
}

// Rank 0 saves the adapter. When a process has failed, each rank that is left saves it: to
// one path, or to that path on its own machine.
static int lora_save(const struct lm_options *given, const struct opened *opened,
                     const struct losses *l, int failed)
{
    bool is_lost = failed && is_one_of_several() && l->count > 0;
    if (is_lost ? tn_lm_adapter_save(opened->lm, given->output) != TN_OK
                : !failed && !l->is_quiet && tn_lm_adapter_save(opened->lm, given->output))
        return stop_lm();
    if (is_lost)
        fprintf(stderr, "tenon: %s has step %lld\n", given->output, (long long)l->count);
    if (!failed && !l->is_quiet && given->plot && l->count > 0)
        return write_drawing(given->plot, l);
    return failed;
}

int run_lora(const struct lm_options *given)
{
    struct opened opened;
    struct losses losses = {.json = given->json};
    int rank = 0;
    if (open_alone(given, &opened))
        return 1;
    int failed = lora_check_outputs(given, &opened, given->output);
    if (!failed)
        failed = find_rank(opened.runtime, &rank);
    losses.is_quiet = rank > 0;
    if (!failed) {
        failed = lora_train(given, &opened, &losses);
        failed = lora_save(given, &opened, &losses, failed);
    }
    if (!failed && !given->json && rank == 0) {
        fprintf(stderr, "%s after %lld steps: tenon generate %s --adapter %s ...\n",
                was_interrupted ? "Stopped" : "Trained", (long long)losses.count,
                given->items[0], given->output);
        tell_model(&opened);
    }
    free(losses.items);
    close_model(&opened);
    return failed;
}
