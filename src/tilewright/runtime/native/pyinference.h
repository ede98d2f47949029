/* One inference, from Python objects to Python objects.
 *
 * It takes the arrays of the feeds, gives up the GIL and walks. When the feeds do not fit, the
 * method `_run_slowly` of the Python class takes over; steps of Python are run by `_run_host`;
 * `_raise_failure` explains what went wrong. */
#ifndef TILEWRIGHT_PYINFERENCE_H
#define TILEWRIGHT_PYINFERENCE_H

#include "pyprogram.h"

PyObject *tw_inference_run(PyObject *self, PyObject *feeds);
PyObject *tw_inference_try(PyObject *self, PyObject *args);
PyObject *tw_inference_profile(PyObject *self, PyObject *feeds);

#endif
