#include "client/decoders.h"

/* Domains of domains, for a server that says that one is made of itself. */
#define DOMAINS_MAX 32

enum { JSON = 114, JSONB = 3802 };

typedef struct known {
    rpg_type type;
    uint32_t base;              /* a domain, of that; 0: it is none */
    struct known *older;
} known;

typedef struct {
    st_table *by_oid;           /* OID => known, the newest of that OID */
    known *newest;
} decoders;

static VALUE cDecoders;

static void decoders_mark(void *data) {
    for (const known *each = ((const decoders *)data)->newest; each; each = each->older) {
        if (each->type.decoder) rb_gc_mark(each->type.decoder);
    }
}

static void decoders_free(void *data) {
    decoders *all = data;
    while (all->newest) {
        known *older = all->newest->older;
        xfree(all->newest);
        all->newest = older;
    }
    if (all->by_oid) st_free_table(all->by_oid);
    xfree(all);
}

static size_t decoders_size(const void *data) {
    const decoders *all = data;
    return sizeof(*all) + (all->by_oid ? st_memsize(all->by_oid) + all->by_oid->num_entries * sizeof(known) : 0);
}

static const rb_data_type_t decoders_type = {
    .wrap_struct_name = "Ringspun::Postgres::Decoders",
    .function = {.dmark = decoders_mark, .dfree = decoders_free, .dsize = decoders_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static decoders *get(VALUE self) { return rb_check_typeddata(self, &decoders_type); }

static known *find(const decoders *all, uint32_t oid) {
    st_data_t found;
    return st_lookup(all->by_oid, oid, &found) ? (known *)found : NULL;
}

static known *add(decoders *all, rpg_type type) {
    known *one = ALLOC(known);
    *one = (known){.type = type, .older = all->newest};
    all->newest = one;
    st_insert(all->by_oid, type.oid, (st_data_t)one);
    return one;
}

/* --- asking --- */

/* What it is made of, when it is a domain whose decoder the user has not given. */
static uint32_t base_of(const decoders *all, uint32_t oid) {
    for (int i = 0; i < DOMAINS_MAX; i++) {
        const known *found = find(all, oid);
        if (!found || !found->base || found->type.decoder) break;
        oid = found->base;
    }
    return oid;
}

static const rpg_type *type_in(const decoders *all, uint32_t oid) {
    oid = base_of(all, oid);
    const known *found = find(all, oid);
    if (found) return &found->type;
    return rpg_type_is_fixed(oid) ? rpg_type_of(oid) : NULL;
}

const rpg_type *rpg_decoders_type(VALUE self, uint32_t oid) { return NIL_P(self) ? rpg_type_of(oid) : type_in(get(self), oid); }

rpg_kind rpg_decoders_kind(VALUE self, uint32_t oid) {
    if (!NIL_P(self)) {
        const decoders *all = get(self);
        oid = base_of(all, oid);
        const known *found = find(all, oid);
        if (!found && !rpg_type_is_fixed(oid)) return RPG_UNKNOWN_KIND;
        if (found && found->type.element) return base_of(all, found->type.element) == RPG_BYTEA ? RPG_BYTEA_KIND : RPG_TEXT_KIND;
    }
    if (oid == JSON || oid == JSONB) return RPG_JSON_KIND;
    return oid == RPG_BYTEA || oid == RPG_BYTEA_ARRAY ? RPG_BYTEA_KIND : RPG_TEXT_KIND;
}

/* --- learning --- */

static VALUE decoders_new(VALUE class) {
    decoders *all;
    VALUE self = TypedData_Make_Struct(class, decoders, &decoders_type, all);
    all->by_oid = st_init_numtable();
    return self;
}

/* @param array [Integer] the OID of its arrays; 0: the one that each server has, if there is one
 * @param decoder [#call] the user's */
static VALUE decoders_add(VALUE self, VALUE oid, VALUE array, VALUE decoder) {
    decoders *all = get(self);
    uint32_t number = NUM2UINT(oid), of_arrays = NUM2UINT(array);
    known *found = find(all, number);
    if (found && found->type.decoder == decoder) return self;
    known *own = add(all, (rpg_type){.oid = number, .decoder = decoder});
    if (of_arrays == 0) of_arrays = rpg_array_of(number);
    known *old = of_arrays ? find(all, of_arrays) : NULL;
    if (of_arrays == 0 || (old && old->type.decoder)) return self;
    add(all, (rpg_type){.oid = of_arrays, .element = number, .decoded = &own->type, .delimiter = rpg_type_of(of_arrays)->delimiter});
    return self;
}

static VALUE field(VALUE row, long place) { return rb_ary_entry(row, place); }

/* @param rows [Array<Array(Integer, Integer, Integer, String)>] an OID, the OID of what a domain is made of, that of an array's
 *   elements, and what is between these */
static VALUE decoders_learn(VALUE self, VALUE rows) {
    decoders *all = get(self);
    for (long i = 0; i < RARRAY_LEN(rows); i++) {
        VALUE row = RARRAY_AREF(rows, i), delimiter = field(row, 3);
        uint32_t oid = NUM2UINT(field(row, 0));
        if (find(all, oid) || rpg_type_is_fixed(oid)) continue;
        rpg_type type = {.oid = oid, .element = NUM2UINT(field(row, 2)), .as_text = true, .delimiter = StringValueCStr(delimiter)[0]};
        if (type.element == 0) type.text = rpg_type_of(0)->text;
        add(all, type)->base = NUM2UINT(field(row, 1));
    }
    for (long i = 0; i < RARRAY_LEN(rows); i++) {
        known *found = find(all, NUM2UINT(field(RARRAY_AREF(rows, i), 0)));
        if (found && found->type.element && !found->type.decoded) found->type.decoded = type_in(all, found->type.element);
    }
    return self;
}

/* @return [Boolean] whether it need not be looked up */
static VALUE decoders_is_known(VALUE self, VALUE oid) { return type_in(get(self), NUM2UINT(oid)) ? Qtrue : Qfalse; }

void rpg_init_decoders(void) {
    cDecoders = rb_define_class_under(rpg_mPostgres, "Decoders", rb_cObject);
    rb_undef_alloc_func(cDecoders);
    rb_define_singleton_method(cDecoders, "new", decoders_new, 0);
    rb_define_method(cDecoders, "add", decoders_add, 3);
    rb_define_method(cDecoders, "learn", decoders_learn, 1);
    rb_define_method(cDecoders, "known?", decoders_is_known, 1);
    rb_global_variable(&cDecoders);
}
