#include "client/decoders.h"

typedef struct {
    uint32_t len;
    rpg_type types[];
} rpg_decoders;

static VALUE cDecoders;

static void decoders_mark(void *data) {
    const rpg_decoders *decoders = data;
    for (uint32_t i = 0; decoders && i < decoders->len; i++) {
        if (decoders->types[i].decoder) rb_gc_mark(decoders->types[i].decoder);
    }
}

static size_t decoders_size(const void *data) {
    const rpg_decoders *decoders = data;
    return decoders ? sizeof(*decoders) + sizeof(*decoders->types) * decoders->len : 0;
}

static const rb_data_type_t decoders_type = {
    .wrap_struct_name = "Ringspun::Postgres::Decoders",
    .function = {.dmark = decoders_mark, .dfree = RUBY_DEFAULT_FREE, .dsize = decoders_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static const rpg_type *find(const rpg_decoders *decoders, uint32_t oid) {
    for (uint32_t i = 0; i < decoders->len; i++) {
        if (decoders->types[i].oid == oid) return &decoders->types[i];
    }
    return NULL;
}

const rpg_type *rpg_decoders_type(VALUE self, uint32_t oid) {
    const rpg_type *found = NIL_P(self) ? NULL : find(rb_check_typeddata(self, &decoders_type), oid);
    return found ? found : rpg_type_of(oid);
}

static int add_decoder(VALUE oid, VALUE decoder, VALUE argument) {
    rpg_decoders *decoders = (rpg_decoders *)argument;
    decoders->types[decoders->len++] = (rpg_type){.oid = NUM2UINT(oid), .decoder = decoder};
    return ST_CONTINUE;
}

static void add_array(rpg_decoders *decoders, uint32_t oid, const rpg_type *element) {
    if (!element || oid == 0 || find(decoders, oid)) return;
    decoders->types[decoders->len++] = (rpg_type){.oid = oid, .element = element->oid, .decoded = element};
}

static int add_array_of(VALUE element, VALUE oid, VALUE argument) {
    rpg_decoders *decoders = (rpg_decoders *)argument;
    add_array(decoders, NUM2UINT(oid), find(decoders, NUM2UINT(element)));
    return ST_CONTINUE;
}

/* @param own [Hash{Integer => #call}] decoders by OIDs
 * @param arrays [Hash{Integer => Integer}] OIDs of arrays, by those of their elements; those that everybody has are known */
static VALUE decoders_new(VALUE class, VALUE own, VALUE arrays) {
    VALUE self = TypedData_Wrap_Struct(cDecoders, &decoders_type, NULL);
    size_t most = RHASH_SIZE(own) * 2 + RHASH_SIZE(arrays);
    rpg_decoders *decoders = ruby_xcalloc(1, sizeof(*decoders) + sizeof(*decoders->types) * most);
    RTYPEDDATA_DATA(self) = decoders;
    rb_hash_foreach(own, add_decoder, (VALUE)decoders);
    uint32_t elements = decoders->len;
    rb_hash_foreach(arrays, add_array_of, (VALUE)decoders);
    for (uint32_t i = 0; i < elements; i++) add_array(decoders, rpg_array_of(decoders->types[i].oid), &decoders->types[i]);
    RB_GC_GUARD(own);
    return self;
}

void rpg_init_decoders(void) {
    cDecoders = rb_define_class_under(rpg_mPostgres, "Decoders", rb_cObject);
    rb_undef_alloc_func(cDecoders);
    rb_define_singleton_method(cDecoders, "new", decoders_new, 2);
    rb_global_variable(&cDecoders);
}
