/* params: Ruby objects as parameters of a statement, in three steps: each object becomes a text or bytes once, without a connection
 * (rpg_encode_params); where the type decides what a String in BINARY or an Array is, they become text, bytes or json when that is
 * known (rpg_make_json, rpg_typed_params); and what a Bind has of them is written (rpg_put_params).
 *
 * Parameters that are encoded are an Array, or Ringspun::Postgres::Params where some have types of their own, or wait for one. */
#ifndef RINGSPUN_PG_PARAMS_H
#define RINGSPUN_PG_PARAMS_H

#include "client/decoders.h"
#include "client/texts.h"

/* Bytes of a text, or of all values, that the server takes in one message with all that comes with them. It closes the connection on
 * a longer one, and says why in its log alone (pq_getmessage in pqcomm.c of PostgreSQL, COMMERROR). */
#define RPG_MESSAGE_MAX 0x3ff00000l

/* What is encoded already is returned as it is. Raises UsageError for what is none. May run Ruby code. */
VALUE rpg_encode_params(VALUE params);

/* The text of one value, as a String. Raises UsageError, which names the place, from 1 on. */
VALUE rpg_text_of(VALUE value, long place);

/* What follows is for parameters that are encoded. */

/* The OIDs of the types that parameters say they have, 4 bytes for each parameter, 0: it does not say; nil: none does. */
VALUE rpg_params_declared(VALUE params);

/* There are Strings in BINARY, or Arrays, whose types have to be known first. */
bool rpg_params_are_untyped(VALUE params);

/* Whether the one at that place, from 0 on, is such a one, or has one in it. */
bool rpg_param_is_untyped(VALUE params, long place);

/* Whether it is an Array that is complete as an array of Postgres: its type has to be known only where it may be json. */
bool rpg_param_is_list(VALUE params, long place);

/* Whether it is an Array whose json is not made yet. */
bool rpg_param_lacks_json(VALUE params, long place);

/* Makes that, once: the parameter is json. May run Ruby code, and raises UsageError. */
void rpg_make_json(VALUE params, long place);

long rpg_params_len(VALUE params);

/* Says of the parameter at that place, from 0 on, of what kind it is, and what its type is. */
typedef rpg_kind (*rpg_kind_at)(const void *data, long place, uint32_t *type);

/* An Array in which all that is BINARY, and not plain, is a bytea. Raises UsageError for what is no text. */
VALUE rpg_typed_params(VALUE params, rpg_kind_at kind_at, const void *data);

/* Of that what a Bind has between the name of its statement and the formats of its columns. Runs no Ruby code. */
void rpg_put_params(rpg_out *out, VALUE typed);

void rpg_init_params(void);

#endif
