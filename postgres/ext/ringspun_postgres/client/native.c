/* native: the extension's beginning. */
#include "client/lane.h"
#include "client/row.h"

const ringspun_api *ringspun;
VALUE rpg_mPostgres, rpg_eProtocol, rpg_eUsage, rpg_eTimeout, rpg_eClosed, rpg_eTLS, rpg_eUnsupported;

RUBY_FUNC_EXPORTED void Init_postgres_native(void) {
    ringspun = ringspun_get_api(2);
    VALUE mRingspun = rb_path2class("Ringspun");
    rpg_mPostgres = rb_define_module_under(mRingspun, "Postgres");
    rpg_eUsage = rb_path2class("Ringspun::UsageError");
    rpg_eTimeout = rb_path2class("Ringspun::TimeoutError");
    rpg_eClosed = rb_path2class("Ringspun::ClosedError");
    rpg_eTLS = rb_path2class("Ringspun::TLSError");
    rpg_eUnsupported = rb_path2class("Ringspun::UnsupportedError");
    rpg_eProtocol = rb_path2class("Ringspun::Postgres::ProtocolError");
    rpg_init_types();
    rpg_init_decoders();
    rpg_init_messages();
    rpg_init_columns();
    rpg_init_row();
    rpg_init_result();
    rpg_init_statement();
    rpg_init_lane();
}
