// SPDX-License-Identifier: MIT
// Grammars and JSON schemas: which texts they have, and what is refused.
#include <stdio.h>
#include <string.h>
#include <tenon/lm.h>
#include "assertion.h"

struct row {
    const char *grammar;
    const char *text;
    int32_t fits;
};

static tn_lm_grammar *open_one(const char *text, uint32_t kind)
{
    tn_lm_grammar *grammar = NULL;
    if (tn_lm_grammar_open(text, strlen(text), kind, &grammar) != TN_OK)
        cr_fatal("%s: %s", text, tn_lm_error());
    return grammar;
}

// Rows without a grammar are of the one before.
static void check_rows(const struct row *rows, size_t count, uint32_t kind)
{
    tn_lm_grammar *grammar = NULL;
    for (size_t i = 0; i < count; i++) {
        int32_t fits = -1;
        if (rows[i].grammar) {
            tn_lm_grammar_close(grammar);
            grammar = open_one(rows[i].grammar, kind);
        }
        if (tn_lm_grammar_test(grammar, rows[i].text, strlen(rows[i].text), &fits) != TN_OK)
            cr_fatal("row %zu: %s", i, tn_lm_error());
        if (fits != rows[i].fits)
            cr_fatal("row %zu: '%s' fits as %d, expected %d", i, rows[i].text, fits,
                     rows[i].fits);
    }
    tn_lm_grammar_close(grammar);
}

enum { NOT = TN_LM_FITS_NOT, BEGIN = TN_LM_FITS_BEGIN, FITS = TN_LM_FITS };

Test(grammar, texts_of_grammars)
{
    static const struct row rows[] = {
        {"root ::= \"a\" \"b\"* \"c\"", "a", BEGIN},
        {NULL, "abbc", FITS},
        {NULL, "abcc", NOT},
        {"root ::= [a-c]+ | \"-\"? [0-9]{2,3}", "cab", FITS},
        {NULL, "-1", BEGIN},
        {NULL, "-1234", NOT},
        {"root ::= x{,2} y{2,} \"!\"\nx ::= \"x\"\ny ::= \"y\" # twice at least", "yy!",
         FITS},
        {NULL, "xxxyy!", NOT},
        {NULL, "xyyyy!", FITS},
        {NULL, "xy!", NOT},
        // Recursion on each side, and ambiguity.
        {"root ::= root \"+\" t | t\nt ::= \"(\" root \")\" | [0-9]+", "1+(2+3)", FITS},
        {NULL, "1++", NOT},
        {"root ::= root root | \"a\" | \"\"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", FITS},
        {"root ::= ws \"x\"\nws ::= | \" \" ws", "   x", FITS},
        {"root ::= a a a\na ::= b b\nb ::= \"x\"?", "xxxxxx", FITS},
        {NULL, "xxxxxxx", NOT},
        {"root ::= (root \"b\")? \"a\"", "aba", FITS},
        // Lines, comments, escapes.
        {"# first\n\nroot ::= (\"a\" # one\n | \"b\"\n)\n  | \"c\" # more\n", "c", FITS},
        // A body on the next line, behind a comment; one without a text; bounds apart.
        {"root ::=\n  \"{\" ws (\n  v\n (\",\" v)*\n  )? \"}\"\nv ::= # one\n\n [0-9] +\n"
         "ws ::=\nx::=y\ny ::=\r\n\"y\"",
         "{12,3}", FITS},
        {NULL, "{1,}", NOT},
        {"root ::= (\"a\"\n {2}) \"b\" ? [c] {1, 2} * # more", "aabcc", FITS},
        {NULL, "aac", FITS},
        {NULL, "abb", NOT},
        {"root ::= \"\\x41\\u00e9\\U0001F600\\\"\\\\\\n\"",
         "A\303\251\360\237\230\200\"\\\n", FITS},
        {"root ::= [\\]\\-\\\\a-]*", "]-\\a", FITS},
        // Characters of several bytes, and parts of them.
        {"root ::= [^a-z\303\251]{2}", "\303\234\342\202\254", FITS},
        {NULL, "\303\234\342\202", BEGIN},
        {NULL, "\303\251", NOT},
        {NULL, "\355\240\200", NOT}, // half of a surrogate pair
        {NULL, "\300\200", NOT},     // longer than it needs to be
        {NULL, "A\364\220", NOT},    // behind the last character
        {"root ::= .{1,3}", "\303\251\n\360\237\230\200", FITS},
        {"root ::= [\\u07fe-\\u0801\\uffff-\\U00010001]+",
         "\337\276\337\277\340\240\200\340\240\201\357\277\277\360\220\200\200"
         "\360\220\200\201",
         FITS},
        {NULL, "\340\240\202", NOT},
        {NULL, "\337\275", NOT},
        // A part that leads nowhere is never entered.
        {"root ::= \"a\" (x | \"b\")\nx ::= \"c\" x", "a", BEGIN},
        {NULL, "ac", NOT},
        {"root ::= (((\"a\"{1000}){1000}){1000}){1,2}", "aaa", BEGIN},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]), TN_LM_GBNF);
}

