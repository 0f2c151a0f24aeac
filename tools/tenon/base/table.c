// SPDX-License-Identifier: MIT
// Aligned tables and JSON on standard output.
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *table_join(const json_t *list)
{
    char *text = NULL;
    size_t size = 0, i;
    FILE *stream = open_memstream(&text, &size);
    json_t *item;
    if (!stream)
        return NULL;
    json_array_foreach(list, i, item)
        fprintf(stream, "%s%s", i ? ", " : "",
                json_is_string(item) ? json_string_value(item) : "?");
    if (!json_array_size(list))
        fputc('-', stream);
    fclose(stream);
    return text;
}

static char *raw_cell(const json_t *value)
{
    char *text = NULL;
    if (json_is_array(value))
        return table_join(value);
    if (json_is_string(value))
        return strdup(json_string_length(value) ? json_string_value(value) : "-");
    if (json_is_integer(value))
        return asprintf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(value)) < 0
                   ? NULL
                   : text;
    if (json_is_boolean(value))
        return strdup(json_is_true(value) ? "yes" : "no");
    return strdup("-");
}

// Gives the text of one cell, on one line: free it.
static char *table_cell(const json_t *value)
{
    char *raw = raw_cell(value), *text = raw ? printable(raw, TN_TEXT_ONE_LINE) : NULL;
    free(raw);
    return text;
}

// How many columns of a terminal `text` takes: UTF-8 continuation bytes take none.
static size_t table_width(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static void print_cell(const char *text, size_t wanted, bool last)
{
    say("%s", text);
    if (last)
        putchar('\n');
    else
        say("%*s", (int)(wanted - table_width(text)) + 2, "");
}

int table_print(const json_t *rows, const struct column *columns, size_t num_columns)
{
    size_t num_rows = json_array_size(rows), num_cells = num_rows * num_columns;
    char **cells = calloc(num_cells + 1, sizeof(*cells));
    size_t *widths = calloc(num_columns + 1, sizeof(*widths));
    bool complete = cells && widths;
    for (size_t i = 0; complete && i < num_cells; i++) {
        const json_t *row = json_array_get(rows, i / num_columns);
        cells[i] = table_cell(json_object_get(row, columns[i % num_columns].key));
        complete = cells[i];
    }
    for (size_t i = 0; complete && i < num_cells + num_columns; i++) {
        size_t c = i % num_columns;
        size_t w = table_width(i < num_cells ? cells[i] : columns[c].title);
        widths[c] = w > widths[c] ? w : widths[c];
    }
    for (size_t c = 0; complete && c < num_columns; c++)
        print_cell(columns[c].title, widths[c], c + 1 == num_columns);
    for (size_t i = 0; complete && i < num_cells; i++)
        print_cell(cells[i], widths[i % num_columns], (i + 1) % num_columns == 0);
    for (size_t i = 0; cells && i < num_cells; i++)
        free(cells[i]);
    free(cells);
    free(widths);
    return complete ? 0 : oops_memory();
}

int json_print(const json_t *value)
{
    if (!value ||
        json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_ENSURE_ASCII))
        return ferror(stdout)
                   ? oops_output()
                   : oops("cannot write JSON: out of memory, or text that is not UTF-8");
    putchar('\n');
    return 0;
}

json_t *json_strings(const char *const *list)
{
    json_t *array = json_array();
    for (; list && *list; list++)
        json_array_append_new(array, json_string(*list));
    return array;
}

json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    char *shown = value ? NULL : printable(text, 0);
    if (shown)
        value = json_string(shown);
    free(shown);
    return value ? value : json_string("?");
}

const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}
