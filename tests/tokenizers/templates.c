// SPDX-License-Identifier: MIT
// Chat templates: conversations as the models' own templates write them, rendered by Jinja
// (but for the token that begins a text).
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include "../../lm/template.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct chat_message talk[] = {
    {"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Yo"}, {"user", " More "}};

#define SMOLLM                                                                             \
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}" \
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by "     \
    "Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "  \
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"

// What is asserted: the family that an excerpt of a template is recognised as, and the
// talk.
static const struct {
    const char *jinja, *name, *text;
} rows[] = {
    {SMOLLM, "chatml",
     "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
     "<|im_start|>assistant\nYo<|im_end|>\n<|im_start|>user\n More <|im_end|>\n"
     "<|im_start|>assistant\n"},
    {"<|im_start|>{{message['role'] | capitalize}}{{':'}}{{': '}}<end_of_utterance>\n",
     "smolvlm",
     "<|im_start|>System: Be brief.<end_of_utterance>\nUser: Hi<end_of_utterance>\n"
     "Assistant: Yo<end_of_utterance>\nUser:  More <end_of_utterance>\nAssistant:"},
    {"'<|im_start|>' + 'user' + '<|im_sep|>'", "phi-4",
     "<|im_start|>system<|im_sep|>Be brief.<|im_end|><|im_start|>user<|im_sep|>Hi<|im_end|>"
     "<|im_start|>assistant<|im_sep|>Yo<|im_end|><|im_start|>user<|im_sep|> More <|im_end|>"
     "<|im_start|>assistant<|im_sep|>"},
    {"content = '<<SYS>>\\n' + s + bos_token + '[INST] ' + content.strip()", "llama-2",
     "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Yo </s><s>[INST] More [/INST]"},
    {"'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + '<|eot_id|>'",
     "llama-3",
     "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\nMore<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"{{- ' [INST] ' + system_message + '\\n\\n' + message['content'] + ' [/INST]' }}",
     "mistral-v1", " [INST] Be brief.\n\nHi [/INST] Yo</s> [INST]  More  [/INST]"},
    {"[AVAILABLE_TOOLS] \"[INST] \"", "mistral-v3",
     "[INST] Be brief.\n\nHi[/INST] Yo</s>[INST]  More [/INST]"},
    {"[AVAILABLE_TOOLS] \"[INST]\"", "mistral-v3-tekken",
     "[INST]Be brief.\n\nHi[/INST]Yo</s>[INST] More [/INST]"},
    {"'[SYSTEM_PROMPT] ' '[INST] '", "mistral-v7",
     "[SYSTEM_PROMPT] Be brief.[/SYSTEM_PROMPT][INST] Hi[/INST] Yo</s>[INST]  More "
     "[/INST]"},
    {"'[SYSTEM_PROMPT]' '[INST]'", "mistral-v7-tekken",
     "[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Hi[/INST]Yo</s>[INST] More [/INST]"},
    {"'<|user|>\n' + m + '<|end|>\n' '<|assistant|>\n'", "phi-3",
     "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nYo<|end|>\n"
     "<|user|>\n More <|end|>\n<|assistant|>\n"},
    {"'<start_of_turn>' + role + '\n'", "gemma",
     "<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n"
     "Yo<end_of_turn>\n<start_of_turn>user\nMore<end_of_turn>\n<start_of_turn>model\n"},
};

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

Test(templates, conversations_are_written_as_the_models_want_them)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct chat_template t, named;
        cr_assert(chat_template_recognise(rows[i].jinja, strlen(rows[i].jinja), &t), "%s",
                  rows[i].name);
        cr_assert(eq(str, (char *)chat_template_name(&t), (char *)rows[i].name));
        cr_assert(
            eq(str, (char *)written(&t, talk, COUNT(talk), true), (char *)rows[i].text));
        cr_assert(chat_template_find(rows[i].name, &named));
        cr_assert(eq(ptr, (void *)(uintptr_t)named.family, (void *)(uintptr_t)t.family));
    }
}

Test(templates, the_models_own_system_message_is_found)
{
    static const char line[] = "{{- '<|im_start|>system\\n' + m }}{{- "
                               "'<|im_start|>system\\nBe good.<|im_end|>\\n' }}";
    struct chat_template t;
    cr_assert(chat_template_recognise(SMOLLM, sizeof(SMOLLM) - 1, &t));
    cr_assert(
        eq(str, (char *)written(&t, talk + 1, 1, false),
           "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by "
           "Hugging Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"));
    cr_assert(chat_template_recognise(line, sizeof(line) - 1, &t));
    cr_assert(eq(str, (char *)written(&t, NULL, 0, false),
                 "<|im_start|>system\nBe good.<|im_end|>\n"));
}

Test(templates, what_is_unknown_is_told)
{
    static const struct chat_message tool[] = {{"tool", "x"}}, alone[] = {{"system", "x"}};
    struct chat_template t = {0};
    char names[256], out[8];
    uint64_t size;
    cr_assert(not(chat_template_recognise("{{ messages }}", 14, &t)));
    cr_assert(not(chat_template_find("nothing", &t)));
    cr_assert(eq(ptr, (void *)(uintptr_t)t.family, NULL));
    chat_template_names(names, sizeof(names));
    cr_assert(eq(str, names,
                 "phi-4, chatml, smolvlm, mistral-v7, mistral-v7-tekken, mistral-v1, "
                 "mistral-v3-tekken, mistral-v3, llama-2, phi-3, gemma, llama-3"));
    cr_assert(chat_template_find("gemma", &t));
    cr_assert(ne(ptr, strstr(written(&t, tool, 1, true), "expected system, user"), NULL));
    cr_assert(ne(ptr, strstr(written(&t, alone, 1, true), "a user's behind it"), NULL));
    // Cut where there is no room; the size is that of the whole.
    cr_assert(eq(ptr,
                 (void *)(uintptr_t)chat_template_write(&t, talk, 4, true, out, 8, &size,
                                                        NULL, NULL),
                 NULL));
    cr_assert(eq(str, out, "<start_"));
    cr_assert(gt(u64, size, 100));
}
