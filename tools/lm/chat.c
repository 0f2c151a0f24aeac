// SPDX-License-Identifier: MIT
// tenon chat: a conversation. Ctrl-C ends a reply, Ctrl-D the program. Lines may be
// commands.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/lm_adapter.h>
#include <unistd.h>
#include "lm.h"

// Positions of room for a reply, at most: the oldest messages are dropped to make it.
#define REPLY_ROOM 128

struct conversation {
    tn_lm_message *messages; // texts are owned
    uint32_t *num_images;    // in front of each message's text
    uint64_t count, room;
    struct pictures pictures; // of all messages in order, then of the next message
    uint32_t num_next;
    char *reply; // that is being written
    size_t reply_size, reply_room;
};

// The sequence whose reply Ctrl-C ends; NULL: none is being written.
static _Atomic(tn_lm_sequence *) replying;

static void lm_chat_interrupted(int number)
{
    (void)number;
    tn_lm_sequence *sequence = atomic_load(&replying);
    if (sequence)
        tn_lm_cancel(sequence);
}

// Takes `text`, also on failure.
static int add_message(struct conversation *c, const char *role, char *text)
{
    if (text && c->count == c->room) {
        uint64_t room = 2 * c->room + 8;
        tn_lm_message *more = realloc(c->messages, room * sizeof(*more));
        c->messages = more ? more : c->messages;
        uint32_t *counts = realloc(c->num_images, room * sizeof(*counts));
        c->num_images = counts ? counts : c->num_images;
        c->room = more && counts ? room : c->room;
    }
    if (!text || c->count == c->room) {
        free(text);
        return stop_memory();
    }
    bool is_user = strcmp(role, "user") == 0;
    c->num_images[c->count] = is_user ? c->num_next : 0;
    c->num_next = is_user ? 0 : c->num_next;
    c->messages[c->count++] = (tn_lm_message){role, text};
    return 0;
}

static void drop_message(struct conversation *c, uint64_t at)
{
    uint64_t first = 0, num = c->num_images[at];
    for (uint64_t i = 0; i < at; i++)
        first += c->num_images[i];
    struct pictures *p = &c->pictures;
    for (uint64_t i = first; i < first + num; i++)
        tn_lm_image_close(p->items[i]);
    p->count -= num;
    memmove(p->items + first, p->items + first + num,
            (p->count - first) * sizeof(*p->items));
    memmove(c->num_images + at, c->num_images + at + 1,
            (c->count - at - 1) * sizeof(*c->num_images));
    free((char *)(uintptr_t)c->messages[at].text);
    c->count--;
    memmove(c->messages + at, c->messages + at + 1, (c->count - at) * sizeof(*c->messages));
}

static void lm_chat_finish(struct conversation *c)
{
    while (c->count > 0)
        drop_message(c, c->count - 1);
    close_pictures(&c->pictures);
    free(c->messages);
    free(c->num_images);
    free(c->reply);
}

static int32_t lm_chat_print(void *context, const tn_lm_piece *piece)
{
    struct conversation *c = context;
    write_piece(piece->text, piece->size);
    if (c->reply_size + piece->size + 1 > c->reply_room) {
        size_t room = 2 * (c->reply_size + piece->size + 1);
        char *more = realloc(c->reply, room);
        if (!more)
            return 1;
        c->reply = more;
        c->reply_room = room;
    }
    memcpy(c->reply + c->reply_size, piece->text, piece->size);
    c->reply_size += piece->size;
    c->reply[c->reply_size] = 0;
    return ferror(stdout);
}

