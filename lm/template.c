// SPDX-License-Identifier: MIT
// Families of chat templates as a table: what is before and behind a message of each role.
#include "template.h"
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum role { SYSTEM, USER, ASSISTANT, NUM_ROLES };

static const char *const role_names[NUM_ROLES] = {"system", "user", "assistant"};

enum { MAX_MARKS = 3 };

struct chat_family {
    const char *name;
    const char *marks[MAX_MARKS]; // texts that the template has,
    const char *absent;           // and one that it does not have, or NULL
    const char *before[NUM_ROLES], *behind[NUM_ROLES];
    const char *reply;     // the beginning of a reply; NULL: none
    const char *begin;     // of a conversation; NULL: none
    const char *again;     // before the second turn of the user and later ones, or NULL
    bool trims[NUM_ROLES]; // white space around a text is left out
    bool system_within;    // the system's text is a part of the user's first message
    bool closes_up;        // no white space between what is before and an image
};

// The first that fits counts.
static const struct chat_family families[] = {
    {.name = "phi-4",
     .marks = {"<|im_start|>", "<|im_sep|>"},
     .before = {"<|im_start|>system<|im_sep|>", "<|im_start|>user<|im_sep|>",
                "<|im_start|>assistant<|im_sep|>"},
     .behind = {"<|im_end|>", "<|im_end|>", "<|im_end|>"},
     .reply = "<|im_start|>assistant<|im_sep|>"},
    {.name = "chatml",
     .marks = {"<|im_start|>"},
     .absent = "<end_of_utterance>",
     .before = {"<|im_start|>system\n", "<|im_start|>user\n", "<|im_start|>assistant\n"},
     .behind = {"<|im_end|>\n", "<|im_end|>\n", "<|im_end|>\n"},
     .reply = "<|im_start|>assistant\n"},
    {.name = "smolvlm",
     .marks = {"<|im_start|>", "<end_of_utterance>", "capitalize"},
     .begin = "<|im_start|>",
     .before = {"System: ", "User: ", "Assistant: "},
     .behind = {"<end_of_utterance>\n", "<end_of_utterance>\n", "<end_of_utterance>\n"},
     .reply = "Assistant:",
     .trims = {[ASSISTANT] = true},
     .closes_up = true},
    {.name = "mistral-v7",
     .marks = {"[SYSTEM_PROMPT]", "[INST] "},
     .before = {"[SYSTEM_PROMPT] ", "[INST] ", " "},
     .behind = {"[/SYSTEM_PROMPT]", "[/INST]", "</s>"}},
    {.name = "mistral-v7-tekken",
     .marks = {"[SYSTEM_PROMPT]", "[INST]"},
     .before = {"[SYSTEM_PROMPT]", "[INST]", ""},
     .behind = {"[/SYSTEM_PROMPT]", "[/INST]", "</s>"}},
    {.name = "mistral-v1",
     .marks = {"' [INST] ' + system_message"},
     .before = {"", " [INST] ", " "},
     .behind = {"\n\n", " [/INST]", "</s>"},
     .system_within = true},
    {.name = "mistral-v3-tekken",
     .marks = {"[AVAILABLE_TOOLS]", "\"[INST]\""},
     .before = {"", "[INST]", ""},
     .behind = {"\n\n", "[/INST]", "</s>"},
     .system_within = true},
    {.name = "mistral-v3",
     .marks = {"[AVAILABLE_TOOLS]", "[INST]"},
     .before = {"", "[INST] ", " "},
     .behind = {"\n\n", "[/INST]", "</s>"},
     .trims = {[ASSISTANT] = true},
     .system_within = true},
    {.name = "llama-2",
     .marks = {"[INST]", "<<SYS>>"},
     .before = {"<<SYS>>\n", "[INST] ", " "},
     .behind = {"\n<</SYS>>\n\n", " [/INST]", " </s>"},
     .again = "<s>",
     .trims = {false, true, true},
     .system_within = true},
    {.name = "mistral-v1",
     .marks = {"[INST]", "[/INST]"},
     .before = {"", "[INST] ", " "},
     .behind = {"\n\n", " [/INST]", "</s>"},
     .system_within = true},
    {.name = "phi-3",
     .marks = {"<|assistant|>", "<|end|>"},
     .absent = "<|begin|>",
     .before = {"<|system|>\n", "<|user|>\n", "<|assistant|>\n"},
     .behind = {"<|end|>\n", "<|end|>\n", "<|end|>\n"},
     .reply = "<|assistant|>\n"},
    {.name = "gemma",
     .marks = {"<start_of_turn>"},
     .before = {"", "<start_of_turn>user\n", "<start_of_turn>model\n"},
     .behind = {"\n\n", "<end_of_turn>\n", "<end_of_turn>\n"},
     .reply = "<start_of_turn>model\n",
     .trims = {true, true, true},
     .system_within = true},
    {.name = "llama-3",
     .marks = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
     .before = {"<|start_header_id|>system<|end_header_id|>\n\n",
                "<|start_header_id|>user<|end_header_id|>\n\n",
                "<|start_header_id|>assistant<|end_header_id|>\n\n"},
     .behind = {"<|eot_id|>", "<|eot_id|>", "<|eot_id|>"},
     .reply = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .trims = {true, true, true}},
};

