#include "caller.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key = false;

static void destroy(void *record) {
    tw_caller *caller = record;
    tw_arena_release(&caller->shared);
    tw_arena_release(&caller->local);
    free(caller);
}

static void make_key(void) { has_key = pthread_key_create(&key, destroy) == 0; }

tw_caller *tw_caller_get(void) {
    pthread_once(&once, make_key);
    if (!has_key)
        return NULL;
    tw_caller *caller = pthread_getspecific(key);
    if (caller != NULL)
        return caller;
    caller = calloc(1, sizeof *caller);
    if (caller != NULL && pthread_setspecific(key, caller) != 0) {
        free(caller);
        caller = NULL;
    }
    return caller;
}

void tw_caller_release(void) {
    tw_caller *caller = tw_caller_get();
    if (caller == NULL || caller->inside)
        return;
    pthread_setspecific(key, NULL);
    destroy(caller);
}
