/* tls: streams over the TLS session of an OpenSSL::SSL::SSLSocket, after its handshake.
 *
 * Bytes are read and written by libssl itself, and not by the object's methods, for three reasons. Those methods show a truncated
 * connection only by an error's text, if at all. Written bytes leave between two strands, where no Ruby code may run. And libssl
 * decrypts directly into the stream's buffer. The library is the one that the object uses: nothing is linked, no header of it is
 * needed, and a program without TLS does not load it. Only calls that never wait are made, so one strand may read while another
 * writes.
 */
#include "tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

/* The binary interface of libssl since 1.1.0: SSL_ERROR_*, SSL_OP_NO_RENEGOTIATION and TLS1_3_VERSION of openssl/ssl.h and
 * prov_ssl.h, BIO_CTRL_GET_KTLS_SEND and _RECV of bio.h, ERR_LIB_SSL of err.h, SSL_R_UNEXPECTED_EOF_WHILE_READING of sslerr.h. */
#define ERROR_SSL 1
#define ERROR_WANT_READ 2
#define ERROR_WANT_WRITE 3
#define ERROR_SYSCALL 5
#define ERROR_ZERO_RETURN 6
#define OP_NO_RENEGOTIATION (1ul << 30)
#define CTRL_KERNEL_SENDS 73
#define CTRL_KERNEL_RECEIVES 76
#define LIBRARY_SSL 20
#define REASON_UNEXPECTED_EOF 294
#define TLS_1_3 0x304

/* Every so many guesses that there are no bytes, a read tests the guess. */
#define GUESSES 16

typedef struct {
    int (*SSL_read)(void *ssl, void *bytes, int len);
    int (*SSL_write)(void *ssl, const void *bytes, int len);
    int (*SSL_shutdown)(void *ssl);
    int (*SSL_get_error)(const void *ssl, int result);
    int (*SSL_has_pending)(const void *ssl);
    int (*SSL_is_init_finished)(const void *ssl);
    int (*SSL_is_server)(const void *ssl);
    int (*SSL_version)(const void *ssl);
    uint64_t (*SSL_set_options)(void *ssl, uint64_t options);
    long (*SSL_ctrl)(void *ssl, int command, long number, void *pointer);
    const char *(*SSL_get_servername)(const void *ssl, int type);
    void *(*SSL_get_rbio)(const void *ssl);
    void *(*SSL_get_wbio)(const void *ssl);
    long (*BIO_ctrl)(void *bio, int command, long number, void *pointer);
    uint64_t (*BIO_number_read)(void *bio);
    unsigned long (*ERR_peek_error)(void);
    unsigned long (*ERR_get_error)(void);
    void (*ERR_clear_error)(void);
    const char *(*ERR_reason_error_string)(unsigned long error);
} library;

static const char *const names[] = {
    "SSL_read", "SSL_write", "SSL_shutdown", "SSL_get_error", "SSL_has_pending", "SSL_is_init_finished", "SSL_is_server",
    "SSL_version", "SSL_set_options", "SSL_ctrl", "SSL_get_servername", "SSL_get_rbio", "SSL_get_wbio",
    "BIO_ctrl", "BIO_number_read", "ERR_peek_error", "ERR_get_error", "ERR_clear_error", "ERR_reason_error_string",
};
_Static_assert(sizeof(library) == sizeof(names) / sizeof(names[0]) * sizeof(void (*)(void)), "each function has its name");

/* Looked up by the first stream. Another ractor that does so at the same time finds the same functions. */
static library functions;
static _Atomic(const library *) found;
#define LIB (atomic_load_explicit(&found, memory_order_relaxed))

struct rsb_tls {
    void *ssl;                  /* the SSL of the socket */
    uint32_t forks;             /* rsb_forks when it was made: only that process may use the session */
    int64_t error;              /* the first final error: libssl is not called any more; 0: none */
    uint64_t handshake_bytes;   /* bytes that the other side has sent before the stream used the session */
    bool said_end;              /* the kernel has our close_notify */
    bool answered;              /* bytes were read */
    bool came;                  /* the last read has brought bytes */
    bool dry;                   /* the last read after such a one has brought none */
    uint8_t guesses;
    bool truncated;             /* `error` was the end of the connection without close_notify */
    char failure[200];
};

