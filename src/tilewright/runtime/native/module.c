/* `tilewright.runtime._native`: the C library as a Python module, nothing more. */
#include "pyarguments.h"
#include "pydigest.h"
#include "pydlpack.h"
#include "pyimage.h"
#include "pykernel.h"
#include "pymemory.h"
#include "pyprogram.h"

#include <stddef.h>

#include "guard.h"
#include "memory.h"
#include "pool.h"
#include "timer.h"
#include "wait.h"

static PyObject *set_cpus(PyObject *module, PyObject *value) {
    (void)module;
    long cpus = PyLong_AsLong(value);
    if (cpus == -1 && PyErr_Occurred())
        return NULL;
    tw_set_cpus(cpus > 0 && cpus < INT32_MAX ? (int32_t)cpus : 0);
    Py_RETURN_NONE;
}

static PyObject *get_cpus(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLong(tw_get_cpus());
}

static PyObject *count_workers(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromLong(tw_count_workers());
}

static PyObject *shut_down(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    tw_shutdown();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *guard_memory(PyObject *module, PyObject *value) {
    (void)module;
    long mode = PyLong_AsLong(value);
    if (mode == -1 && PyErr_Occurred())
        return NULL;
    if (mode < TW_UNGUARDED || mode > TW_GUARD_START) {
        PyErr_SetString(PyExc_ValueError, "a guard is 0 (none), 1 (behind) or 2 (before)");
        return NULL;
    }
    return PyLong_FromLong(atomic_exchange(&tw_guard_mode, (int)mode));
}

static PyObject *return_memory(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    tw_return_memory();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *clock_overhead_ns(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyFloat_FromDouble(tw_clock_overhead_ns());
}

static PyObject *describe_abi(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return Py_BuildValue(
        "{s:i,s:i,s:i,s:n,s:n,s:n,s:n,s:n,s:n,s:n}",
        "version", TW_ABI_VERSION,
        "max_threads", TW_MAX_THREADS,
        "alignment", TW_ALIGNMENT,
        "size", (Py_ssize_t)sizeof(tw_context),
        "thread", (Py_ssize_t)offsetof(tw_context, thread),
        "threads", (Py_ssize_t)offsetof(tw_context, threads),
        "barrier", (Py_ssize_t)offsetof(tw_context, barrier),
        "shared", (Py_ssize_t)offsetof(tw_context, shared),
        "local", (Py_ssize_t)offsetof(tw_context, local),
        "team", (Py_ssize_t)offsetof(tw_context, team)
    );
}

static PyMethodDef METHODS[] = {
    {"set_cpus", set_cpus, METH_O, "Say how many processors are usable; 0: ask the system."},
    {"get_cpus", get_cpus, METH_NOARGS, "The processors that waiting threads reckon with."},
    {"count_workers", count_workers, METH_NOARGS, "Worker threads that exist now."},
    {"shut_down", shut_down, METH_NOARGS, "End the workers and free scratch memory."},
    {"guard_memory", guard_memory, METH_O,
     "For tests: put memory between forbidden pages; 0: no, 1: they follow it, 2: it follows one."},
    {"return_memory", return_memory, METH_NOARGS, "Give free memory of the heap to the system."},
    {"clock_overhead_ns", clock_overhead_ns, METH_NOARGS, "Cost of reading the clock."},
    {"describe_abi", describe_abi, METH_NOARGS, "Constants and offsets of the kernel ABI."},
    {"digest_blocks", tw_py_digest_blocks, METH_VARARGS,
     "(data, threads) → the digests of its blocks of a mebibyte, eight bytes each."},
    {"read_dlpack", tw_read_dlpack, METH_O,
     "capsule → (address, device, kind, bits, lanes, shape, strides, is_readonly)."},
    {0},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tilewright.runtime._native",
    .m_doc = "Thread pool, scratch memory, timer, and the fast path of kernel calls.",
    .m_size = -1,
    .m_methods = METHODS,
};

/* Takes `type` over. */
static int add_type(PyObject *module, const char *name, PyObject *type) {
    int failed = type == NULL ? -1 : PyModule_AddObjectRef(module, name, type);
    Py_XDECREF(type);
    return failed;
}

PyMODINIT_FUNC PyInit__native(void) {
    if (tw_arguments_setup() < 0)
        return NULL;
    PyObject *module = PyModule_Create(&MODULE);
    if (module == NULL)
        return NULL;
    if (add_type(module, "Kernel", tw_kernel_type_new()) < 0
        || add_type(module, "Memory", tw_memory_type_new()) < 0
        || add_type(module, "Program", tw_program_type_new()) < 0
        || add_type(module, "Image", tw_image_type_new()) < 0)
        Py_CLEAR(module);
    return module;
}
