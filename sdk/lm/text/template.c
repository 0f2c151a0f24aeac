// SPDX-License-Identifier: MIT
// Families of chat templates as a table: the texts before and behind a message of each
// role.
#include "template.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum role { SYSTEM, USER, ASSISTANT, NUM_ROLES };

static const char *const role_names[NUM_ROLES] = {"system", "user", "assistant"};

// Where a system message stands.
enum system_position {
    SYSTEM_OWN,     // it is a message of its own,
    SYSTEM_IN_NEXT, // a part of the user's message behind it,
    SYSTEM_IN_LAST, // or of the user's last message
};

// How the template treats text up to "</think>" in the assistant's earlier messages.
enum thinking {
    THINKING_KEPT,
    THINKING_DROPPED,
    THINKING_DROPPED_LINES, // and the ends of lines behind it
    THINKING_DROPPED_WHITE, // and white space at both ends
};

struct chat_family {
    const char *name;
    const char *before[NUM_ROLES], *behind[NUM_ROLES];
    const char *reply;     // the beginning of a reply; NULL: none
    const char *begin;     // the beginning of a conversation; NULL: none
    const char *again;     // text before the second and later turns of the user, or NULL
    const char *system;    // the text of a conversation without a system message, or NULL
    bool trims[NUM_ROLES]; // white space around a text is left out
    enum system_position system_position;
    enum thinking thinking;
    bool finds_system; // the model's template may have such a text itself
    bool dates_system; // the current day stands before the system's text: "05 Jun 2024\n\n"
    bool closes_up;    // no white space between `before` and an image
};

#define CHATML                                                                             \
    .before = {"<|im_start|>system\n", "<|im_start|>user\n", "<|im_start|>assistant\n"},   \
    .behind = {"<|im_end|>\n", "<|im_end|>\n", "<|im_end|>\n"}
#define CHATML_REPLY "<|im_start|>assistant\n"
#define LLAMA_3(system_lines)                                                              \
    .before = {"<|start_header_id|>system<|end_header_id|>\n\n" system_lines,              \
               "<|start_header_id|>user<|end_header_id|>\n\n",                             \
               "<|start_header_id|>assistant<|end_header_id|>\n\n"},                       \
    .behind = {"<|eot_id|>", "<|eot_id|>", "<|eot_id|>"},                                  \
    .reply = "<|start_header_id|>assistant<|end_header_id|>\n\n",                          \
    .trims = {true, true, true}
#define UTTERANCES                                                                         \
    .before = {"System: ", "User: ", "Assistant: "},                                       \
    .behind = {"<end_of_utterance>\n", "<end_of_utterance>\n", "<end_of_utterance>\n"},    \
    .reply = "Assistant:", .trims = {[ASSISTANT] = true}, .closes_up = true
#define DEEPSEEK                                                                           \
    .before = {"", "<｜User｜>", "<｜Assistant｜>"},                                       \
    .behind = {"", "", "<｜end▁of▁sentence｜>"}, .thinking = THINKING_DROPPED

