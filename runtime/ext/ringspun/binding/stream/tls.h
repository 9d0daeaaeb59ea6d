/* tls: the TLS session of a stream. Owned by its stream; used by the machine's thread. */
#ifndef RINGSPUN_STREAM_TLS_H
#define RINGSPUN_STREAM_TLS_H

#include "stream.h"

/* True for an OpenSSL::SSL::SSLSocket, before and after its handshake. */
bool rsb_is_tls_socket(VALUE object);

/* For a stream over such an object. The first flushes it and returns its IO; it raises before the handshake. The second takes
 * over its session and the bytes that it has decrypted ahead. */
VALUE rsb_tls_io(rsb_machine *machine, VALUE socket);
void rsb_tls_adopt(rsb_machine *machine, rsb_stream *stream, VALUE socket);

/* Returns how many bytes were read, 0 at the end of the session, -EAGAIN with the `events` to poll for, or -errno. For -EPROTO,
 * rsb_stream_refused raises the reason. */
int64_t rsb_tls_read(rsb_tls *tls, void *bytes, size_t len, uint32_t *events);

/* Reads into the stream's buffer. True: there are no bytes, so a selector must wait for the descriptor. No strand may be
 * reading. */
bool rsb_tls_is_empty(rsb_machine *machine, rsb_stream *stream);

/* True if a read would most likely find no bytes, as after each message of a peer that waits for an answer. Then the caller may
 * wait for the descriptor first: libssl has no bytes of its own. */
bool rsb_tls_may_be_dry(rsb_tls *tls);

/* Sends close_notify. Returns 0, or -EAGAIN with the `events` to poll for before the next call, or -errno. */
int64_t rsb_tls_end(rsb_tls *tls, uint32_t *events);
bool rsb_tls_has_ended(const rsb_tls *tls);

/* Before the descriptor is closed, reads and drops bytes that have come. A server sends tickets for later sessions: if they are
 * unread at the close, the kernel resets the connection (RFC 2525, section 2.17, in tcp_close of Linux), and bytes that have not
 * reached the other side are lost. True: this is a client that has read nothing, so tickets may still come; all of them, if
 * nothing has come since the handshake. */
bool rsb_tls_sweep(rsb_tls *tls);
/* Whether bytes have come since the handshake. */
bool rsb_tls_has_heard(const rsb_tls *tls);

#endif
