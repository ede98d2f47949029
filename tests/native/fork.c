/* A child process starts its own workers, whatever the parent was doing when it forked. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "pool.h"

static int32_t meet(void *const *buffers, const int64_t *sizes, tw_context *context) {
    (void)sizes;
    ((int64_t *)context->shared)[context->thread] = 1;
    context->barrier(context);
    int64_t sum = 0;
    for (int32_t i = 0; i < context->threads; i++)
        sum += ((int64_t *)context->shared)[i];
    ((int64_t *)buffers[0])[context->thread] += sum;
    return 0;
}

static int call(int times) {
    int64_t sums[3] = {0};
    void *buffers[] = {sums};
    tw_launch launch = {
        .kernel = meet, .buffers = buffers, .threads = 3, .shared_bytes = 24, .local_bytes = 4096
    };
    int32_t result = 0;
    for (int i = 0; i < times; i++)
        if (tw_run(&launch, &result) != TW_OK || result != 0)
            return 0;
    return sums[0] == 3 * times && sums[1] == 3 * times && sums[2] == 3 * times;
}

static void fork_and_call(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int good = tw_count_workers() == 0 && call(20) && tw_count_workers() == 2;
        tw_shutdown();
        _exit(good ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_child_starts_its_own_workers(void) {
    fork_and_call();
    CHECK(call(20));
    for (int i = 0; i < 5; i++)
        fork_and_call();
    CHECK(call(20));
}

#ifndef __SANITIZE_ADDRESS__ /* its own locks are not ready for a fork while other threads run */

static atomic_bool stop;

static void *keep_calling(void *argument) {
    (void)argument;
    while (!atomic_load(&stop))
        CHECK(call(3));
    return NULL;
}

static void test_child_of_a_busy_parent(void) {
    pthread_t caller;
    CHECK(pthread_create(&caller, NULL, keep_calling, NULL) == 0);
    for (int i = 0; i < 20; i++)
        fork_and_call();
    atomic_store(&stop, true);
    pthread_join(caller, NULL);
}

#endif

int main(void) {
    RUN(test_child_starts_its_own_workers);
#ifndef __SANITIZE_ADDRESS__
    RUN(test_child_of_a_busy_parent);
#endif
    tw_shutdown();
    return 0;
}