static void find_library(VALUE socket) {
    if (LIB) return;
    Dl_info info;
    const rb_data_type_t *type = RTYPEDDATA_TYPE(socket);
    void *handle = dladdr((void *)type->function.dfree, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *all[sizeof(names) / sizeof(names[0])];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        all[i] = handle ? dlsym(handle, names[i]) : NULL;
        if (!all[i]) rb_raise(rsb_eUnsupported, "TLS: this Ruby's openssl has no %s that can be called from here", names[i]);
    }
    memcpy(&functions, all, sizeof(functions)); /* the handle is never closed, so the library stays loaded */
    atomic_store_explicit(&found, &functions, memory_order_release);
}

bool rsb_is_tls_socket(VALUE object) {
    return RB_TYPE_P(object, T_DATA) && RTYPEDDATA_P(object) &&
           strcmp(RTYPEDDATA_TYPE(object)->wrap_struct_name, "OpenSSL/SSL") == 0;
}

static void *library_of(VALUE socket) {
    if (!rsb_is_tls_socket(socket)) {
        rb_raise(rsb_eUsage, "expected an OpenSSL::SSL::SSLSocket, got %" PRIsVALUE, rsb_inspect(socket));
    }
    find_library(socket);
    return RTYPEDDATA_GET_DATA(socket);
}

static void *ssl_of(VALUE socket) {
    void *ssl = library_of(socket);
    if (!ssl || !LIB->SSL_is_init_finished(ssl)) {
        rb_raise(rsb_eUsage, "the TLS handshake is not done; call the socket's connect or accept first, or pass its IO and call "
                             "Stream#start_tls or Stream#accept_tls");
    }
    return ssl;
}

/* --- what libssl says --- */

static int64_t fail(rsb_tls *tls, const char *text) {
    tls->error = -EPROTO;
    snprintf(tls->failure, sizeof(tls->failure), "%s", text);
    return -EPROTO;
}

static int64_t fail_truncated(rsb_tls *tls) {
    tls->truncated = true;
    return fail(tls, "the connection was cut: it ended without the other side's close_notify, so that what came last may be "
                     "missing");
}

/* The result of a call that has failed: 0 is the end of the session. An error of the system is not kept for other calls: after a
 * failed write, a read may still find an alert in which the other side says why it has closed. */
static int64_t answer_of(rsb_tls *tls, int result, uint32_t *events) {
    int error = errno, kind = LIB->SSL_get_error(tls->ssl, result);
    if (kind == ERROR_WANT_READ || kind == ERROR_WANT_WRITE) {
        *events = kind == ERROR_WANT_READ ? POLLIN : POLLOUT;
        return -EAGAIN;
    }
    if (kind == ERROR_ZERO_RETURN) return 0;
    unsigned long code = LIB->ERR_get_error();
    LIB->ERR_clear_error();
    if (kind == ERROR_SYSCALL) {
        if (error == 0) return fail_truncated(tls); /* before OpenSSL 3.0: SSL_get_error(3) */
        return -error;
    }
    bool of_ssl = (code >> 23 & 0xff) == LIBRARY_SSL;
    if (of_ssl && (code & 0x7fffff) == REASON_UNEXPECTED_EOF) return fail_truncated(tls);
    const char *reason = code ? LIB->ERR_reason_error_string(code) : NULL;
    return fail(tls, reason ? reason : "libssl says no reason");
}

/* Returns the final error, if there is one. Empties the thread's error queue: SSL_get_error(3) would take old errors for those of
 * the next call. */
static int64_t begin(rsb_tls *tls) {
    if (RS_UNLIKELY(tls->forks != rsb_forks)) {
        fail(tls, "the session is that of the process that this one was forked from; connect anew");
    }
    if (RS_UNLIKELY(tls->error)) return tls->error;
    if (RS_UNLIKELY(LIB->ERR_peek_error() != 0)) LIB->ERR_clear_error();
    errno = 0;
    return 0;
}

static int bounded(size_t len) { return len > INT_MAX ? INT_MAX : (int)len; }

int64_t rsb_tls_read(rsb_tls *tls, void *bytes, size_t len, uint32_t *events) {
    int64_t error = begin(tls);
    if (RS_UNLIKELY(error)) return error;
    int result = LIB->SSL_read(tls->ssl, bytes, bounded(len));
    int64_t answer = RS_LIKELY(result > 0) ? result : answer_of(tls, result, events);
    if (RS_UNLIKELY(answer < 0 && answer != -EAGAIN)) tls->error = answer;
    if (tls->came) tls->dry = answer == -EAGAIN;
    tls->came = answer > 0;
    if (tls->came) tls->answered = true;
    return answer;
}

bool rsb_tls_may_be_dry(rsb_tls *tls) {
    if (!tls->came || !tls->dry || tls->error || ++tls->guesses % GUESSES == 0) return false;
    tls->came = false;
    return !LIB->SSL_has_pending(tls->ssl);
}

