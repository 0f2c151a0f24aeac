// SPDX-License-Identifier: MIT
// Chat templates: a conversation as the text that a model was trained to go on with.
//
// A model's file has a program in Jinja under "tokenizer.chat_template". It is not run: the
// families of such programs are few, and are recognised by the marks in the text. An
// unknown one is told with the names of those that are known, of which a user may choose.
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

// A family, and what one model's template says beside it. A copy is as good.
struct chat_template {
    const struct chat_family *family;
    const char *system;   // the text of a conversation that has no system message, or NULL;
    uint64_t system_size; // in the template that was recognised: valid as long as that
};

// Where a message's own words are in the text: bytes begin .. end - 1.
struct chat_range {
    uint64_t begin, end;
};

// Recognises a model's own template, of `size` bytes. False for an unknown one; *out is
// unchanged then.
bool chat_template_recognise(const char *jinja, uint64_t size, struct chat_template *out);

// The template of a family by its name. False for an unknown one.
bool chat_template_find(const char *name, struct chat_template *out);

// The name of a template's family: "chatml".
const char *chat_template_name(const struct chat_template *t);

// Writes the names of all families, separated by ", ", cut at `size` bytes.
void chat_template_names(char *out, uint64_t size);

// Writes `count` messages and, with `add_reply`, the beginning of the assistant's reply: at
// most `size` bytes, a zero byte included, as snprintf. The text is for
// TN_ENCODE_ADD_SPECIAL and TN_ENCODE_PARSE_SPECIAL: the token that begins every text is
// not in it. Gives the bytes of the whole text, without the zero byte, in *out_size.
//
// `ranges` may be NULL, else has room for `count`, and gets where words are that messages
// brought: *num_ranges of them, in ascending order.
//
// Returns NULL, or what is wrong with the messages, for a message of the caller: "the role
// 'tool'; expected system, user or assistant".
const char *chat_template_write(const struct chat_template *t,
                                const struct chat_message *messages, uint64_t count,
                                bool add_reply, char *out, uint64_t size,
                                uint64_t *out_size, struct chat_range *ranges,
                                uint64_t *num_ranges);

#endif // LM_TEMPLATE_H
