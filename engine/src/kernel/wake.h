/* wake: a descriptor that ends the sleep of whoever waits for it to be readable: an eventfd. Any thread may ring it; all else is for
 * its owner. Nobody has to clear one whose waits are edge-triggered.
 */
#ifndef RINGSPUN_WAKE_H
#define RINGSPUN_WAKE_H

/* A descriptor or -errno. */
int rs_wake_open(void);
void rs_wake_ring(int wake);
void rs_wake_clear(int wake);

#endif
