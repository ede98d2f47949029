#include "pydigest.h"

#include "digest.h"

PyObject *tw_py_digest_blocks(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer data;
    int threads;
    if (!PyArg_ParseTuple(args, "y*i:digest_blocks", &data, &threads))
        return NULL;
    size_t bytes = (size_t)data.len;
    size_t blocks = bytes / TW_BLOCK_BYTES + (bytes % TW_BLOCK_BYTES > 0);
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(blocks * sizeof(uint64_t)));
    if (result != NULL) {
        uint64_t *digests = (uint64_t *)(void *)PyBytes_AsString(result);
        tw_status status;
        Py_BEGIN_ALLOW_THREADS
        status = tw_digest_blocks(data.buf, bytes, threads, digests);
        Py_END_ALLOW_THREADS
        if (status != TW_OK) {
            PyErr_Format(PyExc_RuntimeError, "no digests: the pool says %d", (int)status);
            Py_CLEAR(result);
        }
    }
    PyBuffer_Release(&data);
    return result;
}
