/* The smallest test harness: a failed check says where and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);         \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

#define RUN(test)                                                                                 \
    do {                                                                                          \
        test();                                                                                   \
        printf("ok %s\n", #test);                                                                 \
        fflush(stdout);                                                                           \
    } while (0)

#endif
