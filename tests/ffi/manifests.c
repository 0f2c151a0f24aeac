// SPDX-License-Identifier: MIT
// Manifests: each mistake is shown at its field, with what was got and expected; whatever a
// manifest is, reading it ends, with nothing leaked and nothing read that is not there.
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "check.h"
#include "engine.h"
#include "json.h"
#include "make.h"
#include "pack.h"

// A manifest with something of everything.
static const char plain[] =
    "{\n"
    "  \"format\": 1,\n"
    "  \"id\": \"com.acme.zed\",\n"
    "  \"version\": \"1.0.0\",\n"
    "  \"vendor\": \"Acme\",\n"
    "  \"license\": \"MIT\",\n"
    "  \"pack\": \"zed\",\n"
    "  \"library\": [\"libzed.so.1\"],\n"
    "  \"remedy\": \"install zed\",\n"
    "  \"functions\": [\n"
    "    {\n"
    "      \"name\": \"blend\",\n"
    "      \"doc\": \"Blends.\",\n"
    "      \"symbol\": {\"f32\": \"zed_s\", \"f64\": \"zed_d\"},\n"
    "      \"inputs\": [\n"
    "        {\"name\": \"a\", \"shape\": [\"...\", \"m\", \"n\"], \"layout\": \"rows\"},\n"
    "        {\"name\": \"x\", \"shape\": [\"...\", \"n\"], \"destroyed\": true}\n"
    "      ],\n"
    "      \"attributes\": [\n"
    "        {\"name\": \"alpha\", \"type\": \"f64\", \"default\": 1.5},\n"
    "        {\"name\": \"way\", \"type\": \"choice\", \"choices\": [\"No\", \"Yes\"]},\n"
    "        {\"name\": \"order\", \"type\": \"i64\", \"default\": 2}\n"
    "      ],\n"
    "      \"outputs\": [\n"
    "        {\"name\": \"out\", \"shape\": [\"...\", \"k\"]},\n"
    "        {\"name\": \"b\", \"shape\": [\"...\", \"m\", \"n\"], \"overwrites\": \"a\"}\n"
    "      ],\n"
    "      \"extents\": {\"k\": \"max(m, n) + order\", \"w\": \"2 * k\"},\n"
    "      \"work\": [{\"name\": \"buffer\", \"dtype\": \"i32\", \"count\": \"w\"}],\n"
    "      \"args\": [\n"
    "        {\"kind\": \"extent\", \"value\": \"m\"},\n"
    "        {\"kind\": \"stride\", \"of\": \"b\", \"axis\": 0, \"type\": \"long\"},\n"
    "        {\"kind\": \"input\", \"name\": \"x\"},\n"
    "        {\"kind\": \"attribute\", \"name\": \"alpha\", \"by\": \"pointer\"},\n"
    "        {\"kind\": \"attribute\", \"name\": \"way\", \"values\": [111, 112]},\n"
    "        {\"kind\": \"character\", \"attribute\": \"way\"},\n"
    "        {\"kind\": \"character\", \"value\": \"U\"},\n"
    "        {\"kind\": \"constant\", \"value\": 7, \"type\": \"i8\"},\n"
    "        {\"kind\": \"work\", \"name\": \"buffer\"},\n"
    "        {\"kind\": \"output\", \"name\": \"out\"},\n"
    "        {\"kind\": \"output\", \"name\": \"b\"},\n"
    "        {\"kind\": \"status\"}\n"
    "      ],\n"
    "      \"returns\": {\"kind\": \"status\", \"type\": \"int\"},\n"
    "      \"fails\": \"negative\",\n"
    "      \"messages\": {\"negative\": \"an argument is wrong\"},\n"
    "      \"vjp\": {\"x\": \"alpha * g_out * x\", \"a\": null},\n"
    "      \"thread_safe\": false\n"
    "    }\n"
    "  ]\n"
    "}\n";

// One mistake: `find` in the manifest above becomes `put`.
struct mistake {
    const char *find, *put;
    const char *field; // JSON pointer of the field that the message names
    const char *says;  // and what it says of it
    int lines;         // between the change and the field's line
};

