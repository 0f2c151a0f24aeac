// SPDX-License-Identifier: MIT
// Each public function refuses a NULL that it cannot work with, and counts that no list
// has, with a message that names the function and the argument.
#include "../support/common.h"

static tn_runtime *rt;
static tn_scope *s;
static tn_array *x, *out;
static tn_function *function;

static tn_status body(tn_scope *scope, tn_array *const *in, uint64_t num_in,
                      tn_array **outputs, uint64_t num_out, void *user)
{
    (void)scope, (void)num_in, (void)num_out, (void)user;
    outputs[0] = in[0];
    return TN_OK;
}

#define HUGE (UINT64_MAX / 8) // wraps when made to bytes
static const tn_attr no_name = {.kind = TN_ATTR_I64};
static const tn_attr no_text = {.name = "k", .kind = TN_ATTR_TEXT};
static const tn_attr no_kind = {.name = "axis", .kind = 77};
static const tn_ints many = {.count = 9, .given = 1};
static const tn_attr many_integers = {.name = "axis", .kind = TN_ATTR_INTS, .ints = &many};
static const void *interface;
static const tn_host *host;
static char *text;
static uint64_t count;
static tn_device_summary device;
static tn_plugin_info info;

// The thread's message, or that of the scope, which can be used again.
static void says(const char *part)
{
    check_says(tn_scope_status(s) ? tn_scope_error(s) : tn_last_error(), part);
    tn_scope_clear_error(s);
}

static void refuses(tn_status status, const char *part)
{
    if (status != TN_ERR_ARGUMENT)
        cr_fatal("status %d, expected a refusal that says \"%s\"", (int)status, part);
    says(part);
}

static void gives_none(const void *made, const char *part)
{
    if (made)
        cr_fatal("expected a refusal that says \"%s\"", part);
    says(part);
}

static void open_all(void)
{
    rt = open_with(NULL);
    s = tn_scope_open(rt);
    x = ramp(s, 2, 2, 0, 1);
    must(NULL, tn_function_create(rt, body, NULL, NULL, &function));
}

static void close_all(void)
{
    tn_function_destroy(function);
    tn_scope_close(s);
    must(NULL, tn_runtime_close(rt));
}

TestSuite(null, .init = open_all, .fini = close_all);

Test(null, building_refuses_nulls)
{
    const tn_array *const in[] = {x, x};
    float item = 0;
    gives_none(tn_op(s, "add", NULL, 2, TN_NO_ATTRS),
               "op: inputs is NULL, expected a list of 2");
    gives_none(tn_op(s, "add", in, HUGE, TN_NO_ATTRS),
               "op: inputs has 2305843009213693951 entries");
    gives_none(tn_op(s, NULL, in, 2, TN_NO_ATTRS), "the primitive's name is NULL");
    gives_none(tn_op(s, "sum", in, 1, TN_ATTR_LIST(NULL, 1)), "op: attrs.items is NULL");
    gives_none(tn_op(s, "sum", in, 1, TN_ATTR_LIST(&no_name, 1)),
               "an attribute's name is NULL");
    gives_none(tn_op(s, "sum", in, 1, TN_ATTR_LIST(&no_kind, 1)), "'axis': 77 is no kind");
    gives_none(tn_op(s, "sum", in, 1, TN_ATTR_LIST(&many_integers, 1)),
               "'axis': got 9 integers");
    gives_none(tn_op(NULL, "add", in, 2, TN_NO_ATTRS), "op: the scope is NULL");
    refuses(tn_op_n(s, "add", in, 2, TN_NO_ATTRS, NULL, 1), "op: outputs is NULL");
    refuses(tn_op_n(s, "add", (const tn_array *const[]){x, NULL}, 2, TN_NO_ATTRS, &out, 1),
            "base.add/1: input y is NULL");
    refuses(tn_op_n(NULL, "add", in, 2, TN_NO_ATTRS, &out, 1), "op: the scope is NULL");
    gives_none(tn_expr(s, NULL, in, 1, TN_NO_ATTRS), "expr: the text is NULL");
    gives_none(tn_expr(s, "a -> a", NULL, 1, TN_NO_ATTRS), "expr: inputs is NULL");
    gives_none(tn_expr(s, "a -> a", in, HUGE, TN_NO_ATTRS), "expr: inputs has");
    gives_none(tn_expr(s, "a -> k * a", in, 1, TN_ATTR_LIST(NULL, 1)),
               "expr: attrs.items is NULL");
    gives_none(tn_expr(s, "a -> k * a", in, 1, TN_ATTR_LIST(&no_name, 1)),
               "\"k\" is neither an input nor a given attribute");
    gives_none(tn_expr(s, "a -> k * a", in, 1, TN_ATTR_LIST(&no_text, 1)),
               "attribute k: the text is NULL");
    gives_none(tn_expr(NULL, "a -> a", in, 1, TN_NO_ATTRS), "expr: the scope is NULL");
    gives_none(tn_from_data(s, TN_F32, NULL, &item), "shape is NULL");
    gives_none(tn_from_data(s, TN_F32, TN_SHAPE(2), NULL), "data is NULL");
    gives_none(tn_from_data(s, TN_F32, &(tn_shape){.rank = -1}, &item), "rank -1");
    gives_none(tn_from_data(s, TN_F32, &(tn_shape){.rank = 9}, &item), "rank 9");
    gives_none(tn_from_data(NULL, TN_F32, TN_SHAPE(1), &item),
               "from_data: the scope is NULL");
    gives_none(tn_f32(NULL, 1), "building an array: the scope is NULL");
    gives_none(tn_scalar(NULL, TN_F32, 1), "scalar: the scope is NULL");
}

