/* native: the extension's beginning. */
#include "server/address.h"
#include "server/connection.h"
#include "server/counters.h"
#include "server/keys.h"
#include "server/log_line.h"

RUBY_FUNC_EXPORTED void Init_http_native(void) {
    rhs_init_http();
    rhs_init_keys();
    VALUE cConnection = rhs_init_connection();
    rhs_init_receive(cConnection);
    rhs_init_body(cConnection);
    rhs_init_answer(cConnection);
    rhs_init_pace();
    rhs_init_address(cConnection);
    rhs_init_counters();
    rhs_init_log_line();
}
