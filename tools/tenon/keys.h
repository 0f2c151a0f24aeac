// SPDX-License-Identifier: MIT
// Keys and signatures of ed25519 in minisign's files
// (https://jedisct1.github.io/minisign/).
#ifndef TOOLS_TENON_KEYS_H
#define TOOLS_TENON_KEYS_H

#include "tool.h"

#define KEY_NUMBER_SIZE 17 // with the NUL
#define KEY_TEXT_SIZE 57   // base64 of a public key, with the NUL

struct secret_key {
    unsigned char number[8], key[64];
};

struct public_key {
    unsigned char number[8], key[32];
};

// Makes a new key: a file with the secret one, which has no password, that only this user
// can read, and one with the public one. Neither may exist.
int key_make(const char *secret_path, const char *public_path, struct public_key *out);

// Reads a secret key. One with a password asks for it at the terminal, or reads it as a
// line from standard input that is none. Clear it with key_forget.
int key_read_secret(const char *path, struct secret_key *out);
void key_forget(struct secret_key *key);

// A public key, of a file's text or of the key's line alone ("RW..."). False: it is none.
bool key_parse_public(const char *text, struct public_key *out);
// The line of it.
void key_text(const struct public_key *key, char text[KEY_TEXT_SIZE]);
// As minisign prints it.
void key_number(const unsigned char number[8], char text[KEY_NUMBER_SIZE]);

// The number of the key that made a signature's text. False: it is none.
bool key_of_signature(const char *text, unsigned char number[8]);

// The signature of `size` bytes as a file's text; `comment` is signed too. Free *out_text.
int key_sign(const struct secret_key *key, const void *data, size_t size,
             const char *comment, char **out_text);

#endif // TOOLS_TENON_KEYS_H