Test(null, reading_refuses_nulls)
{
    float item = 0;
    refuses(tn_eval_n(s, NULL, 1), "eval: arrays is NULL");
    refuses(tn_eval_n(s, &x, HUGE), "eval: arrays has");
    refuses(tn_eval_n(s, (tn_array *const[]){NULL}, 1), "is NULL");
    refuses(tn_eval_async_n(NULL, &x, 1), "eval: the scope is NULL");
    refuses(tn_read(s, NULL, &item, 4), "read: the array is NULL");
    refuses(tn_read(s, x, NULL, 16), "read: data is NULL");
    refuses(tn_read(NULL, x, &item, 4), "read: the scope is NULL");
    gives_none(tn_data(s, NULL), "read: the array is NULL");
    cr_assert(isnan(tn_item(s, NULL)));
    says("item: the array is NULL");
    gives_none(tn_keep(s, NULL), "keep: the array is NULL");
    gives_none(tn_keep(NULL, x), "keep: the scope is NULL");
}

Test(null, transforms_refuse_nulls)
{
    int32_t axis = 0;
    refuses(tn_vjp(s, NULL, NULL, 1, &x, 1, &out), "vjp: outputs is NULL");
    refuses(tn_vjp(s, &x, NULL, 1, NULL, 1, &out), "vjp: wrt is NULL");
    refuses(tn_vjp(s, &x, &x, 1, &x, 1, NULL), "vjp: gradients is NULL");
    refuses(tn_vjp(s, &x, &x, HUGE, &x, 1, &out), "vjp: outputs has");
    refuses(tn_vjp(NULL, &x, &x, 1, &x, 1, &out), "vjp: the scope is NULL");
    refuses(tn_jvp(s, NULL, 1, &x, &x, 1, &out), "jvp: outputs is NULL");
    refuses(tn_jvp(s, &x, 1, NULL, &x, 1, &out), "jvp: wrt is NULL");
    refuses(tn_jvp(s, &x, 1, &x, &x, 1, NULL), "jvp: out_tangents is NULL");
    refuses(tn_vmap_call(s, body, NULL, NULL, NULL, 1, &out, NULL, 1),
            "vmap: inputs is NULL");
    refuses(tn_vmap_call(s, body, NULL, &x, NULL, 1, NULL, NULL, 1),
            "vmap: outputs is NULL");
    refuses(tn_vmap_call(s, NULL, NULL, &x, &axis, 1, &out, NULL, 1),
            "vmap: the body is NULL");
    refuses(tn_vmap(s, &x, NULL, 1, NULL, &x, NULL, 1, &out), "vmap: slices is NULL");
    refuses(tn_vmap(s, &x, NULL, 1, (tn_array *const[]){NULL}, &x, NULL, 1, &out), "NULL");
    refuses(tn_vmap(s, &x, NULL, 1, &x, (tn_array *const[]){NULL}, NULL, 1, &out), "NULL");
}