// The positions that the images have beside their marks, and the tokens.
static int count_tokens(const struct opened *opened, const struct lm_options *given,
                        const struct conversation *c, int32_t **out_ids,
                        uint64_t *out_count, int64_t *out_positions)
{
    const struct pictures *p = &c->pictures;
    tn_status status = p->count > 0
                           ? tn_lm_chat_images(opened->lm, given->template, c->messages,
                                               c->count, c->num_images, out_ids, out_count)
                           : tn_lm_chat_tokens(opened->lm, given->template, c->messages,
                                               c->count, out_ids, out_count);
    if (status != TN_OK)
        return stop_lm();
    *out_positions = (int64_t)*out_count;
    for (uint64_t i = 0; i < p->count; i++) {
        tn_lm_image_info info = {.struct_size = sizeof(info)};
        tn_lm_image_describe(p->items[i], &info);
        *out_positions += info.positions - 1;
    }
    return 0;
}

// Messages that are never dropped: the system's, which is the first.
static uint64_t num_kept(const struct conversation *c)
{
    return c->count > 0 && strcmp(c->messages[0].role, "system") == 0;
}

static int64_t room_of_reply(const struct lm_options *given, int64_t context)
{
    int64_t room =
        given->tokens > 0 && given->tokens < REPLY_ROOM ? given->tokens : REPLY_ROOM;
    return room < context / 2 ? room : context / 2;
}

// Gives the conversation's tokens, of which the oldest messages are dropped until there is
// room for a reply.
static int lm_chat_write_prompt(const struct opened *opened, const struct lm_options *given,
                                struct conversation *c, int32_t **out_ids,
                                uint64_t *out_count)
{
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(opened->lm, &info);
    for (;;) {
        uint64_t first = num_kept(c);
        int64_t positions = 0;
        if (count_tokens(opened, given, c, out_ids, out_count, &positions))
            return 1;
        if (positions + room_of_reply(given, info.context) <= info.context ||
            c->count < first + 3)
            return 0; // tn_lm_generate() fails where it is still too long
        tn_lm_free(*out_ids);
        fprintf(stderr,
                "(the context of %" PRId64 " positions is full: the oldest message "
                "and its reply are forgotten)\n",
                info.context);
        drop_message(c, first);
        drop_message(c, first);
    }
}

// After the loss of a device: reopens the model on the devices that are left, with an empty
// sequence.
static tn_status move_model(struct opened *opened, const struct lm_options *given)
{
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(opened->lm, &info);
    tn_lm_sequence_close(opened->sequence);
    opened->sequence = NULL;
    tn_status status = tn_lm_ensure_shard(opened->lm, 0, info.layers - 1);
    if (status == TN_OK && given->adapter)
        status = tn_lm_adapter_load(opened->lm, given->adapter, given->adapter_scale);
    return status == TN_OK ? tn_lm_sequence_open(opened->lm, &opened->sequence) : status;
}

// Generates and prints a reply, anew where a device is lost meanwhile. Each time there is
// one device less, so this ends.
static int write_reply(struct opened *opened, const struct lm_options *given,
                       const tn_lm_generation *how, struct conversation *c,
                       tn_lm_result *out_result)
{
    char why[2048];
    for (;;) {
        c->reply_size = 0;
        atomic_store(&replying, opened->sequence);
        tn_status status = tn_lm_generate(opened->sequence, how, out_result);
        atomic_store(&replying, NULL);
        if (status == TN_OK)
            return 0;
        printf("%s", c->reply_size > 0 ? " ...\n" : "");
        fflush(stdout);
        snprintf(why, sizeof(why), "%s", tn_lm_error());
        if (status != TN_ERR_DEVICE || move_model(opened, given))
            return stop("%s", why);
        stop("%s", why);
        fprintf(stderr, "(the conversation is read again, and the reply begins anew)\n");
        tell_model(opened);
    }
}

