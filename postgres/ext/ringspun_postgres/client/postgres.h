/* postgres: what the files of the extension share: the API of the runtime, and classes of Ruby. Everything here runs with the GVL
 * held. */
#ifndef RINGSPUN_PG_POSTGRES_H
#define RINGSPUN_PG_POSTGRES_H

#include "codec/message.h"
#include "codec/replies.h"
#include "codec/request.h"

#include <ringspun.h>
#include <ruby/encoding.h>

extern const ringspun_api *ringspun;
extern VALUE rpg_mPostgres, rpg_eProtocol, rpg_eDecode, rpg_eUsage, rpg_eTimeout, rpg_eClosed, rpg_eTLS, rpg_eUnsupported;

/* The first of all. */
void rpg_init_postgres(void);

#endif
