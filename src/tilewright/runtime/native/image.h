/* Machine code in memory: mapped readable and executable, and never writable at the same time. */
#ifndef TILEWRIGHT_IMAGE_H
#define TILEWRIGHT_IMAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct tw_image {
    void *data;   /* at the border of a page; NULL: none */
    size_t bytes; /* of the code; the mapping is rounded up to pages */
} tw_image;

/* Copy code into memory of its own. 0, or the system's error. */
int tw_image_copy(tw_image *image, const void *code, size_t bytes);

/* Map code from a file; `offset` is a multiple of the page. 0, or the system's error. */
int tw_image_map(tw_image *image, int file, uint64_t offset, size_t bytes);

void tw_image_release(tw_image *image);

#endif
