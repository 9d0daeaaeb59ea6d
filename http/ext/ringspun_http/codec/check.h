/* check: what must hold in the codec whatever a peer sends. Only builds for tests and with a sanitizer compile it (-DRS_CHECKED,
 * as the engine's RS_CHECK). It is not evaluated otherwise, so it has no effect of its own.
 *
 * No byte of a peer reaches one that fails: that is an error of the protocol, which ends the connection and not the process.
 */
#ifndef RINGSPUN_HTTP_CHECK_H
#define RINGSPUN_HTTP_CHECK_H

#ifdef RS_CHECKED
#include <stdio.h>
#include <stdlib.h>
#define RHTTP_CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #x), abort()))
#else
#define RHTTP_CHECK(x) ((void)sizeof(!(x)))
#endif

#endif
