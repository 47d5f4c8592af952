/* The front-end kit for Python: the calls of evb_front_end.h, with exceptions. Waits are cut into slices, between which
 * Python may handle Ctrl-C. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../../evb_front_end.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { SLICE_MS = 100, CONNECT_SLICE_MS = 1000, LONGEST_MS = 1000 * 1000 * 1000 };

/* A front end. `calls` counts those under way without the lock of Python: it cannot be closed beneath them. */
typedef struct {
    PyObject_HEAD
    evb_front_end *front_end;
    evb_front_end_counts last_counts; /* of a front end that is closed */
    PyObject *address;
    uint32_t timeout_ms;
    int calls;
} FrontEnd;

static PyTypeObject *counts_type;

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static uint32_t at_most(int64_t ms, int64_t most) {
    return (uint32_t)(ms < 1 ? 1 : ms > most ? most : ms);
}

static PyObject *exception_of(int code) {
    switch (code) {
    case EVB_WOULD_BLOCK: return PyExc_BlockingIOError;
    case EVB_TIMED_OUT: return PyExc_TimeoutError;
    case EVB_UNREACHABLE:
    case EVB_NOT_READ: return PyExc_ConnectionError;
    case EVB_NO_MEMORY: return PyExc_MemoryError;
    default: return PyExc_ValueError;
    }
}

/* Raises the exception of a code. `error` is errno behind the call. */
static PyObject *raise_code(const FrontEnd *self, int code, int error) {
    const char *text = evb_front_end_error_text(code);
    if (code == EVB_UNREACHABLE && error != 0)
        return PyErr_Format(exception_of(code), "%U: %s (%s)", self->address, text, strerror(error));
    return PyErr_Format(exception_of(code), "%U: %s", self->address, text);
}

/* Seconds as ms, a small wait as at least one. Returns -1 with an exception. */
static int64_t ms_of(double seconds, const char *name) {
    if (!(seconds >= 0 && seconds * 1000 <= LONGEST_MS)) {
        PyErr_Format(PyExc_ValueError, "%s is from 0 to 1,000,000 seconds", name);
        return -1;
    }
    int64_t ms = (int64_t)(seconds * 1000);
    return ms == 0 && seconds > 0 ? 1 : ms;
}

/* ---- Calls without the lock of Python ---- */

/* A call with all that it needs. */
struct call {
    enum { SEND, FLUSH, END } kind;
    uint64_t counter;
    const uint64_t *last_counter;
    const uint32_t *mark;
    const struct iovec *pieces;
    size_t count;
    unsigned flags;
};

static int call_once(evb_front_end *front_end, const struct call *call) {
    switch (call->kind) {
    case SEND:
        return evb_front_end_send_pieces(front_end, call->counter, call->mark, call->pieces, call->count, call->flags);
    case FLUSH: return evb_front_end_flush(front_end);
    default: return evb_front_end_end_of_run(front_end, call->last_counter);
    }
}

/* Repeats a call that has waited for a slice, until it is done, the timeout is over, or Python has an exception. */
static PyObject *call_in_slices(FrontEnd *self, const struct call *call) {
    if (!self->front_end) {
        PyErr_SetString(PyExc_ValueError, "the front end is closed");
        return NULL;
    }
    int64_t end = 0;
    for (;;) {
        int code, error;
        self->calls++;
        Py_BEGIN_ALLOW_THREADS
        code = call_once(self->front_end, call);
        error = errno;
        Py_END_ALLOW_THREADS
        self->calls--;
        if (code == EVB_OK)
            Py_RETURN_NONE;
        if (PyErr_CheckSignals() < 0)
            return NULL;
        /* The first slice has passed. */
        end = end ? end : now_ms() + self->timeout_ms - SLICE_MS;
        if ((code != EVB_TIMED_OUT && code != EVB_UNREACHABLE) || now_ms() >= end)
            return raise_code(self, code, error);
        if (!self->front_end) {
            PyErr_SetString(PyExc_ValueError, "the front end was closed meanwhile");
            return NULL;
        }
    }
}

