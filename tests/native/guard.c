/* Memory between forbidden pages: what is outside of it stops the process. */
#include "guard.h"

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "memory.h"

typedef void (*deed)(volatile unsigned char *data, size_t bytes);

/* Whether a child of this process survives what it does with some memory. */
static int survives(int mode, size_t bytes, deed act) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        close(STDERR_FILENO);
        atomic_store(&tw_guard_mode, mode);
        unsigned char *data = tw_alloc(bytes);
        if (data == NULL)
            _exit(1);
        act(data, bytes);
        tw_free(data);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void use_all(volatile unsigned char *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)i;
}
static void read_behind(volatile unsigned char *data, size_t bytes) { (void)data[bytes]; }
static void write_behind(volatile unsigned char *data, size_t bytes) { data[bytes] = 7; }
static void read_before(volatile unsigned char *data, size_t bytes) {
    (void)bytes;
    (void)data[-1];
}
static void write_before(volatile unsigned char *data, size_t bytes) {
    (void)bytes;
    data[-1] = 7;
}

static void test_strays_stop_the_process(void) {
    size_t sizes[] = {1, 60, 4095, 4097, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int mode = TW_UNGUARDED; mode <= TW_GUARD_START; mode++)
            CHECK(survives(mode, sizes[i], use_all));
        CHECK(!survives(TW_GUARD_END, sizes[i], read_behind));
        CHECK(!survives(TW_GUARD_START, sizes[i], read_before));
        /* Wherever the forbidden page is: what is written on the other side is found at the end. */
        for (int mode = TW_GUARD_END; mode <= TW_GUARD_START; mode++) {
            CHECK(!survives(mode, sizes[i], write_behind));
            CHECK(!survives(mode, sizes[i], write_before));
        }
    }
}

static void test_memory_is_fresh_and_aligned_like_its_size(void) {
    atomic_store(&tw_guard_mode, TW_GUARD_END);
    unsigned char *data = tw_alloc(3 * 64);
    CHECK((uintptr_t)data % 64 == 0);
    for (int i = 0; i < 3 * 64; i++)
        CHECK(data[i] == 0xFF);
    atomic_store(&tw_guard_mode, TW_UNGUARDED);
    tw_free(data); /* as it was made, whatever is asked for now */
    CHECK(!tw_guarded_free(data));
}

static void test_arenas_follow_every_demand(void) {
    atomic_store(&tw_guard_mode, TW_GUARD_END);
    tw_arena arena = {0};
    CHECK(tw_arena_reserve(&arena, 1000));
    CHECK(arena.bytes == 1024);
    CHECK(tw_arena_reserve(&arena, 10));
    CHECK(arena.bytes == 64);
    tw_arena_release(&arena);
    CHECK(tw_alloc(SIZE_MAX) == NULL);
    atomic_store(&tw_guard_mode, TW_UNGUARDED);
}

int main(void) {
    RUN(test_strays_stop_the_process);
    RUN(test_memory_is_fresh_and_aligned_like_its_size);
    RUN(test_arenas_follow_every_demand);
    return 0;
}
