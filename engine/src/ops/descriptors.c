#include "ops/descriptors.h"
#include "core/machine.h"

#include <stdlib.h>
#include <string.h>

rs_descriptors *rs_descriptors_of(const rs_machine *machine) { return rs_descriptors_in(machine); }

void rs_descriptors_free(rs_descriptors *descriptors) {
    RS_CHECK(descriptors->owing <= descriptors->capacity);
    free(descriptors->table);
    *descriptors = (rs_descriptors){0};
}

bool rs_descriptors_grow(rs_descriptors *descriptors, int fd) {
    RS_CHECK(fd >= 0 && (uint32_t)fd >= descriptors->capacity);
    uint32_t wanted = (uint32_t)fd + 1;
    uint32_t capacity = descriptors->capacity ? descriptors->capacity : 64;
    if (wanted > RS_DESCRIPTORS_MAX) return false;
    while (capacity < wanted) capacity *= 2;
    rs_descriptor *table = rs_try_realloc(descriptors->table, sizeof(rs_descriptor) * capacity);
    if (!table) return false;
    memset(table + descriptors->capacity, 0, sizeof(rs_descriptor) * (capacity - descriptors->capacity));
    descriptors->table = table;
    descriptors->capacity = capacity;
    return true;
}

bool rs_descriptors_reserve(rs_descriptors *descriptors, int fd) {
    RS_ASSERT(fd >= 0);
    return RS_LIKELY((uint32_t)fd < descriptors->capacity) || rs_descriptors_grow(descriptors, fd);
}

rs_fd_kind rs_descriptor_kind(const rs_descriptors *descriptors, int fd) {
    return (uint32_t)fd < descriptors->capacity ? (rs_fd_kind)descriptors->table[fd].kind : RS_FD_UNKNOWN;
}

bool rs_descriptor_is_closing(const rs_descriptors *descriptors, int fd) {
    const rs_descriptor *descriptor = rs_descriptor_find(descriptors, fd);
    return descriptor && descriptor->closing;
}

bool rs_descriptor_has_ops(const rs_descriptors *descriptors, int fd) {
    const rs_descriptor *descriptor = rs_descriptor_find(descriptors, fd);
    return descriptor && (descriptor->first || descriptor->targeted);
}

uint32_t rs_descriptor_generation(const rs_descriptors *descriptors, int fd) {
    return (uint32_t)fd < descriptors->capacity ? descriptors->table[fd].generation : 0;
}

void rs_descriptor_note(rs_descriptors *descriptors, int fd, rs_fd_kind kind, bool socket) {
    RS_CHECK(!socket || kind == RS_FD_STREAM);
    if (!rs_descriptors_reserve(descriptors, fd)) return;
    rs_descriptor *descriptor = rs_descriptor_get(descriptors, fd);
    descriptor->kind = (uint8_t)kind;
    descriptor->socket = socket;
    descriptor->bytes = descriptor->reports_more = descriptor->drained = false;
}

void rs_descriptor_noted(const rs_descriptors *descriptors, int fd, bool *bytes, bool *reports_more) {
    const rs_descriptor *descriptor = rs_descriptor_find(descriptors, fd);
    *bytes = descriptor && descriptor->bytes;
    *reports_more = descriptor && descriptor->reports_more;
}

void rs_descriptor_forget(rs_descriptors *descriptors, int fd) {
    if ((uint32_t)fd < descriptors->capacity) descriptors->table[fd].kind = RS_FD_UNKNOWN;
}

bool rs_descriptor_is_drained(const rs_descriptors *descriptors, int fd) {
    const rs_descriptor *descriptor = rs_descriptor_find(descriptors, fd);
    return descriptor && descriptor->drained;
}

void rs_descriptor_may_have(rs_descriptors *descriptors, int fd) {
    if ((uint32_t)fd < descriptors->capacity) descriptors->table[fd].drained = false;
}

rs_list *rs_descriptor_closers(rs_descriptors *descriptors) { return &descriptors->closers; }

void rs_descriptor_add(rs_descriptors *descriptors, rs_ops *ops, rs_op *op) {
    rs_descriptor *descriptor = rs_descriptor_get(descriptors, op->request.fd);
    RS_CHECK(op->next == 0 && op->previous == 0 && descriptor->first != op->index + 1);
    RS_CHECK((descriptor->first == 0) == (descriptor->last == 0));
    op->next = 0;
    op->previous = descriptor->last;
    if (descriptor->last) rs_op_at(ops, descriptor->last - 1)->next = op->index + 1;
    else descriptor->first = op->index + 1;
    descriptor->last = op->index + 1;
}

void rs_descriptor_remove(rs_descriptors *descriptors, rs_ops *ops, rs_op *op) {
    rs_descriptor *descriptor = rs_descriptor_get(descriptors, op->request.fd);
    RS_ASSERT(op->previous ? rs_op_at(ops, op->previous - 1)->next == op->index + 1 : descriptor->first == op->index + 1);
    RS_CHECK(op->next ? rs_op_at(ops, op->next - 1)->previous == op->index + 1 : descriptor->last == op->index + 1);
    if (op->previous) rs_op_at(ops, op->previous - 1)->next = op->next;
    else descriptor->first = op->next;
    if (op->next) rs_op_at(ops, op->next - 1)->previous = op->previous;
    else descriptor->last = op->previous;
    op->next = op->previous = 0;
}

void rs_descriptor_restore(rs_descriptors *descriptors, int fd, rs_fd_kind kind, bool socket, bool bytes, bool reports_more) {
    RS_CHECK(!bytes || socket);
    rs_descriptor *descriptor = rs_descriptor_get(descriptors, fd);
    descriptor->kind = (uint8_t)kind;
    descriptor->socket = socket;
    descriptor->bytes = bytes;
    descriptor->reports_more = reports_more;
}

/* --- the part --- */

static void close_table(rs_machine *machine) { rs_descriptors_free(rs_descriptors_in(machine)); }

static void forget_ops(rs_machine *machine, const rs_strand *survivor) {
    (void)survivor;
    rs_descriptors_in(machine)->owing = 0;
    rs_descriptors_in(machine)->closers = (rs_list){0};
    for (uint32_t fd = 0; fd < rs_descriptors_in(machine)->capacity; fd++) {
        rs_descriptor *descriptor = &rs_descriptors_in(machine)->table[fd];
        *descriptor = (rs_descriptor){
            .kind = descriptor->kind, .socket = descriptor->socket, .bytes = descriptor->bytes,
            .reports_more = descriptor->reports_more, .generation = descriptor->generation};
    }
}

const rs_part rs_descriptors_part = {.forked = forget_ops, .close = close_table};
