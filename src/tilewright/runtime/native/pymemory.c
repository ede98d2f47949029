#include "pymemory.h"

#include "memory.h"

typedef struct memory_object {
    PyObject_HEAD
    void *data;
    Py_ssize_t bytes;
} memory_object;

static memory_object *as_memory(PyObject *self) { return (memory_object *)(void *)self; }

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"size_bytes", NULL};
    Py_ssize_t bytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n:Memory", names, &bytes))
        return NULL;
    if (bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "a size in bytes is not negative");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = allocate(type, 0);
    if (self == NULL)
        return NULL;
    as_memory(self)->bytes = bytes;
    as_memory(self)->data = tw_alloc((size_t)bytes);
    if (as_memory(self)->data == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return self;
}

static void memory_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    tw_free(as_memory(self)->data);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static int memory_get_buffer(PyObject *self, Py_buffer *view, int flags) {
    memory_object *memory = as_memory(self);
    return PyBuffer_FillInfo(view, self, memory->data, memory->bytes, 0, flags);
}

static PyType_Slot SLOTS[] = {
    {Py_tp_doc, (void *)"Uninitialised bytes on a 64-byte boundary, freed with the object."},
    {Py_tp_new, (void *)memory_new},
    {Py_tp_dealloc, (void *)memory_dealloc},
    {Py_bf_getbuffer, (void *)memory_get_buffer},
    {0, NULL},
};

static PyType_Spec SPEC = {
    .name = "tilewright.runtime._native.Memory",
    .basicsize = sizeof(memory_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = SLOTS,
};

static PyObject *memory_type; /* for as long as the process lives */

PyObject *tw_memory_type_new(void) {
    memory_type = PyType_FromSpec(&SPEC);
    return Py_XNewRef(memory_type);
}

PyObject *tw_memory_adopt(void *data, Py_ssize_t bytes) {
    PyTypeObject *type = (PyTypeObject *)memory_type;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = allocate(type, 0);
    if (self == NULL) {
        tw_free(data);
        return NULL;
    }
    as_memory(self)->bytes = bytes;
    as_memory(self)->data = data;
    return self;
}