Test(grammar, texts_of_schemas)
{
    static const struct row rows[] = {
        {"{}", "{\"a\": [1, 2.5e-3, \"x\\n\\\"\", null, true], \"b\":{}}", FITS},
        {NULL, "{\"a\":1,}", NOT},
        {NULL, "\"\t", NOT},
        {"{\"type\":\"integer\",\"minimum\":-5,\"exclusiveMaximum\":121}", "-5", FITS},
        {NULL, "-6", NOT},
        {NULL, "120", FITS},
        {NULL, "121", NOT},
        {NULL, "007", NOT},
        {"{\"type\":\"number\",\"minimum\":0.25,\"exclusiveMaximum\":3}", "0.25", FITS},
        {NULL, "0.2", BEGIN},
        {NULL, "0.249", NOT},
        {NULL, "2.99999", FITS},
        {NULL, "3", NOT},
        {"{\"type\":\"number\",\"minimum\":-1.5,\"maximum\":-0.5}", "-1.5", FITS},
        {NULL, "-1.51", NOT},
        {NULL, "-0.5", FITS},
        {NULL, "-0.4", NOT},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},"
         "\"b\":{\"type\":\"boolean\"},\"c\":{\"type\":\"null\"}},\"required\":[\"b\"],"
         "\"additionalProperties\":false}",
         "{\"b\":true}", FITS},
        {NULL, "{\n  \"a\": \"x\",\n  \"b\": false,\n  \"c\": null\n}", FITS},
        {NULL, "{\"a\":\"x\"}", NOT},
        {NULL, "{\"b\":true,\"d\"", NOT},
        {"{\"properties\":{\"ab\":{\"type\":\"null\"}},\"required\":[\"z\"],"
         "\"additionalProperties\":{\"type\":\"integer\"}}",
         "{\"z\":1,\"a\":1,\"abc\":2}", FITS},
        {NULL, "{\"z\":1,\"ab\":1", NOT},
        {NULL, "{\"ab\":null,\"z\":0}", FITS},
        {"{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"properties\":{\"v\":{\"const\":1},"
         "\"next\":{\"$ref\":\"#/$defs/n\"}},\"required\":[\"v\"]}}}",
         "{\"v\":1,\"next\":{\"v\":1,\"next\":{\"v\":1}}}", FITS},
        {NULL, "{\"v\":1,\"next\":{}", NOT},
        {"{\"type\":\"string\",\"pattern\":\"^[A-Z]{2}-\\\\d+(?:x|\\\"y)?$\"}",
         "\"AB-12x\"", FITS},
        {NULL, "\"AB-1\\\"y\"", FITS},
        {NULL, "\"A-", NOT},
        {"{\"type\":\"string\",\"pattern\":\"a.c\"}", "\"\303\251abcyy\"", FITS},
        {NULL, "\"ab\"", NOT},
        {"{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items\":false,"
         "\"minItems\":1}",
         "[1]", FITS},
        {NULL, "[]", NOT},
        {NULL, "[1,\"a\"]", FITS},
        {NULL, "[1,\"a\",", NOT},
        {"{\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":3}", "[1]", NOT},
        {NULL, "[1, 2, 3]", FITS},
        {NULL, "[1,2,3,", NOT},
        {"{\"enum\":[\"a\",1,{\"x\":[1,{}]}]}", "{\"x\":[1,{}]}", FITS},
        {NULL, "2", NOT},
        {"{\"anyOf\":[{\"type\":\"string\",\"minLength\":1,\"maxLength\":2},"
         "{\"type\":[\"null\",\"boolean\"]}]}",
         "\"\303\251\\n\"", FITS},
        {NULL, "\"abc", NOT},
        {NULL, "\"\"", NOT},
        {NULL, "false", FITS},
        // Alternatives that exclude each other: by type, by members, by bounds, by
        // elements.
        {"{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"},{\"const\":null}]}",
         "\"a\"", FITS},
        {NULL, "null", FITS},
        {NULL, "true", NOT},
        {"{\"oneOf\":[{\"properties\":{\"kind\":{\"const\":\"circle\"},\"r\":{\"type\":"
         "\"integer\"}},\"required\":[\"kind\",\"r\"]},{\"$ref\":\"#/$defs/box\"}],"
         "\"$defs\":{\"box\":{\"properties\":{\"kind\":{\"enum\":[\"box\",\"cube\"]}},"
         "\"required\":[\"kind\"]}}}",
         "{\"kind\":\"circle\",\"r\":1}", FITS},
        {NULL, "{\"kind\":\"cube\"}", FITS},
        {NULL, "{\"kind\":\"box\",\"r\"", NOT},
        {"{\"oneOf\":[{\"properties\":{\"a\":{}},\"required\":[\"a\"]},{\"properties\":"
         "{\"b\":{}},\"required\":[\"b\"]}]}",
         "{\"a\":1}", FITS},
        {NULL, "{\"a\":1,\"b\":2}", NOT},
        {"{\"oneOf\":[{\"type\":\"integer\",\"maximum\":3},{\"type\":\"integer\","
         "\"exclusiveMinimum\":3},{\"type\":\"array\",\"items\":{\"type\":\"null\"},"
         "\"minItems\":1},{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},"
         "\"minItems\":1},{\"const\":[[]]},{\"const\":[]}]}",
         "3", FITS},
        {NULL, "[true]", FITS},
        {NULL, "[[]]", FITS},
        {NULL, "[true,null]", NOT},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]), TN_LM_JSON_SCHEMA);
}