// Generates and prints the reply to what was said last, and keeps it.
static int lm_chat_reply(struct opened *opened, const struct lm_options *given,
                         const tn_lm_grammar *grammar, struct conversation *c)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    int failed = lm_chat_write_prompt(opened, given, c, &ids, &count);
    if (failed)
        return failed;
    const tn_lm_generation how = {
        .struct_size = sizeof(how),
        .prompt_flags = TN_LM_WHOLE,
        .ids = ids,
        .num_ids = count,
        .max_tokens = given->tokens,
        .sampling = &given->sampling,
        .piece = lm_chat_print,
        .context = c,
        .grammar = grammar,
        .images = (const tn_lm_image *const *)c->pictures.items,
        .num_images = c->pictures.count,
    };
    tn_lm_result result = {.struct_size = sizeof(result)};
    failed = write_reply(opened, given, &how, c, &result);
    tn_lm_free(ids);
    if (failed)
        return failed;
    printf("%s\n", result.reason == TN_LM_CANCELLED ? " ..."
                   : result.reason == TN_LM_FULL    ? " ... (the context is full)"
                                                    : "");
    fflush(stdout);
    return add_message(c, "assistant", strdup(c->reply_size ? c->reply : ""));
}

// Reads a line without its end, for free(); NULL at the end of the input.
static char *lm_chat_read_line(bool is_terminal)
{
    char *line = NULL;
    size_t room = 0;
    for (;;) {
        if (is_terminal)
            fputs("> ", stdout);
        fflush(stdout);
        ssize_t size = getline(&line, &room, stdin);
        if (size >= 0) {
            if (size > 0 && line[size - 1] == '\n')
                line[size - 1] = 0;
            return line;
        }
        bool is_interrupt = !feof(stdin) && errno == EINTR;
        clearerr(stdin);
        if (!is_interrupt) {
            free(line);
            return NULL;
        }
        fputs("\n", stdout); // Ctrl-C at the prompt: another line
    }
}

// --- commands ---------------------------------------------------------------------------

enum after { GO_ON, END };

struct talk {
    const struct opened *opened;
    struct conversation *conversation;
};

// Reports a file that cannot be read; the conversation goes on.
static enum after run_image(const struct talk *talk, const char *file)
{
    if (!file[0])
        stop("/image: expected a file");
    else if (!add_picture(talk->opened, file, &talk->conversation->pictures))
        talk->conversation->num_next++;
    return GO_ON;
}

// Drops the messages, but not the images for the next one.
static enum after run_clear(const struct talk *talk, const char *rest)
{
    (void)rest;
    struct conversation *c = talk->conversation;
    while (c->count > num_kept(c))
        drop_message(c, c->count - 1);
    return GO_ON;
}

static enum after run_exit(const struct talk *talk, const char *rest)
{
    (void)talk, (void)rest;
    return END;
}

static enum after run_help(const struct talk *talk, const char *rest);

static const struct lm_chat_command {
    const char *name, *argument, *does; // does: NULL for another name of the one before
    enum after (*run)(const struct talk *, const char *rest);
} commands[] = {
    {"image", " FILE", "puts an image in front of the next message", run_image},
    {"clear", "", "forgets what was said, but the system's message", run_clear},
    {"help", "", "lists these", run_help},
    {"exit", "", "ends the chat, as Ctrl-D does; also /quit and /bye", run_exit},
    {"quit", "", NULL, run_exit},
    {"bye", "", NULL, run_exit},
};

static enum after run_help(const struct talk *talk, const char *rest)
{
    (void)talk, (void)rest;
    for (size_t i = 0; i < COUNT(commands); i++)
        if (commands[i].does)
            fprintf(stderr, "/%s%-*s %s\n", commands[i].name,
                    12 - (int)strlen(commands[i].name), commands[i].argument,
                    commands[i].does);
    fputs("A line with a space in front is a message in any case.\n", stderr);
    return GO_ON;
}

// The length of the word behind a slash that a line begins with; 0: the line is a message,
// as one that begins with a path is.
static size_t command_size(const char *line)
{
    if (line[0] != '/')
        return 0;
    size_t size = strspn(line + 1, "abcdefghijklmnopqrstuvwxyz");
    return line[1 + size] == 0 || line[1 + size] == ' ' ? size : 0;
}

