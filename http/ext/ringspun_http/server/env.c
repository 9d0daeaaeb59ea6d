#include "server/env.h"

#include "server/keys.h"

#include "codec/list.h"

static VALUE text_of(const uint8_t *bytes, rhttp_span span) {
    return span.len == 0 ? rhs_keys[RHS_EMPTY] : rb_str_new((const char *)bytes + span.at, span.len);
}

/* --- entries --- */

/* The number of entries that are put into an env at once, which takes less than one by one. Most requests have fewer. */
#define TOGETHER 40

/* What has not been put into the Hash yet. It lies on the stack, where the collector sees it. */
typedef struct {
    VALUE env;
    long len;                   /* of `pairs` */
    bool has_put;               /* some are in the Hash */
    VALUE pairs[2 * TOGETHER];  /* keys, each with its value behind it */
} entries;

static void put_together(entries *entries) {
    rb_hash_bulk_insert(entries->len, entries->pairs, entries->env);
    entries->len = 0;
    entries->has_put = true;
}

static void add(entries *entries, VALUE key, VALUE value) {
    if (RB_UNLIKELY(entries->len == 2 * TOGETHER)) put_together(entries);
    entries->pairs[entries->len++] = key;
    entries->pairs[entries->len++] = value;
}

static void set(entries *entries, rhs_key key, VALUE value) { add(entries, rhs_keys[key], value); }

/* Every key is interned, so the same one is the same object. */
static VALUE *find(entries *entries, VALUE key) {
    for (long i = 0; i < entries->len; i += 2) {
        if (RB_UNLIKELY(entries->pairs[i] == key)) return &entries->pairs[i + 1];
    }
    return NULL;
}

/* --- the first line --- */

static VALUE method_of(const rhttp_request *request, const uint8_t *bytes) {
    return request->known_method == RHTTP_OTHER_METHOD ? text_of(bytes, request->method) : rhs_methods[request->known_method];
}

static VALUE path_of(const rhttp_request *request, const uint8_t *bytes) {
    switch (request->form) {
    case RHTTP_FORM_AUTHORITY:
    case RHTTP_FORM_ASTERISK:
        return text_of(bytes, request->target);
    default:
        return request->path.len == 0 ? rhs_keys[RHS_ROOT] : text_of(bytes, request->path);
    }
}

static void set_line(entries *env, const rhttp_request *request, const uint8_t *bytes) {
    VALUE path = path_of(request, bytes);
    bool is_all = request->form == RHTTP_FORM_ORIGIN && request->target.len == request->path.len;
    set(env, RHS_REQUEST_METHOD, method_of(request, bytes));
    set(env, RHS_PATH_INFO, path);
    set(env, RHS_QUERY_STRING, text_of(bytes, request->query));
    set(env, RHS_REQUEST_URI, is_all ? rb_str_dup(path) : text_of(bytes, request->target));
    set(env, RHS_SERVER_PROTOCOL, rhs_keys[request->head.version == RHTTP_1_1 ? RHS_HTTP_1_1 : RHS_HTTP_1_0]);
}

/* Without a host the base has those of the socket. That of a target stands for what the field says, which nobody is to see:
 * https://www.rfc-editor.org/rfc/rfc9112#section-3.2.2 */
static void set_host(entries *env, const rhttp_request *request, const uint8_t *bytes) {
    if (request->host.text.len == 0) return;

    if (request->form == RHTTP_FORM_ABSOLUTE) add(env, rhs_name_keys[RHTTP_NAME_HOST], text_of(bytes, request->host.text));
    set(env, RHS_SERVER_NAME, text_of(bytes, request->host.name));
    if (request->host.port >= 0) {
        const rhttp_span text = request->host.text, name = request->host.name;
        set(env, RHS_SERVER_PORT, text_of(bytes, rhttp_between(rhttp_span_end(name) + 1, rhttp_span_end(text))));
    }
}

/* --- the fields --- */

/* Several fields of one name are a list: https://www.rfc-editor.org/rfc/rfc9110#section-5.3. Cookies have their own separator:
 * https://www.rfc-editor.org/rfc/rfc6265#section-5.4 */
static VALUE joined(VALUE before, const rhttp_field *field, const uint8_t *bytes) {
    VALUE both = rb_str_dup(before);
    rb_str_cat(both, field->known == RHTTP_NAME_COOKIE ? "; " : ", ", 2);
    return rb_str_cat(both, (const char *)bytes + field->value.at, field->value.len);
}

static void set_field(entries *env, const rhttp_field *field, const uint8_t *bytes) {
    VALUE key = field->known == RHTTP_OTHER_NAME ? rhs_key_of(bytes + field->name.at, field->name.len) : rhs_name_keys[field->known];
    VALUE *pending = find(env, key);
    if (RB_UNLIKELY(pending != NULL)) {
        *pending = joined(*pending, field, bytes);
        return;
    }
    VALUE before = RB_UNLIKELY(env->has_put) ? rb_hash_lookup2(env->env, key, Qundef) : Qundef;
    add(env, key, RB_UNLIKELY(before != Qundef) ? joined(before, field, bytes) : text_of(bytes, field->value));
}

static void set_protocols(entries *env, const rhttp_request *request, const uint8_t *bytes) {
    rhttp_span list = request->head.upgrade, one;
    VALUE protocols = rb_ary_new();
    while (rhttp_list_take(bytes, &list, &one)) rb_ary_push(protocols, text_of(bytes, one));
    set(env, RHS_PROTOCOL, protocols);
}

VALUE rhs_env_of(const rhttp_request *request, const uint8_t *bytes, VALUE base) {
    entries env;
    env.env = rb_hash_dup(base);
    env.len = 0;
    env.has_put = false;
    set_line(&env, request, bytes);
    set_host(&env, request, bytes);
    const rhttp_fields *fields = &request->head.fields;
    for (uint16_t i = 0; i < fields->count; i++) {
        const rhttp_field *field = &fields->list[i];
        bool is_ignored = field->has_underscore || (request->form == RHTTP_FORM_ABSOLUTE && field->known == RHTTP_NAME_HOST);
        if (!is_ignored) set_field(&env, field, bytes);
    }
    if (request->head.upgrade.len > 0) set_protocols(&env, request, bytes);
    put_together(&env);
    return env.env;
}
