/* float_text: the shortest text by which a Float is read again, as Float#to_s has it. No state. */
#ifndef RINGSPUN_PG_FLOAT_TEXT_H
#define RINGSPUN_PG_FLOAT_TEXT_H

#include <stddef.h>

/* Bytes that are enough for each. */
#define RPG_FLOAT_TEXT_MAX 40u

/* The length of the text. 0: it is one of the rare ones, which Float#to_s has to write: very large, very small, or no number. */
size_t rpg_float_text(double number, char *out);

#endif