// --- recognising -----------------------------------------------------------------------

static bool has(const char *jinja, uint64_t size, const char *mark)
{
    return memmem(jinja, size, mark, strlen(mark)) != NULL;
}

static bool fits(const struct chat_family *family, const char *jinja, uint64_t size)
{
    for (size_t i = 0; i < MAX_MARKS && family->marks[i]; i++)
        if (!has(jinja, size, family->marks[i]))
            return false;
    return !family->absent || !has(jinja, size, family->absent);
}

// The text of a system message that the template has itself: between the marks of one, with
// no end of a literal between. A line ends as "\n", or as these two characters.
static void find_system(const char *jinja, uint64_t size, struct chat_template *out)
{
    static const char begin[] = "<|im_start|>system", end[] = "<|im_end|>";
    const char *limit = jinja + size, *at = jinja;
    while ((at = memmem(at, (size_t)(limit - at), begin, sizeof(begin) - 1)) != NULL) {
        at += sizeof(begin) - 1;
        size_t left = (size_t)(limit - at);
        size_t skip = left > 0 && at[0] == '\n'                   ? 1
                      : left > 1 && at[0] == '\\' && at[1] == 'n' ? 2
                                                                  : 0;
        const char *stop = memmem(at, left, end, sizeof(end) - 1);
        if (!skip || !stop)
            continue;
        const char *text = at + skip;
        size_t bytes = (size_t)(stop - text);
        if (memchr(text, '\'', bytes) || memchr(text, '"', bytes) ||
            memchr(text, '{', bytes))
            continue;
        out->system = text;
        out->system_size = bytes;
        return;
    }
}

bool chat_template_recognise(const char *jinja, uint64_t size, struct chat_template *out)
{
    for (size_t i = 0; i < COUNT(families); i++) {
        if (!fits(&families[i], jinja, size))
            continue;
        *out = (struct chat_template){.family = &families[i]};
        if (strcmp(families[i].name, "chatml") == 0)
            find_system(jinja, size, out);
        return true;
    }
    return false;
}

bool chat_template_find(const char *name, struct chat_template *out)
{
    for (size_t i = 0; i < COUNT(families); i++) {
        if (strcmp(families[i].name, name) != 0)
            continue;
        *out = (struct chat_template){.family = &families[i]};
        return true;
    }
    return false;
}

const char *chat_template_name(const struct chat_template *t)
{
    return t->family->name;
}

static bool is_first_of_name(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(families[i].name, families[index].name) == 0)
            return false;
    return true;
}

void chat_template_names(char *out, uint64_t size)
{
    uint64_t used = 0;
    if (size)
        out[0] = '\0';
    for (size_t i = 0; i < COUNT(families) && used < size; i++)
        if (is_first_of_name(i))
            used += (uint64_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
                                       families[i].name);
}

// --- writing ---------------------------------------------------------------------------

// A text that is counted as a whole and written as far as there is room.
struct output {
    char *out;
    uint64_t size, written;
    struct chat_range *ranges; // NULL: not wanted
    uint64_t num_ranges;
};

