/* message: what a server sends, taken apart: where a message begins and ends, and the fields of its body. Owns nothing: what it
 * answers points into the bytes it was given. It has no state, does no I/O, and may be called from any thread.
 *
 * Every length is compared with what there is, and with the most that such a message may have: a server that claims more is not
 * one, or is broken, and nobody waits for its two gigabytes. The format is that of version 3:
 * https://www.postgresql.org/docs/17/protocol-message-formats.html
 */
#ifndef RINGSPUN_PG_MESSAGE_H
#define RINGSPUN_PG_MESSAGE_H

#include "codec/reader.h"

/* The types of messages of a server. */
enum {
    RPG_AUTHENTICATION = 'R', RPG_KEY_DATA = 'K', RPG_PARAMETER_STATUS = 'S', RPG_READY = 'Z', RPG_NEGOTIATE = 'v',
    RPG_ROW_DESCRIPTION = 'T', RPG_NO_DATA = 'n', RPG_PARAMETERS = 't', RPG_ROW = 'D', RPG_COMPLETE = 'C', RPG_EMPTY = 'I',
    RPG_SUSPENDED = 's', RPG_ERROR = 'E', RPG_NOTICE = 'N', RPG_NOTIFICATION = 'A', RPG_PARSED = '1', RPG_BOUND = '2',
    RPG_CLOSED = '3', RPG_COPY_IN = 'G', RPG_COPY_OUT = 'H', RPG_COPY_BOTH = 'W', RPG_COPY_DATA = 'd', RPG_COPY_DONE = 'c',
    RPG_FUNCTION_RESULT = 'V'
};

#define RPG_HEADER 5u           /* type and length */

typedef struct {
    uint8_t type;
    const uint8_t *body;
    size_t len;                 /* of the body */
} rpg_message;

typedef enum {
    RPG_WHOLE,
    RPG_PART,                   /* `*needed` bytes make the whole message; with less than a header that many are needed first */
    RPG_WRONG                   /* no message begins like this */
} rpg_found;

/* The message with which the bytes begin. It is RPG_HEADER + message->len long. */
rpg_found rpg_message_next(const uint8_t *bytes, size_t len, rpg_message *message, size_t *needed);

/* What follows takes one body apart. False: it is not as it must be. */

/* Authentication: what is asked for. `rest` is what else such a request has: a salt, mechanisms, data of SASL. */
bool rpg_read_authentication(const rpg_message *message, uint32_t *method, rpg_span *rest);

/* The key that a CancelRequest names. It has 4 bytes in protocol 3.0, and up to RPG_KEY_MAX from 3.2 on. */
#define RPG_KEY_MIN 4u
#define RPG_KEY_MAX 256u
bool rpg_read_key_data(const rpg_message *message, uint32_t *process, rpg_span *key);

bool rpg_read_parameter_status(const rpg_message *message, rpg_span *name, rpg_span *value);

/* 'I': idle, 'T': in a transaction, 'E': in one that has failed. */
bool rpg_read_ready(const rpg_message *message, uint8_t *status);

/* The newest version that the server speaks, and how many of the options that were asked for it does not know. */
bool rpg_read_negotiate(const rpg_message *message, uint32_t *newest, uint32_t *unknown);

bool rpg_read_notification(const rpg_message *message, uint32_t *process, rpg_span *channel, rpg_span *payload);

bool rpg_read_complete(const rpg_message *message, rpg_span *tag);

/* The fields of an error or notice, one after the other: `*code` 0 is the end. False: the message is not whole. */
bool rpg_read_error_field(rpg_reader *reader, uint8_t *code, rpg_span *text);

/* A column of a RowDescription. */
typedef struct {
    rpg_span name;
    uint32_t table;
    uint16_t column;
    uint32_t type;              /* OID */
    int16_t type_size;
    int32_t type_modifier;
    uint16_t format;            /* 0: text, 1: binary */
} rpg_column;

/* How many columns there are; then one rpg_read_column each; then the reader is done. */
bool rpg_read_columns(const rpg_message *message, rpg_reader *reader, uint16_t *count);
bool rpg_read_column(rpg_reader *reader, rpg_column *column);

bool rpg_read_parameters(const rpg_message *message, rpg_reader *reader, uint16_t *count);

/* The same for the values of a row; one that is NULL has no bytes. */
bool rpg_read_row(const rpg_message *message, rpg_reader *reader, uint16_t *count);

static inline bool rpg_read_value(rpg_reader *reader, rpg_span *value) {
    int32_t len = rpg_read_i32(reader);
    if (len < 0) {
        *value = (rpg_span){NULL, 0};
        return len == -1 && !reader->bad;
    }
    *value = (rpg_span){rpg_read_bytes(reader, (size_t)len), (size_t)len};
    return !reader->bad;
}

/* The formats of a COPY: that of the whole, and the number of columns. */
bool rpg_read_copy(const rpg_message *message, uint8_t *format, uint16_t *columns);

#endif
