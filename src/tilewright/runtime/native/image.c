#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "image.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

/* Processors with separate caches for code must be told about new code. */
static void flush(const tw_image *image) {
#if defined(__x86_64__)
    (void)image;
#else
    char *start = image->data;
    __builtin___clear_cache(start, start + image->bytes);
#endif
}

int tw_image_map(tw_image *image, int file, uint64_t offset, size_t bytes) {
    *image = (tw_image){0};
    struct stat state;
    if (fstat(file, &state) != 0)
        return errno;
    /* Memory behind the end of a file cannot be read: the process would be killed. */
    uint64_t size = state.st_size > 0 ? (uint64_t)state.st_size : 0;
    if (bytes == 0 || offset > size || bytes > size - offset)
        return EINVAL;
    void *data = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, (off_t)offset);
    if (data == MAP_FAILED)
        return errno;
    *image = (tw_image){.data = data, .bytes = bytes};
    flush(image);
    return 0;
}

/* Write, then make it executable: some systems forbid that for memory that has been written. */
static int copy_to_memory(tw_image *image, const void *code, size_t bytes) {
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return errno;
    memcpy(data, code, bytes);
    *image = (tw_image){.data = data, .bytes = bytes};
    if (mprotect(data, bytes, PROT_READ | PROT_EXEC) != 0) {
        int problem = errno;
        tw_image_release(image);
        return problem;
    }
    flush(image);
    return 0;
}

#if defined(__linux__) && defined(MFD_CLOEXEC)
/* Write to a file without a name and map that: no memory is ever writable here. */
static int copy_to_file(tw_image *image, const void *code, size_t bytes) {
    int file = memfd_create("tilewright", MFD_CLOEXEC);
    if (file < 0)
        return errno;
    int problem = 0;
    for (size_t done = 0; done < bytes && problem == 0;) {
        ssize_t written = write(file, (const char *)code + done, bytes - done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            problem = written == 0 ? EIO : errno;
    }
    if (problem == 0)
        problem = tw_image_map(image, file, 0, bytes);
    close(file);
    return problem;
}
#endif

int tw_image_copy(tw_image *image, const void *code, size_t bytes) {
    *image = (tw_image){0};
    if (bytes == 0)
        return EINVAL;
    int problem = copy_to_memory(image, code, bytes);
#if defined(__linux__) && defined(MFD_CLOEXEC)
    if (problem == EACCES || problem == EPERM) {
        int again = copy_to_file(image, code, bytes);
        problem = again == 0 ? 0 : problem;
    }
#endif
    return problem;
}

void tw_image_release(tw_image *image) {
    if (image->data != NULL)
        munmap(image->data, image->bytes);
    *image = (tw_image){0};
}