/* ---- Opening and closing ---- */

static int open_in_slices(FrontEnd *self, const char *address, uint16_t source, evb_front_end_options options) {
    int64_t wait_ms = options.connect_timeout_ms, end = now_ms() + wait_ms;
    for (;;) {
        int code, error;
        options.connect_timeout_ms = wait_ms > 0 ? at_most(end - now_ms(), CONNECT_SLICE_MS) : 0;
        evb_front_end *front_end;
        Py_BEGIN_ALLOW_THREADS
        code = evb_front_end_open(&front_end, address, source, &options);
        error = errno;
        Py_END_ALLOW_THREADS
        self->front_end = front_end;
        if (code == EVB_OK)
            return 0;
        if (PyErr_CheckSignals() < 0)
            return -1;
        if (code != EVB_UNREACHABLE || now_ms() >= end) {
            raise_code(self, code, error);
            return -1;
        }
    }
}

static int front_end_init(PyObject *object, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"address", "source", "timeout", "connect_timeout", "retry", "buffer_bytes", "linger", NULL};
    FrontEnd *self = (FrontEnd *)object;
    PyObject *address;
    double timeout = 10, connect_timeout = 10, retry = 0.1, linger = 0.001;
    long source = 0;
    Py_ssize_t buffer_bytes = 65536;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "U|l$dddnd:FrontEnd", keywords, &address, &source, &timeout,
                                     &connect_timeout, &retry, &buffer_bytes, &linger))
        return -1;
    if (self->front_end) {
        PyErr_SetString(PyExc_ValueError, "the front end is open already");
        return -1;
    }
    if (source < 0 || source > UINT16_MAX || buffer_bytes < 0 || buffer_bytes > 64 << 20) {
        PyErr_SetString(PyExc_ValueError, "source is from 0 to 65,535, and buffer_bytes from 0 to 64 MiB");
        return -1;
    }
    int64_t timeout_ms = ms_of(timeout, "timeout"), connect_ms = timeout_ms < 0 ? -1 : ms_of(connect_timeout, "connect_timeout");
    int64_t retry_ms = connect_ms < 0 ? -1 : ms_of(retry, "retry"), linger_ms = retry_ms < 0 ? -1 : ms_of(linger, "linger");
    const char *text = linger_ms < 0 || linger_ms > 1000000 ? NULL : PyUnicode_AsUTF8AndSize(address, NULL);
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "linger is at most 1000 seconds");
        return -1;
    }
    Py_INCREF(address);
    Py_XDECREF(self->address);
    self->address = address;
    self->timeout_ms = (uint32_t)timeout_ms;
    evb_front_end_options options = {.connect_timeout_ms = (uint32_t)connect_ms,
                                     .timeout_ms = timeout_ms > SLICE_MS ? SLICE_MS : (uint32_t)timeout_ms,
                                     .retry_ms = retry_ms > 0 ? (uint32_t)retry_ms : 1,
                                     .buffer_bytes = (uint32_t)buffer_bytes,
                                     .linger_us = (uint32_t)(linger * 1e6)};
    return open_in_slices(self, text, (uint16_t)source, options);
}

static PyObject *front_end_close(PyObject *object, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"timeout", NULL};
    FrontEnd *self = (FrontEnd *)object;
    PyObject *timeout = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "|O:close", keywords, &timeout))
        return NULL;
    double seconds = timeout == Py_None ? self->timeout_ms / 1000.0 : PyFloat_AsDouble(timeout);
    int64_t ms = PyErr_Occurred() ? -1 : ms_of(seconds, "timeout");
    if (ms < 0)
        return NULL;
    if (self->calls > 0) {
        PyErr_SetString(PyExc_RuntimeError, "another thread is in a call of this front end");
        return NULL;
    }
    evb_front_end *front_end = self->front_end;
    if (!front_end)
        Py_RETURN_NONE;
    evb_front_end_statistics(front_end, &self->last_counts);
    self->front_end = NULL;
    int code, error;
    Py_BEGIN_ALLOW_THREADS
    code = evb_front_end_close(front_end, (uint32_t)ms);
    error = errno;
    Py_END_ALLOW_THREADS
    if (code != EVB_OK)
        return raise_code(self, code, error);
    Py_RETURN_NONE;
}

