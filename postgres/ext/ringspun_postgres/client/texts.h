/* texts: a Ruby object as the text that the server reads for it, for a parameter, an element of an array, or a field of a COPY. No
 * state. All raise UsageError for what is none, which names the parameter, and run Ruby code for what is not of Ruby's core.
 *
 * What a String in BINARY is, only the type of the parameter says: the bytes of a bytea, or text. Where that does not matter, as
 * for ASCII without a backslash, it is `plain`.
 */
#ifndef RINGSPUN_PG_TEXTS_H
#define RINGSPUN_PG_TEXTS_H

#include "client/postgres.h"

typedef enum { RPG_BYTES_ARE_TEXT, RPG_BYTES_ARE_BYTEA } rpg_bytes_are;

/* A text that is being written. It lies on the stack, and nobody else has its String yet. */
typedef struct {
    VALUE string;
    char *bytes;                /* of `string` */
    size_t len;
    size_t capacity;
    long place;                 /* which parameter it is, from 1 on */
    rpg_bytes_are bytes_are;
} rpg_text;

rpg_text rpg_text_new(long place, rpg_bytes_are bytes_are);

/* A String in UTF-8. */
VALUE rpg_text_end(rpg_text *text);

/* Any but nil and Strings in BINARY. */
void rpg_put_object(rpg_text *text, VALUE value);

/* Whether its bytes can be sent as they are, as far as its encoding says. */
bool rpg_is_utf8(VALUE string);

bool rpg_is_binary(VALUE string);

/* Of a String in BINARY. */
bool rpg_is_plain(VALUE string);

/* Raises UsageError where it is no text: it has a NUL, or no valid UTF-8. `type`: the OID of the parameter; 0: not known. */
void rpg_check_text(VALUE string, long place, uint32_t type);

bool rpg_is_bytes(VALUE value);

/* Of an Array or a Set; nil: it is neither. */
VALUE rpg_elements_of(VALUE value);

/* What Arrays and Sets, also those in them, have of that whose type decides how it is written. */
typedef struct {
    bool untyped;               /* a String in BINARY that is not plain */
    bool bytes;                 /* a Ringspun::Postgres::Bytes */
} rpg_kinds;

void rpg_look_for_bytes(VALUE array, long place, rpg_kinds *found);

/* The String of a Ringspun::Postgres::Bytes. */
VALUE rpg_string_of_bytes(VALUE bytes);

void rpg_init_texts(void);

#endif
