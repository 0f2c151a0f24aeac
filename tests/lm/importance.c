// SPDX-License-Identifier: MIT
// The importance of columns, of small random models.
#include <math.h>
#include <tenon/file.h>
#include <unistd.h>
#include "fixture.h"

TestSuite(importance, .init = setup, .fini = teardown);

static tn_array *read_sum(tn_scope *scope, const tn_file *file, const char *name,
                          float *out, uint64_t count)
{
    tn_array *array = tn_file_array(scope, file, name);
    cr_assert(eq(int, (int)tn_read(scope, array, out, count * sizeof(*out)), TN_OK), "%s",
              tn_scope_error(scope));
    return array;
}

// What the first product of queries reads, by its definition.
static void square_norms(const struct fixture *f, tn_scope *scope, int64_t count,
                         double out[16])
{
    static float embedding[WORDS * 16], norm[16];
    tn_read(scope,
            tn_op(scope, "base.astype/1",
                  TN_IN(fixture_load(&f->source, scope, "token_embd.weight")),
                  tn_attrs("dtype", "f32")),
            embedding, sizeof(embedding));
    tn_read(scope, fixture_load(&f->source, scope, "blk.0.attn_norm.weight"), norm,
            sizeof(norm));
    memset(out, 0, 16 * sizeof(*out));
    for (int64_t i = 0; i < count; i++) {
        const float *x = embedding + f->ids[i] * 16;
        double mean = 1e-5;
        for (int k = 0; k < 16; k++)
            mean += (double)x[k] * (double)x[k] / 16;
        for (int k = 0; k < 16; k++)
            out[k] +=
                (double)x[k] * (double)x[k] / mean * (double)norm[k] * (double)norm[k];
    }
}

// Sums are those of the definition, whatever the windows; of each product, experts' too.
Test(importance, sums_are_of_what_products_read)
{
    static const char path[] = "importance.gguf";
    struct fixture f;
    double want[16];
    float got[16], rows;
    for (int64_t window = 0; window < 20; window += 7) {
        tn_file *file = NULL;
        tn_lm *lm = model_open(&f, window ? "llama" : "mixtral");
        tn_scope *scope = tn_scope_open(runtime);
        lm_must(tn_lm_importance_save(lm, f.ids, 19, window, path));
        cr_assert(eq(int, (int)tn_file_open(runtime, path, NULL, &file), TN_OK));
        read_sum(scope, file, "blk.0.attn_q.weight.in_sum2", got, 16);
        read_sum(scope, file, "blk.0.attn_q.weight.counts", &rows, 1);
        square_norms(&f, scope, 19, want);
        cr_assert(eq(flt, rows, 19));
        for (int k = 0; k < 16; k++)
            cr_assert(lt(dbl, fabs((double)got[k] - want[k]), 1e-4 * want[k]), "%d", k);
        read_sum(scope, file, "output.weight.in_sum2", got, 16);
        if (window == 0) {
            read_sum(scope, file, "blk.1.ffn_gate_exps.weight.in_sum2", got, 16);
            read_sum(scope, file, "blk.1.ffn_down_exps.weight.counts", &rows, 1);
            cr_assert(eq(flt, rows, 38)); // of two experts each
        }
        tn_scope_close(scope);
        tn_file_close(file);
        tn_lm_close(lm);
        unlink(path);
    }
    tn_lm *lm = model_open(&f, "llama");
    cr_assert(eq(int, (int)tn_lm_importance_save(lm, f.ids, 0, 0, path), TN_ERR_ARGUMENT));
    check_message(
        "0 tokens in windows of 512, expected one or more in windows of at most 640");
    f.ids[3] = WORDS;
    cr_assert(eq(int, (int)tn_lm_importance_save(lm, f.ids, 9, 0, path), TN_ERR_ARGUMENT));
    check_message("token 3 is 32, expected 0 to 31");
    tn_lm_close(lm);
}