static PyObject *front_end_enter(PyObject *object, PyObject *unused) {
    (void)unused;
    Py_INCREF(object);
    return object;
}

/* Behind an exception nothing waits, and the exception is not replaced by another one. */
static PyObject *front_end_exit(PyObject *object, PyObject *arguments) {
    PyObject *kind;
    if (!PyArg_ParseTuple(arguments, "OOO:__exit__", &kind, &kind, &kind))
        return NULL;
    PyObject *closed = PyObject_CallMethod(object, "close", kind == Py_None ? NULL : "i", 0);
    if (closed || kind == Py_None)
        return closed;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static void front_end_free(PyObject *object) {
    FrontEnd *self = (FrontEnd *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    if (self->front_end) {
        if (PyErr_WarnFormat(PyExc_ResourceWarning, 1, "a front end of %U was not closed", self->address) < 0)
            PyErr_WriteUnraisable(NULL);
        evb_front_end_close(self->front_end, 0);
    }
    PyErr_Restore(kind, error, trace);
    Py_XDECREF(self->address);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- Sending ---- */

/* A number of an argument that may be None. Returns 0 with an exception, 1 for a number, 2 for None. */
static int number_of(PyObject *object, const char *name, uint64_t most, uint64_t *number) {
    if (object == Py_None)
        return 2;
    *number = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError))
        return 0;
    if (!PyErr_Occurred() && *number <= most)
        return 1;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s is from 0 to %llu", name, (unsigned long long)most);
    return 0;
}

/* Sends a payload of several objects. */
static PyObject *send_objects(FrontEnd *self, struct call *call, PyObject *objects) {
    Py_ssize_t count = PyTuple_Size(objects), have = 0;
    Py_buffer *views = PyMem_Calloc((size_t)count + 1, sizeof *views);
    struct iovec *pieces = PyMem_Calloc((size_t)count + 1, sizeof *pieces);
    PyObject *result = views && pieces ? NULL : PyErr_NoMemory();
    if (views && pieces) {
        while (have < count && PyObject_GetBuffer(PyTuple_GetItem(objects, have), &views[have], PyBUF_SIMPLE) == 0) {
            pieces[have] = (struct iovec){views[have].buf, (size_t)views[have].len};
            have++;
        }
        call->pieces = pieces;
        call->count = (size_t)count;
        result = have == count ? call_in_slices(self, call) : NULL;
    }
    while (have > 0)
        PyBuffer_Release(&views[--have]);
    PyMem_Free(views);
    PyMem_Free(pieces);
    return result;
}

static PyObject *send_object(FrontEnd *self, struct call *call, PyObject *payload) {
    Py_buffer view;
    if (PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    struct iovec piece = {view.buf, (size_t)view.len};
    call->pieces = &piece;
    call->count = 1;
    PyObject *result = call_in_slices(self, call);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *front_end_send(PyObject *object, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"counter", "payload", "mark", "damaged", "resynchronised", NULL};
    PyObject *counter, *payload, *mark = Py_None;
    int is_damaged = 0, is_resynchronised = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "OO|O$pp:send", keywords, &counter, &payload, &mark, &is_damaged,
                                     &is_resynchronised))
        return NULL;
    struct call call = {.kind = SEND};
    uint64_t number = 0;
    int has_mark = number_of(mark, "mark", UINT32_MAX, &number);
    uint32_t short_mark = (uint32_t)number;
    call.mark = has_mark == 1 ? &short_mark : NULL;
    if (!has_mark)
        return NULL;
    if (counter == Py_None)
        return PyErr_Format(PyExc_TypeError, "counter is a number, not None");
    if (!number_of(counter, "counter", UINT64_MAX, &call.counter))
        return NULL;
    call.flags = (is_damaged ? (unsigned)EVB_DAMAGED : 0u) | (is_resynchronised ? (unsigned)EVB_RESYNCHRONISED : 0u);
    if (!PyList_Check(payload) && !PyTuple_Check(payload))
        return send_object((FrontEnd *)object, &call, payload);
    PyObject *objects = PySequence_Tuple(payload);
    PyObject *result = objects ? send_objects((FrontEnd *)object, &call, objects) : NULL;
    Py_XDECREF(objects);
    return result;
}