// Keywords beside each other: all of them hold.
Test(grammar, texts_of_schemas_that_hold_at_once)
{
    static const struct row rows[] = {
        // Constants that the rest allows.
        {"{\"type\":[\"string\",\"null\"],\"enum\":[\"a\",1,null,\"abc\"],\"maxLength\":2}",
         "\"a\"", FITS},
        {NULL, "1", NOT},
        {NULL, "null", FITS},
        {NULL, "\"abc\"", NOT},
        {"{\"enum\":[1,2.0,3.5,\"x\",{\"a\":1},{\"a\":2}],\"minimum\":2,\"type\":["
         "\"integer\","
         "\"object\"],\"properties\":{\"a\":{\"const\":2}}}",
         "2.0", FITS},
        {NULL, "1", NOT},
        {NULL, "3.5", NOT},
        {NULL, "{\"a\":1}", NOT},
        {NULL, "{\"a\":2}", FITS},
        {"{\"const\":7,\"anyOf\":[{\"maximum\":3},{\"multipleOf\":7}]}", "7", FITS},
        // References: with escapes, beside other keywords, to themselves.
        {"{\"$ref\":\"#/$defs/Box%3Cint%3E\",\"$defs\":{\"Box<int>\":{\"type\":\"null\"}}}",
         "null", FITS},
        {"{\"$ref\":\"#/$defs/a%7E1b%25\",\"maximum\":4,\"$defs\":{\"a/b%\":{\"type\":"
         "\"integer\",\"minimum\":3}}}",
         "4", FITS},
        {NULL, "2", NOT},
        {NULL, "5", NOT},
        {"{\"$ref\":\"#/$defs/n\",\"$defs\":{\"b\":{\"properties\":{\"v\":{\"type\":"
         "\"integer\"}},\"required\":[\"v\"]},\"n\":{\"allOf\":[{\"$ref\":\"#/$defs/b\"},"
         "{\"properties\":{\"next\":{\"$ref\":\"#/$defs/n\",\"type\":\"object\"}}}]}}}",
         "{\"v\":1,\"next\":{\"v\":2,\"next\":{\"v\":3}}}", FITS},
        {NULL, "{\"v\":1,\"next\":{}", NOT},
        // Several schemas.
        {"{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
         "\"b\":{\"type\":\"string\"}},\"additionalProperties\":false},{\"properties\":{"
         "\"a\":{\"minimum\":5}},\"required\":[\"a\"]}]}",
         "{\"a\":5}", FITS},
        {NULL, "{\"a\":4}", NOT},
        {NULL, "{\"b\"", NOT},
        {"{\"allOf\":[{\"type\":\"number\"},{\"type\":[\"integer\",\"null\"]}],\"maximum\":"
         "2}",
         "2", FITS},
        {NULL, "null", NOT},
        {NULL, "1.5", NOT},
        {"{\"type\":\"integer\",\"anyOf\":[{\"minimum\":10},{\"maximum\":2},{\"type\":"
         "\"string\"}],\"exclusiveMaximum\":12}",
         "11", FITS},
        {NULL, "12", NOT},
        {NULL, "5", NOT},
        {NULL, "2", FITS},
        {NULL, "\"", NOT},
        {"{\"type\":\"integer\",\"oneOf\":[{\"minimum\":3},{\"maximum\":2}],\"multipleOf\":"
         "2}",
         "4", FITS},
        {NULL, "3", BEGIN},
        // Unions of Pydantic: the member that tells is always there, required or not.
        {"{\"discriminator\":{\"mapping\":{\"cat\":\"#/$defs/Cat\",\"neg\":\"#/$defs/"
         "Neg\"},"
         "\"propertyName\":\"kind\"},\"oneOf\":[{\"$ref\":\"#/$defs/Cat\"},{\"$ref\":"
         "\"#/$defs/"
         "Neg\"}],\"$defs\":{\"Cat\":{\"properties\":{\"kind\":{\"const\":\"cat\","
         "\"default\":\"cat\",\"type\":\"string\"},\"n\":{\"type\":\"integer\"}},"
         "\"required\":["
         "\"n\"],\"type\":\"object\"},\"Neg\":{\"properties\":{\"kind\":{\"const\":\"neg\"}"
         ","
         "\"of\":{\"discriminator\":{\"propertyName\":\"kind\"},\"oneOf\":[{\"$ref\":"
         "\"#/$defs/Neg\"},{\"$ref\":\"#/$defs/Cat\"}]}},\"required\":[\"of\"]}}}",
         "{\"kind\":\"cat\",\"n\":1}", FITS},
        {NULL, "{\"n\"", NOT},
        {NULL,
         "{\"kind\":\"neg\",\"of\":{\"kind\":\"neg\",\"of\":{\"kind\":\"cat\",\"n\":2}}}",
         FITS},
        {NULL, "{\"kind\":\"neg\",\"n\"", NOT},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]), TN_LM_JSON_SCHEMA);
}