static const struct mistake mistakes[] = {
    // The head.
    {"\"format\": 1", "\"format\": 2", "/format", "got 2, expected 1 to 1", 0},
    {"  \"format\": 1,\n", "", "/format", "got nothing, expected the format's number, 1",
     -1},
    {"1.0.0", "1.0", "/version", "got \"1.0\", expected a semantic version", 0},
    {"com.acme.zed", "Acme", "/id", "got \"Acme\", expected parts of [a-z0-9-]", 0},
    {"com.acme.zed", "com..zed", "/id", "expected parts of [a-z0-9-]", 0},
    {"com.acme.zed", "../../etc", "/id", "expected parts of [a-z0-9-]", 0},
    {"com.acme.zed", "org.tenon.ffi", "/id", "expected an id of the pack's own", 0},
    {"\"com.acme.zed\"", "7", "/id", "got an integer, expected a string", 0},
    {"\"Acme\"", "\"\"", "/vendor", "got a string of 0 bytes, expected 1 to 63", 0},
    {"\"MIT\"", "[]", "/license", "got an array, expected a string", 0},
    {"\"pack\": \"zed\"", "\"pack\": \"Zed\"", "/pack", "got \"Zed\", expected a name", 0},
    {"\"vendor\"", "\"vender\"", "/vender", "did you mean \"vendor\"?", 0},
    {"[\"libzed.so.1\"]", "[]", "/library", "got an empty list, expected a library's name",
     0},
    {"[\"libzed.so.1\"]", "[3]", "/library/0", "got an integer, expected a string", 0},
    {"[\"libzed.so.1\"]", "{}", "/library", "got an object, expected an array", 0},
    {"  \"library\": [\"libzed.so.1\"],\n", "", "/functions/0/library",
     "got nothing, expected a library here or in the pack", 2},
    // The function.
    {"\"name\": \"blend\"", "\"name\": \"Blend\"", "/functions/0/name",
     "got \"Blend\", expected small letters", 0},
    {"\"name\": \"blend\"", "\"name\": \"1st\"", "/functions/0/name",
     "expected a name of letters, digits and _", 0},
    {"\"doc\"", "\"docs\"", "/functions/0/docs", "did you mean \"doc\"?", 0},
    {"\"doc\": \"Blends.\"", "\"revision\": 0", "/functions/0/revision",
     "got 0, expected 1 to 9999", 0},
    {"\"thread_safe\": false", "\"thread_safe\": 0", "/functions/0/thread_safe",
     "got an integer, expected true or false", 0},
    {"\"f32\": \"zed_s\"", "\"quad\": \"zed_s\"", "/functions/0/symbol/quad",
     "got \"quad\", expected one of bool, i8", 0},
    {"{\"f32\": \"zed_s\", \"f64\": \"zed_d\"}", "\"zed\"", "/functions/0/dtype",
     "got nothing, expected the dtype that T stands for", -3},
    {"{\"f32\": \"zed_s\", \"f64\": \"zed_d\"}", "[1]", "/functions/0/symbol",
     "got an array, expected a symbol", 0},
    {"\"zed_s\"", "null", "/functions/0/symbol/f32", "got null, expected a string", 0},
    // Inputs and outputs.
    {"\"name\": \"x\", \"shape\"", "\"name\": \"a\", \"shape\"",
     "/functions/0/inputs/1/name", "two operands are named \"a\", expected one", 0},
    {"\"shape\": [\"...\", \"n\"]", "\"shape\": \"n\"", "/functions/0/inputs/1/shape",
     "got a string, expected an array", 0},
    {"[\"...\", \"n\"]", "[\"*\", \"n\"]", "/functions/0/inputs/1/shape/0",
     "got both \"...\" and \"*\", expected one", 0},
    {"[\"...\", \"n\"]", "[\"...\", \"n\",1,1,1,1,1,1,1,1]", "/functions/0/inputs/1/shape",
     "got 10 elements, expected at most 9", 0},
    {"[\"...\", \"n\"]", "[1,1,1,1,1,1,1,1,1]", "/functions/0/inputs/1/shape",
     "got 9 axes, expected at most 8", 0},
    {"[\"...\", \"n\"]", "[\"...\", \"q + 1\"]", "/functions/0/inputs/1/shape/1",
     "\"q + 1\", column 1: got 'q + 1', expected a name", 0},
    {"[\"...\", \"n\"]", "[\"...\", 2.5]", "/functions/0/inputs/1/shape/1",
     "got a real, expected a string", 0},
    {"\"rows\"", "\"row\"", "/functions/0/inputs/0/layout", "did you mean \"rows\"?", 0},
    {"\"rows\"", "\"strided\"", "/functions/0/inputs/0/layout",
     "got \"strided\" for \"a\" of 2 axes, expected 1 axes", 0},
    {"\"destroyed\": true", "\"destroyed\": \"yes\"", "/functions/0/inputs/1/destroyed",
     "got a string, expected true or false", 0},
    {"\"destroyed\": true", "\"dtype\": \"f80\"", "/functions/0/inputs/1/dtype",
     "got \"f80\", expected one of T", 0},
    {"\"overwrites\": \"a\"", "\"overwrites\": \"c\"", "/functions/0/outputs/1/overwrites",
     "got \"c\", expected the name of an input", 0},
    {"\"overwrites\": \"a\"", "\"overwrites\": \"x\"", "/functions/0/outputs/1/overwrites",
     "\"b\" has another dtype or shape than \"x\", expected the same", 0},
    {"[\"...\", \"k\"]", "[\"k\"]", "/functions/0/outputs/0/shape",
     "got no \"...\", expected it first", 0},
    {"\"overwrites\": \"a\"", "\"destroyed\": true", "/functions/0/outputs/1/destroyed",
     "got \"destroyed\", expected one of name", 0},
    // Attributes.
    {"\"type\": \"f64\", \"default\"", "\"type\": \"f32\", \"default\"",
     "/functions/0/attributes/0/type",
     "got \"f32\", expected one of f64, i64, bool, choice", 0},
    {"\"default\": 1.5", "\"default\": \"1.5\"", "/functions/0/attributes/0/default",
     "got a string, expected a number", 0},
    {"\"default\": 2", "\"default\": 2.5", "/functions/0/attributes/2/default",
     "got a real, expected an integer", 0},
    {"\"default\": 2", "\"choices\": [\"a\"]", "/functions/0/attributes/2/choices",
     "got choices, expected none but with type \"choice\"", 0},
    {"\"default\": 2", "\"default\": 2, \"min\": 3", "/functions/0/attributes/2/default",
     "got 2, expected 3 to 9223372036854775807", 0},
    {"\"default\": 2", "\"min\": 3, \"max\": 2", "/functions/0/attributes/2/max",
     "got 2, expected 3 to 9223372036854775807", 0},
    {"\"default\": 1.5", "\"max\": 2", "/functions/0/attributes/0/max",
     "got a limit, expected none but with type \"i64\"", 0},
    {"[\"No\", \"Yes\"]", "[]", "/functions/0/attributes/1/choices",
     "got an empty list, expected choices", 0},
    {"[\"No\", \"Yes\"]", "[\"No\"], \"default\": \"Yes\"",
     "/functions/0/attributes/1/default", "got \"Yes\", expected one of No", 0},
    {"\"name\": \"order\"", "\"name\": \"m\"", "/functions/0/attributes/2/name",
     "\"m\" is in use already", 0},
    // Names and expressions.
    {"2 * k", "2 * w", "/functions/0/extents/w", "\"w\" needs itself, expected no circle",
     0},
    {"max(m, n) + order", "w / 2", "/functions/0/extents/k", "needs itself", 0},
    {"2 * k", "2 * (k", "/functions/0/extents/w", "column 7: got the end, expected ')'", 0},
    {"2 * k", "2 ^ k", "/functions/0/extents/w", "expected an operator or the end", 0},
    {"2 * k", "99999999999999999999", "/functions/0/extents/w",
     "expected an integer of 63 bits", 0},
    {"\"w\": ", "\"m\": ", "/functions/0/extents/m", "\"m\" is in use already", 0},
    {"{\"k\": \"max(m, n) + order\", \"w\": \"2 * k\"}", "[]", "/functions/0/extents",
     "got an array, expected an object", 0},
    {"\"work\": ", "\"requires\": [\"m >= 1\", \"k\"], \"work\": ",
     "/functions/0/requires/1", "expected a condition: two expressions with >=", 0},
    {"\"work\": ", "\"requires\": [\"m => 1\"], \"work\": ", "/functions/0/requires/0",
     "expected a condition", 0},
    {"\"work\": ", "\"requires\": [\"m >= v\"], \"work\": ", "/functions/0/requires/0",
     "got 'v'", 0},
    {"\"work\": ", "\"requires\": [\">= 1\"], \"work\": ", "/functions/0/requires/0",
     "column 1", 0},
    {"\"work\": ", "\"requires\": \"m >= 1\", \"work\": ", "/functions/0/requires",
     "got a string, expected an array", 0},
    {"\"count\": \"w\"", "\"count\": \"v\"", "/functions/0/work/0/count", "got 'v'", 0},
    {"\"count\": \"w\"", "\"size\": \"w\"", "/functions/0/work/0/size",
     "got \"size\", expected one of name, dtype, count", 0},
    // Arguments.
    {"\"kind\": \"extent\"", "\"kind\": \"extend\"", "/functions/0/args/0/kind",
     "got \"extend\", expected one of input, output", 0},
    {"{\"kind\": \"extent\", \"value\": \"m\"}", "7", "/functions/0/args/0",
     "got an integer, expected an object", 0},
    {"{\"kind\": \"extent\", \"value\": \"m\"}", "{\"value\": \"m\"}",
     "/functions/0/args/0/kind", "got nothing, expected a string", 0},
    {"\"value\": \"m\"", "\"value\": \"m\", \"type\": \"f32\"", "/functions/0/args/0/type",
     "got f32, expected an integer type", 0},
    {"\"value\": \"m\"", "\"value\": \"m\", \"by\": \"reference\"",
     "/functions/0/args/0/by", "got \"reference\", expected one of value, pointer", 0},
    {"\"value\": \"m\"", "\"name\": \"m\"", "/functions/0/args/0/name",
     "got \"name\", expected one of kind, value", 0},
    {"\"axis\": 0", "\"axis\": 2", "/functions/0/args/1/axis", "got 2, expected 0 to 1", 0},
    {"\"of\": \"b\"", "\"of\": \"c\"", "/functions/0/args/1/of",
     "got \"c\", expected one of a", 0},
    {"\"input\", \"name\": \"x\"", "\"input\", \"name\": \"out\"",
     "/functions/0/args/2/name", "got \"out\", expected one of a, x", 0},
    {"\"input\", \"name\": \"x\"", "\"input\", \"name\": \"a\"", "/functions/0/args/2/name",
     "got \"a\", which \"b\" overwrites", 0},
    {"\"input\", \"name\": \"x\"", "\"input\", \"name\": \"x\", \"by\": \"value\"",
     "/functions/0/args/2/by", "got the array \"x\", expected one element", 0},
    {"\"attribute\", \"name\": \"alpha\"", "\"attribute\", \"name\": \"alfa\"",
     "/functions/0/args/3/name", "did you mean \"alpha\"?", 0},
    {"\"by\": \"pointer\"", "\"type\": \"int\"", "/functions/0/args/3/type",
     "got i32 for the real number \"alpha\"", 0},
    {"\"f32\": \"zed_s\"", "\"i32\": \"zed_s\"", "/functions/0/args/3/type",
     "got i32 for the real number \"alpha\", expected float or double", 20},
    {"[111, 112]", "[111]", "/functions/0/args/4/values",
     "got 1 values, expected one for each of 2 choices", 0},
    {"[111, 112]", "[111, 4294967296]", "/functions/0/args/4/values/1",
     "got 4294967296, expected -2147483648", 0},
    {"\"attribute\": \"way\"", "\"attribute\": \"order\"", "/functions/0/args/5/attribute",
     "got \"order\", expected an attribute of type \"choice\"", 0},
    {"\"value\": \"U\"", "\"value\": \"Up\"", "/functions/0/args/6/value",
     "got a string of 2 bytes, expected 1 to 1", 0},
    {"\"value\": 7", "\"value\": 700", "/functions/0/args/7/value",
     "got 700, expected what fits i8", 0},
    {"\"value\": 7", "\"value\": 7.5", "/functions/0/args/7/value",
     "got 7.5, expected an integer, as i8 is", 0},
    {"\"value\": 7", "\"value\": true", "/functions/0/args/7/value",
     "got true, expected a number", 0},
    {"\"type\": \"i8\"", "\"type\": \"bf16\"", "/functions/0/args/7/type",
     "got a half float, expected a type that C passes by value", 0},
    {"\"work\", \"name\": \"buffer\"", "\"work\", \"name\": \"bufer\"",
     "/functions/0/args/8/name", "did you mean \"buffer\"?", 0},
    {"        {\"kind\": \"output\", \"name\": \"out\"},\n", "", "/functions/0/args",
     "nothing writes the output \"out\", expected an argument", -10},
    {"{\"kind\": \"status\"}\n", "{\"kind\": \"user\"}\n", "/functions/0/args/11/kind",
     "only callbacks have a user's pointer", 0},
    // What is returned, and derivatives.
    {"{\"kind\": \"status\", \"type\": \"int\"}", "{\"kind\": \"number\"}",
     "/functions/0/returns/kind", "got \"number\", expected one of void, output, status",
     0},
    {"{\"kind\": \"status\", \"type\": \"int\"}",
     "{\"kind\": \"status\", \"type\": \"double\"}", "/functions/0/returns/type",
     "got f64, expected an integer type", 0},
    {"{\"kind\": \"status\", \"type\": \"int\"}", "{\"kind\": \"output\"}",
     "/functions/0/returns/kind", "got \"output\" with 2 outputs", 0},
    {"\"negative\",", "\"zero\",", "/functions/0/fails",
     "got \"zero\", expected one of nonzero", 0},
    {"{\"negative\": \"an", "{\"0\": \"an", "/functions/0/messages/0",
     "got \"0\", expected one of negative, positive", 0},
    {"\"x\": \"alpha", "\"y\": \"alpha", "/functions/0/vjp/y",
     "got \"y\", expected the name of an input", 0},
    {"\"alpha * g_out * x\"", "\"alpha * g * x\"", "/functions/0/vjp/x",
     "column 9: got 'g * x', expected an input, an output, an attribute or g", 0},
    {"\"alpha * g_out * x\"", "\"g_out *\"", "/functions/0/vjp/x",
     "got the end, expected a number", 0},
    {"\"alpha * g_out * x\"", "7", "/functions/0/vjp/x",
     "got an integer, expected a string", 0},
    {"{\"x\": \"alpha * g_out * x\", \"a\": null}", "\"g\"", "/functions/0/vjp",
     "got a string, expected an object", 0},
    {"    }\n  ]", "    }, {}\n  ]", "/functions/1/name", "got nothing, expected a string",
     0},
};

