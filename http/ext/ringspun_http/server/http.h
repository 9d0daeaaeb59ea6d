/* http: what all files of the server need: Ruby, the C API of Ringspun, and our modules and errors. They run with the GVL held. */
#ifndef RINGSPUN_HTTP_HTTP_H
#define RINGSPUN_HTTP_HTTP_H

#include <ruby.h>
#include <ruby/encoding.h>
#include <ringspun.h>

#include <stdbool.h>
#include <stdint.h>

extern const ringspun_api *ringspun;
extern VALUE rhs_mHTTP, rhs_eUsage, rhs_eWrongThread, rhs_eTimeout;

void rhs_init_http(void);

static inline VALUE rhs_bool(bool is) { return is ? Qtrue : Qfalse; }

/* Raises RequestError with that status and message. */
NORETURN(void rhs_raise_request(uint16_t status, const char *message));

/* Raises AnswerError: what the program gives cannot be sent. */
NORETURN(PRINTF_ARGS(void rhs_raise_answer(const char *format, ...), 1, 2));

/* Raises GoneError: there is nobody any more who reads. */
NORETURN(void rhs_raise_gone(void));

#endif
