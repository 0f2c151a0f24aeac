// SPDX-License-Identifier: MIT
// A line through numbers as a picture.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tenon/file.h>
#include "common.h"

enum { WIDTH = 640, HEIGHT = 360, BORDER = 48, MOST_POINTS = 1000 };

static void plot_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++) {
        if (strchr("<>&", *text))
            fprintf(out, "&#%d;", *text);
        else
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    fprintf(out, "</text>\n");
}

static void plot_draw_line(FILE *out, const char *title, const double *values,
                           uint64_t count)
{
    double low = INFINITY, high = -INFINITY;
    char text[64];
    for (uint64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            low = fmin(low, values[i]);
            high = fmax(high, values[i]);
        }
    if (!(high > low)) {
        low = isfinite(low) ? low - 0.5 : 0;
        high = low + 1;
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT);
    plot_text(out, WIDTH / 2.0, BORDER / 2.0, "middle", title ? title : "");
    for (int i = 0; i <= 4; i++) {
        double y = HEIGHT - BORDER - i * (HEIGHT - 2 * BORDER) / 4.0;
        fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", BORDER, y,
                WIDTH - BORDER);
        snprintf(text, sizeof(text), "%.4g", low + i * (high - low) / 4);
        plot_text(out, BORDER - 4, y + 4, "end", text);
        snprintf(text, sizeof(text), "%.0f", (double)count * i / 4);
        plot_text(out, BORDER + i * (WIDTH - 2 * BORDER) / 4.0, HEIGHT - BORDER / 2.0,
                  "middle", text);
    }
    fprintf(out, "<polyline fill=\"none\" stroke=\"#1f77b4\" points=\"");
    uint64_t stride = count / MOST_POINTS + 1;
    for (uint64_t i = 0; i < count; i += stride)
        if (isfinite(values[i]))
            fprintf(out, "%.1f,%.1f ",
                    BORDER + (double)i * (WIDTH - 2 * BORDER) /
                                 (double)(count > 1 ? count - 1 : 1),
                    HEIGHT - BORDER -
                        (values[i] - low) / (high - low) * (HEIGHT - 2 * BORDER));
    fprintf(out, "\"/>\n</svg>\n");
}

tn_status tn_plot_svg(const char *path, const char *title, const double *values,
                      uint64_t count)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return train_fail(TN_ERR_IO, "%s: %s", path, strerror(errno));
    plot_draw_line(out, title, values, count);
    bool failed = ferror(out) != 0;
    failed |= fclose(out) != 0;
    return failed ? train_fail(TN_ERR_IO, "%s: writing fails", path) : TN_OK;
}