static tn_status read_whole(const char *text, size_t size, const char *path,
                            struct problem *problem)
{
    struct ffi_pack pack;
    pack_init(&pack, NULL, 0);
    *problem = (struct problem){0};
    tn_status status = pack_read(text, size, path, false, &pack, problem);
    cr_assert(eq(int, status, problem->status));
    pack_finish(&pack);
    return status;
}

static int line_at(const char *text, size_t offset)
{
    int line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static tn_status no_vjp(const tn_build *build, const tn_rule *rule,
                        tn_array *const *cotangents, const uint64_t *wanted,
                        tn_array **gradients)
{
    (void)build, (void)rule, (void)cotangents, (void)wanted, (void)gradients;
    return TN_ERR_UNSUPPORTED;
}

Test(manifests, a_right_manifest_is_read)
{
    static const struct rules slots[] = {{.vjp = no_vjp}};
    struct ffi_pack pack;
    struct problem problem = {0};
    pack_init(&pack, slots, 1);
    if (pack_read(plain, strlen(plain), "plain.json", false, &pack, &problem))
        cr_fatal("%s", problem.text);
    const struct ffi_function *function = pack.functions[0];
    cr_assert(eq(str, pack.id, "com.acme.zed"));
    cr_assert(eq(str, function->id, "zed.blend/1"));
    cr_assert(eq(uint, function->num_args, 12));
    cr_assert(function->is_serial);
    cr_assert(eq(uint, function->primitive.num_in_place, 1));
    cr_assert(function->primitive.vjp == no_vjp);
    pack_finish(&pack);
}

Test(manifests, each_mistake_is_shown_at_its_field)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        const struct mistake *m = &mistakes[i];
        const char *at = strstr(plain, m->find);
        char text[4096], start[200];
        struct problem problem;
        cr_assert(ne(ptr, at, NULL));
        int prefix = (int)(at - plain);
        snprintf(text, sizeof(text), "%.*s%s%s", prefix, plain, m->put,
                 at + strlen(m->find));
        snprintf(start, sizeof(start),
                 "z.json:%d: %s: ", line_at(plain, (size_t)prefix) + m->lines, m->field);
        if (read_whole(text, strlen(text), "z.json", &problem) != TN_ERR_ARGUMENT ||
            strncmp(problem.text, start, strlen(start)) != 0 ||
            !strstr(problem.text, m->says))
            cr_fatal("mistake %zu, '%s' for '%s':\n  got      %s\n  expected %s... %s", i,
                     m->put, m->find, problem.text, start, m->says);
    }
}

