/* object: the objects of a simulated world, and the descriptors that mean them. */
#include "backend/sim/world.h"

#include <errno.h>
#include <stdlib.h>

sim_object *sim_world_new_object(sim_object_kind kind, sim_object_gone gone) {
    RS_CHECK(kind <= SIM_FILE);
    sim_object *object = rs_try_alloc(sizeof(*object));
    if (!object) return NULL;
    object->kind = (uint8_t)kind;
    object->refs = 1;
    object->gone = gone;
    return object;
}

void sim_object_hold(sim_object *object) {
    RS_ASSERT(object->refs > 0);
    object->refs++;
}

void sim_world_changed(sim_world *world, sim_object *object) {
    RS_ASSERT(object->refs > 0);
    if (object->changed || rs_links_empty(&object->waiters)) return;
    object->changed = true;
    sim_object_hold(object);
    if (world->changed_last) world->changed_last->changed_next = object;
    else world->changed_first = object;
    world->changed_last = object;
}

sim_object *sim_world_next_changed(sim_world *world) {
    sim_object *object = world->changed_first;
    if (!object) return NULL;
    RS_CHECK(object->changed && object->refs > 0);
    world->changed_first = object->changed_next;
    if (!world->changed_first) world->changed_last = NULL;
    object->changed_next = NULL;
    object->changed = false;
    return object;
}

void sim_object_release(sim_world *world, sim_object *object) {
    RS_ASSERT(object->refs > 0);
    if (--object->refs > 0) return;
    RS_CHECK(rs_links_empty(&object->waiters) && !object->changed);
    if (object->peer) {
        sim_object *peer = object->peer;
        object->peer = NULL;
        peer->peer = NULL;
        peer->in.ended = true;
        /* Bytes that were never read: on Linux the sender gets ECONNRESET. */
        if (object->kind == SIM_SOCKET && object->in.len > 0) peer->error = ECONNRESET;
        sim_world_changed(world, peer);
    }
    if (object->gone) object->gone(world, object);
    free(object->in.bytes);
    free(object);
}

sim_object *sim_world_find(const sim_world *world, int fd) {
    if (fd < SIM_DESCRIPTOR_FIRST || (uint32_t)(fd - SIM_DESCRIPTOR_FIRST) >= world->table_len) return NULL;
    return world->table[fd - SIM_DESCRIPTOR_FIRST];
}

bool sim_world_reserve(sim_world *world, uint32_t count) {
    RS_CHECK(world->open + count <= SIM_DESCRIPTORS_MAX);
    if (world->table_len + count <= world->table_capacity) return true;
    uint32_t capacity = world->table_capacity ? world->table_capacity * 2 : 16;
    sim_object **table = rs_try_realloc(world->table, sizeof(sim_object *) * capacity);
    if (!table) return false;
    world->table = table;
    world->table_capacity = capacity;
    return true;
}

int64_t sim_world_install(sim_world *world, sim_object *object) {
    RS_ASSERT(object != NULL && world->open < SIM_DESCRIPTORS_MAX);
    uint32_t slot = world->lowest_free;
    while (slot < world->table_len && world->table[slot]) slot++;
    if (slot == world->table_len) world->table_len++;
    RS_ASSERT(slot < world->table_capacity);
    RS_CHECK(object->refs > 0);
    world->table[slot] = object;
    world->lowest_free = slot + 1;
    world->open++;
    return SIM_DESCRIPTOR_FIRST + (int64_t)slot;
}

int64_t sim_world_close(sim_world *world, int fd) {
    sim_object *object = sim_world_find(world, fd);
    if (!object) return -EBADF;
    uint32_t slot = (uint32_t)(fd - SIM_DESCRIPTOR_FIRST);
    RS_CHECK(world->open > 0);
    world->table[slot] = NULL;
    if (slot < world->lowest_free) world->lowest_free = slot;
    world->open--;
    sim_object_release(world, object);
    return 0;
}
