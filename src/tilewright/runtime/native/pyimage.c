/* `Image(code)` copies bytes, `Image.map(file, offset, size_bytes)` maps a file; both raise OSError
 * when the system refuses. The object exports its memory as a read-only buffer. */
#include "pyimage.h"

#include <errno.h>

#include "image.h"

typedef struct image_object {
    PyObject_HEAD
    tw_image image;
} image_object;

static image_object *as_image(PyObject *self) { return (image_object *)(void *)self; }

static PyObject *allocate(PyTypeObject *type) {
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return make(type, 0);
}

/* Takes `self` over. */
static PyObject *result_of(PyObject *self, int problem) {
    if (problem == 0)
        return self;
    Py_DECREF(self);
    errno = problem;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *image_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"code", NULL};
    Py_buffer code;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*:Image", names, &code))
        return NULL;
    PyObject *self = allocate(type);
    if (self != NULL)
        self = result_of(self, tw_image_copy(&as_image(self)->image, code.buf, (size_t)code.len));
    PyBuffer_Release(&code);
    return self;
}

static PyObject *image_map(PyObject *type, PyObject *args) {
    int file;
    long long offset;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "iLn:map", &file, &offset, &bytes))
        return NULL;
    PyObject *self = allocate((PyTypeObject *)(void *)type);
    if (self == NULL)
        return NULL;
    int problem = EINVAL;
    if (offset >= 0 && bytes > 0)
        problem = tw_image_map(&as_image(self)->image, file, (uint64_t)offset, (size_t)bytes);
    return result_of(self, problem);
}

static void image_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tw_image_release(&as_image(self)->image);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static int image_get_buffer(PyObject *self, Py_buffer *view, int flags) {
    const tw_image *image = &as_image(self)->image;
    return PyBuffer_FillInfo(view, self, image->data, (Py_ssize_t)image->bytes, 1, flags);
}

static PyObject *image_address(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromVoidPtr(as_image(self)->image.data);
}

static PyMethodDef METHODS[] = {
    {"map", image_map, METH_VARARGS | METH_CLASS, "(file, offset, size_bytes) → an image."},
    {0},
};

static PyGetSetDef GETTERS[] = {
    {"address", image_address, NULL, "Where the code begins.", NULL},
    {0},
};

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)"Executable memory that nobody can write, unmapped with the object."},
    {Py_tp_new, (void *)image_new},
    {Py_tp_dealloc, (void *)image_dealloc},
    {Py_tp_methods, METHODS},
    {Py_tp_getset, GETTERS},
    {Py_bf_getbuffer, (void *)image_get_buffer},
    {0, NULL},
};

static PyType_Spec SPEC = {
    .name = "tilewright.runtime._native.Image",
    .basicsize = sizeof(image_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = SLOTS,
};

PyObject *tw_image_type_new(void) { return PyType_FromSpec(&SPEC); }
