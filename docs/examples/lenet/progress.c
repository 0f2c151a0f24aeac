// SPDX-License-Identifier: MIT
// Drawing progress.
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define DRAW_EVERY 0.1 // seconds between two drawings on a terminal

double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_begin(struct progress *progress, bool silent, uint64_t first, uint64_t total,
                    uint64_t images)
{
    uint64_t steps = total - first;
    *progress = (struct progress){
        .terminal = isatty(STDOUT_FILENO),
        .silent = silent,
        .total = total,
        .first = first,
        .images = images,
        .line_every = steps <= 100 ? 1 : 100,
        .started = now_seconds(),
    };
    progress->next_line = first + progress->line_every;
}

// Images a second since the beginning.
static double progress_rate(const struct progress *progress, uint64_t done)
{
    double seconds = now_seconds() - progress->started;
    return seconds > 0 ? (double)((done - progress->first) * progress->images) / seconds
                       : 0;
}

// "1:05", "2:03:04".
static void time_text(double seconds, char *text, size_t size)
{
    uint64_t s = (uint64_t)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, size, "%" PRIu64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60),
                 (int)(s % 60));
    else
        snprintf(text, size, "%d:%02d", (int)(s / 60), (int)(s % 60));
}

static int columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void draw_bar(double part, int width)
{
    int full = (int)(part * width);
    putchar('[');
    for (int i = 0; i < width; i++)
        putchar(i < full ? '=' : i == full ? '>' : ' ');
    putchar(']');
}

void progress_show(struct progress *progress, uint64_t done, uint64_t epoch,
                   uint64_t epochs, double loss)
{
    char text[160], left[32];
    bool last = done >= progress->total;
    double now = now_seconds(), rate = progress_rate(progress, done);
    if (progress->silent)
        return;
    if (progress->terminal ? !last && now - progress->last_draw < DRAW_EVERY
                           : !last && done < progress->next_line)
        return;
    time_text(rate > 0 ? (double)((progress->total - done) * progress->images) / rate : 0,
              left, sizeof(left));
    int length = snprintf(text, sizeof(text),
                          "epoch %" PRIu64 "/%" PRIu64 "  step %" PRIu64 "/%" PRIu64
                          "  loss %.6f  %.0f images/s  %s left",
                          epoch, epochs, done, progress->total, loss, rate, left);
    if (!progress->terminal) {
        printf("%s\n", text);
        progress->next_line = done + progress->line_every;
    } else {
        int width = columns() - length - 5;
        printf("\r%s ", text);
        if (width >= 8)
            draw_bar((double)done / (double)progress->total, width < 40 ? width : 40);
        printf("\x1b[K");
        progress->drawn = true;
        progress->last_draw = now;
    }
    fflush(stdout);
}

void progress_clear(struct progress *progress)
{
    if (progress->drawn)
        printf("\r\x1b[K");
    progress->drawn = false;
}