/* A poll of the descriptor does not show bytes that libssl has read already. */
bool rsb_tls_is_empty(rsb_machine *machine, rsb_stream *stream) {
    uint32_t events;
    rs_pool *pool = rs_pool_of(machine->engine);
    char *room = rs_buffer_room(pool, &stream->in, 4096);
    if (!room) return false; /* the read will raise NoMemoryError */
    int64_t bytes = rsb_tls_read(stream->tls, room, stream->in.capacity - stream->in.end, &events);
    if (bytes > 0) rs_buffer_filled(&stream->in, (size_t)bytes);
    else if (rs_buffer_len(&stream->in) == 0) rs_buffer_clear(pool, &stream->in);
    return bytes == -EAGAIN;
}

/* `pass` of the write queue. libssl does not count a record that it has sent in part: SSL_write(3) is called again for it. */
static int64_t pass(rs_write_queue *queue, const void *bytes, size_t len, uint32_t *events) {
    rsb_tls *tls = ((rsb_stream *)queue)->tls;
    int64_t error = begin(tls);
    if (RS_UNLIKELY(error)) return error;
    int result = LIB->SSL_write(tls->ssl, bytes, bounded(len));
    if (RS_LIKELY(result > 0)) {
        rs_count_inline(queue->machine);
        return result;
    }
    int64_t answer = answer_of(tls, result, events);
    return answer == 0 ? fail(tls, "the session has been ended") : answer;
}

bool rsb_tls_sweep(rsb_tls *tls) {
    char bytes[1024];
    uint32_t events;
    if (tls->forks != rsb_forks || rsb_tls_read(tls, bytes, sizeof(bytes), &events) != -EAGAIN) return false;
    return !tls->answered && !LIB->SSL_is_server(tls->ssl) && LIB->SSL_version(tls->ssl) == TLS_1_3;
}

bool rsb_tls_has_heard(const rsb_tls *tls) { return LIB->BIO_number_read(LIB->SSL_get_rbio(tls->ssl)) > tls->handshake_bytes; }

int64_t rsb_tls_end(rsb_tls *tls, uint32_t *events) {
    if (tls->forks != rsb_forks || begin(tls)) return 0; /* a child sends nothing in the parent's session */
    int result = LIB->SSL_shutdown(tls->ssl);
    if (result < 0) return answer_of(tls, result, events);
    tls->said_end = true;
    return 0;
}

/* Not by SSL_get_shutdown: SSL_SENT_SHUTDOWN is also set when close_notify has not left yet: SSL_shutdown(3). */
bool rsb_tls_has_ended(const rsb_tls *tls) { return tls->said_end; }

/* Its peer's fault, but for a session that a forked child uses. */
NORETURN(static void fail_by_session(const rsb_stream *stream, const char *what));
static void fail_by_session(const rsb_stream *stream, const char *what) {
    const rsb_tls *tls = stream->tls;
    VALUE class = rb_const_get(rsb_mRingspun, rb_intern(tls->truncated ? "TruncatedStreamError" : "TLSSessionError"));
    rsb_stream_blame(tls->forks == rsb_forks ? stream : NULL, rsb_error(class, "%s: %s", what, tls->failure));
}

void rsb_stream_refused(rsb_machine *machine, rsb_stream *stream, int64_t result, const char *what, int fd) {
    if (result == -EBADF) rsb_stream_fd(machine, stream);
    if (rsb_stream_says_gone(result)) rsb_stream_blame(stream, rb_syserr_new((int)-result, what));
    if (result == -EPROTO && stream->tls) fail_by_session(stream, what);
    rsb_refused(machine, result, what, fd);
}

/* --- a stream gets one --- */

static void check_world(const rsb_machine *machine) {
    if (!rs_is_simulated(machine->engine)) return;
    rb_raise(rsb_eUnsupported, "TLS needs a real socket, and a simulated machine has none");
}

static rsb_stream *plain_stream(VALUE self, rsb_machine **machine) {
    rsb_stream *stream = rsb_stream_get(self, machine);
    if (stream->tls) rb_raise(rsb_eUsage, "the stream speaks TLS already");
    check_world(*machine);
    if (!stream->socket) rb_raise(rsb_eUnsupported, "TLS needs a socket, got %" PRIsVALUE, rsb_inspect(stream->io));
    if (stream->write_closed) rb_raise(rsb_eClosed, "TLS: the stream is closed for writing");
    if (stream->shaking) rb_raise(rsb_eUsage, "TLS: another strand is at the handshake already");
    if (stream->reading) {
        rb_raise(rsb_eUsage, "TLS: another strand reads from this stream; the handshake has to be the only one that does");
    }
    return stream;
}

