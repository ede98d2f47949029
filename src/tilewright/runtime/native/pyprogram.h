/* `_native.Program`: the base class of `tilewright.runtime.Executable`.
 *
 * Frames are kept for later calls; the GIL guards their lists. */
#ifndef TILEWRIGHT_PYPROGRAM_H
#define TILEWRIGHT_PYPROGRAM_H

#include "pyarguments.h"
#include "walk.h"

/* A frame with what Python lends it during a call. */
typedef struct tw_seat {
    tw_frame *frame;
    Py_buffer *inputs, *outputs, *made; /* `made` by steps of Python */
    Py_ssize_t input_count, made_count, made_room;
    bool *is_given;  /* by output: the caller passes an array for it */
    bool *is_copied; /* by output: it is copied to that array in the end */
    int64_t *told, *told_out; /* by size: what the arrays of the caller say, -1: nothing */
    struct tw_seat *next;                /* among the free ones */
    struct tw_seat *before, *after;      /* among all of one program */
} tw_seat;

typedef struct tw_ports {
    tw_params params;
    PyObject *names; /* a tuple */
    int64_t *buffers;
} tw_ports;

typedef struct tw_program_object {
    PyObject_HEAD
    tw_program *program;
    tw_ports inputs, outputs;
    Py_buffer weights;
    tw_seat *free_seats;
    Py_ssize_t free_count, seat_count;
    tw_seat *all_seats; /* also those in use */
} tw_program_object;

static inline tw_program_object *tw_as_program(PyObject *self) {
    return (tw_program_object *)(void *)self;
}

/* A seat for one call; NULL with an exception. */
tw_seat *tw_seat_take(tw_program_object *self);
void tw_seat_leave(tw_program_object *self, tw_seat *seat);

/* Make the type; NULL with an exception. */
PyObject *tw_program_type_new(void);

#endif
