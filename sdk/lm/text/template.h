// SPDX-License-Identifier: MIT
// Chat templates: a conversation as the text that a model was trained to go on with.
//
// A model's file has a program in Jinja under "tokenizer.chat_template". It is not run: the
// families of such programs are few. A program is known when the SHA-256 of its text is in
// a list (template_list.h), made by tests/tokenizers/chat_templates.py, which has run it
// and found that it writes what this does. Any other is unknown, however alike: a user may
// choose a family by its name.
//
// Threads. Pure functions of their arguments: any thread.
#ifndef LM_TEMPLATE_H
#define LM_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

// One message. Texts are UTF-8, ended by a zero byte; borrowed.
struct chat_message {
    const char *role; // "system", "user" or "assistant"
    const char *text;
    const char *front; // control text before the message's own, marks of images; or NULL
};

// Facts about one model's template, beside its family. Conversations that the template does
// not support are refused.
enum {
    TEMPLATE_KNOWN = 1,        // it was recognised
    TEMPLATE_BEGINS = 2,       // it writes the token that begins a text; else no token does
    TEMPLATE_NO_SYSTEM = 4,    // it has no place for a system message
    TEMPLATE_NEEDS_SYSTEM = 8, // its text without a system message is not known
    TEMPLATE_SYSTEM_FIRST = 16, // only the first message may be the system's
    TEMPLATE_ALTERNATES = 32,   // after that come the user and the assistant in turn
};

// A family, with the facts of one model's template. May be copied.
struct chat_template {
    const struct chat_family *family;
    uint32_t flags;       // TEMPLATE_...; 0 where it was chosen by its name
    const char *system;   // the text of a conversation that has no system message, or NULL;
    uint64_t system_size; // points into the recognised template, and is valid as long as it
    int64_t now;          // seconds since 1970, for forms with the day; 0: the current time
};

// Where a message's own text lies in the whole: bytes begin .. end - 1.
struct chat_range {
    uint64_t begin, end;
};

// Recognises a model's own template, of `size` bytes; Jinja leaves out one end of a line at
// its end, and so does this. False for an unknown one; *out is unchanged then.
bool chat_template_recognise(const char *jinja, uint64_t size, struct chat_template *out);

// The template of a family by its name. False for an unknown one.
bool chat_template_find(const char *name, struct chat_template *out);

// Whether a model's template may have the text of a system message of its own.
bool chat_template_finds_system(const struct chat_template *t);

// The name of a template's family: "chatml".
const char *chat_template_name(const struct chat_template *t);

// Text of the token that ends a reply, if templates of this form write the end token that
// the model's file names; else NULL.
const char *chat_template_end(const struct chat_template *t);

// Text `index` of the form itself, around messages of any role; "" where the form has none;
// NULL behind the last one.
const char *chat_template_text(const struct chat_template *t, uint32_t index);

// Writes the names of all families, separated by ", ", cut at `size` bytes.
void chat_template_names(char *out, uint64_t size);

// Writes `count` messages and, with `add_reply`, the beginning of the assistant's reply: at
// most `size` bytes, a zero byte included, as snprintf. The text is for
// TN_ENCODE_ADD_SPECIAL and TN_ENCODE_PARSE_SPECIAL: the token that begins every text is
// not in it. Gives the bytes of the whole text, without the zero byte, in *out_size.
//
// `ranges` may be NULL; else it has room for `count`, and gets the ranges of the messages'
// own texts: *num_ranges of them, in ascending order.
//
// Returns NULL, or the fault of the messages, for the caller's message: "the role 'tool';
// expected system, user or assistant".
const char *chat_template_write(const struct chat_template *t,
                                const struct chat_message *messages, uint64_t count,
                                bool add_reply, char *out, uint64_t size,
                                uint64_t *out_size, struct chat_range *ranges,
                                uint64_t *num_ranges);

#endif // LM_TEMPLATE_H