Test(manifests, t_is_what_an_input_says_and_holds_all_numbers)
{
    static const struct {
        const char *dtype, *value, *says; // says "": it is right
    } cases[] = {
        {"T", "7", ""},
        {"T", "0.5", "/args/0/value: got 0.5, expected an integer, as i8 is"},
        {"T", "300", "/args/0/value: got 300, expected what fits i8"},
        {"f32", "7", "/symbol: got 2 symbols, expected one, or an input of dtype T"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1000];
        struct problem problem;
        snprintf(
            text, sizeof(text),
            "{\"format\": 1, \"id\": \"com.acme.t\", \"version\": \"1.0.0\", \"vendor\": "
            "\"A\", \"pack\": \"t\", \"library\": \"t.so\", \"functions\": [{\"name\": "
            "\"f\", \"symbol\": {\"f32\": \"fs\", \"i8\": \"fb\"}, \"inputs\": "
            "[{\"name\": \"x\", \"dtype\": \"%s\", \"shape\": []}], \"outputs\": "
            "[{\"name\": \"y\", \"shape\": []}], \"args\": [{\"kind\": \"constant\", "
            "\"value\": %s, \"type\": \"T\"}, {\"kind\": \"output\", \"name\": \"y\"}]}]}",
            cases[i].dtype, cases[i].value);
        tn_status status = read_whole(text, strlen(text), "t.json", &problem);
        if ((status == TN_OK) != !*cases[i].says || !strstr(problem.text, cases[i].says))
            cr_fatal("case %zu: got '%s', expected '%s'", i, problem.text, cases[i].says);
    }
}

