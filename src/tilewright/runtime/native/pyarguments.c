#include "pyarguments.h"

#include <string.h>

static PyObject *name_dtype, *name_packing, *name_array, *ndarray;

int tw_arguments_setup(void) {
    name_dtype = PyUnicode_InternFromString("dtype");
    name_packing = PyUnicode_InternFromString("packing");
    name_array = PyUnicode_InternFromString("array");
    PyObject *numpy = PyImport_ImportModule("numpy");
    ndarray = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    Py_XDECREF(numpy);
    return name_dtype && name_packing && name_array && ndarray ? 0 : -1;
}

static int is_attribute(PyObject *object, PyObject *name, PyObject *expected) {
    PyObject *value = PyObject_GetAttr(object, name);
    if (value == NULL)
        return -1;
    int same = value == expected;
    if (!same && Py_TYPE(value) == Py_TYPE(expected)) /* such as a type that was unpickled */
        same = PyObject_RichCompareBool(value, expected, Py_EQ);
    Py_DECREF(value);
    return same;
}

static bool is_contiguous(const Py_buffer *view) {
    if (view->len == 0)
        return true;
    Py_ssize_t stride = view->itemsize;
    for (int d = view->ndim - 1; d >= 0; d--) {
        if (view->shape[d] != 1 && view->strides[d] != stride)
            return false;
        stride *= view->shape[d];
    }
    return true;
}

static bool fits(const tw_param *param, const Py_buffer *view, int64_t *sizes) {
    if (view->ndim != param->rank || view->itemsize != param->item_bytes)
        return false;
    for (int d = 0; d < param->rank; d++) {
        int64_t expected = param->dims[d], found = view->shape[d];
        if (expected < 0) {
            int64_t *size = &sizes[-1 - expected];
            if (*size < 0)
                *size = found;
            expected = *size;
        }
        if (found != expected)
            return false;
    }
    bool aligned = view->len == 0 || (uintptr_t)view->buf % (uintptr_t)param->item_bytes == 0;
    return aligned && is_contiguous(view);
}

PyObject *tw_ndarray(void) { return ndarray; }

int tw_param_take(PyObject *object, const tw_param *param, int64_t *sizes, Py_buffer *view) {
    /* Subclasses may mean more than their memory shows, such as a mask. */
    if ((PyObject *)Py_TYPE(object) != ndarray)
        return 0;
    int good = is_attribute(object, name_dtype, param->dtype);
    if (good != 1)
        return good;
    /* Without PyBUF_FORMAT, NumPy also exports types that have no format, such as bfloat16. */
    int flags = PyBUF_STRIDES | (param->is_output ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0)
        return -1;
    if (fits(param, view, sizes))
        return 1;
    PyBuffer_Release(view);
    return 0;
}

static int take_packed(PyObject *object, const tw_param *param, int64_t *sizes, Py_buffer *view) {
    int good = is_attribute(object, name_packing, param->packing);
    if (good != 1)
        return good;
    PyObject *array = PyObject_GetAttr(object, name_array);
    if (array == NULL)
        return -1;
    good = tw_param_take(array, param, sizes, view);
    Py_DECREF(array);
    return good;
}

bool tw_views_overlap(const Py_buffer *a, const Py_buffer *b) {
    uintptr_t start_a = (uintptr_t)a->buf, start_b = (uintptr_t)b->buf;
    return start_a < start_b + (uintptr_t)b->len && start_b < start_a + (uintptr_t)a->len
        && a->len > 0 && b->len > 0;
}

static bool has_overlap(const tw_arguments *arguments, const tw_params *params) {
    const Py_buffer *views[2];
    for (Py_ssize_t i = 0, next = 0; i < params->count; i++) {
        const tw_param *out = &params->items[i];
        views[0] = out->bound.obj ? &out->bound : &arguments->views[next++];
        if (!out->is_output)
            continue;
        for (Py_ssize_t j = 0, other = 0; j < params->count; j++) {
            const tw_param *param = &params->items[j];
            views[1] = param->bound.obj ? &param->bound : &arguments->views[other++];
            if (i != j && tw_views_overlap(views[0], views[1]))
                return true;
        }
    }
    return false;
}

/* Kernels are compiled for sizes of at least one. */
static bool has_empty_size(const tw_arguments *arguments, const tw_params *params) {
    for (Py_ssize_t i = 0; i < params->size_count; i++)
        if (arguments->sizes[i] == 0)
            return true;
    return false;
}

