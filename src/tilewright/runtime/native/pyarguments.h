/* From Python objects to the pointers and sizes of a call: the fast way, for arrays that fit.
 *
 * Nothing is converted or explained here. Whatever does not fit exactly is declined, and the Python
 * side converts it or says what is wrong with it. */
#ifndef TILEWRIGHT_PYARGUMENTS_H
#define TILEWRIGHT_PYARGUMENTS_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tw_param {
    PyObject *dtype;   /* NumPy's object for it */
    PyObject *packing; /* NULL, or the `packing` that the argument must carry */
    Py_ssize_t item_bytes;
    int rank;
    int64_t *dims; /* an extent, or -1 - k for the symbolic size k */
    bool is_output;
    Py_buffer bound; /* `bound.obj` is NULL unless the array is fixed */
} tw_param;

typedef struct tw_params {
    tw_param *items;
    Py_ssize_t count;
    Py_ssize_t free_count; /* those that a caller passes */
    int64_t *sizes;        /* given by bound arrays; -1: unknown */
    Py_ssize_t size_count;
} tw_params;

/* Read a tuple of (dtype, item_bytes, dims, is_output, packing, bound); -1 with an exception. */
int tw_params_init(tw_params *params, PyObject *specs, Py_ssize_t size_count);
void tw_params_clear(tw_params *params);
int tw_params_traverse(tw_params *params, visitproc visit, void *arg);

#define TW_INLINE_PARAMS 12

typedef struct tw_arguments {
    void **pointers;
    int64_t *sizes;
    Py_buffer *views; /* only those of free parameters are held */
    Py_ssize_t held;
    Py_buffer inline_views[TW_INLINE_PARAMS];
    void *inline_pointers[TW_INLINE_PARAMS];
    int64_t inline_sizes[TW_INLINE_PARAMS];
} tw_arguments;

/* One array that fits `param`, as `tw_arguments_take` wants it; unknown `sizes` become known.
 * 1: `view` is held. 0: declined. -1: exception. */
int tw_param_take(PyObject *object, const tw_param *param, int64_t *sizes, Py_buffer *view);

/* Whether two arrays share memory. */
bool tw_views_overlap(const Py_buffer *a, const Py_buffer *b);

/* NumPy's `ndarray`. */
PyObject *tw_ndarray(void);

/* 1: taken, release them after the call. 0: declined, no exception. -1: exception. */
int tw_arguments_take(tw_arguments *arguments, const tw_params *params, PyObject *objects);
void tw_arguments_release(tw_arguments *arguments);

/* Make the attribute names; once, when the module is imported. */
int tw_arguments_setup(void);

#endif