Test(manifests, what_is_no_json_is_shown_at_its_line)
{
    static const struct {
        const char *text;
        size_t size;
        const char *says;
    } cases[] = {
        {"", 0, "n.json:1: "},
        {"{\n\"a\": 1,\n\"a\": 2}", 17, "n.json:3: duplicate object key"},
        {"{\"format\": 1,\n\0}", 16, "n.json:2: "},
        {"{\"x\": [\n1\0, 2]}", 15, "n.json:2: got a byte of 0, expected JSON"},
        {"{\"format\": \"\\u0000\"}", 20, "n.json:1: \\u0000 is not allowed"},
        {"[1, 2]", 6, "n.json:1: /: got an array, expected an object"},
        {"{\"format\": 1}\n{}", 16, "n.json:2: end of file expected"},
        {"{\"form\xff\": 1}", 12, "n.json:1: "},
        {"{\"a\nb\": 1}", 10, "n.json:1: "},
        {"{\"a\\nb\": 1}", 11, "n.json:1: /a?b: got \"a?b\", expected one of format"},
        {"{\"a/b~\": 1}", 11, "n.json:1: /a~1b~0: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct problem problem;
        char *copy = malloc(cases[i].size + 1); // of that size: ASan sees a byte too many
        memcpy(copy, cases[i].text, cases[i].size);
        tn_status status = read_whole(copy, cases[i].size, "n.json", &problem);
        free(copy);
        if (status != TN_ERR_ARGUMENT || !strstr(problem.text, cases[i].says))
            cr_fatal("case %zu: got '%s', expected '%s'", i, problem.text, cases[i].says);
    }
}

// --- hostile ---------------------------------------------------------------------------

Test(manifests, deep_nesting_is_refused)
{
    enum { DEPTH = 100000 };
    struct problem problem;
    char *text = malloc(DEPTH + 1);
    memset(text, '[', DEPTH);
    cr_assert(eq(int, read_whole(text, DEPTH, "deep.json", &problem), TN_ERR_ARGUMENT));
    check_says(problem.text, "deep.json:1: maximum parsing depth reached");
    free(text);
    // The same in expressions, of extents and of derivatives.
    static const char *const finds[] = {"2 * k", "alpha * g_out * x"};
    for (size_t i = 0; i < 2; i++) {
        char deep[160], whole[4096];
        memset(deep, '(', 150);
        deep[150] = 0;
        const char *at = strstr(plain, finds[i]);
        snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(at - plain), plain, deep,
                 at + strlen(finds[i]));
        cr_assert(eq(int, read_whole(whole, strlen(whole), "deep.json", &problem),
                     TN_ERR_ARGUMENT));
        check_says(problem.text, "expected fewer levels of nesting");
    }
}

