// SPDX-License-Identifier: MIT
// Chat templates: conversations as the models' own templates write them, rendered by Jinja
// (but for the token that begins a text), and which templates are known.
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../sdk/lm/text/template.h"
#include "assertion.h"
#include "chat_templates.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct chat_message talk[] = {
    {"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Yo"}, {"user", " More "}};

// The template of SmolLM2, whose hash is in the list.
#define SMOLLM                                                                             \
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}" \
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by "     \
    "Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "  \
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt "   \
    "%}{{ '<|im_start|>assistant\n' }}{% endif %}"

static const char *written(const struct chat_template *t, const struct chat_message *m,
                           uint64_t count, bool reply)
{
    static char out[1024];
    uint64_t size;
    const char *wrong =
        chat_template_write(t, m, count, reply, out, sizeof(out), &size, NULL, NULL);
    if (wrong)
        return wrong;
    cr_assert(eq(u64, size, strlen(out)));
    return out;
}

static const char *role_of(char letter)
{
    return letter == 's' ? "system" : letter == 'u' ? "user" : "assistant";
}

static uint64_t messages_of(const char *roles, const char *const *texts,
                            struct chat_message *out)
{
    uint64_t count = strlen(roles);
    for (uint64_t i = 0; i < count; i++)
        out[i] = (struct chat_message){role_of(roles[i]), texts[i], NULL};
    return count;
}

static void check_talk(const char *family, const struct chat_template *t, size_t index,
                       const char *text)
{
    struct chat_message messages[8];
    uint64_t count = messages_of(talks[index].roles, talks[index].texts, messages), size;
    const char *wrong =
        chat_template_write(t, messages, count, true, NULL, 0, &size, NULL, NULL);
    cr_assert(eq(int, wrong != NULL, text == REFUSED), "%s, talk %zu: %s", family, index,
              wrong);
    if (text && strcmp(text, OWN_SYSTEM) != 0)
        cr_assert(eq(str, (char *)written(t, messages, count, true), (char *)text),
                  "%s, talk %zu", family, index);
}

Test(templates, conversations_are_written_as_jinja_writes_them)
{
    setenv("TZ", "UTC0", 1);
    tzset();
    for (size_t i = 0; i < COUNT(rendered); i++) {
        struct chat_template t;
        cr_assert(chat_template_find(rendered[i].family, &t), "%s", rendered[i].family);
        t.flags = rendered[i].flags;
        t.now = NOW;
        for (size_t index = 0; index < NUM_TALKS; index++)
            check_talk(rendered[i].family, &t, index, rendered[i].texts[index]);
    }
}

// Each family that may be chosen by its name has been rendered.
Test(templates, every_family_has_a_rendering)
{
    static const char *const without[] = {"llama-2"}; // below: no template of it is at hand
    char names[512], *rest = names;
    chat_template_names(names, sizeof(names));
    for (char *name; (name = strtok_r(rest, ", ", &rest));) {
        bool found = false;
        for (size_t i = 0; i < COUNT(rendered) && !found; i++)
            found = strcmp(rendered[i].family, name) == 0;
        for (size_t i = 0; i < COUNT(without) && !found; i++)
            found = strcmp(without[i], name) == 0;
        cr_assert(found, "%s", name);
    }
}

Test(templates, llama_2_is_written)
{
    struct chat_template t;
    cr_assert(chat_template_find("llama-2", &t));
    cr_assert(eq(
        str, (char *)written(&t, talk, COUNT(talk), true),
        "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Yo </s><s>[INST] More [/INST]"));
}

Test(templates, the_day_is_todays)
{
    static const struct chat_message hi[] = {{"user", "Hi", NULL}};
    char day[64];
    struct chat_template t;
    cr_assert(chat_template_find("llama-3.2", &t));
    const char *text;
    do { // the day may change in between
        time_t now = time(NULL);
        strftime(day, sizeof(day), "Today Date: %d %b %Y\n\n<", localtime(&now));
        text = written(&t, hi, 1, true);
    } while (!strstr(text, day) && time(NULL) % 86400 < 5);
    cr_assert(ne(ptr, strstr(text, day), NULL), "%s: %s", day, text);
}