static PyObject *front_end_flush(PyObject *object, PyObject *unused) {
    (void)unused;
    struct call call = {.kind = FLUSH};
    return call_in_slices((FrontEnd *)object, &call);
}

static PyObject *front_end_end_of_run(PyObject *object, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"last_counter", NULL};
    PyObject *last = Py_None;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "|O:end_of_run", keywords, &last))
        return NULL;
    uint64_t number = 0;
    int has_last = number_of(last, "last_counter", UINT64_MAX, &number);
    if (!has_last)
        return NULL;
    struct call call = {.kind = END, .last_counter = has_last == 1 ? &number : NULL};
    return call_in_slices((FrontEnd *)object, &call);
}

static PyObject *front_end_statistics(PyObject *object, PyObject *unused) {
    (void)unused;
    FrontEnd *self = (FrontEnd *)object;
    evb_front_end_counts counts = self->last_counts;
    if (self->front_end)
        evb_front_end_statistics(self->front_end, &counts);
    const uint64_t values[] = {counts.fragments, counts.bytes,    counts.reconnects,
                               counts.waits,     counts.repeated, counts.unconfirmed_bytes};
    PyObject *result = PyStructSequence_New(counts_type);
    for (Py_ssize_t at = 0; result && at < (Py_ssize_t)(sizeof values / sizeof *values); at++)
        PyStructSequence_SetItem(result, at, PyLong_FromUnsignedLongLong(values[at]));
    return result;
}

static PyObject *crc32c(PyObject *module, PyObject *arguments, PyObject *names) {
    static char *keywords[] = {"data", "before", NULL};
    Py_buffer data;
    unsigned int before = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "y*|I:crc32c", keywords, &data, &before))
        return NULL;
    uint32_t sum;
    Py_BEGIN_ALLOW_THREADS
    sum = evb_crc32c(before, data.buf, (size_t)data.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(sum);
}

/* ---- The module ---- */

#define WITH_NAMES(FUNCTION) (PyCFunction)(void (*)(void)) FUNCTION, METH_VARARGS | METH_KEYWORDS

static PyMethodDef front_end_methods[] = {
    {"send", WITH_NAMES(front_end_send),
     "send($self, /, counter, payload, mark=None, *, damaged=False, resynchronised=False)\n--\n\n"
     "Sends the fragment of an event. `counter` is the number of the event as the front end counts it. `payload` is bytes or\n"
     "another buffer, or a list or tuple of them, one behind the other. `mark` is a number below 2**32 that is the same in all\n"
     "sources of one event. `damaged`: the payload is known to be bad. `resynchronised`: the counter starts again here.\n\n"
     "If it raises BlockingIOError, TimeoutError or ConnectionError the fragment is not accepted, and may be sent again."},
    {"flush", front_end_flush, METH_NOARGS, "flush($self, /)\n--\n\nHands all gathered fragments to the system."},
    {"end_of_run", WITH_NAMES(front_end_end_of_run),
     "end_of_run($self, /, last_counter=None)\n--\n\n"
     "Announces the end of the run, and flushes. `last_counter` is the number of the run's last event, by default that of the\n"
     "last fragment. It may be called again after a timeout. Fragments after it belong to the next run."},
    {"close", WITH_NAMES(front_end_close),
     "close($self, /, timeout=None)\n--\n\n"
     "Flushes, and waits until the receiver has read everything, `timeout` seconds at most. The front end is closed in any\n"
     "case. It raises ConnectionError, TimeoutError or BlockingIOError if fragments may not have arrived."},
    {"statistics", front_end_statistics, METH_NOARGS,
     "statistics($self, /)\n--\n\nThe counts since the front end was opened, as Counts."},
    {"__enter__", front_end_enter, METH_NOARGS, "__enter__($self, /)\n--\n\nThe front end itself."},
    {"__exit__", front_end_exit, METH_VARARGS,
     "__exit__($self, kind, error, trace, /)\n--\n\nCloses the front end; behind an exception it does not wait."},
    {NULL, NULL, 0, NULL}};

