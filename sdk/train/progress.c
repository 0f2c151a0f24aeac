// SPDX-License-Identifier: MIT
// Progress of a long job: one line that is redrawn on a terminal, plain lines elsewhere.
#include <inttypes.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "progress.h"

#define DRAW_EVERY 0.1 // seconds between two drawings on a terminal

static double train_progress_now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_begin(struct progress *p, FILE *stream, uint64_t first, uint64_t total)
{
    p->stream = stream;
    if (!stream)
        return;
    p->terminal = isatty(fileno(stream));
    p->first = first;
    p->total = total;
    p->line_every = total - first <= 100 ? 1 : 100;
    p->next_line = first + p->line_every;
    p->started = train_progress_now_seconds();
}

// Samples per second since the beginning.
static double progress_rate(const struct progress *p, uint64_t done)
{
    double seconds = train_progress_now_seconds() - p->started;
    return seconds > 0 ? (double)((done - p->first) * p->rows) / seconds : 0;
}

// Formats seconds as "1:05" or "2:03:04".
static void time_text(double seconds, char *text, size_t size)
{
    uint64_t s = (uint64_t)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, size, "%" PRIu64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60),
                 (int)(s % 60));
    else
        snprintf(text, size, "%d:%02d", (int)(s / 60), (int)(s % 60));
}

static void draw_bar(const struct progress *p, double part, int text_width)
{
    struct winsize size;
    bool known = ioctl(fileno(p->stream), TIOCGWINSZ, &size) == 0 && size.ws_col;
    int width = (known ? size.ws_col : 80) - text_width - 5;
    width = width < 40 ? width : 40;
    int full = (int)(part * width);
    if (width < 8)
        return;
    fputc('[', p->stream);
    for (int i = 0; i < width; i++)
        fputc(i < full ? '=' : i == full ? '>' : ' ', p->stream);
    fputc(']', p->stream);
}

void progress_show(struct progress *p, uint64_t done, double loss)
{
    char text[160], left[32];
    if (!p->stream)
        return;
    bool last = done >= p->total;
    double now = train_progress_now_seconds(), rate = progress_rate(p, done);
    if (p->terminal ? !last && now - p->last_draw < DRAW_EVERY
                    : !last && done < p->next_line)
        return;
    time_text(rate > 0 ? (double)((p->total - done) * p->rows) / rate : 0, left,
              sizeof(left));
    int length = snprintf(text, sizeof(text),
                          "epoch %" PRIu64 "/%" PRIu64 "  step %" PRIu64 "/%" PRIu64
                          "  loss %.6f  %.0f samples/s  %s left",
                          (done - 1) / p->epoch + 1, (p->total + p->epoch - 1) / p->epoch,
                          done, p->total, loss, rate, left);
    if (!p->terminal) {
        fprintf(p->stream, "%s\n", text);
        p->next_line = done + p->line_every;
    } else {
        fprintf(p->stream, "\r%s ", text);
        draw_bar(p, (double)done / (double)p->total, length);
        fprintf(p->stream, "\x1b[K");
        p->drawn = true;
        p->last_draw = now;
    }
    fflush(p->stream);
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fprintf(p->stream, "\r\x1b[K");
    p->drawn = false;
}
