// SPDX-License-Identifier: MIT
// Keys and signatures of ed25519 in minisign's files
// (https://jedisct1.github.io/minisign/).
#ifndef TOOLS_TENON_PLUGINS_KEYS_H
#define TOOLS_TENON_PLUGINS_KEYS_H

#include "base/tool.h"

#define KEY_NUMBER_SIZE 17 // with the NUL
#define KEY_TEXT_SIZE 57   // base64 of a public key, with the NUL

struct secret_key {
    unsigned char number[8], key[64];
};

struct public_key {
    unsigned char number[8], key[32];
};

// Makes a new key: a file with the secret key, without a password and readable by this user
// alone, and a file with the public key. Neither file may exist.
int key_make(const char *secret_path, const char *public_path, struct public_key *out);

// Reads a secret key. Asks for its password, if it has one, at the terminal, or reads it as
// a line of standard input that is no terminal. Clear the key with key_forget.
int key_read_secret(const char *path, struct secret_key *out);
void key_forget(struct secret_key *key);

// Parses a public key: a file's text, or the key's line alone ("RW..."). False: no public
// key.
bool key_parse_public(const char *text, struct public_key *out);
// Writes the key's line.
void key_text(const struct public_key *key, char text[KEY_TEXT_SIZE]);
// Writes a key's number as minisign prints it.
void key_number(const unsigned char number[8], char text[KEY_NUMBER_SIZE]);

// Gives the number of the key that made a signature, from its text. False: no signature.
bool key_of_signature(const char *text, unsigned char number[8]);

// Signs `size` bytes, and `comment` too. Gives the text of a signature file: free it.
int key_sign(const struct secret_key *key, const void *data, size_t size,
             const char *comment, char **out_text);

#endif // TOOLS_TENON_PLUGINS_KEYS_H