static const struct chat_family families[] = {
    {.name = "phi-4",
     .before = {"<|im_start|>system<|im_sep|>", "<|im_start|>user<|im_sep|>",
                "<|im_start|>assistant<|im_sep|>"},
     .behind = {"<|im_end|>", "<|im_end|>", "<|im_end|>"},
     .reply = "<|im_start|>assistant<|im_sep|>"},
    {.name = "chatml", CHATML, .reply = CHATML_REPLY, .finds_system = true},
    {.name = "qwen3", CHATML, .reply = CHATML_REPLY, .thinking = THINKING_DROPPED_LINES},
    {.name = "qwq",
     CHATML,
     .reply = CHATML_REPLY "<think>\n</think>",
     .thinking = THINKING_DROPPED_LINES},
    {.name = "qwen3.5",
     CHATML,
     .reply = CHATML_REPLY "<think>\n",
     .thinking = THINKING_DROPPED_LINES,
     .trims = {true, true, true}},
    {.name = "qwen3.5-plain",
     CHATML,
     .reply = CHATML_REPLY "<think>\n\n</think>\n\n",
     .thinking = THINKING_DROPPED_LINES,
     .trims = {true, true, true}},
    {.name = "step-3.5",
     CHATML,
     .reply = CHATML_REPLY "<think>\n",
     .thinking = THINKING_DROPPED_LINES},
    {.name = "lfm2.5", CHATML, .reply = CHATML_REPLY, .thinking = THINKING_DROPPED_WHITE},
    {.name = "smolvlm", UTTERANCES, .begin = "<|im_start|>"},
    {.name = "idefics3", UTTERANCES, .begin = "<|begin_of_text|>"},
    {.name = "mistral-v7",
     .before = {"[SYSTEM_PROMPT] ", "[INST] ", " "},
     .behind = {"[/SYSTEM_PROMPT]", "[/INST]", "</s>"}},
    {.name = "mistral-v7-tekken",
     .before = {"[SYSTEM_PROMPT]", "[INST]", ""},
     .behind = {"[/SYSTEM_PROMPT]", "[/INST]", "</s>"}},
    {.name = "mistral-v0.2",
     .before = {"", "[INST] ", ""},
     .behind = {"\n\n", " [/INST]", "</s>"},
     .system_position = SYSTEM_IN_NEXT},
    {.name = "mistral-v1",
     .before = {"", " [INST] ", " "},
     .behind = {"\n\n", " [/INST]", "</s>"},
     .system_position = SYSTEM_IN_NEXT},
    {.name = "mistral-v3-tekken",
     .before = {"", "[INST]", ""},
     .behind = {"\n\n", "[/INST]", "</s>"},
     .system_position = SYSTEM_IN_LAST},
    {.name = "mistral-v3",
     .before = {"", "[INST] ", " "},
     .behind = {"\n\n", "[/INST]", "</s>"},
     .trims = {[ASSISTANT] = true},
     .system_position = SYSTEM_IN_LAST},
    {.name = "llama-2",
     .before = {"<<SYS>>\n", "[INST] ", " "},
     .behind = {"\n<</SYS>>\n\n", " [/INST]", " </s>"},
     .again = "<s>",
     .trims = {false, true, true},
     .system_position = SYSTEM_IN_NEXT},
    {.name = "phi-3",
     .before = {"<|system|>\n", "<|user|>\n", "<|assistant|>\n"},
     .behind = {"<|end|>\n", "<|end|>\n", "<|end|>\n"},
     .reply = "<|assistant|>\n"},
    {.name = "gemma",
     .before = {"", "<start_of_turn>user\n", "<start_of_turn>model\n"},
     .behind = {"\n\n", "<end_of_turn>\n", "<end_of_turn>\n"},
     .reply = "<start_of_turn>model\n",
     .trims = {false, true, true},
     .system_position = SYSTEM_IN_NEXT},
    {.name = "llama-3", LLAMA_3("")},
    {.name = "llama-3.1",
     LLAMA_3("Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"),
     .system = ""},
    {.name = "llama-3.2",
     LLAMA_3("Cutting Knowledge Date: December 2023\nToday Date: "),
     .system = "",
     .dates_system = true},
    {.name = "deepseek-r1", DEEPSEEK, .reply = "<｜Assistant｜><think>\n"},
    {.name = "deepseek-r1-plain", DEEPSEEK, .reply = "<｜Assistant｜>"},
    {.name = "granite",
     .before = {"<|start_of_role|>system<|end_of_role|>",
                "<|start_of_role|>user<|end_of_role|>",
                "<|start_of_role|>assistant<|end_of_role|>"},
     .behind = {"<|end_of_text|>\n", "<|end_of_text|>\n", "<|end_of_text|>\n"},
     .reply = "<|start_of_role|>assistant<|end_of_role|>"},
    {.name = "kimi-k2",
     .before = {"<|im_system|>system<|im_middle|>", "<|im_user|>user<|im_middle|>",
                "<|im_assistant|>assistant<|im_middle|>"},
     .behind = {"<|im_end|>", "<|im_end|>", "<|im_end|>"},
     .reply = "<|im_assistant|>assistant<|im_middle|>",
     .system = "You are a helpful assistant"},
};

// --- families by name -------------------------------------------------------------------

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

bool chat_template_finds_system(const struct chat_template *t)
{
    return t->family->finds_system;
}

const char *chat_template_end(const struct chat_template *t)
{
    static const char end[] = "</s>";
    return strstr(t->family->behind[ASSISTANT], end) ? end : NULL;
}

const char *chat_template_text(const struct chat_template *t, uint32_t index)
{
    const struct chat_family *f = t->family;
    const char *const texts[] = {f->before[SYSTEM], f->before[USER], f->before[ASSISTANT],
                                 f->behind[SYSTEM], f->behind[USER], f->behind[ASSISTANT],
                                 f->reply,          f->begin,        f->again};
    if (index >= COUNT(texts))
        return NULL;
    return texts[index] ? texts[index] : "";
}

void chat_template_names(char *out, uint64_t size)
{
    uint64_t used = 0;
    if (size)
        out[0] = '\0';
    for (size_t i = 0; i < COUNT(families) && used < size; i++)
        used += (uint64_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
                                   families[i].name);
}

// --- writing ---------------------------------------------------------------------------

// A text that is counted as a whole, and written as far as it fits.
struct template_output {
    char *out;
    uint64_t size, written;
    struct chat_range *ranges; // NULL: not wanted
    uint64_t num_ranges;
};