/* An exception means "does not fit" here; interrupts and the like go on to the caller. */
static int declined(tw_arguments *arguments, int state) {
    tw_arguments_release(arguments);
    if (state < 0 && !PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Clear();
    return 0;
}

static bool reserve(tw_arguments *arguments, const tw_params *params) {
    arguments->held = 0;
    arguments->views = arguments->inline_views;
    arguments->pointers = arguments->inline_pointers;
    arguments->sizes = arguments->inline_sizes;
    if (params->count <= TW_INLINE_PARAMS && params->size_count <= TW_INLINE_PARAMS)
        return true;
    size_t views = (size_t)params->count * sizeof *arguments->views;
    size_t pointers = (size_t)params->count * sizeof *arguments->pointers;
    size_t sizes = (size_t)params->size_count * sizeof *arguments->sizes;
    char *block = PyMem_Malloc(views + pointers + sizes);
    if (block == NULL) {
        PyErr_NoMemory();
        return false;
    }
    arguments->views = (Py_buffer *)block;
    arguments->pointers = (void **)(block + views);
    arguments->sizes = (int64_t *)(block + views + pointers);
    return true;
}

int tw_arguments_take(tw_arguments *arguments, const tw_params *params, PyObject *objects) {
    Py_ssize_t given = PyTuple_Size(objects);
    if (given != params->free_count)
        return given < 0 ? -1 : 0;
    if (!reserve(arguments, params))
        return -1;
    for (Py_ssize_t i = 0; i < params->size_count; i++)
        arguments->sizes[i] = params->sizes[i];
    for (Py_ssize_t i = 0; i < params->count; i++) {
        const tw_param *param = &params->items[i];
        const Py_buffer *view = &param->bound;
        if (param->bound.obj == NULL) {
            PyObject *object = PyTuple_GetItem(objects, arguments->held);
            Py_buffer *taken = &arguments->views[arguments->held];
            int good = param->packing ? take_packed(object, param, arguments->sizes, taken)
                                      : tw_param_take(object, param, arguments->sizes, taken);
            if (good != 1)
                return declined(arguments, good);
            arguments->held++;
            view = taken;
        }
        arguments->pointers[i] = view->buf;
    }
    if (has_empty_size(arguments, params) || has_overlap(arguments, params))
        return declined(arguments, 0);
    return 1;
}

void tw_arguments_release(tw_arguments *arguments) {
    while (arguments->held > 0)
        PyBuffer_Release(&arguments->views[--arguments->held]);
    if (arguments->views != arguments->inline_views)
        PyMem_Free(arguments->views);
    arguments->views = arguments->inline_views;
}

static int read_dims(tw_param *param, PyObject *dims, Py_ssize_t size_count) {
    Py_ssize_t rank = PyTuple_Size(dims);
    if (rank < 0 || rank > PyBUF_MAX_NDIM) {
        PyErr_SetString(PyExc_ValueError, "too many dimensions");
        return -1;
    }
    param->rank = (int)rank;
    param->dims = PyMem_Calloc((size_t)rank + 1, sizeof *param->dims);
    if (param->dims == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t d = 0; d < rank; d++) {
        param->dims[d] = PyLong_AsLongLong(PyTuple_GetItem(dims, d));
        if (PyErr_Occurred())
            return -1;
        if (param->dims[d] < -size_count) {
            PyErr_SetString(PyExc_ValueError, "a dimension names a size that does not exist");
            return -1;
        }
    }
    return 0;
}

static int read_bound(tw_params *params, tw_param *param, PyObject *array) {
    if (array == Py_None) {
        params->free_count++;
        return 0;
    }
    Py_buffer view;
    int good = tw_param_take(array, param, params->sizes, &view);
    if (good == 1)
        param->bound = view;
    else if (good == 0)
        PyErr_SetString(PyExc_ValueError, "the bound array does not fit its parameter");
    return good == 1 ? 0 : -1;
}

static int read_param(tw_params *params, tw_param *param, PyObject *spec) {
    PyObject *dtype, *dims, *packing, *bound;
    int is_output;
    if (!PyTuple_Check(spec)) {
        PyErr_SetString(PyExc_TypeError, "a parameter is described by a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(
            spec, "OnO!pOO:param", &dtype, &param->item_bytes, &PyTuple_Type, &dims, &is_output,
            &packing, &bound
        ))
        return -1;
    if (param->item_bytes < 1) {
        PyErr_SetString(PyExc_ValueError, "the size of an item is positive");
        return -1;
    }
    param->dtype = Py_NewRef(dtype);
    param->packing = packing == Py_None ? NULL : Py_NewRef(packing);
    param->is_output = is_output;
    if (read_dims(param, dims, params->size_count) < 0)
        return -1;
    return read_bound(params, param, bound);
}

int tw_params_init(tw_params *params, PyObject *specs, Py_ssize_t size_count) {
    Py_ssize_t count = PyTuple_Size(specs);
    if (count < 0)
        return -1;
    params->items = PyMem_Calloc((size_t)count + 1, sizeof *params->items);
    params->sizes = PyMem_Calloc((size_t)size_count + 1, sizeof *params->sizes);
    if (params->items == NULL || params->sizes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    params->size_count = size_count;
    for (Py_ssize_t i = 0; i < size_count; i++)
        params->sizes[i] = -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        params->count = i + 1; /* what is half read is cleared, too */
        if (read_param(params, &params->items[i], PyTuple_GetItem(specs, i)) < 0)
            return -1;
    }
    return 0;
}

void tw_params_clear(tw_params *params) {
    for (Py_ssize_t i = 0; i < params->count; i++) {
        tw_param *param = &params->items[i];
        Py_CLEAR(param->dtype);
        Py_CLEAR(param->packing);
        PyBuffer_Release(&param->bound);
        PyMem_Free(param->dims);
    }
    PyMem_Free(params->items);
    PyMem_Free(params->sizes);
    *params = (tw_params){0};
}

int tw_params_traverse(tw_params *params, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < params->count; i++) {
        Py_VISIT(params->items[i].dtype);
        Py_VISIT(params->items[i].packing);
        Py_VISIT(params->items[i].bound.obj);
    }
    return 0;
}