Test(manifests, a_huge_manifest_is_refused)
{
    struct problem problem;
    char *text = malloc(MANIFEST_MAX_SIZE + 1);
    memset(text, ' ', MANIFEST_MAX_SIZE + 1);
    memcpy(text, plain, strlen(plain));
    cr_assert(eq(int, read_whole(text, MANIFEST_MAX_SIZE, "h.json", &problem), TN_OK));
    cr_assert(eq(int, read_whole(text, MANIFEST_MAX_SIZE + 1, "h.json", &problem),
                 TN_ERR_ARGUMENT));
    check_says(problem.text, "got 1048577 bytes, expected at most 1048576");
    free(text);
}

// A manifest of `count` functions.
static char *many_functions(size_t count)
{
    const char *head_end = strstr(plain, "    {\n      \"name\""),
               *end = strstr(plain, "  ]\n}");
    size_t size = strlen(plain) + count * (size_t)(end - head_end + 8), at;
    char *text = malloc(size);
    at = (size_t)snprintf(text, size, "%.*s", (int)(head_end - plain), plain);
    const char *name_end = strstr(head_end, "blend") + 5;
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, size - at, "%.*s%zu%.*s%s",
                               (int)(name_end - head_end), head_end, i,
                               (int)(end - name_end), name_end, i + 1 < count ? "," : "");
    snprintf(text + at, size - at, "%s", end);
    return text;
}