static void template_put(struct template_output *o, const char *text, uint64_t size)
{
    uint64_t room = o->written < o->size ? o->size - o->written : 0;
    if (room && size)
        memcpy(o->out + o->written, text, size < room ? size : room);
    o->written += size;
}

static void template_put_text(struct template_output *o, const char *text)
{
    template_put(o, text, text ? strlen(text) : 0);
}

// --- texts of messages -----------------------------------------------------------------

// A part of a message's text, in bytes.
struct template_piece {
    const char *text;
    uint64_t size;
};

static struct template_piece piece_of(const char *text)
{
    return (struct template_piece){text, strlen(text)};
}

// White space beyond ASCII that Python's strip() removes, in UTF-8.
static const char wide_white[][4] = {
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
    "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
    "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
    "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};

static bool template_is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
}

// Bytes of the white-space character at the beginning or the end; 0: there is none.
static uint64_t white_size(struct template_piece p, bool at_end)
{
    if (p.size && template_is_white(p.text[at_end ? p.size - 1 : 0]))
        return 1;
    for (size_t i = 0; i < COUNT(wide_white); i++) {
        size_t size = strlen(wide_white[i]);
        if (size <= p.size &&
            memcmp(at_end ? p.text + p.size - size : p.text, wide_white[i], size) == 0)
            return size;
    }
    return 0;
}

static struct template_piece piece_cut(struct template_piece p, uint64_t size)
{
    return (struct template_piece){p.text + size, p.size - size};
}

static struct template_piece piece_trimmed(struct template_piece p)
{
    for (uint64_t size; (size = white_size(p, false));)
        p = piece_cut(p, size);
    for (uint64_t size; (size = white_size(p, true));)
        p.size -= size;
    return p;
}

static struct template_piece piece_without_thinking(struct template_piece p,
                                                    enum thinking thinking)
{
    static const char mark[] = "</think>";
    bool any = false;
    for (const char *at; (at = memmem(p.text, p.size, mark, sizeof(mark) - 1)); any = true)
        p = piece_cut(p, (uint64_t)(at - p.text) + sizeof(mark) - 1);
    if (any && thinking == THINKING_DROPPED_WHITE)
        return piece_trimmed(p);
    while (any && thinking == THINKING_DROPPED_LINES && p.size && p.text[0] == '\n')
        p = piece_cut(p, 1);
    return p;
}

// The part of a message that the template writes.
static struct template_piece piece_taken(const struct chat_family *f, enum role role,
                                         const char *text)
{
    struct template_piece p =
        f->trims[role] ? piece_trimmed(piece_of(text)) : piece_of(text);
    return role == ASSISTANT && f->thinking != THINKING_KEPT
               ? piece_without_thinking(p, f->thinking)
               : p;
}

// --- messages --------------------------------------------------------------------------

static void put_message(struct template_output *o, const struct chat_family *f,
                        enum role role, const char *text)
{
    struct template_piece p = piece_taken(f, role, text);
    uint64_t begin = o->written;
    template_put(o, p.text, p.size);
    if (o->ranges)
        o->ranges[o->num_ranges++] = (struct chat_range){begin, o->written};
    template_put_text(o, f->behind[role]);
}

// Writes the day as "05 Jun 2024", and an empty line.
static void put_day(struct template_output *o, int64_t now)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t at = now ? (time_t)now : time(NULL);
    struct tm day;
    char text[32] = "";
    if (localtime_r(&at, &day))
        snprintf(text, sizeof(text), "%02d %.3s %d\n\n", day.tm_mday,
                 months + 3 * (day.tm_mon % 12), day.tm_year + 1900);
    template_put_text(o, text);
}

// Writes the text before a message that begins with `front`.
static void put_before(struct template_output *o, const struct chat_template *t,
                       enum role role, const char *front)
{
    const struct chat_family *f = t->family;
    struct template_piece p = piece_of(f->before[role]);
    if (f->closes_up && front && front[0] && p.size &&
        template_is_white(p.text[p.size - 1]))
        p.size--;
    template_put(o, p.text, p.size);
    if (role == SYSTEM && f->dates_system)
        put_day(o, t->now);
}

// Writes the system message of a conversation that has none.
static void put_own_system(struct template_output *o, const struct chat_template *t)
{
    const struct chat_family *f = t->family;
    if (!t->system && !f->system)
        return;
    put_before(o, t, SYSTEM, NULL);
    template_put(o, t->system ? t->system : f->system,
                 t->system ? t->system_size : strlen(f->system));
    template_put_text(o, f->behind[SYSTEM]);
}

static enum role template_role_of(const char *name)
{
    for (int i = 0; i < NUM_ROLES; i++)
        if (strcmp(role_names[i], name) == 0)
            return (enum role)i;
    return NUM_ROLES;
}