Test(grammar, texts_of_schemas_with_counts)
{
    static const struct row rows[] = {
        {"{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":2.0},"
         "\"uniqueItems\":"
         "false,\"maxItems\":2.0}",
         "[\"ab\",\"ab\"]", FITS},
        {NULL, "[\"abc", NOT},
        {NULL, "[\"a\",\"b\",", NOT},
        {"{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"},\"c\":{"
         "\"type\":"
         "\"null\"}},\"required\":[\"b\"],\"maxProperties\":2}",
         "{\"a\":null,\"b\":null}", FITS},
        {NULL, "{\"b\":null,\"c\":null}", FITS},
        {NULL, "{\"b\":null}", FITS},
        {NULL, "{\"a\":null,\"c\"", NOT},
        {NULL, "{\"a\":null,\"b\":null,", NOT},
        {"{\"additionalProperties\":{\"type\":\"integer\"},\"properties\":{\"a\":{\"type\":"
         "\"null\"}},\"minProperties\":2,\"maxProperties\":3}",
         "{\"a\":null}", NOT},
        {NULL, "{\"a\":null,\"b\":1}", FITS},
        {NULL, "{\"b\"", NOT}, // two others may have one name, which counts once
        {NULL, "{\"a\":null,\"b\":1,\"c\":2}", FITS},
        {NULL, "{\"a\":null,\"b\":1,\"c\":2,", NOT},
        {"{\"type\":\"object\",\"minProperties\":1}", "{}", NOT},
        {NULL, "{\"x\":1,\"y\":2}", FITS},
        {"{\"type\":\"integer\",\"multipleOf\":7}", "0", FITS},
        {NULL, "-1001", FITS},
        {NULL, "1002", BEGIN},
        {NULL, "-0", NOT},
        {NULL, "700000000000000000", FITS},
        {"{\"type\":\"integer\",\"multipleOf\":1.5,\"minimum\":4,\"maximum\":100}", "6",
         FITS},
        {NULL, "3", BEGIN},
        {NULL, "99", FITS},
        {NULL, "102", NOT},
        {"{\"type\":\"number\",\"multipleOf\":0.25,\"minimum\":-1,\"exclusiveMaximum\":10}",
         "9.75", FITS},
        {NULL, "2.5", FITS},
        {NULL, "2.50", FITS},
        {NULL, "2", FITS},
        {NULL, "2.3", NOT},
        {NULL, "10", NOT},
        {NULL, "-1", FITS},
        {NULL, "-0.75", FITS},
        {NULL, "-1.25", NOT},
        {"{\"type\":\"number\",\"multipleOf\":0.01}", "0.07", FITS},
        {NULL, "19.99", FITS},
        {NULL, "19.999", NOT},
        {"{\"multipleOf\":65536,\"minimum\":1,\"maximum\":200000}", "131072", FITS},
        {NULL, "65537", NOT},
        {"{\"type\":\"string\",\"pattern\":\"^[a-z]+(-[0-9]+)?$\",\"minLength\":3,"
         "\"maxLength\":5}",
         "\"ab\"", NOT},
        {NULL, "\"abcde\"", FITS},
        {NULL, "\"a-123\"", FITS},
        {NULL, "\"ab-123\"", NOT},
        {"{\"type\":\"string\",\"pattern\":\"b\",\"minLength\":2,\"maxLength\":3}", "\"b\"",
         NOT},
        {NULL, "\"\303\251b\"", FITS},
        {NULL, "\"b\\n\\n\"", FITS},
        {NULL, "\"aab\"", FITS},
        {NULL, "\"aaab\"", NOT},
        {"{\"type\":\"string\",\"pattern\":\"^(x|yz)*$\",\"minLength\":4}", "\"yzx\"", NOT},
        {NULL, "\"yzyz\"", FITS},
        {NULL, "\"xxyzyzx\"", FITS},
    };
    check_rows(rows, sizeof(rows) / sizeof(rows[0]), TN_LM_JSON_SCHEMA);
}