Test(manifests, as_many_functions_as_a_pack_holds_are_read_and_no_more)
{
    struct problem problem;
    char *most = many_functions(MAX_FUNCTIONS), *more = many_functions(MAX_FUNCTIONS + 1);
    if (read_whole(most, strlen(most), "many.json", &problem))
        cr_fatal("%s", problem.text);
    cr_assert(
        eq(int, read_whole(more, strlen(more), "many.json", &problem), TN_ERR_ARGUMENT));
    check_says(problem.text, "/functions: got 257 elements, expected at most 256");
    free(most);
    free(more);
}

static char *shipped(const char *name, size_t *out_size)
{
    char path[4096], *text = NULL;
    struct problem problem = {0};
    snprintf(path, sizeof(path), "%s/%s", check_getenv("TENON_TEST_PACKS"), name);
    if (file_read(path, MANIFEST_MAX_SIZE, &text, out_size, &problem))
        cr_fatal("%s", problem.text);
    return text;
}

Test(manifests, manifests_cut_off_anywhere_are_refused)
{
    static const char *const names[] = {"blas.json", "lapack.json", "libm.json"};
    struct problem problem;
    for (size_t size = 0; size + 1 < strlen(plain); size++) {
        char *cut = malloc(size + 1); // not longer: ASan sees what is read behind it
        memcpy(cut, plain, size);
        cr_assert(eq(int, read_whole(cut, size, "cut.json", &problem), TN_ERR_ARGUMENT));
        cr_assert(eq(mem, bytes_of(problem.text, 9), bytes_of("cut.json:", 9)));
        free(cut);
    }
    for (size_t i = 0; i < 3; i++) {
        size_t size = 0;
        char *text = shipped(names[i], &size);
        if (read_whole(text, size, names[i], &problem))
            cr_fatal("%s", problem.text);
        for (size_t cut = 0; cut + 2 < size; cut += 61)
            cr_assert(eq(int, read_whole(text, cut, names[i], &problem), TN_ERR_ARGUMENT));
        free(text);
    }
}