static const char front_end_text[] =
    "FrontEnd(address, source=0, *, timeout=10.0, connect_timeout=10.0, retry=0.1, buffer_bytes=65536, linger=0.001)\n--\n\n"
    "A connection to the readout unit `source`, which listens at `address`, HOST:PORT.\n\n"
    "`timeout` is the longest wait of a call in seconds; with 0 no call waits, but raises BlockingIOError. `connect_timeout` is\n"
    "the longest wait for the first connection; with 0 the first fragments wait for it. `retry` is the pause between attempts\n"
    "to connect. Fragments of up to 32 KiB are gathered in `buffer_bytes`, for `linger` seconds at most; with a linger of 0\n"
    "until the buffer is full or flushed.\n\n"
    "It raises ValueError for a bad address, and ConnectionError if there is no connection.";

static PyType_Slot front_end_slots[] = {{Py_tp_doc, (void *)front_end_text},
                                        {Py_tp_init, front_end_init},
                                        {Py_tp_new, PyType_GenericNew},
                                        {Py_tp_dealloc, front_end_free},
                                        {Py_tp_methods, front_end_methods},
                                        {0, NULL}};

static PyType_Spec front_end_spec = {
    .name = "evb_front_end.FrontEnd", .basicsize = sizeof(FrontEnd), .flags = Py_TPFLAGS_DEFAULT, .slots = front_end_slots};

static PyStructSequence_Field counts_fields[] = {
    {"fragments", "fragments accepted"},
    {"bytes", "payload bytes accepted"},
    {"reconnects", "connections after the first one"},
    {"waits", "waits for the receiver, of at most 0.1 s each"},
    {"repeated", "frames that a broken connection cut, and that began again"},
    {"unconfirmed_bytes", "bytes that were under way when a connection broke, and may be lost"},
    {NULL, NULL}};

static PyStructSequence_Desc counts_text = {
    .name = "evb_front_end.Counts", .doc = "Counts of a front end.", .fields = counts_fields, .n_in_sequence = 6};

static PyMethodDef functions[] = {
    {"crc32c", WITH_NAMES(crc32c),
     "crc32c(data, before=0)\n--\n\nCRC-32C of a buffer that follows bytes with the checksum `before`."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "evb_front_end._native", .m_size = -1, .m_methods = functions};

static int add_type(PyObject *module, const char *name, PyObject *type) {
    if (type && PyModule_AddObject(module, name, type) == 0)
        return 0;
    Py_XDECREF(type);
    return -1;
}

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module)
        return NULL;
    counts_type = PyStructSequence_NewType(&counts_text);
    /* The module and this file hold a reference each. */
    Py_XINCREF((PyObject *)counts_type);
    if (add_type(module, "Counts", (PyObject *)counts_type) == 0 &&
        add_type(module, "FrontEnd", PyType_FromSpec(&front_end_spec)) == 0)
        return module;
    Py_DECREF(module);
    return NULL;
}
