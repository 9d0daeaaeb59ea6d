/* times: timestamps and dates of the server, in Ruby. Infinite ones are Floats. No state. */
#ifndef RINGSPUN_PG_TIMES_H
#define RINGSPUN_PG_TIMES_H

#include "client/postgres.h"

VALUE rpg_infinite(bool negative);
bool rpg_is_infinite(rpg_span text);

VALUE rpg_time_of_text(rpg_span value);
VALUE rpg_time_of_binary(rpg_span value);
VALUE rpg_date_of_text(rpg_span value);
VALUE rpg_date_of_binary(rpg_span value);

void rpg_init_times(void);

#endif