static enum after lm_chat_run_command(const struct talk *talk, const char *line,
                                      size_t size)
{
    const char *rest = line + 1 + size;
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strlen(commands[i].name) == size && !memcmp(commands[i].name, line + 1, size))
            return commands[i].run(talk, rest + strspn(rest, " "));
    stop("no command '%.*s'; /help lists them, a space in front makes it a message",
         (int)size + 1, line);
    return GO_ON;
}

static int lm_chat_talk(struct opened *opened, const struct lm_options *given,
                        const tn_lm_grammar *grammar, struct conversation *c)
{
    bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const struct talk talk = {opened, c};
    enum after after = GO_ON;
    int failed = 0;
    for (char *line;
         !failed && after == GO_ON && (line = lm_chat_read_line(is_terminal));) {
        size_t command = command_size(line);
        if (command > 0)
            after = lm_chat_run_command(&talk, line, command);
        if (command > 0 || !line[0]) {
            free(line);
            continue;
        }
        failed = add_message(c, "user", line);
        if (!failed)
            failed = lm_chat_reply(opened, given, grammar, c);
    }
    return failed;
}

// Gives the text of a short conversation in a form, to compare forms by; tn_lm_free() it.
static tn_status lm_chat_sample_text(const struct opened *opened,
                                     const struct lm_options *given, const char *form,
                                     char **out_text)
{
    const tn_lm_message talk[] = {
        {"system", given->system}, {"user", "1"}, {"assistant", "2"}, {"user", "3"}};
    uint64_t first = given->system ? 0 : 1, size;
    return tn_lm_chat_text(opened->lm, form, talk + first, COUNT(talk) - first, out_text,
                           &size);
}

// Warns where the form that was asked for is not, or may not be, the model's own.
static void compare_forms(const struct opened *opened, const struct lm_options *given,
                          const char *text)
{
    char *own = NULL;
    if (!tn_metadata_find(tn_lm_metadata(opened->lm), "tokenizer.chat_template"))
        return;
    if (lm_chat_sample_text(opened, given, NULL, &own) != TN_OK)
        fprintf(
            stderr,
            "tenon: warning: the model's own template of chats is not known: the text that "
            "--template %s makes may not be what it was trained on\n",
            given->template);
    else if (strcmp(own, text) != 0)
        fprintf(stderr,
                "tenon: warning: the model's own template of chats makes another text than "
                "--template %s\n",
                given->template);
    tn_lm_free(own);
}

// Fails before anything is said where the form of a conversation is not known.
static int check_form(const struct opened *opened, const struct lm_options *given)
{
    char *text;
    tn_status status = lm_chat_sample_text(opened, given, given->template, &text);
    if (status == TN_ERR_NOT_FOUND && !given->template)
        return stop("%s, by --template NAME", tn_lm_error());
    if (status != TN_OK)
        return stop_lm();
    if (given->template)
        compare_forms(opened, given, text);
    tn_lm_free(text);
    return 0;
}

int run_chat(const struct lm_options *given)
{
    struct opened opened;
    struct conversation c = {.count = 0};
    const struct sigaction action = {.sa_handler =
                                         lm_chat_interrupted}; // reading is interrupted
    tn_lm_grammar *grammar = NULL;
    if (open_grammar(given, &grammar))
        return 1;
    if (open_model(given, &opened)) {
        tn_lm_grammar_close(grammar);
        return 1;
    }
    int failed = check_form(&opened, given);
    if (!failed)
        tell_model(&opened);
    if (!failed && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        fputs("Ctrl-C ends a reply, Ctrl-D the chat; /help lists commands.\n", stderr);
    if (!failed && given->system)
        failed = add_message(&c, "system", strdup(given->system));
    if (!failed)
        failed = open_pictures(&opened, given, &c.pictures);
    c.num_next = (uint32_t)c.pictures.count;
    sigaction(SIGINT, &action, NULL);
    if (!failed)
        failed = lm_chat_talk(&opened, given, grammar, &c);
    lm_chat_finish(&c);
    tn_lm_grammar_close(grammar);
    close_model(&opened);
    return failed;
}