Test(grammar, wrong_grammars_are_refused)
{
    static const struct {
        uint32_t kind;
        tn_status status;
        const char *text, *message;
    } rows[] = {
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= \"a\n",
         "grammar: line 1, column 12: got the end of the line, expected a '\"' that ends "
         "the text"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= a\n\n  a ::= [z-a]",
         "grammar: line 3, column 10: got 'z', expected a range that ascends"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= \"\303\251\" foo",
         "grammar: line 1, column 14: got 'f', expected the name of a rule that is "
         "defined"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= \"a\"\nroot ::= \"b\"",
         "grammar: line 2, column 1: got 'r', expected a rule that is not there yet"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "start ::= \"a\"",
         "grammar: got no rule 'root', expected one, with which a text begins"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= \"a\" )",
         "grammar: line 1, column 14: got ')', expected an element, '|' or the end of the "
         "line"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= \"a\"{3,2}",
         "grammar: line 1, column 13: got '{', expected bounds that ascend"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= \"\\ud800\"",
         "grammar: line 1, column 13: got 'd', expected a character of Unicode"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= \"\377\"",
         "grammar: line 1, column 11: got '\377', expected valid UTF-8"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::=\n (\"a\" !<[7]>)",
         "grammar: line 2, column 7: got '!', expected texts and classes of characters: "
         "tokens "
         "by name or id are not known"},
        {TN_LM_GBNF, TN_ERR_REFUSED, "root ::= root \"x\"",
         "the grammar has no text: each way through its first rule is endless, or leads "
         "nowhere"},
        {TN_LM_GBNF, TN_ERR_UNSUPPORTED,
         "root ::= \"abcdefgh\"{60000} \"abcdefgh\"{60000} \"abcdefgh\"{60000} "
         "\"abcdefgh\"{60000} \"abcdefgh\"{60000}",
         "the grammar is too large: more than 262144 states"},
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED, "{\"a\":\n 1,,}",
         "schema: line 2, column 4: string or '}' expected near ','"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"items\":{\"properties\":{\"a\":{\"if\":{},\"then\":{}}}}}",
         "schema: #/items/properties/a: a keyword that is not known: if"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED, "{\"items\":{\"uniqueItems\":true}}",
         "schema: #/items: a keyword that is not known: uniqueItems"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"properties\":{\"a\":{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}}}",
         "schema: #/properties/a: cannot be merged with what is beside it: pattern"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"enum\":[\"a\",\"b\"],\"pattern\":\"a\"}",
         "schema: #: enum or const beside what is not decided of a constant"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"pattern\":\"^(a?b?)*$\",\"maxLength\":3}",
         "schema: #: a pattern beside a length that is shared in too many ways: "
         "'^(a?b?)*$'"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED, "{\"items\":{\"multipleOf\":65537}}",
         "schema: #/items: too many multiples of 65537: expected a smaller multipleOf, or "
         "bounds with at most 1000 of them"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED, "{\"multipleOf\":0}",
         "schema: #: got multipleOf 0, expected a number above 0 and below 1e12 with at "
         "most 6 "
         "decimal places"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED, "{\"minProperties\":2}",
         "schema: #: members that are not listed may have one name twice: expected fewer "
         "as "
         "minProperties"},
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED, "{\"maxLength\":2.5}",
         "schema: #: expected an integer from 0 to 100000 as maxLength"},
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED, "{\"type\":\"string\",\"const\":5}",
         "the grammar has no text: each way through its first rule is endless, or leads "
         "nowhere"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED, "{\"allOf\":[{\"$ref\":\"#\"},{}]}",
         "schema: #: cannot be merged with what is beside it: too many schemas"},
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED, "{\"$ref\":\"#/$defs/%zz\",\"$defs\":{}}",
         "schema: #: the schema has nothing at #/$defs/%zz"},
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED, "{\"properties\":{\"a\":{\"type\":\"text\"}}}",
         "schema: #/properties/a: no type: text"},
