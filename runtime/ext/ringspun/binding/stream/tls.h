/* tls: the TLS session that a stream's bytes go through. Owned by its stream; used by the machine's thread. */
#ifndef RINGSPUN_STREAM_TLS_H
#define RINGSPUN_STREAM_TLS_H

#include "stream.h"

/* An OpenSSL::SSL::SSLSocket, whether it has shaken hands or not. */
bool rsb_is_tls_socket(VALUE object);

/* For a stream over such an object: the IO below, when all that it was given is written; then its session, and what it has
 * decrypted ahead. The first raises where there is no session. */
VALUE rsb_tls_io(rsb_machine *machine, VALUE socket);
void rsb_tls_adopt(rsb_machine *machine, rsb_stream *stream, VALUE socket);

/* Bytes, 0 at the session's end, -EAGAIN and the readiness to wait for, or -errno; of -EPROTO rsb_tls_fail knows more. */
int64_t rsb_tls_read(rsb_tls *tls, void *bytes, size_t len, uint32_t *events);

/* Takes into the stream's buffer what there is. True: nothing, so that who selects has to wait for the descriptor. Nobody reads
 * now. */
bool rsb_tls_is_empty(rsb_machine *machine, rsb_stream *stream);

/* True where a read would most likely find nothing, as after each message of a peer that waits for an answer: so that one may
 * wait for the descriptor first, which is all that there is to wait for then. */
bool rsb_tls_may_be_dry(rsb_tls *tls);

/* Tells the other side that this was all: 0, or -EAGAIN and the readiness to wait for, to be called again then, or -errno. */
int64_t rsb_tls_end(rsb_tls *tls, uint32_t *events);
bool rsb_tls_has_ended(const rsb_tls *tls);

/* Takes what has come and nobody will read, before the descriptor is closed. A server sends tickets for later sessions: left there,
 * they would make the kernel reset the connection, and drop what has not reached the other side yet. True: this is a client that
 * has read nothing, so that they may be on their way; all of them, if it has not heard of the other side since the handshake. */
bool rsb_tls_sweep(rsb_tls *tls);
bool rsb_tls_has_heard(const rsb_tls *tls);

NORETURN(void rsb_tls_fail(const rsb_tls *tls, const char *what));
void rsb_tls_mark(const rsb_tls *tls);
void rsb_init_stream_tls(void);

#endif
