/* fields: the lines of a head, or of trailers, up to the empty line that ends them. The struct is the caller's, and so is the
 * memory for the fields; the bytes are as well, and may be elsewhere at each call. It may be called from any thread, by one at
 * a time.
 *
 * Each byte is looked at once, however they come in: `at` says how far. What is wrong is wrong at the same byte whatever the
 * pieces were, for nothing is decided by what is not there yet.
 *
 * The grammar is that of https://www.rfc-editor.org/rfc/rfc9112#section-5, without lines that go on with the one before (5.2),
 * and with CRLF as the only end of a line, although 2.2 would let a line feed alone pass.
 */
#ifndef RINGSPUN_HTTP_FIELDS_H
#define RINGSPUN_HTTP_FIELDS_H

#include "codec/names.h"
#include "codec/span.h"
#include "codec/wrong.h"

typedef struct {
    rhttp_span name;            /* as it was sent */
    rhttp_span value;           /* without blanks around it; may be empty */
    uint8_t known;              /* rhttp_name */
    bool has_underscore;        /* a gateway takes `_` for `-`, so it may stand for a field that a proxy believes to have set:
                                   CVE-2024-45614. A server drops it */
} rhttp_field;

typedef struct {
    rhttp_field *list;          /* of the caller */
    uint16_t count;
    uint16_t room;              /* how many fit */
    uint16_t name_max;
    uint8_t step;
    uint8_t found;              /* rhttp_found, of the last call */
    uint8_t wrong;              /* rhttp_wrong, once it is */
    uint32_t at;                /* scanned up to here; where it went wrong */
    uint32_t mark;              /* where the name or the value begins that is being read */
} rhttp_fields;

/* The first line begins at `at`. */
void rhttp_fields_begin(rhttp_fields *fields, rhttp_field *list, uint16_t room, uint16_t name_max, size_t at);

/* Reads on, up to `end`. When it is whole, `at` is behind the empty line. */
rhttp_found rhttp_fields_take(rhttp_fields *fields, const uint8_t *bytes, size_t end);

/* Notes what is wrong there. */
rhttp_found rhttp_fields_refuse(rhttp_fields *fields, size_t at, rhttp_wrong wrong);

/* What is wrong with a byte that must not be there: a control character has its own word, others have `otherwise`. */
rhttp_wrong rhttp_wrong_byte(uint8_t byte, rhttp_wrong otherwise);

#endif
