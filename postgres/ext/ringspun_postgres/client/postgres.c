#include "client/postgres.h"

const ringspun_api *ringspun;
VALUE rpg_mPostgres, rpg_eProtocol, rpg_eDecode, rpg_eUsage, rpg_eTimeout, rpg_eClosed, rpg_eTLS, rpg_eUnsupported;

/* Compaction does not move it. */
static void find_class(VALUE *class, const char *path) {
    *class = rb_path2class(path);
    rb_global_variable(class);
}

void rpg_init_postgres(void) {
    ringspun = ringspun_get_api(2);
    rpg_mPostgres = rb_define_module_under(rb_path2class("Ringspun"), "Postgres");
    find_class(&rpg_eUsage, "Ringspun::UsageError");
    find_class(&rpg_eTimeout, "Ringspun::TimeoutError");
    find_class(&rpg_eClosed, "Ringspun::ClosedError");
    find_class(&rpg_eTLS, "Ringspun::TLSError");
    find_class(&rpg_eUnsupported, "Ringspun::UnsupportedError");
    find_class(&rpg_eProtocol, "Ringspun::Postgres::ProtocolError");
    find_class(&rpg_eDecode, "Ringspun::Postgres::DecodeError");
}
