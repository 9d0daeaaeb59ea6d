#include "codec/head.h"

const rhttp_field *rhttp_head_next(const rhttp_head *head, rhttp_name name, const rhttp_field *after) {
    const rhttp_field *field = after ? after + 1 : head->fields.list, *end = head->fields.list + head->fields.count;
    while (field < end && field->known != name) field++;
    return field < end ? field : NULL;
}
