#include "server/log_line.h"

#include "server/keys.h"
#include "server/scratch.h"

#include <ruby/encoding.h>

#include <math.h>
#include <string.h>
#include <time.h>

/* The most that one byte becomes: \u001f. */
#define ESCAPED_MAX ((size_t)6)

/* Seconds in a line have six digits behind the point. */
#define MICROS_A_SECOND 1000000

static VALUE answered; /* Symbol */

static const char digits[] = "0123456789abcdef";

/* --- what a byte becomes --- */

/* Printable ASCII, without what ends a field, and without what begins an escape. */
static bool is_plain(uint8_t byte) { return byte >= 0x20 && byte <= 0x7e && byte != '"' && byte != '\\'; }

/* All that a text of JSON has as it is: https://www.rfc-editor.org/rfc/rfc8259#section-7 */
static bool is_plain_json(uint8_t byte) { return byte >= 0x20 && byte != '"' && byte != '\\'; }

static uint8_t *put_hex(uint8_t *to, uint8_t byte) {
    *to++ = '\\';
    *to++ = 'x';
    *to++ = (uint8_t)digits[byte >> 4];
    *to++ = (uint8_t)digits[byte & 15];
    return to;
}

static uint8_t *put_json(uint8_t *to, uint8_t byte) {
    static const char with_letter[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    *to++ = '\\';
    for (const char *pair = with_letter; *pair; pair += 2) {
        if ((uint8_t)pair[0] != byte) continue;
        *to++ = (uint8_t)pair[1];
        return to;
    }
    memcpy(to, "u00", 3);
    to[3] = (uint8_t)digits[byte >> 4];
    to[4] = (uint8_t)digits[byte & 15];
    return to + 5;
}

/* What is no UTF-8 is shown as it is in the other forms, whose backslash is one of the text then. */
static uint8_t *put_hex_in_json(uint8_t *to, uint8_t byte) {
    *to++ = '\\';
    return put_hex(to, byte);
}

typedef struct {
    bool (*is_plain)(uint8_t byte);
    uint8_t *(*escape)(uint8_t *to, uint8_t byte);
} form;

static const form in_line = {is_plain, put_hex}, in_json = {is_plain_json, put_json};
static const form in_json_broken = {is_plain, put_hex_in_json};

static inline void put_escaped(const form *form, VALUE text) {
    const uint8_t *from = (const uint8_t *)RSTRING_PTR(text);
    const size_t len = (size_t)RSTRING_LEN(text);
    uint8_t *to = rhs_scratch_room(len * ESCAPED_MAX);
    for (size_t i = 0; i < len; i++) {
        if (RB_LIKELY(form->is_plain(from[i]))) *to++ = from[i];
        else to = form->escape(to, from[i]);
    }
    rhs_scratch_filled(to);
}

static void put_whole(VALUE text) { rhs_scratch_put(RSTRING_PTR(text), (size_t)RSTRING_LEN(text)); }

#define PUT(text) rhs_scratch_put(text, sizeof(text) - 1)

/* --- numbers --- */

static void put_number(uint64_t number, int width) {
    uint8_t text[20];
    int at = sizeof(text);
    do text[--at] = (uint8_t)('0' + number % 10);
    while ((number /= 10) > 0 || (int)sizeof(text) - at < width);
    rhs_scratch_put(text + at, sizeof(text) - (size_t)at);
}

static uint64_t micros_of(VALUE seconds) {
    double micros = round(NUM2DBL(seconds) * MICROS_A_SECOND);
    return micros > 0 && micros < 1e18 ? (uint64_t)micros : 0;
}

/* --- what a line is made of --- */

/* A program may put into its env what is no String, and whose to_s is its own: nothing may lie in the scratch meanwhile. */
static VALUE text_of(VALUE env, VALUE key) {
    VALUE value = rb_hash_lookup(env, key);
    return RTEST(value) ? rb_obj_as_string(value) : Qnil;
}

static VALUE taken_line(void) {
    PUT("\n");
    return rb_enc_associate(rhs_scratch_string(), rb_utf8_encoding());
}

/* --- the common form --- */

/* "-" where there is nothing. */
static void put_text(VALUE text) {
    if (NIL_P(text) || RSTRING_LEN(text) == 0) PUT("-");
    else put_escaped(&in_line, text);
}

static void put_number_or_dash(VALUE number) {
    if (NIL_P(number) || number == INT2FIX(0)) PUT("-");
    else put_number(NUM2ULL(number), 1);
}

static void put_seconds(uint64_t micros) {
    put_number(micros / MICROS_A_SECOND, 1);
    PUT(".");
    put_number(micros % MICROS_A_SECOND, 6);
}

enum { METHOD, URI, PROTOCOL, USER, REFERER, AGENT, HOST, TEXT_COUNT };

static void read_texts(VALUE texts[TEXT_COUNT], VALUE env) {
    Check_Type(env, T_HASH);
    const VALUE keys[TEXT_COUNT] = {
        [METHOD] = rhs_keys[RHS_REQUEST_METHOD], [URI] = rhs_keys[RHS_REQUEST_URI], [PROTOCOL] = rhs_keys[RHS_SERVER_PROTOCOL],
        [USER] = rhs_keys[RHS_REMOTE_USER], [REFERER] = rhs_name_keys[RHTTP_NAME_REFERER],
        [AGENT] = rhs_name_keys[RHTTP_NAME_USER_AGENT], [HOST] = rhs_name_keys[RHTTP_NAME_HOST],
    };
    for (int i = 0; i < TEXT_COUNT; i++) texts[i] = text_of(env, keys[i]);
}

static void put_request(VALUE env, const VALUE texts[TEXT_COUNT]) {
    if (RHASH_EMPTY_P(env)) {
        PUT("-");
        return;
    }
    for (int i = METHOD; i <= PROTOCOL; i++) {
        if (i > METHOD) PUT(" ");
        if (!NIL_P(texts[i])) put_escaped(&in_line, texts[i]);
    }
}

/* A line of the Common Log Format, with the seconds that the request has taken, and what has become of it unless it was answered.
 *
 * @param more [Boolean] whether it has where the client comes from, and what it is
 * @param env [Hash] empty for what was no request
 * @param time [String] between the brackets
 * @param client [String]
 * @param status [Integer, nil]
 * @param bytes [Integer]
 * @param seconds [Float]
 * @param happened [Symbol]
 * @return [String] UTF-8, and but for the client printable ASCII */
static VALUE log_line_common(VALUE module, VALUE more, VALUE env, VALUE time, VALUE client, VALUE status, VALUE bytes,
                             VALUE seconds, VALUE happened) {
    Check_Type(happened, T_SYMBOL);
    VALUE texts[TEXT_COUNT], word = rb_sym2str(happened);
    const uint64_t micros = micros_of(seconds);
    StringValue(time);
    StringValue(client);
    read_texts(texts, env);
    rhs_scratch_begin();
    put_whole(client);
    PUT(" - ");
    put_text(texts[USER]);
    PUT(" [");
    put_whole(time);
    PUT("] \"");
    put_request(env, texts);
    PUT("\" ");
    put_number_or_dash(status);
    PUT(" ");
    put_number_or_dash(bytes);
    if (RTEST(more)) {
        PUT(" \"");
        put_text(texts[REFERER]);
        PUT("\" \"");
        put_text(texts[AGENT]);
        PUT("\"");
    }
    PUT(" ");
    put_seconds(micros);
    if (happened != answered) {
        PUT(" ");
        put_whole(word);
    }
    RB_GC_GUARD(word);
    for (int i = 0; i < TEXT_COUNT; i++) RB_GC_GUARD(texts[i]);
    return taken_line();
}

/* --- JSON --- */

static bool is_utf8(VALUE text) {
    int found = ENC_CODERANGE_UNKNOWN;
    rb_str_coderange_scan_restartable(RSTRING_PTR(text), RSTRING_END(text), rb_utf8_encoding(), &found);
    return found == ENC_CODERANGE_7BIT || found == ENC_CODERANGE_VALID;
}

static void put_name(const char *name) {
    PUT(",\"");
    rhs_scratch_put(name, strlen(name));
    PUT("\":");
}

static void put_json_text(const char *name, VALUE text) {
    if (NIL_P(text)) return;
    put_name(name);
    PUT("\"");
    put_escaped(is_utf8(text) ? &in_json : &in_json_broken, text);
    PUT("\"");
}

static void put_json_number(const char *name, VALUE number) {
    if (NIL_P(number)) return;
    put_name(name);
    put_number(NUM2ULL(number), 1);
}

/* All lines of a second share it, up to the milliseconds. There is one for all threads, for none loses the GVL here. */
static void put_time(int64_t ms) {
    static char text[sizeof("9999-12-31T23:59:59.")];
    static time_t second = -1;
    const time_t now = (time_t)(ms / 1000);
    if (now != second) {
        struct tm parts;
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.", gmtime_r(&now, &parts));
        second = now;
    }
    rhs_scratch_put(text, sizeof(text) - 1);
    put_number((uint64_t)(ms % 1000), 3);
    PUT("Z");
}

/* As a Float of Ruby reads: without zeros at the end, and with an exponent below a ten thousandth. */
static void put_json_seconds(uint64_t micros) {
    if (micros > 0 && micros < 100) {
        put_number(micros < 10 ? micros : micros / 10, 1);
        PUT(".");
        put_number(micros < 10 ? 0 : micros % 10, 1);
        micros < 10 ? PUT("e-06") : PUT("e-05");
        return;
    }
    uint64_t rest = micros % MICROS_A_SECOND;
    int width = 6;
    for (; width > 1 && rest % 10 == 0; width--) rest /= 10;
    put_number(micros / MICROS_A_SECOND, 1);
    PUT(".");
    put_number(rest, width);
}

/* {"time":"2026-11-29T09:00:00.000Z","client":"203.0.113.7","method":"GET","path":"/",...}, without what is nil.
 *
 * @param env [Hash] empty for what was no request
 * @param milliseconds [Integer] since 1970
 * @param pid [Integer]
 * @param client [String]
 * @param route [String, nil]
 * @param status [Integer, nil]
 * @param bytes [Integer]
 * @param received [Integer] bytes
 * @param seconds [Float]
 * @param happened [Symbol]
 * @param error [String, nil]
 * @return [String] UTF-8 */
static VALUE log_line_json(VALUE module, VALUE env, VALUE milliseconds, VALUE pid, VALUE client, VALUE route, VALUE status,
                           VALUE bytes, VALUE received, VALUE seconds, VALUE happened, VALUE error) {
    Check_Type(happened, T_SYMBOL);
    VALUE texts[TEXT_COUNT], word = rb_sym2str(happened);
    const uint64_t micros = micros_of(seconds);
    const int64_t ms = NUM2LL(milliseconds);
    StringValue(client);
    read_texts(texts, env);
    rhs_scratch_begin();
    PUT("{\"time\":\"");
    put_time(ms);
    PUT("\"");
    put_json_number("pid", pid);
    put_json_text("client", client);
    put_json_text("method", texts[METHOD]);
    put_json_text("path", texts[URI]);
    put_json_text("protocol", texts[PROTOCOL]);
    put_json_text("host", texts[HOST]);
    put_json_text("referer", texts[REFERER]);
    put_json_text("agent", texts[AGENT]);
    put_json_text("user", texts[USER]);
    put_json_text("route", route);
    put_json_number("status", status);
    put_json_number("bytes", bytes);
    put_json_number("received", received);
    put_name("seconds");
    put_json_seconds(micros);
    put_json_text("happened", word);
    put_json_text("error", error);
    PUT("}");
    RB_GC_GUARD(word);
    for (int i = 0; i < TEXT_COUNT; i++) RB_GC_GUARD(texts[i]);
    return taken_line();
}

void rhs_init_log_line(void) {
    /* The constant is set, for YARD does not know what HTTP is in a definition under it. */
    VALUE module = rb_module_new();
    rb_const_set(rhs_mHTTP, rb_intern("LogLine"), module);
    answered = ID2SYM(rb_intern("answered"));
    rb_define_module_function(module, "common", log_line_common, 8);
    rb_define_module_function(module, "json", log_line_json, 11);
}
