/* inits: how classes, and methods of the Lane, are defined that have no header, for no other file calls them. */
#ifndef RINGSPUN_PG_INITS_H
#define RINGSPUN_PG_INITS_H

#include <ruby.h>

void rpg_init_messages(void);
void rpg_init_copy_rows(void);
void rpg_init_copy_reader(void);

void rpg_init_query(VALUE cLane);
void rpg_init_notifications(VALUE cLane);
void rpg_init_batch(VALUE cLane);
void rpg_init_post(VALUE cLane);
void rpg_init_script(VALUE cLane);
void rpg_init_thread(VALUE cLane);
void rpg_init_copy(VALUE cLane);

#endif
