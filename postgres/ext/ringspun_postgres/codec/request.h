/* request: the messages of a client, each written to the end of an rpg_out. No state, no I/O.
 *
 * Texts are the caller's, without NUL inside: who calls has checked that, or a text would end early and what follows it would be
 * taken for another field. https://www.postgresql.org/docs/17/protocol-message-formats.html
 */
#ifndef RINGSPUN_PG_REQUEST_H
#define RINGSPUN_PG_REQUEST_H

#include "codec/out.h"
#include "codec/reader.h"

/* Before the first message of a connection. */
void rpg_put_ssl_request(rpg_out *out);
void rpg_put_cancel_request(rpg_out *out, uint32_t process, rpg_span key);

/* `parameters`: names and values in turn, `count` of both together. */
void rpg_put_startup(rpg_out *out, uint32_t protocol, const rpg_span *parameters, size_t count);

/* A password, or what SASL answers after its first message. */
void rpg_put_password(rpg_out *out, rpg_span answer);
void rpg_put_sasl_initial(rpg_out *out, rpg_span mechanism, rpg_span answer);
void rpg_put_sasl_response(rpg_out *out, rpg_span answer);

/* `types`: OIDs of parameters, as many as are given; 0: the server chooses. */
void rpg_put_parse(rpg_out *out, rpg_span name, rpg_span sql, const uint32_t *types, uint16_t count);

/* The unnamed portal. `params`: the formats of the parameters and their values, with the count of each, as a Bind has them.
 * `columns`: how many there are whose formats the caller puts behind it, 2 bytes each: 1 is binary, and 0 is text, as all are where
 * there are none. The caller ends it by rpg_end, for which the answer is. */
size_t rpg_begin_bind(rpg_out *out, rpg_span statement, rpg_span params, uint16_t columns);

/* Of what: 'S', a statement, or 'P', a portal. */
void rpg_put_describe(rpg_out *out, char of, rpg_span name);
void rpg_put_close(rpg_out *out, char of, rpg_span name);

/* `rows` at most; 0: all. */
void rpg_put_execute(rpg_out *out, rpg_span portal, uint32_t rows);

void rpg_put_query(rpg_out *out, rpg_span sql);
void rpg_put_sync(rpg_out *out);
void rpg_put_flush(rpg_out *out);

/* What comes before so many bytes of a CopyData, which the caller sends behind it. */
void rpg_put_copy_header(rpg_out *out, uint32_t len);
void rpg_put_copy_done(rpg_out *out);
void rpg_put_copy_fail(rpg_out *out, rpg_span reason);

#endif
