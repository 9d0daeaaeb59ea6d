#include "codec/message.h"

/* The most that a message may have, by its type; 0: no server sends such a one. The first three kinds are as long as somebody's
 * data: the server itself has nothing larger than a gigabyte (MaxAllocSize in memutils.h). */
#define DATA_MAX 0x3fffffffu
#define TEXT_MAX (16u << 20)    /* an error may have the whole statement in it */
#define COLUMNS_MAX (1u << 20)  /* 1,664 columns of 63 bytes each, with what is said of them */
#define PARAMETERS_MAX (2u + 4u * 65535u)
#define SMALL_MAX 30000u        /* as libpq has it for all that is not data: VALID_LONG_MESSAGE_TYPE in fe-protocol3.c */

static const uint32_t limits[256] = {
    [RPG_ROW] = DATA_MAX, [RPG_COPY_DATA] = DATA_MAX, [RPG_FUNCTION_RESULT] = DATA_MAX,
    [RPG_ERROR] = TEXT_MAX, [RPG_NOTICE] = TEXT_MAX, [RPG_NOTIFICATION] = TEXT_MAX,
    [RPG_ROW_DESCRIPTION] = COLUMNS_MAX, [RPG_PARAMETERS] = PARAMETERS_MAX,
    [RPG_AUTHENTICATION] = SMALL_MAX, [RPG_KEY_DATA] = SMALL_MAX, [RPG_PARAMETER_STATUS] = SMALL_MAX, [RPG_READY] = SMALL_MAX,
    [RPG_NEGOTIATE] = SMALL_MAX, [RPG_NO_DATA] = SMALL_MAX, [RPG_COMPLETE] = SMALL_MAX, [RPG_EMPTY] = SMALL_MAX,
    [RPG_SUSPENDED] = SMALL_MAX, [RPG_PARSED] = SMALL_MAX, [RPG_BOUND] = SMALL_MAX, [RPG_CLOSED] = SMALL_MAX,
    [RPG_COPY_IN] = SMALL_MAX, [RPG_COPY_OUT] = SMALL_MAX, [RPG_COPY_BOTH] = SMALL_MAX, [RPG_COPY_DONE] = SMALL_MAX,
};

rpg_found rpg_message_next(const uint8_t *bytes, size_t len, rpg_message *message, size_t *needed) {
    *needed = RPG_HEADER;
    if (len == 0) return RPG_PART;
    uint32_t limit = limits[bytes[0]];
    if (limit == 0) return RPG_WRONG;
    if (len < RPG_HEADER) return RPG_PART;
    uint32_t told = rpg_load_u32(bytes + 1); /* with itself */
    if (told < 4 || told - 4 > limit) return RPG_WRONG;
    *needed = (size_t)told + 1;
    if (len < *needed) return RPG_PART;
    *message = (rpg_message){bytes[0], bytes + RPG_HEADER, told - 4};
    return RPG_WHOLE;
}

static rpg_reader over(const rpg_message *message) { return rpg_reader_over(message->body, message->len); }

static rpg_span rest_of(rpg_reader *reader) {
    rpg_span rest = {reader->at, rpg_left(reader)};
    reader->at = reader->end;
    return rest;
}

bool rpg_read_authentication(const rpg_message *message, uint32_t *method, rpg_span *rest) {
    rpg_reader reader = over(message);
    *method = rpg_read_u32(&reader);
    *rest = rest_of(&reader);
    return rpg_reader_is_done(&reader);
}

bool rpg_read_key_data(const rpg_message *message, uint32_t *process, rpg_span *key) {
    rpg_reader reader = over(message);
    *process = rpg_read_u32(&reader);
    *key = rest_of(&reader);
    return rpg_reader_is_done(&reader) && key->len >= RPG_KEY_MIN && key->len <= RPG_KEY_MAX;
}

bool rpg_read_parameter_status(const rpg_message *message, rpg_span *name, rpg_span *value) {
    rpg_reader reader = over(message);
    *name = rpg_read_text(&reader);
    *value = rpg_read_text(&reader);
    return rpg_reader_is_done(&reader) && name->len > 0;
}

bool rpg_read_ready(const rpg_message *message, uint8_t *status) {
    *status = message->len == 1 ? message->body[0] : 0;
    return *status == 'I' || *status == 'T' || *status == 'E';
}

bool rpg_read_negotiate(const rpg_message *message, uint32_t *newest, uint32_t *unknown) {
    rpg_reader reader = over(message);
    *newest = rpg_read_u32(&reader);
    *unknown = rpg_read_u32(&reader);
    for (uint32_t i = 0; i < *unknown && !reader.bad; i++) rpg_read_text(&reader);
    return rpg_reader_is_done(&reader);
}

bool rpg_read_notification(const rpg_message *message, uint32_t *process, rpg_span *channel, rpg_span *payload) {
    rpg_reader reader = over(message);
    *process = rpg_read_u32(&reader);
    *channel = rpg_read_text(&reader);
    *payload = rpg_read_text(&reader);
    return rpg_reader_is_done(&reader);
}

bool rpg_read_complete(const rpg_message *message, rpg_span *tag) {
    rpg_reader reader = over(message);
    *tag = rpg_read_text(&reader);
    return rpg_reader_is_done(&reader);
}

bool rpg_read_error_field(rpg_reader *reader, uint8_t *code, rpg_span *text) {
    *code = rpg_read_u8(reader);
    *text = *code ? rpg_read_text(reader) : (rpg_span){NULL, 0};
    return *code ? !reader->bad : rpg_reader_is_done(reader);
}

bool rpg_read_columns(const rpg_message *message, rpg_reader *reader, uint16_t *count) {
    *reader = over(message);
    *count = rpg_read_u16(reader);
    return !reader->bad && *count <= INT16_MAX;
}

bool rpg_read_column(rpg_reader *reader, rpg_column *column) {
    column->name = rpg_read_text(reader);
    column->table = rpg_read_u32(reader);
    column->column = rpg_read_u16(reader);
    column->type = rpg_read_u32(reader);
    column->type_size = (int16_t)rpg_read_u16(reader);
    column->type_modifier = rpg_read_i32(reader);
    column->format = rpg_read_u16(reader);
    return !reader->bad && column->format <= 1;
}

bool rpg_read_parameters(const rpg_message *message, rpg_reader *reader, uint16_t *count) {
    *reader = over(message);
    *count = rpg_read_u16(reader);
    return !reader->bad && rpg_left(reader) == 4u * *count;
}

bool rpg_read_row(const rpg_message *message, rpg_reader *reader, uint16_t *count) {
    *reader = over(message);
    *count = rpg_read_u16(reader);
    return !reader->bad && rpg_left(reader) >= 4u * *count;
}

bool rpg_read_copy(const rpg_message *message, uint8_t *format, uint16_t *columns) {
    rpg_reader reader = over(message);
    *format = rpg_read_u8(&reader);
    *columns = rpg_read_u16(&reader);
    for (uint16_t i = 0; i < *columns && !reader.bad; i++) {
        if (rpg_read_u16(&reader) > 1) return false;
    }
    return rpg_reader_is_done(&reader) && *format <= 1;
}
