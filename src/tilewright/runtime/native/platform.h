/* The few things that differ between processors: pausing in a spin loop, and the mode bits of the
 * floating-point unit. Other processors get correct, plainer behaviour. */
#ifndef TILEWRIGHT_PLATFORM_H
#define TILEWRIGHT_PLATFORM_H

#include <stdint.h>

/* Two lines of 64 bytes: adjacent-line prefetchers move them in pairs. */
#define TW_CACHE_LINE 128

#if defined(__x86_64__)

static inline void tw_pause(void) { __builtin_ia32_pause(); }

typedef uint32_t tw_float_mode;
#define TW_FLOAT_MODE_DEFAULT 0x1F80u /* round to nearest, keep denormals, mask all exceptions */
#define TW_FLOAT_MODE_MASK 0xFFC0u    /* all but the sticky exception flags */

static inline tw_float_mode tw_get_float_mode(void) {
    return __builtin_ia32_stmxcsr() & TW_FLOAT_MODE_MASK;
}
static inline void tw_set_float_mode(tw_float_mode mode) { __builtin_ia32_ldmxcsr(mode); }

#elif defined(__aarch64__)

/* `isb` stalls for some tens of cycles; `yield` is a no-op on most cores. */
static inline void tw_pause(void) { __asm__ volatile("isb" ::: "memory"); }

typedef uint64_t tw_float_mode;
#define TW_FLOAT_MODE_DEFAULT 0u

static inline tw_float_mode tw_get_float_mode(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void tw_set_float_mode(tw_float_mode mode) {
    __asm__ volatile("msr fpcr, %0" ::"r"(mode));
}

#else

static inline void tw_pause(void) {}

typedef uint32_t tw_float_mode;
#define TW_FLOAT_MODE_DEFAULT 0u

static inline tw_float_mode tw_get_float_mode(void) { return 0; }
static inline void tw_set_float_mode(tw_float_mode mode) { (void)mode; }

#endif

#endif
