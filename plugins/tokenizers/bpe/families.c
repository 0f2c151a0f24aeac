// SPDX-License-Identifier: MIT
// Families of models, and how each cuts text into words before it merges: the expressions
// of their tokenizer.json. PCRE2's \s is not other libraries' white space, which is written
// out instead.
#include <stdio.h>
#include <string.h>
#include "bpe.h"

#define WHITE "\\p{Z}\\x{9}-\\x{d}\\x{85}" // within []

// White space: a run without its last character where a word follows, which gets it.
#define WHITE_RUNS "[" WHITE "]+(?![^" WHITE "])|[" WHITE "]+"
#define WHITE_LINES "[" WHITE "]*[\\r\\n]+|" WHITE_RUNS

// U+017F, a long s, is an s where case does not count.
#define ENGLISH "'(?:[sS\\x{17f}tTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
#define OTHERS " ?[^" WHITE "\\p{L}\\p{N}]+"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" OTHERS "|" WHITE_RUNS

// A word with the character before it; `numbers` is the expression of numbers.
#define WORDS(numbers)                                                                     \
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "|" OTHERS "[\\r\\n]*|" WHITE_LINES
#define LLAMA3(numbers) ENGLISH "|" WORDS(numbers)

#define SEED_CODER ENGLISH "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" OTHERS "|" WHITE_LINES

#define LETTERS_MARKS "[\\p{L}\\p{M}]+"
#define QWEN35                                                                             \
    ENGLISH "|[^\\r\\n\\p{L}\\p{N}]?" LETTERS_MARKS "|\\p{N}| ?[^" WHITE                   \
            "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" WHITE_LINES

// Capitals and small letters; other letters count as both. `ending` follows a word.
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(ending, numbers)                                                             \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending "|[^\\r\\n\\p{L}\\p{N}]?" UPPER    \
    "+" LOWER "*" ending "|" numbers "|" OTHERS "[\\r\\n/]*|" WHITE_LINES

#define DEEPSEEK3                                                                          \
    "[!\"#$%&'()*+,\\-./"                                                                  \
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?" LETTERS_MARKS        \
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" WHITE_LINES

#define HAN_KANA "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define HAN_OTHERS "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

// Letters with two cases, as DeepSeek LLM lists them.
#define CASED_LETTERS                                                                      \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}"                          \
    "\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}"                                  \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"                   \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}"                          \
    "\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}"                                  \
    "\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}"                            \
    "\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}"                            \
    "\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}"                            \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}"                            \
    "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}"                    \
    "\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"                   \
    "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}"                            \
    "\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}"                   \
    "\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}"                    \
    "\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}"                    \
    "\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}"                    \
    "\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}"                   \
    "\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}"                   \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"                            \
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}"                            \
    "\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}"                        \
    "\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}"                      \
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

#define DEEPSEEK_LLM                                                                       \
    "[\\r\\n]", "[" WHITE "]?[" CASED_LETTERS "]+",                                        \
        "[" WHITE "]?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}"                        \
        "\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",                                        \
        "[" WHITE "]+\\z", HAN_OTHERS

#define SENTENCES                                                                          \
    " ?[^(" WHITE "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

#define NAMES(...)                                                                         \
    (const char *const[])                                                                  \
    {                                                                                      \
        __VA_ARGS__, NULL                                                                  \
    }

static const struct bpe_family families[] = {
    {.names = NAMES("gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de",
                    "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4", "mpt",
                    "olmo", "jais", "trillion", "granite-docling"),
     .expressions = {GPT2}},
    {.names = NAMES("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone",
                    "minerva-7b", "mellum2"),
     .expressions = {"\\p{N}", GPT2}},
    {.names = NAMES("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral",
                    "midm-2.0", "lfm2", "jina-v5-nano"),
     .expressions = {LLAMA3("\\p{N}{1,3}")},
     .whole_words = true,
     .adds_bos = true},
    {.names = NAMES("minicpm5"),
     .expressions = {"\\p{N}{1,3}", LLAMA3("\\p{N}+")},
     .whole_words = true},
    {.names = NAMES("glm4", "glm5"),
     .expressions = {LLAMA3("\\p{N}{1,3}")},
     .whole_words = true},
    {.names = NAMES("dbrx", "smaug-bpe", "chatglm-bpe"),
     .expressions = {LLAMA3("\\p{N}{1,3}")}},
    {.names = NAMES("qwen2", "deepseek-r1-qwen", "kormo", "megrez", "stablelm2", "hunyuan",
                    "grok-2", "solar-open", "f2llmv2"),
     .expressions = {LLAMA3("\\p{N}")}},
    {.names = NAMES("seed-coder"), .expressions = {SEED_CODER}},
    {.names = NAMES("qwen35"), .expressions = {QWEN35}},
    {.names = NAMES("deepseek-llm"), .expressions = {DEEPSEEK_LLM, "\\p{N}+"}},
    {.names = NAMES("deepseek-llm-folder"), // as its tokenizer.json cuts
     .expressions = {DEEPSEEK_LLM, "\\p{N}"}},
    {.names = NAMES("deepseek-coder"),
     .expressions = {"[\\r\\n]", "[" WHITE "]?\\p{L}+", "[" WHITE "]?\\p{P}+", HAN_OTHERS,
                     "\\p{N}"}},
    {.names = NAMES("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"),
     .expressions = {"\\p{N}{1,3}", HAN_KANA, DEEPSEEK3}},
    {.names = NAMES("falcon"),
     .expressions = {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {.names = NAMES("falcon-folder"), // as its tokenizer.json cuts
     .expressions = {"[\\p{P}$+<=>^~|`]+", GPT2},
     .cuts_numbers = true},
    {.names = NAMES("poro-chat", "bloom", "gpt3-finnish"), .expressions = {SENTENCES}},
    {.names = NAMES("viking"), .expressions = {SENTENCES, "\\p{N}"}},
    {.names = NAMES("tekken"),
     .expressions = {CASED("", "\\p{N}")},
     .whole_words = true,
     .adds_bos = true},
    {.names = NAMES("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"),
     .expressions = {CASED("(?:" ENGLISH ")?", "\\p{N}{1,3}")}},
    {.names = NAMES("gemma4"), .expressions = {"\\n+"}, .characters = true},
    {.names = NAMES("default"), // of files without a name
     .expressions = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
};

const struct bpe_family *family_find(const char *name, uint64_t size)
{
    for (size_t i = 0; i < COUNT(families); i++)
        for (const char *const *at = families[i].names; *at; at++)
            if (strlen(*at) == size && memcmp(*at, name, size) == 0)
                return &families[i];
    return NULL;
}

void family_names(char *out, uint64_t size)
{
    uint64_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < COUNT(families); i++)
        for (const char *const *at = families[i].names; *at && used < size; at++)
            used +=
                (uint64_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", *at);
}
