// SPDX-License-Identifier: MIT
// Inputs of the cases: what their texts say, and elements that the peer makes alike.
#include "cases.h"

#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define FILLERS 16
#define MANY_ELEMENTS (1 << 20)

// --- texts -----------------------------------------------------------------------------

static bool case_inputs_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

// Writes a number, with as many braces around it as `depth`.
static void write_extent(FILE *out, long number, int depth, enum case_size size)
{
    if (size == SIZE_GPU)
        number <<= 2 * depth;
    else if (size == SIZE_QUICK && number >= 48)
        number /= 16;
    fprintf(out, "%ld", number);
}

char *case_text(const char *text, enum case_size size)
{
    char *out = NULL;
    size_t bytes = 0;
    int depth = 0;
    FILE *stream = open_memstream(&out, &bytes);
    if (!stream)
        return NULL;
    for (const char *at = text; *at;) {
        size_t length = 1;
        while (case_inputs_is_word(at[0]) && case_inputs_is_word(at[length]))
            length++;
        char *end;
        long number = strtol(at, &end, 10);
        if (isdigit((unsigned char)*at) && end == at + length)
            write_extent(stream, number, depth, size);
        else if (*at == '{' || *at == '}')
            depth += *at == '{' ? 1 : -1;
        else
            fwrite(at, 1, length, stream);
        at += length;
    }
    if (!fclose(stream))
        return out;
    free(out);
    return NULL;
}

static tn_dtype dtype_named(const char *name, size_t length)
{
    for (tn_dtype i = 1; i < TN_NUM_DTYPES; i++)
        if (strlen(tn_dtype_name(i)) == length &&
            strncmp(tn_dtype_name(i), name, length) == 0)
            return i;
    return TN_DTYPE_NONE;
}

// Reads "[4,8]"; where it ends, or NULL.
static const char *case_inputs_read_extents(const char *at, tn_type *type)
{
    char *end;
    if (*at++ != '[')
        return NULL;
    while (*at && *at != ']') {
        if (type->rank == TN_MAX_RANK)
            return NULL;
        type->extent[type->rank++] = strtoll(at, &end, 10);
        if (end == at)
            return NULL;
        at = end + (*end == ',');
    }
    return *at == ']' ? at + 1 : NULL;
}

// Reads "x:f32~[4,8]"; where it ends, or NULL.
static const char *case_read_input(const char *at, struct case_input *out)
{
    *out = (struct case_input){.scale = 2, .offset = -1};
    size_t length = strcspn(at, ":");
    if (!at[length] || length >= sizeof(out->name))
        return NULL;
    memcpy(out->name, at, length);
    at += length + 1;
    length = strcspn(at, "+~<[");
    out->type.dtype = dtype_named(at, length);
    at += length;
    if (*at == '+') {
        out->scale = 1, out->offset = 0, at++;
    } else if (*at == '~') {
        out->scale = 1.0f / 16, out->offset = -1.0f / 32, at++;
    } else if (*at == '<') {
        out->below = atoi(at + 1);
        at += strcspn(at, "[");
    }
    return out->type.dtype ? case_inputs_read_extents(at, &out->type) : NULL;
}

int case_inputs(const char *text, struct case_input *out)
{
    int count = 0;
    for (const char *at = text; at && *at; at += strspn(at, " ")) {
        if (count == CASE_MAX_INPUTS)
            return -1;
        at = case_read_input(at, &out[count++]);
        if (!at)
            return -1;
    }
    return count;
}

// --- elements --------------------------------------------------------------------------

// A hash of the position alone, so that the peer's vector code gives the same numbers.
static float unit_at(uint64_t i, uint32_t seed)
{
    uint32_t h = ((uint32_t)i * 0x9e3779b1u) ^ seed;
    h ^= h >> 15;
    h *= 0x85ebca77u;
    h ^= h >> 13;
    return (float)(h >> 8) / (float)(1 << 24);
}

static uint64_t case_inputs_elements_of(const tn_type *type)
{
    uint64_t count = 1;
    for (int32_t i = 0; i < type->rank; i++)
        count *= (uint64_t)type->extent[i];
    return count;
}

double case_bytes(const tn_type *type)
{
    return (double)case_inputs_elements_of(type) * (double)tn_dtype_bytes(type->dtype);
}

// A part of the elements of an input.
struct fill {
    const struct case_input *input;
    float *numbers;
    uint64_t begin, end;
    uint32_t seed;
    pthread_t thread;
    bool started;
};

static void *run_fill(void *self)
{
    const struct fill *f = self;
    const struct case_input *input = f->input;
    for (uint64_t i = f->begin; i < f->end; i++) {
        float unit = unit_at(i, f->seed);
        f->numbers[i] = input->below ? (float)(int)(unit * (float)input->below)
                                     : unit * input->scale + input->offset;
    }
    return NULL;
}

// Many elements by as many threads as there are processors.
static void case_inputs_fill(const struct case_input *input, float *numbers, uint64_t count,
                             int index)
{
    struct fill parts[FILLERS];
    cpu_set_t set;
    int most = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    int n = count < MANY_ELEMENTS ? 1 : most < FILLERS ? most : FILLERS;
    for (int i = 0; i < n; i++) {
        parts[i] = (struct fill){.input = input,
                                 .numbers = numbers,
                                 .begin = count / (uint64_t)n * (uint64_t)i,
                                 .end = i + 1 < n ? count / (uint64_t)n * (uint64_t)(i + 1)
                                                  : count,
                                 .seed = (uint32_t)((uint64_t)(index + 1) * 0x51ed270bu)};
        parts[i].started =
            i + 1 < n && pthread_create(&parts[i].thread, NULL, run_fill, &parts[i]) == 0;
        if (!parts[i].started)
            run_fill(&parts[i]);
    }
    for (int i = 0; i < n; i++)
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
}

// Memory that all inputs use one after the other: new pages take longer than numbers.
static float *room_for(uint64_t count)
{
    static float *room;
    static uint64_t size;
    if (count >= size) {
        free(room);
        size = count + 1;
        room = malloc(size * sizeof(*room));
    }
    if (!room)
        size = 0;
    return room;
}

tn_array *case_array(tn_scope *s, const struct case_input *input, int index)
{
    tn_shape shape = {.rank = input->type.rank};
    bool is_complex = tn_is_complex(input->type.dtype);
    uint64_t count = case_inputs_elements_of(&input->type) * (is_complex ? 2 : 1);
    memcpy(shape.extent, input->type.extent, sizeof(shape.extent));
    float *numbers = room_for(count);
    if (!numbers) {
        fprintf(stderr, "tenon-bench: no memory for %llu numbers\n",
                (unsigned long long)count);
        return NULL;
    }
    case_inputs_fill(input, numbers, count, index);
    tn_dtype made = is_complex ? tn_dtype_complex(TN_F32) : TN_F32;
    tn_array *x = tn_from_data(s, made, &shape, numbers);
    if (input->type.dtype != made)
        x = tn_op(s, "base.astype/1", TN_IN(x),
                  tn_attrs("dtype", (int64_t)input->type.dtype));
    return tn_keep(s, x);
}

json_t *case_told(const struct case_input *input)
{
    json_t *shape = json_array();
    for (int32_t i = 0; i < input->type.rank; i++)
        json_array_append_new(shape, json_integer(input->type.extent[i]));
    return json_pack("{s:s, s:s, s:o, s:i, s:f, s:f}", "name", input->name, "dtype",
                     tn_dtype_name(input->type.dtype), "shape", shape, "below",
                     input->below, "scale", (double)input->scale, "offset",
                     (double)input->offset);
}