/* Returns the IO for the handshake. For a stream over an Integer it makes one, which closes the descriptor from now on. Until the
 * handshake is over, no strand may read or write. There may be no unread bytes: an attacker could have sent them in clear text,
 * and they would be taken for bytes of the session. */
static VALUE stream_begin_tls(VALUE self) {
    rsb_machine *machine;
    rsb_stream *stream = plain_stream(self, &machine);
    size_t early = rs_buffer_len(&stream->in);
    if (early > 0 || stream->to_skip > 0) {
        rb_raise(rb_const_get(rsb_mRingspun, rb_intern("EarlyBytesError")), "%" PRIuSIZE " bytes came in clear text that nobody "
                 "has read; before a handshake there must be none, for they may be anybody's: read what your protocol has there, "
                 "and else close", early);
    }
    if (rs_write_queue_len(&stream->write_queue) > 0) rb_raise(rsb_eUsage, "TLS: flush what was written before the handshake");
    if (RB_INTEGER_TYPE_P(stream->io)) {
        rsb_stream_fd(machine, stream);
        stream->io = rb_funcall(rb_const_get(rb_cObject, rb_intern("Socket")), rb_intern("for_fd"), 1, stream->io);
        stream->made_io = true;
    }
    rs_write_queue_ask(&stream->write_queue, rsb_stream_is_open);
    stream->shaking = true;
    return stream->io;
}

static void use(rsb_stream *stream, VALUE socket, void *ssl) {
    rsb_tls *tls = stream->tls = ZALLOC(rsb_tls);
    stream->tls_socket = socket;
    tls->ssl = ssl;
    tls->forks = rsb_forks;
    tls->handshake_bytes = LIB->BIO_number_read(LIB->SSL_get_rbio(ssl));
    rs_write_queue_through(&stream->write_queue, pass);
    LIB->SSL_set_options(ssl, OP_NO_RENEGOTIATION); /* a renegotiation calls code of the program, also between two strands */
}

/* The stream uses this session from now on. Its descriptor is the stream's. */
static VALUE stream_use_tls(VALUE self, VALUE socket) {
    rsb_machine *machine;
    void *ssl = ssl_of(socket);
    rsb_stream *stream = rsb_stream_get(self, &machine);
    stream->shaking = false;
    use(stream, socket, ssl);
    return Qnil;
}

VALUE rsb_tls_io(rsb_machine *machine, VALUE socket) {
    check_world(machine);
    ssl_of(socket);
    rb_funcall(socket, rb_intern("flush"), 0);
    return rb_funcall(socket, rb_intern("to_io"), 0);
}

void rsb_tls_adopt(rsb_machine *machine, rsb_stream *stream, VALUE socket) {
    use(stream, socket, ssl_of(socket));
    VALUE bytes = rb_attr_get(socket, rb_intern("@rbuffer"));
    if (RB_TYPE_P(bytes, T_STRING)) {
        bool put = rs_buffer_put(rs_pool_of(machine->engine), &stream->in, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes));
        if (!put) rsb_fail_memory();
    }
}

static VALUE stream_tls_socket(VALUE self) { return rsb_stream_peek(self)->tls_socket; }

/* The server name that the client has sent (SNI); whether the kernel encrypts written bytes, and decrypts read ones (kTLS). */
static VALUE stream_tls_facts(VALUE self) {
    const rsb_tls *tls = rsb_stream_peek(self)->tls;
    const char *name = LIB->SSL_get_servername(tls->ssl, 0);
    bool sends = LIB->BIO_ctrl(LIB->SSL_get_wbio(tls->ssl), CTRL_KERNEL_SENDS, 0, NULL) > 0;
    bool receives = LIB->BIO_ctrl(LIB->SSL_get_rbio(tls->ssl), CTRL_KERNEL_RECEIVES, 0, NULL) > 0;
    return rb_ary_new_from_args(3, name ? rb_str_new_cstr(name) : Qnil, sends ? Qtrue : Qfalse, receives ? Qtrue : Qfalse);
}

void rsb_init_stream_tls(void) {
    rb_define_private_method(rsb_cStream, "begin_tls", stream_begin_tls, 0);
    rb_define_private_method(rsb_cStream, "use_tls", stream_use_tls, 1);
    rb_define_private_method(rsb_cStream, "tls_socket", stream_tls_socket, 0);
    rb_define_private_method(rsb_cStream, "tls_facts", stream_tls_facts, 0);
}