// Index of the user's last message; `count`: there is none.
static uint64_t last_of_user(const struct chat_message *messages, uint64_t count)
{
    for (uint64_t i = count; i > 0; i--)
        if (template_role_of(messages[i - 1].role) == USER)
            return i - 1;
    return count;
}

// The system's text, if message `index` contains it; else NULL.
static const char *system_within(const struct chat_family *f,
                                 const struct chat_message *messages, uint64_t count,
                                 uint64_t index)
{
    if (index == 0)
        return NULL;
    uint64_t from = f->system_position == SYSTEM_IN_LAST   ? 0
                    : f->system_position == SYSTEM_IN_NEXT ? index - 1
                                                           : index;
    bool is_position =
        f->system_position != SYSTEM_IN_LAST || index == last_of_user(messages, count);
    return is_position && template_role_of(messages[index].role) == USER &&
                   template_role_of(messages[from].role) == SYSTEM
               ? messages[from].text
               : NULL;
}

static const char *conversation_check_system(const struct chat_template *t,
                                             const struct chat_message *messages,
                                             uint64_t count, uint64_t index)
{
    enum system_position position = t->family->system_position;
    if (t->flags & TEMPLATE_NO_SYSTEM)
        return "a system message, for which the model's template has no place";
    if (index > 0 && (position == SYSTEM_IN_LAST || t->flags & TEMPLATE_SYSTEM_FIRST))
        return "a system message behind another message, for which this template has no "
               "place";
    if (position == SYSTEM_IN_NEXT &&
        (index + 1 == count || template_role_of(messages[index + 1].role) != USER))
        return "a system message that no user's message follows, as this template needs";
    if (position == SYSTEM_IN_LAST && last_of_user(messages, count) == count)
        return "a system message without a user's, of which this template makes it a part";
    return NULL;
}

static const char *conversation_check(const struct chat_template *t,
                                      const struct chat_message *messages, uint64_t count)
{
    bool has_system = count > 0 && template_role_of(messages[0].role) == SYSTEM;
    const char *wrong = NULL;
    for (uint64_t i = 0; i < count && !wrong; i++) {
        enum role role = template_role_of(messages[i].role);
        bool is_user_turn = (i + has_system) % 2 == 0;
        if (role == NUM_ROLES)
            return "a message's role; expected system, user or assistant";
        if (role == SYSTEM)
            wrong = conversation_check_system(t, messages, count, i);
        else if (t->flags & TEMPLATE_ALTERNATES && (role == USER) != is_user_turn)
            wrong = "two messages of one side in a row, or a reply first, where the "
                    "model's template has the user and the assistant in turn";
    }
    if (!wrong && t->flags & TEMPLATE_NEEDS_SYSTEM && (!has_system || !messages[0].text[0]))
        wrong =
            "no system message, in whose place the model's template has one that is not "
            "known: give one";
    return wrong;
}

static void put_turn(struct template_output *o, const struct chat_template *t,
                     enum role role, const struct chat_message *message, const char *system)
{
    put_before(o, t, role, message->front);
    if (system) {
        put_before(o, t, SYSTEM, NULL);
        put_message(o, t->family, SYSTEM, system);
    }
    template_put_text(o, message->front);
    put_message(o, t->family, role, message->text);
}

static void put_turns(struct template_output *o, const struct chat_template *t,
                      const struct chat_message *messages, uint64_t count)
{
    const struct chat_family *f = t->family;
    bool any_user = false;
    for (uint64_t i = 0; i < count; i++) {
        enum role role = template_role_of(messages[i].role);
        if (role == SYSTEM && f->system_position != SYSTEM_OWN)
            continue; // within a user's message
        if (role == USER && any_user)
            template_put_text(o, f->again);
        put_turn(o, t, role, &messages[i], system_within(f, messages, count, i));
        any_user |= role == USER;
    }
}

const char *chat_template_write(const struct chat_template *t,
                                const struct chat_message *messages, uint64_t count,
                                bool add_reply, char *out, uint64_t size,
                                uint64_t *out_size, struct chat_range *ranges,
                                uint64_t *num_ranges)
{
    struct template_output o = {out, size ? size - 1 : 0, 0, ranges, 0};
    const char *wrong = conversation_check(t, messages, count);
    if (wrong)
        return wrong;
    template_put_text(&o, t->family->begin);
    if (count == 0 || template_role_of(messages[0].role) != SYSTEM)
        put_own_system(&o, t);
    put_turns(&o, t, messages, count);
    if (add_reply)
        template_put_text(&o, t->family->reply);
    if (size)
        out[o.written < o.size ? o.written : o.size] = '\0';
    *out_size = o.written;
    if (num_ranges)
        *num_ranges = o.num_ranges;
    return NULL;
}
