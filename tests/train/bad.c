// SPDX-License-Identifier: MIT
// Bad input of libtenon-train: what is told of it, and that nothing is lost.
#include <math.h>
#include <string.h>
#include "check.h"
#include "support.h"

TestSuite(bad, .init = train_begin, .fini = train_finish, .timeout = 100);

// --- bad input --------------------------------------------------------------------------

// What a row does wrong with x [5, 4], between two layers that fit.
enum odd {
    ATTENTION_RANK,
    ATTENTION_HEADS,
    SHARED_NAME,
    INIT_NAME,
    NEGATIVE_WIDTH,
    MISSING_LEAVE,
    LONG_PATH,
    NO_PARAMETERS,
    LOSS_RANK,
    LOSS_NOTHING,
    CONV_RANK,
    CONV_GROUPS,
    CONV_SIZE,
    CONV_LISTS,
    CONV_STRIDE,
    CONV_OUTPUTS,
    TRANSPOSE_GROUPS,
    GROUP_NORM_GROUPS,
    BATCH_NORM_RANK,
    GRU_RANK,
    GRU_WIDTH,
    POOL_RANK,
    EMBEDDING_IDS,
    LINEAR_RANK,
    LABELS_RANK,
    NO_CLASSES,
    STATE_AND_PARAMETER,
    STATE_UNKNOWN,
    STATE_SHAPE,
    ONE_LAYER, // fits
};

static tn_array *images_of(tn_net *n, tn_array *x) // [5, 2, 2, 1], as [n, ..., channels]
{
    return tn_op(n->scope, "base.reshape", TN_IN(x),
                 tn_attrs("shape", TN_INTS(1, 5, 1, 4)));
}

static void odd_conv(tn_net *n, tn_array *x, tn_net_conv_options o)
{
    tn_net_enter(n, "block%", 3);
    tn_net_conv(n, "c", images_of(n, x), &o);
    tn_net_leave(n);
}

static void odd_images(tn_net *n, tn_array *x, enum odd kind)
{
    if (kind == CONV_RANK)
        tn_net_conv2d(n, "conv", x, 2, 3, 1, 0);
    if (kind == CONV_GROUPS)
        odd_conv(n, x, (tn_net_conv_options){.outputs = 6, .groups = 4});
    if (kind == CONV_SIZE)
        odd_conv(n, x,
                 (tn_net_conv_options){
                     .outputs = 6, .size = TN_INTS(3, 2), .dilation = TN_INTS(2)});
    if (kind == CONV_LISTS)
        odd_conv(n, x, (tn_net_conv_options){.outputs = 6, .padding = TN_INTS(1, 1, 1)});
    if (kind == CONV_STRIDE)
        odd_conv(n, x, (tn_net_conv_options){.outputs = 6, .stride = TN_INTS(0)});
    if (kind == CONV_OUTPUTS)
        odd_conv(n, x, (tn_net_conv_options){.size = TN_INTS(1)});
    if (kind == TRANSPOSE_GROUPS)
        odd_conv(n, x, (tn_net_conv_options){.outputs = 3, .groups = 2, .transposes = 1});
    if (kind == GROUP_NORM_GROUPS)
        tn_net_group_norm(n, "norm", x, 3);
    if (kind == BATCH_NORM_RANK)
        tn_net_batch_norm(n, "norm", tn_op(n->scope, "base.sum", TN_IN(x), TN_NO_ATTRS));
    if (kind == POOL_RANK)
        tn_net_max_pool(n, x, 2, 0, 0);
}

static void odd_states(tn_net *n, tn_array *x, enum odd kind)
{
    if (kind == STATE_AND_PARAMETER) {
        tn_net_param(n, "w", TN_SHAPE(2), "ones", 1);
        tn_net_state(n, "w", TN_SHAPE(2), "ones");
    }
    if (kind == STATE_UNKNOWN)
        tn_net_set_state(n, "mean", x);
    if (kind == STATE_SHAPE) {
        tn_net_state(n, "mean", TN_SHAPE(2), "zeros");
        tn_net_set_state(n, "mean", x);
    }
}

