#include "pydlpack.h"

/* The layouts of the DLPack specification; only what is read has a meaning here. */
typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in items; NULL: C order */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
} dl_managed;

typedef struct dl_managed_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_managed_versioned *);
    uint64_t flags;
    dl_tensor tensor;
} dl_managed_versioned;

#define READ_ONLY UINT64_C(1)

static PyObject *tuple_of(const int64_t *values, int32_t count) {
    PyObject *tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value == NULL || PyTuple_SetItem(tuple, i, value) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *tw_read_dlpack(PyObject *module, PyObject *capsule) {
    (void)module;
    const dl_tensor *tensor;
    bool is_readonly = false;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_managed_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (managed->major != 1) {
            PyErr_Format(PyExc_BufferError, "DLPack version %u is not known", managed->major);
            return NULL;
        }
        tensor = &managed->tensor;
        is_readonly = managed->flags & READ_ONLY;
    } else {
        dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        if (managed == NULL)
            return NULL;
        tensor = &managed->tensor;
    }
    uintptr_t address = (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
    PyObject *shape = tuple_of(tensor->shape, tensor->ndim);
    PyObject *strides =
        tensor->strides == NULL ? Py_NewRef(Py_None) : tuple_of(tensor->strides, tensor->ndim);
    if (shape == NULL || strides == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    return Py_BuildValue(
        "KiiiiNNN", (unsigned long long)address, (int)tensor->device_type, (int)tensor->code,
        (int)tensor->bits, (int)tensor->lanes, shape, strides, PyBool_FromLong(is_readonly)
    );
}