static void put(struct output *o, const char *text, uint64_t size)
{
    uint64_t room = o->written < o->size ? o->size - o->written : 0;
    if (room && size)
        memcpy(o->out + o->written, text, size < room ? size : room);
    o->written += size;
}

static void put_text(struct output *o, const char *text)
{
    put(o, text, text ? strlen(text) : 0);
}

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void put_message(struct output *o, const struct chat_family *f, enum role role,
                        const char *text, uint64_t size, bool is_message)
{
    while (f->trims[role] && size && is_white(text[0])) {
        text++;
        size--;
    }
    while (f->trims[role] && size && is_white(text[size - 1]))
        size--;
    uint64_t begin = o->written;
    put(o, text, size);
    if (is_message && o->ranges)
        o->ranges[o->num_ranges++] = (struct chat_range){begin, o->written};
    put_text(o, f->behind[role]);
}

// What stands before a message, of which `front` comes first.
static void put_before(struct output *o, const struct chat_family *f, enum role role,
                       const char *front)
{
    const char *text = f->before[role];
    size_t size = strlen(text);
    while (f->closes_up && front && front[0] && size && is_white(text[size - 1]))
        size--;
    put(o, text, size);
}

static const char *role_of(const char *name, enum role *out)
{
    for (int i = 0; i < NUM_ROLES; i++) {
        if (strcmp(role_names[i], name) != 0)
            continue;
        *out = (enum role)i;
        return NULL;
    }
    return "a message's role; expected system, user or assistant";
}

// The system's text of a family that has it in the user's message: that of the message
// before `index`, if that is the system's.
static const char *system_before(const struct chat_message *messages, uint64_t index)
{
    return index > 0 && strcmp(messages[index - 1].role, role_names[SYSTEM]) == 0
               ? messages[index - 1].text
               : NULL;
}

static const char *check(const struct chat_family *f, const struct chat_message *messages,
                         uint64_t count)
{
    enum role role, next;
    for (uint64_t i = 0; i < count; i++) {
        const char *wrong = role_of(messages[i].role, &role);
        if (wrong)
            return wrong;
        bool is_last = i + 1 == count;
        if (!is_last && role_of(messages[i + 1].role, &next) == NULL && role == SYSTEM &&
            f->system_within && next != USER)
            return "a system message that no user's message follows, as this template "
                   "needs";
        if (is_last && role == SYSTEM && f->system_within)
            return "a system message at the end, where this template needs a user's behind "
                   "it";
    }
    return NULL;
}

const char *chat_template_write(const struct chat_template *t,
                                const struct chat_message *messages, uint64_t count,
                                bool add_reply, char *out, uint64_t size,
                                uint64_t *out_size, struct chat_range *ranges,
                                uint64_t *num_ranges)
{
    const struct chat_family *f = t->family;
    struct output o = {out, size ? size - 1 : 0, 0, ranges, 0};
    const char *wrong = check(f, messages, count);
    bool any_user = false;
    if (wrong)
        return wrong;
    put_text(&o, f->begin);
    if (t->system && (count == 0 || strcmp(messages[0].role, role_names[SYSTEM]) != 0)) {
        put_text(&o, f->before[SYSTEM]);
        put_message(&o, f, SYSTEM, t->system, t->system_size, false);
    }
    for (uint64_t i = 0; i < count; i++) {
        enum role role = USER;
        (void)role_of(messages[i].role, &role);
        if (role == SYSTEM && f->system_within)
            continue; // with the user's message behind it
        if (role == USER && any_user)
            put_text(&o, f->again);
        put_before(&o, f, role, messages[i].front);
        const char *system = f->system_within ? system_before(messages, i) : NULL;
        if (role == USER && system) {
            put_text(&o, f->before[SYSTEM]);
            put_message(&o, f, SYSTEM, system, strlen(system), true);
        }
        put_text(&o, messages[i].front);
        put_message(&o, f, role, messages[i].text, strlen(messages[i].text), true);
        any_user |= role == USER;
    }
    if (add_reply)
        put_text(&o, f->reply);
    if (size)
        out[o.written < o.size ? o.written : o.size] = '\0';
    *out_size = o.written;
    if (num_ranges)
        *num_ranges = o.num_ranges;
    return NULL;
}