#define BOTH(one, other)                                                                   \
    "a value may be valid by both alternatives " one " and " other " of oneOf: expected "  \
    "types, constants, bounds or required members that tell them apart, or anyOf"
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"items\":{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"integer\"},{\"type\":"
         "\"number\",\"minimum\":0}]}}",
         "schema: #/items: " BOTH("1", "2")},
        // The second one does not say that values are objects.
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"oneOf\":[{\"type\":\"string\"},{\"properties\":{\"a\":{}}}]}",
         "schema: #: " BOTH("0", "1")},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"oneOf\":[{\"properties\":{\"a\":{},\"b\":{}}},{\"properties\":{\"b\":{}},"
         "\"required\":[\"b\"]}]}",
         "schema: #: " BOTH("0", "1")},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"oneOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}", "schema: #: " BOTH("0", "1")},
        // What is beside alternatives and references counts: bounds of numbers say nothing
        // of texts.
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"oneOf\":[{\"type\":[\"string\",\"integer\"],\"anyOf\":[{\"minimum\":3}]},"
         "{\"type\":\"string\"}]}",
         "schema: #: " BOTH("0", "1")},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED,
         "{\"oneOf\":[{\"$ref\":\"#/$defs/m\",\"type\":\"string\"},{\"type\":\"string\"}],"
         "\"$defs\":{\"m\":{\"minimum\":3}}}",
         "schema: #: " BOTH("0", "1")},
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED, "{\"oneOf\":3}",
         "schema: #: expected some in oneOf"},