// Any bytes may stand anywhere: reading ends with a result or a message of one line.
Test(manifests, manifests_changed_at_random_are_read_or_refused)
{
    static const char bytes[] = "{}[]\",:.-0123456789aefnrtuxT*+/()%~\\\n \xff\xc3";
    srand((uint32_t)check_seed((uint32_t)time(NULL)));
    size_t size = strlen(plain), refused = 0;
    for (int round = 0; round < 3000; round++) {
        struct problem problem;
        char *text = malloc(size);
        memcpy(text, plain, size);
        for (int changes = rand() % 3; changes >= 0; changes--)
            text[(size_t)rand() % size] = bytes[(size_t)rand() % (sizeof(bytes) - 1)];
        if (read_whole(text, size, "any.json", &problem)) {
            refused++;
            cr_assert(eq(mem, bytes_of(problem.text, 9), bytes_of("any.json:", 9)));
            cr_assert(eq(ptr, strchr(problem.text, '\n'), NULL));
        }
        free(text);
    }
    check_within(u64, refused, 300, 3000);
}

// --- out of memory ---------------------------------------------------------------------

static long until_failure;

static void *failing_malloc(size_t size)
{
    return until_failure-- == 0 ? NULL : malloc(size);
}

Test(manifests, memory_that_runs_out_is_an_error)
{
    json_set_alloc_funcs(failing_malloc, free);
    tn_status status = TN_ERR_ARGUMENT;
    for (long n = 0; status != TN_OK && n < 10000; n++) {
        struct problem problem;
        until_failure = n;
        status = read_whole(plain, strlen(plain), "m.json", &problem);
        cr_assert(status == TN_OK ? until_failure >= 0 : *problem.text != 0);
    }
    json_set_alloc_funcs(malloc, free);
    cr_assert(eq(int, status, TN_OK));
}

// --- files -----------------------------------------------------------------------------

// Reads a manifest in a child without standard streams, in which descriptors are below
// `limit`; what file_read gives.
static int read_without_streams(rlim_t limit)
{
    char path[4096], *text = NULL;
    size_t size = 0;
    struct problem problem = {0};
    const struct rlimit most = {limit, limit};
    snprintf(path, sizeof(path), "%s/blas.json", check_getenv("TENON_TEST_PACKS"));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        bool is_set = setrlimit(RLIMIT_NOFILE, &most) == 0;
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        _exit(is_set ? -file_read(path, MANIFEST_MAX_SIZE, &text, &size, &problem) : 99);
    }
    int status = 0;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(ne(int, WIFEXITED(status), 0));
    return -WEXITSTATUS(status);
}

Test(manifests, files_never_take_the_numbers_of_streams)
{
    cr_assert(eq(int, read_without_streams(3), TN_ERR_IO));
    cr_assert(eq(int, read_without_streams(64), TN_OK));
}