// A text is known as it is, and with one end of a line behind it, as Jinja has it.
Test(templates, a_template_is_known_by_its_whole_text)
{
    struct chat_template t = {.family = NULL};
    cr_assert(chat_template_recognise(SMOLLM, sizeof(SMOLLM) - 1, &t));
    cr_assert(eq(str, (char *)chat_template_name(&t), "chatml"));
    cr_assert(eq(u32, t.flags, TEMPLATE_KNOWN));
    cr_assert(chat_template_recognise(SMOLLM "\n", sizeof(SMOLLM), &t));
    cr_assert(not(chat_template_recognise(SMOLLM "\n\n", sizeof(SMOLLM) + 1, &t)));
    cr_assert(not(chat_template_recognise(SMOLLM " ", sizeof(SMOLLM), &t)));
    cr_assert(not(chat_template_recognise("", 0, &t)));
    cr_assert(not(chat_template_recognise("\n", 1, &t)));
    for (size_t i = 0; i < sizeof(SMOLLM) - 1; i += 7) {
        char changed[] = SMOLLM;
        changed[i] ^= 1;
        cr_assert(not(chat_template_recognise(changed, sizeof(SMOLLM) - 1, &t)), "%zu", i);
    }
}

Test(templates, the_models_own_system_message_is_found)
{
    struct chat_template t;
    cr_assert(chat_template_recognise(SMOLLM, sizeof(SMOLLM) - 1, &t));
    cr_assert(
        eq(str, (char *)written(&t, talk + 1, 1, false),
           "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by "
           "Hugging Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"));
    cr_assert(
        eq(str, (char *)written(&t, talk, 2, false),
           "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"));
}

Test(templates, what_is_unknown_is_told)
{
    static const struct chat_message tool[] = {{"tool", "x"}};
    struct chat_template t = {0};
    char names[512], out[8];
    uint64_t size;
    cr_assert(not(chat_template_recognise("{{ messages }}", 14, &t)));
    cr_assert(not(chat_template_find("nothing", &t)));
    cr_assert(eq(ptr, (void *)(uintptr_t)t.family, NULL));
    chat_template_names(names, sizeof(names));
    cr_assert(eq(int, strncmp(names, "phi-4, chatml, qwen3, ", 22), 0), "%s", names);
    cr_assert(lt(sz, strlen(names), sizeof(names) - 1)); // whole
    cr_assert(chat_template_find("gemma", &t));
    cr_assert(ne(ptr, strstr(written(&t, tool, 1, true), "expected system, user"), NULL));
    // Cut where there is no room; the size is that of the whole.
    cr_assert(eq(ptr,
                 (void *)(uintptr_t)chat_template_write(&t, talk, 4, true, out, 8, &size,
                                                        NULL, NULL),
                 NULL));
    cr_assert(eq(str, out, "<start_"));
    cr_assert(gt(u64, size, 100));
}

// Each conversation that a template cannot have is told in words.
Test(templates, conversations_without_a_text_are_refused)
{
    static const struct {
        const char *family;
        uint32_t flags;
        const char *roles, *wrong;
    } rows[] = {
        {"gemma", 0, "s", "that no user's message follows"},
        {"gemma", 0, "sau", "that no user's message follows"},
        {"gemma", TEMPLATE_NO_SYSTEM, "su", "no place"},
        {"mistral-v3", 0, "usu", "behind another message"},
        {"mistral-v3", 0, "s", "without a user's"},
        {"chatml", TEMPLATE_SYSTEM_FIRST, "usu", "behind another message"},
        {"chatml", TEMPLATE_ALTERNATES, "uu", "in turn"},
        {"chatml", TEMPLATE_ALTERNATES, "sau", "in turn"},
        {"chatml", TEMPLATE_NEEDS_SYSTEM, "u", "give one"},
        {"chatml", TEMPLATE_NEEDS_SYSTEM, "", "give one"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct chat_message messages[8];
        struct chat_template t;
        static const char *const texts[] = {"1", "2", "3"};
        uint64_t size, count = messages_of(rows[i].roles, texts, messages);
        cr_assert(chat_template_find(rows[i].family, &t));
        t.flags = rows[i].flags;
        const char *wrong =
            chat_template_write(&t, messages, count, true, NULL, 0, &size, NULL, NULL);
        cr_assert(wrong && strstr(wrong, rows[i].wrong), "row %zu: %s", i, wrong);
    }
}
