/* How a thread waits for another: spin for a bounded time, yield a few times, then sleep.
 *
 * `tw_patience` decides between the three; `tw_park` sleeps in the kernel. Whoever parks must
 * announce it in an atomic first and look at its condition again afterwards (both sequentially
 * consistent), and whoever changes the condition must look for announcements after the change. */
#ifndef TILEWRIGHT_WAIT_H
#define TILEWRIGHT_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t tw_word;

typedef struct tw_patience {
    int64_t spin_ns;   /* how long to spin in all */
    int64_t end_ns;    /* when spinning ends; 0 until the first look at the clock */
    int64_t offer_ns;  /* when to let another thread have the processor next */
    int32_t pauses;    /* since the last look at the clock */
    int32_t yields;    /* left before sleeping */
} tw_patience;

/* Processors that this process may really use; more threads than that yield early. */
void tw_set_cpus(int32_t cpus);
int32_t tw_get_cpus(void);

/* The processor that the calling thread runs on; -1 where that is not known. */
int32_t tw_this_cpu(void);

/* If the calling thread runs on `cpu`, let it run on any other one that the process may use. */
void tw_leave_cpu(int32_t cpu);

/* The patience of one wait among `threads` threads. */
tw_patience tw_patience_for(int32_t threads);

/* Pause or yield once; false when it is time to sleep. */
bool tw_patience_wait(tw_patience *patience);

/* Sleep while `*word == expected`; may return early without reason. */
void tw_park(tw_word *word, uint32_t expected);

/* Wake every thread that sleeps on `word`; change `*word` first. */
void tw_unpark(tw_word *word);

/* Forget the threads of the parent process; called in the child of a fork. */
void tw_wait_after_fork(void);

#endif
