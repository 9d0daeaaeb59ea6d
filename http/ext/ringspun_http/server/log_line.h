/* log_line: a line of the access log, put together in the scratch in one pass. Owns nothing. */
#ifndef RINGSPUN_HTTP_LOG_LINE_H
#define RINGSPUN_HTTP_LOG_LINE_H

#include "server/http.h"

void rhs_init_log_line(void);

#endif
