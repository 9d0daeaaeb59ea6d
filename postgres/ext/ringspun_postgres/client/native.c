/* native: the extension's beginning. */
#include "client/copy_rows.h"
#include "client/lane.h"
#include "client/params.h"
#include "client/row.h"
#include "client/times.h"

const ringspun_api *ringspun;
VALUE rpg_mPostgres, rpg_eProtocol, rpg_eDecode, rpg_eUsage, rpg_eTimeout, rpg_eClosed, rpg_eTLS, rpg_eUnsupported;

/* Compaction does not move it. */
static void find_class(VALUE *class, const char *path) {
    *class = rb_path2class(path);
    rb_global_variable(class);
}

RUBY_FUNC_EXPORTED void Init_postgres_native(void) {
    ringspun = ringspun_get_api(2);
    VALUE mRingspun = rb_path2class("Ringspun");
    rpg_mPostgres = rb_define_module_under(mRingspun, "Postgres");
    find_class(&rpg_eUsage, "Ringspun::UsageError");
    find_class(&rpg_eTimeout, "Ringspun::TimeoutError");
    find_class(&rpg_eClosed, "Ringspun::ClosedError");
    find_class(&rpg_eTLS, "Ringspun::TLSError");
    find_class(&rpg_eUnsupported, "Ringspun::UnsupportedError");
    find_class(&rpg_eProtocol, "Ringspun::Postgres::ProtocolError");
    find_class(&rpg_eDecode, "Ringspun::Postgres::DecodeError");
    rpg_init_times();
    rpg_init_types();
    rpg_init_texts();
    rpg_init_params();
    rpg_init_decoders();
    rpg_init_messages();
    rpg_init_columns();
    rpg_init_row();
    rpg_init_result();
    rpg_init_histories();
    rpg_init_statement();
    rpg_init_lane();
    rpg_init_copy_rows();
    rpg_init_copy_reader();
}
