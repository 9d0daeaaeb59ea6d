/* date: the time as the field `date` has it, made once a second. The struct is the caller's; it may be called from any thread, by
 * one at a time. The caller says what time it is. */
#ifndef RINGSPUN_HTTP_DATE_H
#define RINGSPUN_HTTP_DATE_H

#include <stdint.h>

#define RHTTP_DATE_LEN 29 /* `Sun, 06 Nov 1994 08:49:37 GMT`: https://www.rfc-editor.org/rfc/rfc9110#section-5.6.7 */

typedef struct {
    int64_t second;
    char text[RHTTP_DATE_LEN];  /* all zeroes: there is none yet */
} rhttp_date;

/* RHTTP_DATE_LEN characters, without a NUL, for a second since 1970-01-01 up to the end of the year 9999; the first or the last
 * of these for one that is not among them. They hold until the next call. */
const char *rhttp_date_at(rhttp_date *date, int64_t second);

#endif