Test(null, functions_refuse_nulls)
{
    refuses(tn_function_call(NULL, s, &x, 1, &out, 1),
            "function_call: the function is NULL");
    refuses(tn_function_call(function, s, NULL, 1, &out, 1),
            "function_call: inputs is NULL");
    refuses(tn_function_call(function, s, &x, 1, NULL, 1),
            "function_call: outputs is NULL");
    refuses(tn_function_call(function, s, (tn_array *const[]){NULL}, 1, &out, 1),
            "input 0 is NULL");
    refuses(tn_function_call(function, s, &x, HUGE, &out, 1), "function_call: inputs has");
    refuses(tn_function_call(function, NULL, &x, 1, &out, 1),
            "function_call: the scope is NULL");
    refuses(tn_function_create(rt, NULL, NULL, NULL, &function),
            "function_create: got NULL, expected a body");
}

Test(null, looking_around_refuses_nulls)
{
    refuses(tn_explain(s, NULL, 1, &text), "explain: arrays is NULL");
    refuses(tn_explain(s, (tn_array *const[]){NULL}, 1, &text), "explain: array 0 is NULL");
    refuses(tn_explain(s, &x, 1, NULL), "explain: out_json is NULL");
    refuses(tn_graph_dot(s, NULL, 1, 0, &text), "graph_dot: arrays is NULL");
    refuses(tn_graph_dot(s, (tn_array *const[]){NULL}, 1, 1, &text),
            "graph_dot: array 0 is NULL");
    refuses(tn_graph_dot(NULL, &x, 1, 1, &text), "graph_dot: the scope is NULL");
    gives_none(tn_scope_open(NULL), "scope_open: the runtime is NULL");
    refuses(tn_scope_status(NULL), "scope_status: the scope is NULL");
    refuses(tn_runtime_open(NULL, NULL), "runtime_open: out_runtime is NULL");
    refuses(tn_devices(NULL, &device, &count), "devices: the runtime is NULL");
    refuses(tn_devices(rt, &device, NULL), "devices: count is NULL");
    refuses(tn_plugin_get(NULL, 0, &info), "plugin_get: the runtime is NULL");
    refuses(tn_plugin_get(rt, 0, NULL), "plugin_get: out is NULL");
    refuses(tn_plugin_load(rt, NULL), "plugin_load: the plugin's id is NULL");
    refuses(tn_plugin_load(NULL, "org.tenon.base"), "plugin_load: the runtime is NULL");
    refuses(tn_plugin_quarantine(rt, NULL, "why"),
            "plugin_quarantine: the plugin's id is NULL");
    refuses(tn_plugin_verify(NULL), "plugin_verify: the directory is NULL");
    refuses(tn_plugin_describe(NULL, "a.so", &text),
            "plugin_describe: the runtime is NULL");
    refuses(tn_plugin_describe(rt, NULL, &text), "plugin_describe: the file is NULL");
    refuses(tn_plugin_describe(rt, "a.so", NULL), "plugin_describe: out_json is NULL");
    refuses(tn_interface_find(rt, NULL, &interface, &host),
            "tn_interface_find: the interface's id is NULL");
    refuses(tn_interface_find(rt, "tn.ops/1", NULL, &host), "the output pointer is NULL");
    gives_none(tn_primitive_find(rt, NULL), "the primitive's name is NULL");
    refuses(tn_primitive_check(rt, NULL), "the primitive's name is NULL");
    gives_none(tn_attrs_print(NULL, NULL, 0), "tn_attrs_print");
}

Test(null, nulls_that_mean_nothing_are_fine)
{
    must(s, tn_eval_n(s, NULL, 0));
    cr_assert(eq(str, tn_scope_error(NULL), "the scope is NULL"));
    tn_scope_clear_error(NULL);
    tn_scope_close(NULL);
    tn_release(NULL);
    tn_function_destroy(NULL);
    tn_text_free(NULL);
    must(NULL, tn_runtime_close(NULL));
    tn_runtime_stats(rt, NULL);
    tn_runtime_trim(NULL, TN_TRIM_SPARE);
    tn_runtime_trim(rt, 0);
    cr_assert(eq(int, tn_array_type(NULL)->dtype, TN_DTYPE_NONE));
    cr_assert(eq(int, tn_array_type(NULL)->rank, TN_MAX_RANK));
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        cr_assert(eq(i64, tn_array_type(NULL)->extent[i], 1));
    cr_assert(eq(str, tn_array_op(NULL), ""));
    cr_assert(eq(ptr, tn_config(NULL, "TENON_LOG"), NULL));
    cr_assert(eq(ptr, tn_config(rt, NULL), NULL));
    cr_assert(eq(ptr, tn_scope_runtime(NULL), NULL));
    cr_assert(eq(u64, tn_plugin_count(NULL), 0));
    cr_assert(eq(ptr, tn_primitive_names(NULL)[0], NULL));
}
