/* native: the extension's beginning. */
#include "client/ask.h"
#include "client/begin.h"
#include "client/bell.h"
#include "client/copy_format.h"
#include "client/inits.h"
#include "client/lane_object.h"
#include "client/params.h"
#include "client/row.h"
#include "client/stream.h"
#include "client/times.h"

static void init_values(void) {
    rpg_init_times();
    rpg_init_types();
    rpg_init_texts();
    rpg_init_params();
    rpg_init_decoders();
    rpg_init_columns();
    rpg_init_row();
    rpg_init_result();
    rpg_init_copy_format();
    rpg_init_copy_rows();
    rpg_init_copy_reader();
}

static void init_lane(void) {
    rpg_init_histories();
    rpg_init_statement();
    rpg_init_seen();
    rpg_init_ask();
    rpg_init_bell();
    VALUE cLane = rpg_init_lane();
    rpg_init_query(cLane);
    rpg_init_notifications(cLane);
    rpg_init_batch(cLane);
    rpg_init_begin(cLane);
    rpg_init_post(cLane);
    rpg_init_stream(cLane);
    rpg_init_script(cLane);
    rpg_init_thread(cLane);
    rpg_init_copy(cLane);
}

RUBY_FUNC_EXPORTED void Init_postgres_native(void) {
    rpg_init_postgres();
    rpg_init_messages();
    init_values();
    init_lane();
}
