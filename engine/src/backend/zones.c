#include "backend/zones.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The last two labels of a name. A dot at its end belongs to none. */
static const char *end_of_name(const char *host, uint32_t *len) {
    size_t end = strlen(host);
    if (end > 0 && host[end - 1] == '.') end--;
    size_t begin = end;
    for (int dots = 0; begin > 0; begin--) {
        if (host[begin - 1] == '.' && ++dots == 2) break;
    }
    *len = (uint32_t)(end - begin);
    return host + begin;
}

static bool is_named(const rs_zone *zone, const char *name, uint32_t len) {
    if (zone->len != len) return false;
    for (uint32_t i = 0; i < len; i++) {
        if (zone->name[i] != (char)tolower((unsigned char)name[i])) return false;
    }
    return true;
}

static rs_links *bucket_of(rs_zones *zones, const char *name, uint32_t len) {
    uint32_t hash = 2166136261u; /* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/ */
    for (uint32_t i = 0; i < len; i++) hash = (hash ^ (uint32_t)tolower((unsigned char)name[i])) * 16777619u;
    return &zones->buckets[(hash ^ hash >> 16) % RS_ZONE_BUCKETS];
}

static rs_zone *find(const rs_links *bucket, const char *name, uint32_t len) {
    RS_EACH_LINKED(bucket, rs_zone, link, zone) {
        if (is_named(zone, name, len)) return zone;
    }
    return NULL;
}

rs_zone *rs_zones_enter(rs_zones *zones, const char *host) {
    uint32_t len;
    const char *name = end_of_name(host, &len);
    rs_links *bucket = bucket_of(zones, name, len);
    rs_zone *found = find(bucket, name, len);
    if (found) return found;
    rs_zone *made = rs_try_alloc(sizeof(*made) + len);
    if (!made) return NULL;
    made->len = len;
    for (uint32_t i = 0; i < len; i++) made->name[i] = (char)tolower((unsigned char)name[i]);
    rs_links_append(bucket, &made->link);
    return made;
}

static void forget_if_empty(rs_zones *zones, rs_zone *zone) {
    if (zone->begun > 0 || !rs_links_empty(&zone->waiting)) return;
    rs_links_remove(bucket_of(zones, zone->name, zone->len), &zone->link);
    free(zone);
}

static bool may_begin(const rs_zones *zones, const rs_zone *zone) {
    RS_CHECK(zone->begun <= zones->begun && zones->begun <= zones->limit);
    return zone->begun < zones->limit - zones->begun;
}

bool rs_zones_have_place(const rs_zones *zones, const char *host) {
    uint32_t len;
    const char *name = end_of_name(host, &len);
    const rs_zone *zone = find(bucket_of((rs_zones *)zones, name, len), name, len);
    return zone ? rs_links_empty(&zone->waiting) && may_begin(zones, zone) : zones->begun < zones->limit;
}

static void begin(rs_zones *zones, rs_zone *zone) {
    zones->begun++;
    zone->begun++;
}

bool rs_zone_begin(rs_zones *zones, rs_zone *zone) {
    if (!rs_links_empty(&zone->waiting) || !may_begin(zones, zone)) return false;
    begin(zones, zone);
    return true;
}

void rs_zone_wait(rs_zones *zones, rs_zone *zone, rs_link *look_up) {
    if (rs_links_empty(&zone->waiting)) rs_links_append(&zones->line, &zone->turn);
    rs_links_append(&zone->waiting, look_up);
}

static void stop_waiting(rs_zones *zones, rs_zone *zone, rs_link *look_up) {
    rs_links_remove(&zone->waiting, look_up);
    if (rs_links_empty(&zone->waiting)) rs_links_remove(&zones->line, &zone->turn);
}

/* Only zones that have some under way are passed over, and these are no more than places. */
rs_link *rs_zones_next(rs_zones *zones) {
    if (zones->begun == zones->limit) return NULL;
    RS_EACH_LINKED(&zones->line, rs_zone, turn, zone) {
        if (!may_begin(zones, zone)) continue;
        rs_link *look_up = zone->waiting.first;
        stop_waiting(zones, zone, look_up);
        begin(zones, zone);
        if (!rs_links_empty(&zone->waiting)) {
            rs_links_remove(&zones->line, &zone->turn);
            rs_links_append(&zones->line, &zone->turn);
        }
        return look_up;
    }
    return NULL;
}

rs_link *rs_zones_waiting(const rs_zones *zones) {
    const rs_zone *zone = RS_LINKED(zones->line.first, rs_zone, turn);
    return zone ? zone->waiting.first : NULL;
}

void rs_zone_leave(rs_zones *zones, rs_zone *zone) {
    RS_CHECK(zone->begun > 0 && zones->begun >= zone->begun);
    zones->begun--;
    zone->begun--;
    forget_if_empty(zones, zone);
}

void rs_zone_give_up(rs_zones *zones, rs_zone *zone, rs_link *look_up) {
    stop_waiting(zones, zone, look_up);
    forget_if_empty(zones, zone);
}
