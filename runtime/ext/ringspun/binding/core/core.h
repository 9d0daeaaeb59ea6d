/* core: machines, strands and scopes as objects; switching, waiting, sleeping, raising; checks of arguments. This is its header for
 * the rooms above. Its own rooms follow, and each knows only those before it:
 *   machine/   the machine of a thread, and all that knows no strand yet
 *   strand/    strands, how they wait, and what runs meanwhile
 *   scope/     scopes, deadlines, runs, joins, errors that nobody reads
 *   seeing/    what a machine shows of itself
 * and one file that knows them all: open.c. */
#ifndef RINGSPUN_BINDING_CORE_H
#define RINGSPUN_BINDING_CORE_H

#include "scope/scope.h"
#include "seeing/seeing.h"

void rsb_init_open(void);

#endif
