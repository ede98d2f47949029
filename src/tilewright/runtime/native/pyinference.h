/* One inference, from Python objects to Python objects.
 *
 * It takes the arrays of the feeds, gives up the GIL and walks. When the feeds do not fit, the
 * methods `_run_slowly` and `_run_into_slowly` of the Python class take over; steps of Python are run by `_run_host`;
 * `_raise_failure` explains what went wrong. */
#ifndef TILEWRIGHT_PYINFERENCE_H
#define TILEWRIGHT_PYINFERENCE_H

#include "pyprogram.h"

PyObject *tw_inference_run(PyObject *self, PyObject *feeds);
PyObject *tw_inference_run_into(PyObject *self, PyObject *args);

/* The same for arrays that have been checked: None if they do not fit nevertheless. */
PyObject *tw_inference_try(PyObject *self, PyObject *feeds);
PyObject *tw_inference_try_into(PyObject *self, PyObject *args);
PyObject *tw_inference_profile(PyObject *self, PyObject *feeds);

#endif
