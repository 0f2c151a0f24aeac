// SPDX-License-Identifier: MIT
// Texts, unpacked all at once when the first is asked for, and kept.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "packed.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *texts; // guarded by `lock`; NULL: not unpacked

// NULL: there is no memory.
static const char *unpack_get_texts(void)
{
    pthread_mutex_lock(&lock);
    if (!texts && (texts = malloc(glsl_texts.size)) &&
        !unpack_stream(glsl_packed, glsl_texts.packed_size, texts, glsl_texts.size)) {
        free(texts);
        texts = NULL;
    }
    const char *got = texts;
    pthread_mutex_unlock(&lock);
    return got;
}

void glsl_texts_unload(void)
{
    pthread_mutex_lock(&lock);
    free(texts);
    texts = NULL;
    pthread_mutex_unlock(&lock);
}

const char *glsl_expression(void)
{
    const char *all = unpack_get_texts();
    return all ? all + glsl_texts.expression : NULL;
}

const char *glsl_complex(void)
{
    const char *all = unpack_get_texts();
    return all ? all + glsl_texts.complex : NULL;
}

const char *glsl_products(void)
{
    const char *all = unpack_get_texts();
    return all ? all + glsl_texts.products : NULL;
}

const char *glsl_joint(void)
{
    const char *all = unpack_get_texts();
    return all ? all + glsl_texts.joint : NULL;
}

const char *glsl_reduce_op(void)
{
    const char *all = unpack_get_texts();
    return all ? all + glsl_texts.reduce_op : NULL;
}

const char *glsl_reduce_loop(void)
{
    const char *all = unpack_get_texts();
    return all ? all + glsl_texts.reduce_loop : NULL;
}

tn_status own_unpack(const tn_host *host, uint32_t module, void *out_code)
{
    const char *all = unpack_get_texts();
    char *out = out_code;
    uint64_t left = own_modules[module].code_size;
    const struct glsl_piece *piece = &glsl_pieces[glsl_first_piece[module]];
    if (!all)
        return host->fail(host, TN_ERR_MEMORY, "out of memory");
    for (; left > 0; left -= piece->size, piece++) {
        memcpy(out, all + piece->begin, piece->size);
        out += piece->size;
    }
    return TN_OK;
}
