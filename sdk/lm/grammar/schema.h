// SPDX-License-Identifier: MIT
// Shared by the files that read JSON schemas.
#ifndef LM_SCHEMA_H
#define LM_SCHEMA_H

#include <jansson.h>
#include "grammar.h"

// The rule of a schema that a reference names, or that was merged from several.
struct schema_known {
    const json_t *schema;
    const char *tag; // a member that is required besides, or NULL
    int32_t rule;
};

// The state of reading a schema. Nodes are made by the functions of grammar.h.
struct schema_reader {
    struct grammar_builder *b;
    json_t *root;
    json_t *made; // array that owns the merged schemas
    struct schema_known *known;
    uint64_t num_known, room_known;
    int32_t space, value, string; // rules that are made when first used; 0: not yet
    int depth;
    char path[400]; // of the schema that is read: "#/properties/name"
};

// Records the first failure: the path, what is wrong, and a name. Gives -1.
grammar_node schema_refuse(struct schema_reader *r, tn_status status, const char *what,
                           const char *name);

// Reads the schema under a key of the current one, and under a name there unless it is
// NULL.
grammar_node schema_read_at(struct schema_reader *r, json_t *schema, const char *key,
                            const char *name);

// An integer of 0 or more under a key, or `otherwise` where there is none.
uint32_t schema_count(struct schema_reader *r, const json_t *schema, const char *key,
                      uint32_t otherwise);

// A constant, as JSON writes it; any value at all; an object.
grammar_node schema_constant(struct schema_reader *r, json_t *value);
grammar_node schema_any(struct schema_reader *r);
grammar_node schema_object(struct schema_reader *r, json_t *schema);

// A comma with the white space behind it; a node behind commas, min to max times.
grammar_node schema_comma(struct schema_reader *r);
grammar_node schema_repeat(struct schema_reader *r, grammar_node node, uint32_t min,
                           uint32_t max);

// `within` between brackets; `node` with white space behind, unless its text is empty.
grammar_node schema_in_brackets(struct schema_reader *r, const char *begin,
                                grammar_node within, const char *end);
grammar_node schema_then_space(struct schema_reader *r, grammar_node node);

// One character of a string's text, one of these ranges or, negated, any other, as JSON
// writes it between quotes. Reorders `ranges`.
grammar_node schema_characters(struct grammar_builder *b, struct grammar_range *ranges,
                               uint64_t count, bool is_negated);

// The texts of `node` with min to max characters; `characters` are the nodes of one
// character, ascending. *out_is_too_large: there are too many ways to share a length among
// parts.
grammar_node schema_fit_length(struct grammar_builder *b, grammar_node node,
                               const grammar_node *characters, uint64_t count, uint32_t min,
                               uint32_t max, bool *out_is_too_large);

// The type of a schema that states none, guessed from its other keys; NULL: any.
const char *schema_guess_type(const json_t *schema);

// A keyword that this reader does not know and that may narrow a schema; NULL: none.
const char *schema_unknown_key(json_t *schema);

// Whether the keyword has no effect on validity: "title".
bool schema_is_note(const char *key);

// Whether a schema has a keyword that affects validity.
bool schema_narrows(const json_t *schema);

// Whether a schema has "const" or "enum"; and its constants, as a new array.
bool schema_has_constants(const json_t *schema);
json_t *schema_constants(const json_t *schema);

// Whether a list has this text.
bool schema_lists(const json_t *list, const char *name);

// The characters of a text of UTF-8.
uint64_t schema_text_length(const char *text);

// Whether a value is valid by a schema; SCHEMA_UNKNOWN where this reader cannot decide.
enum schema_verdict { SCHEMA_NO, SCHEMA_UNKNOWN, SCHEMA_YES };
enum schema_verdict schema_accepts(json_t *root, json_t *schema, json_t *value);

// Merges `schema` and `beside` to one schema, without references and allOf at its top, and
// without keys beside its alternatives: a new reference. NULL: out_why names the keyword
// that cannot be merged.
enum { SCHEMA_WHY = 80 };
json_t *schema_merge(json_t *root, json_t *schema, json_t *beside,
                     char out_why[SCHEMA_WHY]);

// Whether each value is valid by at most one of the schemas of a "oneOf". Of a schema's
// values only those count that its grammar has. Each schema has the member `tag`, unless
// that is NULL. Undecided pairs count as overlapping; then *out_one and *out_other are the
// numbers of the two schemas.
enum schema_disjoint { SCHEMA_TOGETHER, SCHEMA_TOO_MANY, SCHEMA_DISJOINT };
enum schema_disjoint schema_are_disjoint(json_t *root, json_t *list, const char *tag,
                                         size_t *out_one, size_t *out_other);

// The schema at a pointer within `root`, "#/$defs/name"; NULL: there is none.
json_t *schema_follow(json_t *root, const char *reference);

// A number between the bounds that `schema` gives; `where` begins messages.
grammar_node schema_number(struct grammar_builder *b, const json_t *schema, bool is_integer,
                           const char *where);

// A key, with its quotes, that is none of the names of `properties`.
grammar_node schema_other_key(struct grammar_builder *b, json_t *properties);

#endif // LM_SCHEMA_H
