/* Machine code that is copied or mapped: it runs, nobody can write it, and it goes. */
#include "image.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define PAGE ((size_t)65536)

/* int seven(void) { return 7; } */
#if defined(__x86_64__)
static const unsigned char SEVEN[] = {0xb8, 7, 0, 0, 0, 0xc3};
#elif defined(__aarch64__)
static const unsigned char SEVEN[] = {0xe0, 0, 0x80, 0x52, 0xc0, 3, 0x5f, 0xd6};
#else
#error "give the machine code of a function that returns 7"
#endif

static int call(const tw_image *image) {
    int (*function)(void);
    memcpy(&function, &image->data, sizeof function);
    return function();
}

/* What the system says about the page at an address, such as `r-xp`. */
static void rights_of(const void *data, char rights[5]) {
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    char line[512];
    strcpy(rights, "none");
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long first, last;
        char found[5];
        if (sscanf(line, "%lx-%lx %4s", &first, &last, found) == 3 && first <= (uintptr_t)data
            && (uintptr_t)data < last)
            strcpy(rights, found);
    }
    fclose(maps);
}

static int file_with(size_t offset, const void *content, size_t bytes) {
    FILE *file = tmpfile();
    CHECK(file != NULL);
    int copy = dup(fileno(file));
    fclose(file);
    CHECK(copy >= 0);
    CHECK(pwrite(copy, content, bytes, (off_t)offset) == (ssize_t)bytes);
    return copy;
}

static void test_copied_code_runs_and_is_not_writable(void) {
    tw_image image;
    char rights[5];
    CHECK(tw_image_copy(&image, SEVEN, sizeof SEVEN) == 0);
    CHECK(call(&image) == 7);
    CHECK(image.bytes == sizeof SEVEN && memcmp(image.data, SEVEN, sizeof SEVEN) == 0);
    rights_of(image.data, rights);
    CHECK(strcmp(rights, "r-xp") == 0);
    tw_image_release(&image);
    CHECK(image.data == NULL && image.bytes == 0);
    tw_image_release(&image);
}

static void test_mapped_code_runs_after_its_file_is_closed(void) {
    tw_image image;
    char rights[5];
    int file = file_with(PAGE, SEVEN, sizeof SEVEN);
    CHECK(tw_image_map(&image, file, PAGE, sizeof SEVEN) == 0);
    close(file);
    CHECK(call(&image) == 7);
    rights_of(image.data, rights);
    CHECK(strcmp(rights, "r-xp") == 0);
    tw_image_release(&image);
}

static void test_parts_outside_of_a_file_are_refused(void) {
    tw_image image;
    int file = file_with(0, SEVEN, sizeof SEVEN);
    CHECK(tw_image_map(&image, file, 0, sizeof SEVEN + 1) == EINVAL);
    CHECK(tw_image_map(&image, file, PAGE, 1) == EINVAL);
    CHECK(tw_image_map(&image, file, UINT64_MAX, 2) == EINVAL);
    CHECK(tw_image_map(&image, file, 0, SIZE_MAX) == EINVAL);
    CHECK(tw_image_map(&image, file, 0, 0) == EINVAL);
    CHECK(tw_image_map(&image, file, 1, 2) == EINVAL);
    CHECK(image.data == NULL);
    close(file);
    CHECK(tw_image_map(&image, -1, 0, 1) == EBADF);
}

static void test_nothing_cannot_be_copied(void) {
    tw_image image;
    CHECK(tw_image_copy(&image, SEVEN, 0) == EINVAL);
    CHECK(image.data == NULL);
    CHECK(tw_image_copy(&image, SEVEN, SIZE_MAX - PAGE) == ENOMEM);
    CHECK(image.data == NULL);
}

int main(void) {
    RUN(test_copied_code_runs_and_is_not_writable);
    RUN(test_mapped_code_runs_after_its_file_is_closed);
    RUN(test_parts_outside_of_a_file_are_refused);
    RUN(test_nothing_cannot_be_copied);
    return 0;
}
