/* What the runtime keeps for every thread that calls kernels: its scratch memory, freed when the
 * thread ends. */
#ifndef TILEWRIGHT_CALLER_H
#define TILEWRIGHT_CALLER_H

#include <stdbool.h>

#include "memory.h"

typedef struct tw_caller {
    tw_arena shared;
    tw_arena local;
    bool inside; /* this thread runs a kernel now */
} tw_caller;

/* The record of the calling thread, made on first use; NULL if there is no memory. */
tw_caller *tw_caller_get(void);

/* Free the record of the calling thread. */
void tw_caller_release(void);

#endif