static tn_array *odd_loss(tn_net *n, tn_array *const *batch, void *user)
{
    const enum odd kind = *(const enum odd *)user;
    tn_array *x = batch[0];
    if (kind == ATTENTION_RANK)
        x = tn_net_attention(n, "attention", x, 2, 1);
    if (kind == ATTENTION_HEADS)
        tn_net_attention(
            n, "a",
            tn_op(n->scope, "base.reshape", TN_IN(x), tn_attrs("shape", TN_INTS(1, 5, 4))),
            3, 1);
    if (kind == LOSS_RANK)
        return tn_net_linear(n, "in", x, 6);
    if (kind == LOSS_NOTHING)
        return NULL;
    if (kind == SHARED_NAME)
        tn_net_linear(n, "in", tn_net_linear(n, "in", x, 6), 5);
    if (kind == INIT_NAME)
        tn_net_param(n, "w", TN_SHAPE(2), "random", 1);
    if (kind == NEGATIVE_WIDTH)
        tn_net_linear(n, "in", x, -1);
    if (kind == MISSING_LEAVE)
        tn_net_enter(n, "block%", 3);
    for (int i = 0; kind == LONG_PATH && i < 40; i++)
        tn_net_enter(n, "block%", i);
    if (kind == NO_PARAMETERS)
        return tn_op(n->scope, "base.sum", TN_IN(x), TN_NO_ATTRS);
    if (kind == GRU_RANK)
        tn_net_gru(n, "g", x, 3);
    if (kind == GRU_WIDTH)
        tn_net_gru(
            n, "g",
            tn_op(n->scope, "base.reshape", TN_IN(x), tn_attrs("shape", TN_INTS(1, 5, 4))),
            INT64_MAX / 2);
    if (kind == EMBEDDING_IDS)
        tn_net_embedding(n, "words", x, 3, 2);
    if (kind == LINEAR_RANK)
        tn_net_linear(n, "top", tn_op(n->scope, "base.sum", TN_IN(x), TN_NO_ATTRS), 2);
    if (kind == LABELS_RANK)
        return tn_net_loss(n, tn_net_linear(n, "in", x, 6), x);
    if (kind == NO_CLASSES)
        return tn_net_loss(n, tn_net_linear(n, "in", x, 0),
                           tn_op(n->scope, "base.argmax", TN_IN(x), tn_attrs("axis", -1)));
    odd_images(n, x, kind);
    odd_states(n, x, kind);
    tn_array *out = tn_net_linear(n, "in", x, 6);
    return tn_op(n->scope, "base.sum", TN_IN(out), TN_NO_ATTRS);
}