#undef BOTH
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED, "{\"$ref\":\"#/$defs/x\"}",
         "schema: #: the schema has nothing at #/$defs/x"},
        {TN_LM_JSON_SCHEMA, TN_ERR_UNSUPPORTED, "{\"pattern\":\"(?=a)\"}",
         "schema: #: pattern '(?=a)', at character 2: got '?', expected a group without "
         "conditions"},
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED, "{\"$ref\":\"#\"}",
         "the grammar has no text: each way through its first rule is endless, or leads "
         "nowhere"},
        {TN_LM_JSON_SCHEMA, TN_ERR_REFUSED,
         "{\"type\":\"integer\",\"minimum\":2,\"maximum\":1}",
         "the grammar has no text: each way through its first rule is endless, or leads "
         "nowhere"},
        {3, TN_ERR_ARGUMENT, "",
         "a grammar of kind 3, expected TN_LM_GBNF or TN_LM_JSON_SCHEMA"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_lm_grammar *grammar = NULL;
        tn_status status =
            tn_lm_grammar_open(rows[i].text, strlen(rows[i].text), rows[i].kind, &grammar);
        if (status != rows[i].status || grammar ||
            strcmp(tn_lm_error(), rows[i].message) != 0)
            cr_fatal("row %zu: status %d, %s", i, status, tn_lm_error());
    }
}

// Any two ways of cutting this text are possible, so each byte is of as many items as there
// are bytes before it.
Test(grammar, ambiguous_texts_end_in_bounded_memory)
{
    static char text[20000];
    int32_t fits;
    memset(text, 'a', sizeof(text));
    tn_lm_grammar *grammar = open_one("root ::= root root root | root root | \"a\"", 1);
    cr_assert(eq(int, tn_lm_grammar_test(grammar, text, 60, &fits), TN_OK));
    cr_assert(eq(int, fits, FITS));
    cr_assert(eq(int, tn_lm_grammar_test(grammar, text, sizeof(text), &fits),
                 TN_ERR_UNSUPPORTED));
    cr_assert(ne(ptr, (void *)(uintptr_t)strstr(tn_lm_error(), "ambiguous"), NULL));
    cr_assert(eq(int, tn_lm_grammar_test(grammar, text, 60, &fits), TN_OK)); // once more
    cr_assert(eq(int, fits, FITS));
    tn_lm_grammar_close(grammar);
}
