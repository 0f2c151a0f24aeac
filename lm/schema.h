// SPDX-License-Identifier: MIT
// What the parts that read JSON schemas share.
#ifndef LM_SCHEMA_H
#define LM_SCHEMA_H

#include <jansson.h>
#include "grammar.h"

// One character of a string's text, of these ranges or of all others, as JSON writes it
// between quotes. Changes the order of `ranges`.
grammar_node schema_characters(struct grammar_builder *b, struct grammar_range *ranges,
                               uint64_t count, bool is_negated);

// The type that a schema without one is of, by its other keys; NULL: any.
const char *schema_guess_type(const json_t *schema);

// A keyword that is not read and may narrow a schema; NULL: none.
const char *schema_unknown_key(json_t *schema);

// Whether a value is valid by one of the schemas of a "oneOf" at most, as far as a value is
// one that the grammar of a schema has. What cannot be decided counts as no; then
// *out_one and *out_other are the numbers of the two.
bool schema_are_apart(json_t *root, json_t *list, size_t *out_one, size_t *out_other);

// What a pointer within the schema leads to: "#/$defs/name"; NULL: nothing.
json_t *schema_follow(json_t *root, const char *reference);

// A number between the bounds that `schema` gives; `where` begins messages.
grammar_node schema_number(struct grammar_builder *b, const json_t *schema, bool is_integer,
                           const char *where);

// A key, with its quotes, that is none of the names of `properties`.
grammar_node schema_other_key(struct grammar_builder *b, json_t *properties);

#endif // LM_SCHEMA_H