Test(bad, layers_that_do_not_fit_are_told_by_name)
{
    static const struct {
        enum odd kind;
        const char *says;
    } rows[] = {
        {ATTENTION_RANK, "attention 'attention': x is [5, 4], expected 3 axes"},
        {ATTENTION_HEADS, "attention 'a': x has width 4, which is no multiple of 3 heads"},
        {LOSS_RANK, "the loss has rank 2, expected one number"},
        {LOSS_NOTHING, "the loss is NULL, expected one number"},
        {SHARED_NAME, "parameter 'in.weight' is f32[6, 4], its layer wants f32[5, 6]"},
        {INIT_NAME, "parameter 'w': init is 'random', expected zeros, ones, normal, "},
        {NEGATIVE_WIDTH, "parameter 'in.weight': axis 0 has extent -1"},
        {MISSING_LEAVE, "tn_net_leave is missing behind 'block3.'"},
        {LONG_PATH, "the path of layers at 'block%' is too long"},
        {NO_PARAMETERS, "the loss has no parameters"},
        {CONV_RANK, "conv2d 'conv': x is [5, 4], expected 4 axes"},
        {CONV_GROUPS,
         "conv2d 'block3.c': 4 channels and 6 outputs are not divided by 4 groups"},
        {CONV_SIZE, "conv2d 'block3.c': filters of 2 with dilation 2 are larger than axis "
                    "2 of x, 1 with padding 0"},
        {CONV_LISTS, "conv2d 'block3.c': x has axes between its first and last: 2, "
                     "expected one number or as many"},
        {CONV_STRIDE, "conv2d 'block3.c': size 1, stride 0, dilation 1, padding 0; "
                      "expected at least 1, 1, 1 and 0"},
        {CONV_OUTPUTS, "conv2d 'block3.c': outputs are 0, expected at least 1"},
        {TRANSPOSE_GROUPS, "conv_transpose2d 'block3.c': 4 channels and 3 outputs are not "
                           "divided by 2 groups"},
        {GROUP_NORM_GROUPS, "group_norm 'norm': 4 channels are not divided by 3 groups"},
        {BATCH_NORM_RANK, "batch_norm 'norm': x is [], expected 2 to 5 axes"},
        {GRU_RANK, "gru 'g': x is [5, 4], expected 3 axes"},
        {GRU_WIDTH, "parameter 'g.weight_ih': axis 0 has extent -1"},
        {POOL_RANK, "max_pool: x is [5, 4], expected 3 to 5 axes"},
        {EMBEDDING_IDS, "embedding 'words': ids are f32, expected whole numbers"},
        {LINEAR_RANK, "linear 'top': x is [], expected 1 to 8 axes"},
        {NO_CLASSES, "scores have 0 classes on their last axis, expected at least 1"},
        {LABELS_RANK, "scores have rank 2 and labels 2, expected one less"},
        {STATE_AND_PARAMETER, "'w' is a state of one layer and a parameter of another"},
        {STATE_UNKNOWN, "'mean' is no state of a layer"},
        {STATE_SHAPE, "state 'mean' is f32[5, 4], its layer wants f32[2]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct small m;
        enum odd kind = rows[i].kind;
        small_open(&m, "adam", 0);
        tn_trainer_destroy(m.trainer);
        must(tn_trainer_create(m.params, odd_loss, &kind, NULL, &m.trainer));
        cr_assert(fit(&m, 1, NULL) != TN_OK, "%s", rows[i].says);
        check_says(tn_train_error(), rows[i].says);
        kind = ONE_LAYER;
        if (!tn_params_count(m.params)) // nothing is lost
            must(fit(&m, 1, NULL));
        small_close(&m);
    }
    tn_trainer *none;
    tn_params *params;
    must(tn_params_create(rt, 1, &params));
    cr_assert(tn_trainer_create(params, odd_loss, NULL,
                                &(tn_trainer_options){.optimiser = "adamm"},
                                &none) != TN_OK);
    check_says(tn_train_error(), "optimiser 'adamm' is not known, expected one of: adam, ");
    tn_params_destroy(params);
}

Test(bad, a_loss_that_is_nan_is_told_with_its_step)
{
    char before[1 << 14], after[1 << 14];
    struct small m;
    small_open(&m, "sgd", 0.1);
    must(fit(&m, 4, in_folder(0, "kept")));
    size_t size = read_bytes(path_text[0], before, sizeof(before));
    tn_loader_destroy(m.loader);
    for (int i = 0; i < ROWS; i++)
        m.x[i][1] = NAN;
    small_load(&m);
    cr_assert(fit(&m, 20, path_text[0]) != TN_OK);
    check_says(tn_train_error(), "step 5: the loss is NaN, the checkpoint before stays: ");
    cr_assert(eq(sz, read_bytes(path_text[0], after, sizeof(after)), size));
    cr_assert(memcmp(before, after, size) == 0);
    cr_assert(tn_params_save(m.params, path_text[0]) != TN_OK);
    check_says(tn_train_error(), "has a NaN behind step 8");
    small_close(&m);
}

Test(bad, checkpoints_of_others_are_refused)
{
    static char bytes[1 << 14];
    struct small m, other;
    enum odd kind = ONE_LAYER;
    small_open(&m, "adam", 0.1);
    must(fit(&m, 4, in_folder(0, "saved")));
    size_t size = read_bytes(path_text[0], bytes, sizeof(bytes));
    const struct {
        const char *path, *says, *optimiser;
        bool loads;
    } rows[] = {
        {write_file(1, "cut", bytes, size - 40), "cut", "adam", false},
        {write_file(2, "head", bytes, 60), "head", "adam", false},
        {in_folder(3, "absent"), "absent", "adam", false},
        {path_text[0], "the optimiser is 'sgd', ", "sgd", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        small_open(&other, rows[i].optimiser, 0.1);
        tn_status status = tn_params_load(other.params, rows[i].path);
        cr_assert(eq(int, status == TN_OK, rows[i].loads), "%s", tn_train_error());
        if (rows[i].loads)
            cr_assert(fit(&other, 8, NULL) != TN_OK);
        check_says(tn_train_error(), rows[i].says);
        if (!rows[i].loads) // nothing was lost
            must(fit(&other, 1, NULL));
        small_close(&other);
    }
    small_open(&other, "adam", 0.1);
    must(tn_params_load(other.params, path_text[0]));
    tn_trainer_destroy(other.trainer);
    must(tn_trainer_create(other.params, odd_loss, &kind, NULL, &other.trainer));
    cr_assert(fit(&other, 8, NULL) != TN_OK);
    check_says(tn_train_error(), "belongs to no layer: the file is another model's");
    cr_assert(tn_params_load(m.params, path_text[0]) != TN_OK);
    check_says(tn_train_error(), "the set has 6 parameters already");
    small_close(&other), small_close(&m);
}

Test(bad, files_of_data_are_read_and_those_that_lie_are_told)
{
#define BYTES(text) text, sizeof(text) - 1
    static const struct {
        const char *name, *bytes;
        size_t size;
        const char *says; // NULL: it is read
        tn_dtype dtype;
        int64_t rows, columns;
        double last;
    } files[] = {
        {"a.idx",
         BYTES("\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
               "abcdef"),
         NULL, TN_U8, 2, 3, 'f'},
        {"b.idx", BYTES("\0\0\x0b\x01\0\0\0\x02\0\x01\xff\xfe"), NULL, TN_I16, 2, 1, -2},
        {"c.idx",
         BYTES("\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
               "abcde"),
         "the extents say 6 elements of 1 bytes, the file has 5 bytes for them", 0, 0, 0,
         0},
        {"d.idx",
         BYTES("\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff"
               "abcde"),
         "elements of 1 bytes, the file has 5", 0, 0, 0, 0},
        {"e.idx",
         BYTES("\0\0\x07\x01\0\0\0\x01"
               "a"),
         "IDX type 0x07 is not known", 0, 0, 0, 0},
        {"f.idx", BYTES("\0\0\x08\x09"), "an IDX file of 9 axes", 0, 0, 0, 0},
        {"g.csv", BYTES("x,y\n1, 2\n3,4.5\n"), NULL, TN_F32, 2, 2, 4.5},
        {"h.csv", BYTES("1,2\r\n3,4\r\n5,-6e1"), NULL, TN_F32, 3, 2, -60},
        {"i.csv", BYTES("1,2\n3\n"), "i.csv:2: 1 columns, expected 2 as before", 0, 0, 0,
         0},
        {"j.csv", BYTES("1,2\n3,x\n"), "j.csv:2: column 2 is 'x', expected a number", 0, 0,
         0, 0},
        {"k.csv", BYTES("1,2,\n"), "k.csv:1: the line ends in a comma", 0, 0, 0, 0},
        {"l.csv", BYTES("a,b\n"), "no rows of numbers", 0, 0, 0, 0},
        {"m.txt", BYTES("hello"), NULL, TN_U8, 5, 1, 'o'},
        {"n.npy", BYTES("\x93NUMPY\x01"), "n.npy", 0, 0, 0, 0},
        {"s.csv", BYTES("1,2\n3,1e99\n"), "s.csv:2: column 2 is '1e99', beyond f32", 0, 0,
         0, 0},
        {"y.csv", BYTES("1,2\n\0,4\n"), "y.csv: a byte 0, expected text", 0, 0, 0, 0},
        {"z.idx", BYTES("\0\0\x08\x03\0\0\0\x02"), "an IDX file of 3 axes and 8 bytes", 0,
         0, 0, 0},
        // Gzipped, cut, damaged.
        {"o.idx.gz",
         BYTES("\037\213\010\000\000\000\000\000\002\377\143\140\340\140\142\140\140\000"
               "\141\346\304\244\344\224\324\064\000\203\332\106\057\022\000\000\000"),
         NULL, TN_U8, 2, 3, 'f'},
        {"p.idx.gz",
         BYTES("\037\213\010\000\000\000\000\000\002\377\143\140\340\140\142\140\140\000"
               "\141\346\304\244\344\224\324\064"),
         "p.idx.gz: truncated or damaged: ", 0, 0, 0, 0},
        {"q.idx.gz",
         BYTES("\037\213\010\000\000\000\000\000\002\377\143\140\340\140\142\140\140\000"
               "\141\346\304\244\344\224\324\064\000\001\002\003\004\022\000\000\000"),
         "q.idx.gz: truncated or damaged: ", 0, 0, 0, 0},
        {"r.csv.gz",
         BYTES("\037\213\010\000\000\000\000\000\002\377\063\324\061\342\062\326\061\341"
               "\002\000\107\223\154\257\010\000\000\000"),
         NULL, TN_F32, 2, 2, 4},
        {"t.npy",
         BYTES("\223\116\125\115\120\131\001\000\166\000\173\047\144\145\163\143\162\047"
               "\072\040\047\074\151\062\047\054\040\047\146\157\162\164\162\141\156\137"
               "\157\162\144\145\162\047\072\040\106\141\154\163\145\054\040\047\163\150"
               "\141\160\145\047\072\040\050\062\054\040\062\051\054\040\175\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\012\001\000\002\000\003\000\374\377"),
         NULL, TN_I16, 2, 2, -4},
        {"u.npy",
         BYTES("\223\116\125\115\120\131\001\000\166\000\173\047\144\145\163\143\162\047"
               "\072\040\047\074\151\062\047\054\040\047\146\157\162\164\162\141\156\137"
               "\157\162\144\145\162\047\072\040\106\141\154\163\145\054\040\047\163\150"
               "\141\160\145\047\072\040\050\062\054\040\063\051\054\040\175\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\012\001\000\002\000\003\000\374\377"),
         "u.npy: ", 0, 0, 0, 0},
        {"v.npy",
         BYTES("\223\116\125\115\120\131\001\000\166\000\173\047\144\145\163\143\162\047"
               "\072\040\047\174\117\047\054\040\047\146\157\162\164\162\141\156\137\157"
               "\162\144\145\162\047\072\040\106\141\154\163\145\054\040\047\163\150\141"
               "\160\145\047\072\040\050\062\054\051\054\040\175\040\040\040\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
               "\040\012\061\062\063\064\065\066\067\070"),
         "v.npy: ", 0, 0, 0, 0},
        {"w.npy",
         BYTES(
             "\223\116\125\115\120\131\001\000\166\000\173\047\144\145\163\143\162\047\072"
             "\040\047\074\151\062\047\054\040\047\146\157\162\164\162\141\156\137\157\162"
             "\144\145\162\047\072\040\106\141\154\163\145\054\040\047\163\150\141\160\145"
             "\047\072\040\050\051\054\040\175\040\040\040\040\040\040\040\040\040\040\040"
             "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
             "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
             "\040\040\040\040\040\040\040\040\040\040\040\040\040\012\061\062"),
         "w.npy: one number, expected rows", 0, 0, 0, 0},
        {"x.npy",
         BYTES(
             "\223\116\125\115\120\131\001\000\166\000\173\047\144\145\163\143\162\047\072"
             "\040\047\074\151\062\047\054\040\047\146\157\162\164\162\141\156\137\157\162"
             "\144\145\162\047\072\040\106\141\154\163\145\054\040\047\163\150\141\160\145"
             "\047\072\040\050\071\071\071\071\071\071\071\071\071\071\071\054\040\071\071"
             "\071\071\071\071\071\071\071\071\071\051\054\040\175\040\040\040\040\040\040"
             "\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040\040"
             "\040\040\040\040\040\040\040\040\040\040\040\040\040\012\061\062"),
         "x.npy: ", 0, 0, 0, 0},
    };
#undef BYTES
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        tn_table table;
        tn_status status = tn_table_read(
            rt, write_file(0, files[i].name, files[i].bytes, files[i].size), &table);
        cr_assert(eq(int, status != TN_OK, files[i].says != NULL), "%s: %s", files[i].name,
                  tn_train_error());
        if (files[i].says) {
            check_says(tn_train_error(), files[i].says);
            continue;
        }
        int64_t columns = table.shape.rank > 1 ? table.shape.extent[1] : 1;
        int64_t at = table.shape.extent[0] * columns - 1;
        cr_assert(eq(int, table.dtype, files[i].dtype));
        cr_assert(eq(i64, table.shape.extent[0], files[i].rows), "%s", files[i].name);
        cr_assert(eq(i64, columns, files[i].columns), "%s", files[i].name);
        double last = table.dtype == TN_F32   ? (double)((float *)table.data)[at]
                      : table.dtype == TN_I16 ? ((int16_t *)table.data)[at]
                                              : ((unsigned char *)table.data)[at];
        cr_assert(eq(dbl, last, files[i].last), "%s", files[i].name);
        tn_table_finish(&table);
    }
    tn_table table;
    cr_assert(tn_table_read(rt, in_folder(0, "none"), &table) != TN_OK);
    check_says(tn_train_error(), "none: No such file or directory");
    cr_assert(tn_table_read(rt, in_folder(0, ""), &table) != TN_OK);
    check_says(tn_train_error(), ": Is a directory");
}

Test(bad, numbers_out_of_range_are_told_with_their_row)
{
    unsigned char bytes[6] = {0, 1, 2, 3, 4, 10};
    float floats[4] = {0, 1, NAN, 2};
    const tn_table labels = {TN_U8, 0, {.rank = 1, .extent = {6}}, bytes},
                   pairs = {TN_F32, 0, {.rank = 2, .extent = {2, 2}}, floats};
    must(tn_table_check(&labels, "labels", 0, 10));
    cr_assert(tn_table_check(&labels, "labels", 0, 9) != TN_OK);
    check_says(tn_train_error(), "labels: row 5 has 10, expected 0 to 9");
    cr_assert(tn_table_check(&pairs, "pairs", -1, 3) != TN_OK);
    check_says(tn_train_error(), "pairs: row 1 has nan, expected -1 to 3");
}

Test(bad, loaders_refuse_tables_that_do_not_fit)
{
    unsigned char bytes[6] = {0};
    const tn_table one = {TN_U8, 0, {.rank = 1, .extent = {6}}, bytes},
                   five = {TN_U8, 0, {.rank = 1, .extent = {5}}, bytes},
                   none = {TN_U8, 0, {.rank = 0}, bytes},
                   empty = {TN_U8, 0, {.rank = 1, .extent = {0}}, bytes},
                   words = {TN_I32, 0, {.rank = 1, .extent = {1}}, bytes};
    const struct {
        tn_table tables[2];
        uint64_t count;
        tn_loader_options options;
        const char *says;
    } rows[] = {
        {{one, five}, 2, {.batch = 2}, "table 1 has 5 rows, expected 6 as the first"},
        {{none}, 1, {.batch = 2}, "table 0 has no rows"},
        {{one}, 0, {.batch = 2}, "0 tables, expected 1 to 16"},
        {{one}, 1, {.batch = 0}, "batch 0, window 0; expected a batch of at least 1"},
        {{one}, 1, {.batch = 1, .window = -2}, "batch 1, window -2; expected"},
        {{one}, 1, {.batch = 7}, "the data have 6 samples, fewer than a batch of 7"},
        {{one},
         1,
         {.batch = 3, .window = 4},
         "the data have 2 samples, fewer than a batch"},
        {{empty}, 1, {.batch = 1}, "the data have 0 samples"},
        {{one, one},
         2,
         {.batch = 1, .window = 2},
         "windows are of one table of bytes, got 2"},
        {{words}, 1, {.batch = 1, .window = 1}, "got 1, the first of i32"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_loader *loader;
        cr_assert(tn_loader_create(rows[i].tables, rows[i].count, &rows[i].options,
                                   &loader) != TN_OK);
        check_says(tn_train_error(), rows[i].says);
    }
}
