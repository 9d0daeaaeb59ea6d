/* source: whatever may come to have something (items of a queue, an evaluation, the end of a strand), and who is to hear of it. Owned
 * by the machine's thread.
 *
 * A watcher is heard of by its source only as a link and a function, so that a strand has a source and knows no selector. It stays
 * with its source from one time to the next, until it leaves, or the source goes.
 */
#ifndef RINGSPUN_SOURCE_H
#define RINGSPUN_SOURCE_H

#include "ringspun/core/link.h"

/* Zeroed: nobody watches. */
typedef struct rs_source { rs_links watchers; } rs_source;

typedef struct rs_watcher {
    rs_link link;               /* of those of the same source */
    rs_source *source;          /* NULL: it has none, or that has gone */
    void (*ready)(struct rs_watcher *watcher);
} rs_watcher;

static inline void rs_source_init(rs_source *source) { *source = (rs_source){0}; }

static inline bool rs_source_is_watched(const rs_source *source) { return !rs_links_empty(&source->watchers); }

/* No source: it stays without one. */
static inline void rs_watcher_init(rs_watcher *watcher, rs_source *source, void (*ready)(rs_watcher *watcher)) {
    RS_CHECK(ready != NULL);
    *watcher = (rs_watcher){.source = source, .ready = ready};
    if (source) rs_links_prepend(&source->watchers, &watcher->link);
}

static inline void rs_watcher_leave(rs_watcher *watcher) {
    RS_CHECK(watcher->ready != NULL);
    if (watcher->source) rs_links_remove(&watcher->source->watchers, &watcher->link);
    watcher->source = NULL;
}

/* It may have something now. No watcher leaves in there. */
static inline void rs_source_ready(rs_source *source) {
    RS_EACH_LINKED(&source->watchers, rs_watcher, link, watcher) {
        RS_CHECK(watcher->source == source);
        watcher->ready(watcher);
    }
}

/* It is going, and its watchers stay without one. Calls nothing. */
static inline void rs_source_drop(rs_source *source) {
    RS_EACH_LINKED(&source->watchers, rs_watcher, link, watcher) rs_watcher_leave(watcher);
    RS_CHECK(!rs_source_is_watched(source)); /* each was one of its own */
}

#endif
