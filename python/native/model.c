/* SPDX-License-Identifier: Apache-2.0 */
/* The type leat._trainer.Model: loading, saving, compiling and looking inside.  training.c has the calls that
 * compute. */
#include "trainer.h"

#include <stdio.h>
#include <string.h>

PyObject *model_type;

/* Runs an expression that returns a leat_status without the interpreter's lock. */
#define WITHOUT_LOCK(status, expression)                                                                     \
    do {                                                                                                     \
        PyThreadState *saved = PyEval_SaveThread();                                                          \
        (status) = (expression);                                                                             \
        PyEval_RestoreThread(saved);                                                                         \
    } while (0)

/* ---- one thread at a time ---- */

int model_begin(model *m) {
    leat_error err = {0};
    unsigned long thread = PyThread_get_thread_ident();
    Py_BEGIN_CRITICAL_SECTION((PyObject *)m);
    if (!m->model)
        leat_error_set_text(&err, LEAT_EINVAL, "the model is closed");
    else if (m->depth > 0 && m->owner != thread)
        leat_error_set_text(
            &err, LEAT_EBUSY,
            "another thread is in a call of this model, and a model serves one thread at a time: wait "
            "for that call, or use a leat.Predictor in each further thread");
    else {
        m->owner = thread;
        if (m->depth++ == 0) m->stopping = false;
    }
    Py_END_CRITICAL_SECTION();
    if (err.code) {
        raise_error(&err);
        return -1;
    }
    return 0;
}

void model_end(model *m) {
    Py_BEGIN_CRITICAL_SECTION((PyObject *)m);
    --m->depth;
    Py_END_CRITICAL_SECTION();
}

static PyObject *finish(model *m, leat_status status, const leat_error *err) {
    model_end(m);
    if (status != LEAT_OK) return raise_error(err);
    Py_RETURN_NONE;
}

static PyObject *finish_text(model *m, leat_status status, char *text, const leat_error *err) {
    model_end(m);
    if (status != LEAT_OK) return raise_error(err);
    PyObject *made = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    leat_string_free(text);
    return made;
}

/* ---- making and closing ---- */

/* Takes the model over. */
static PyObject *wrap(leat_model *made) {
    PyObject *self = allocate_object(model_type);
    if (self)
        ((model *)self)->model = made;
    else
        leat_model_destroy(&made);
    return self;
}

static PyObject *load(PyObject *module, PyObject *args) {
    (void)module;
    const char *path = NULL;
    int compile = 1;
    leat_model *made = NULL;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "sp", &path, &compile)) return NULL;
    leat_model_load_options options = leat_model_load_options_default();
    options.compile = compile;
    WITHOUT_LOCK(status, leat_model_load_using(&made, path, &options, &err));
    return status == LEAT_OK ? wrap(made) : raise_error(&err);
}

static PyObject *load_memory(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer bytes = {0};
    int compile = 1;
    leat_model *made = NULL;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "y*p", &bytes, &compile)) return NULL;
    leat_model_load_options options = leat_model_load_options_default();
    options.compile = compile;
    WITHOUT_LOCK(status, leat_model_load_memory_using(&made, bytes.buf, (size_t)bytes.len, &options, &err));
    PyBuffer_Release(&bytes);
    return status == LEAT_OK ? wrap(made) : raise_error(&err);
}

static PyObject *from_json(PyObject *module, PyObject *args) {
    (void)module;
    const char *text = NULL;
    leat_model *made = NULL;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "s", &text)) return NULL;
    WITHOUT_LOCK(status, leat_model_from_json(&made, text, &err));
    return status == LEAT_OK ? wrap(made) : raise_error(&err);
}

static void model_dealloc(PyObject *self) {
    leat_model_destroy(&((model *)self)->model);
    free_object(self);
}

static PyObject *model_close(PyObject *self, PyObject *nothing) {
    (void)nothing;
    model *m = (model *)self;
    leat_error err = {0};
    leat_model *closing = NULL;
    Py_BEGIN_CRITICAL_SECTION(self);
    if (m->depth > 0)
        leat_error_set_text(&err, LEAT_EBUSY,
                            "a call of this model is running: stop it (stop_training = True) first");
    else {
        closing = m->model;
        m->model = NULL;
    }
    Py_END_CRITICAL_SECTION();
    if (err.code) return raise_error(&err);
    leat_model_destroy(&closing);
    Py_RETURN_NONE;
}

static PyObject *model_clone(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    int weights = 1;
    leat_model *made = NULL;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "p", &weights) || model_begin(m) != 0) return NULL;
    WITHOUT_LOCK(status, leat_model_clone(&made, m->model, weights, &err));
    model_end(m);
    return status == LEAT_OK ? wrap(made) : raise_error(&err);
}

/* ---- files ---- */

static PyObject *model_save(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    const char *path = NULL;
    int optimizer = 1;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "sp", &path, &optimizer) || model_begin(m) != 0) return NULL;
    WITHOUT_LOCK(status, leat_model_save(m->model, path, optimizer, &err));
    return finish(m, status, &err);
}

static PyObject *finish_bytes(model *m, leat_status status, void *bytes, size_t count,
                              const leat_error *err) {
    model_end(m);
    if (status != LEAT_OK) return raise_error(err);
    PyObject *made = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)count);
    leat_bytes_free(bytes);
    return made;
}

static PyObject *model_save_memory(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    int format = 0, optimizer = 1, weights_only = 0;
    void *bytes = NULL;
    size_t count = 0;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "ipp", &format, &optimizer, &weights_only) || model_begin(m) != 0)
        return NULL;
    leat_model_format kind = (leat_model_format)format;
    WITHOUT_LOCK(status, weights_only
                             ? leat_model_save_weights_memory(m->model, kind, &bytes, &count, &err)
                             : leat_model_save_memory(m->model, kind, optimizer, &bytes, &count, &err));
    return finish_bytes(m, status, bytes, count, &err);
}

static PyObject *model_save_weights(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    const char *path = NULL;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "s", &path) || model_begin(m) != 0) return NULL;
    WITHOUT_LOCK(status, leat_model_save_weights(m->model, path, &err));
    return finish(m, status, &err);
}

static PyObject *model_load_weights(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    const char *path = NULL;
    int by_name = 0, skip = 0, reshape = 0;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "sppp", &path, &by_name, &skip, &reshape) || model_begin(m) != 0) return NULL;
    leat_load_weights_options options = leat_load_weights_options_default();
    options.by_name = by_name;
    options.skip_mismatch = skip;
    options.reshape = reshape;
    WITHOUT_LOCK(status, leat_model_load_weights_using(m->model, path, &options, &err));
    return finish(m, status, &err);
}

static PyObject *model_load_weights_memory(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    Py_buffer bytes = {0};
    int by_name = 0;
    leat_error err = {0};
    leat_status status = LEAT_EINVAL;
    if (!PyArg_ParseTuple(args, "y*p", &bytes, &by_name)) return NULL;
    if (model_begin(m) != 0) {
        PyBuffer_Release(&bytes);
        return NULL;
    }
    WITHOUT_LOCK(status,
                 leat_model_load_weights_memory(m->model, bytes.buf, (size_t)bytes.len, by_name, &err));
    PyBuffer_Release(&bytes);
    return finish(m, status, &err);
}

/* ---- texts ---- */

typedef leat_status (*text_function)(const leat_model *model, char **out, leat_error *err);

static PyObject *give_text(PyObject *self, text_function function) {
    model *m = (model *)self;
    char *text = NULL;
    leat_error err = {0};
    if (model_begin(m) != 0) return NULL;
    leat_status status = function(m->model, &text, &err);
    return finish_text(m, status, text, &err);
}

#define TEXT_METHOD(name, function)                                                                          \
    static PyObject *name(PyObject *self, PyObject *nothing) {                                               \
        (void)nothing;                                                                                       \
        return give_text(self, function);                                                                    \
    }
TEXT_METHOD(model_to_json, leat_model_to_json)
TEXT_METHOD(model_summary, leat_model_summary)
TEXT_METHOD(model_summary_json, leat_model_summary_json)
TEXT_METHOD(model_optimizer_config, leat_model_optimizer_config)
TEXT_METHOD(model_training_config, leat_model_training_config)

/* ---- compiling and settings ---- */

static PyObject *model_compile(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    int keep = 0;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    leat_compile_options o = leat_compile_options_default();
    if (!PyArg_ParseTuple(args, "zzzzzzzp", &o.optimizer, &o.loss, &o.metrics, &o.weighted_metrics,
                          &o.loss_weights, &o.sample_weight_mode, &o.arithmetic, &keep) ||
        model_begin(m) != 0)
        return NULL;
    o.keep = keep;
    WITHOUT_LOCK(status, leat_model_compile(m->model, &o, &err));
    return finish(m, status, &err);
}

static PyObject *model_is_compiled(PyObject *self, PyObject *nothing) {
    (void)nothing;
    bool compiled = false;
    Py_BEGIN_CRITICAL_SECTION(self);
    compiled = leat_model_is_compiled(((model *)self)->model);
    Py_END_CRITICAL_SECTION();
    return PyBool_FromLong(compiled);
}

static PyObject *model_metric_names(PyObject *self, PyObject *nothing) {
    (void)nothing;
    model *m = (model *)self;
    if (model_begin(m) != 0) return NULL;
    int count = leat_model_metric_count(m->model);
    PyObject *list = PyList_New(count);
    char name[LEAT_LOG_NAME_BYTES];
    for (int i = 0; list && i < count; ++i) {
        leat_error err = {0};
        if (leat_model_metric_name(m->model, i, name, &err) != LEAT_OK) name[0] = '\0';
        PyList_SetItem(list, i, PyUnicode_FromString(name));
    }
    model_end(m);
    return list;
}

static PyObject *model_learning_rate(PyObject *self, PyObject *nothing) {
    (void)nothing;
    double rate = 0;
    Py_BEGIN_CRITICAL_SECTION(self);
    rate = leat_model_learning_rate(((model *)self)->model);
    Py_END_CRITICAL_SECTION();
    return PyFloat_FromDouble(rate);
}

static PyObject *model_set_learning_rate(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    leat_error err = {0};
    double rate = 0;
    if (!PyArg_ParseTuple(args, "d", &rate) || model_begin(m) != 0) return NULL;
    leat_model_set_learning_rate(m->model, rate);
    return finish(m, LEAT_OK, &err);
}

/* set(name, value): a setting of the model. */
static PyObject *model_set(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    const char *name = NULL;
    PyObject *value = NULL;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "sO", &name, &value) || model_begin(m) != 0) return NULL;
    if (strcmp(name, "device") == 0 || strcmp(name, "dtype_policy") == 0) {
        PyObject *bytes = PyUnicode_AsUTF8String(value);
        const char *text = bytes ? PyBytes_AsString(bytes) : NULL;
        if (text)
            status = name[1] == 'e' ? leat_model_set_device(m->model, text, &err)
                                    : leat_model_set_dtype_policy(m->model, text, &err);
        Py_XDECREF(bytes);
    } else {
        unsigned long long number = PyLong_AsUnsignedLongLong(value);
        if (PyErr_Occurred())
            status = LEAT_EINVAL;
        else if (strcmp(name, "threads") == 0)
            leat_model_set_threads(m->model, (int)number);
        else if (strcmp(name, "deterministic") == 0)
            leat_model_set_deterministic(m->model, number != 0);
        else if (strcmp(name, "tf32") == 0)
            leat_model_set_tf32(m->model, number != 0);
        else if (strcmp(name, "gradient_checkpointing") == 0)
            leat_model_set_gradient_checkpointing(m->model, number != 0);
        else if (strcmp(name, "folding") == 0)
            leat_model_set_folding(m->model, number != 0);
        else if (strcmp(name, "tuning") == 0)
            leat_model_set_tuning(m->model, (leat_tuning)number);
        else
            WITHOUT_LOCK(status, leat_model_initialize(m->model, number, &err)); /* "seed" */
    }
    if (PyErr_Occurred()) return model_end(m), NULL;
    return finish(m, status, &err);
}

static PyObject *model_device(PyObject *self, PyObject *nothing) {
    (void)nothing;
    char text[64] = "";
    Py_BEGIN_CRITICAL_SECTION(self);
    const char *name = leat_model_device(((model *)self)->model);
    if (name) snprintf(text, sizeof text, "%s", name);
    Py_END_CRITICAL_SECTION();
    return PyUnicode_FromString(text);
}

static PyObject *model_optimizer_iterations(PyObject *self, PyObject *nothing) {
    (void)nothing;
    model *m = (model *)self;
    leat_error err = {0};
    int64_t steps = 0;
    leat_tensor counter = {0};
    if (model_begin(m) != 0) return NULL;
    leat_status status = leat_model_optimizer_weight_shape(m->model, 0, &counter, NULL, &err);
    counter.data = &steps;
    if (status == LEAT_OK && counter.rank == 0 && counter.dtype == LEAT_I64)
        status = leat_model_optimizer_weight_get(m->model, 0, &counter, &err);
    model_end(m);
    return status == LEAT_OK ? PyLong_FromLongLong(steps) : raise_error(&err);
}

/* ---- weights ---- */

/* weights(): [(name, shape, trainable), ...]. */
static PyObject *model_weights(PyObject *self, PyObject *nothing) {
    (void)nothing;
    model *m = (model *)self;
    leat_error err = {0};
    if (model_begin(m) != 0) return NULL;
    int count = leat_model_weight_count(m->model);
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; ++i) {
        leat_tensor shape = {0};
        leat_status status = leat_model_weight_shape(m->model, i, &shape, &err);
        PyObject *item = status == LEAT_OK
                             ? Py_BuildValue("sNN", leat_model_weight_name(m->model, i), shape_tuple(&shape),
                                             PyBool_FromLong(leat_model_weight_trainable(m->model, i)))
                             : raise_error(&err);
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    model_end(m);
    return list;
}

/* get_weight(index, array), set_weight(index, array): the array has the weight's shape. */
static PyObject *copy_weight(PyObject *self, PyObject *args, bool set) {
    model *m = (model *)self;
    int index = 0;
    PyObject *array = NULL;
    array_view view;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "iO", &index, &array) || array_open(&view, array) != 0) return NULL;
    if (model_begin(m) != 0) {
        array_close(&view);
        return NULL;
    }
    leat_status status = set ? leat_model_weight_set(m->model, index, &view.tensor, &err)
                             : leat_model_weight_get(m->model, index, &view.tensor, &err);
    array_close(&view);
    return finish(m, status, &err);
}

static PyObject *model_get_weight(PyObject *self, PyObject *args) {
    return copy_weight(self, args, false);
}

static PyObject *model_set_weight(PyObject *self, PyObject *args) {
    return copy_weight(self, args, true);
}

static PyObject *model_copy_weights(PyObject *self, PyObject *args) {
    model *m = (model *)self, *from = NULL;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "O!", (PyTypeObject *)model_type, &from) || model_begin(m) != 0) return NULL;
    if (model_begin(from) != 0) return model_end(m), NULL;
    WITHOUT_LOCK(status, leat_model_copy_weights(m->model, from->model, &err));
    model_end(from);
    return finish(m, status, &err);
}

static PyObject *reset(PyObject *self, void (*what)(leat_model *)) {
    model *m = (model *)self;
    leat_error err = {0};
    if (model_begin(m) != 0) return NULL;
    what(m->model);
    return finish(m, LEAT_OK, &err);
}

static PyObject *model_reset_states(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return reset(self, leat_model_reset_states);
}

static PyObject *model_reset_metrics(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return reset(self, leat_model_reset_metrics);
}

/* ---- layers ---- */

static PyObject *describe_layer(const leat_model *made, int layer) {
    int count = leat_model_layer_weight_count(made, layer), calls = leat_model_layer_call_count(made, layer);
    PyObject *weights = PyList_New(count), *inputs = PyList_New(0), *outputs = PyList_New(0);
    for (int i = 0; weights && i < count; ++i)
        PyList_SetItem(weights, i, PyLong_FromLong(leat_model_layer_weight(made, layer, i)));
    for (int side = 0; calls > 0 && side < 2; ++side) {
        int tensors = side ? leat_model_layer_output_count(made, layer, 0)
                           : leat_model_layer_input_count(made, layer, 0);
        for (int i = 0; i < tensors; ++i) {
            leat_tensor shape = {0};
            leat_status status = side ? leat_model_layer_output_shape(made, layer, 0, i, &shape, NULL)
                                      : leat_model_layer_input_shape(made, layer, 0, i, &shape, NULL);
            PyObject *tuple = status == LEAT_OK ? shape_tuple(&shape) : NULL;
            if (tuple && inputs && outputs) PyList_Append(side ? outputs : inputs, tuple);
            Py_XDECREF(tuple);
        }
    }
    return Py_BuildValue("ssiNiNNN", leat_model_layer_name(made, layer), leat_model_layer_class(made, layer),
                         leat_model_layer_parent(made, layer),
                         PyBool_FromLong(leat_model_layer_trainable(made, layer)), calls, weights, inputs,
                         outputs);
}

/* layers(): [(name, class, parent, trainable, calls, weights, input shapes, output shapes), ...]. */
static PyObject *model_layers(PyObject *self, PyObject *nothing) {
    (void)nothing;
    model *m = (model *)self;
    if (model_begin(m) != 0) return NULL;
    int count = leat_model_layer_count(m->model);
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; ++i) {
        PyObject *item = describe_layer(m->model, i);
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    model_end(m);
    return list;
}

static PyObject *model_layer_config(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    int layer = 0;
    char *text = NULL;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "i", &layer) || model_begin(m) != 0) return NULL;
    leat_status status = leat_model_layer_config(m->model, layer, &text, &err);
    return finish_text(m, status, text, &err);
}

/* set_trainable(name, trainable, matching): returns the number of layers. */
static PyObject *model_set_trainable(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    const char *name = NULL;
    int trainable = 0, matching = 0, count = 1;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "spp", &name, &trainable, &matching) || model_begin(m) != 0) return NULL;
    leat_status status = matching ? leat_model_set_trainable_matching(m->model, name, trainable, &count, &err)
                                  : leat_model_set_trainable(m->model, name, trainable, &err);
    model_end(m);
    return status == LEAT_OK ? PyLong_FromLong(count) : raise_error(&err);
}

/* inputs(), outputs(): [(name, shape), ...]. */
static PyObject *give_sides(PyObject *self, bool outputs) {
    model *m = (model *)self;
    if (model_begin(m) != 0) return NULL;
    int count = outputs ? leat_model_output_count(m->model) : leat_model_input_count(m->model);
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; ++i) {
        leat_tensor shape =
            outputs ? leat_model_output_shape(m->model, i) : leat_model_input_shape(m->model, i);
        const char *name = outputs ? leat_model_output_name(m->model, i) : leat_model_input_name(m->model, i);
        PyObject *item = Py_BuildValue("sN", name, shape_tuple(&shape));
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    model_end(m);
    return list;
}

static PyObject *model_inputs(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return give_sides(self, false);
}

static PyObject *model_outputs(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return give_sides(self, true);
}

static PyMethodDef model_methods[] = {
    {"close", model_close, METH_NOARGS, "Frees the model."},
    {"clone", model_clone, METH_VARARGS, "Returns a new model."},
    {"save", model_save, METH_VARARGS, "Saves the model."},
    {"save_memory", model_save_memory, METH_VARARGS, "Returns the bytes of a file."},
    {"save_weights", model_save_weights, METH_VARARGS, "Saves the weights."},
    {"load_weights", model_load_weights, METH_VARARGS, "Loads weights."},
    {"load_weights_memory", model_load_weights_memory, METH_VARARGS, "Loads weights from bytes."},
    {"to_json", model_to_json, METH_NOARGS, "Returns the architecture."},
    {"summary", model_summary, METH_NOARGS, "Returns the table of layers."},
    {"summary_json", model_summary_json, METH_NOARGS, "Returns the table of layers as JSON."},
    {"optimizer_config", model_optimizer_config, METH_NOARGS, "Returns the optimizer as JSON."},
    {"training_config", model_training_config, METH_NOARGS, "Returns the arguments of compile as JSON."},
    {"compile", model_compile, METH_VARARGS, "Compiles the model."},
    {"is_compiled", model_is_compiled, METH_NOARGS, "True after compile."},
    {"metric_names", model_metric_names, METH_NOARGS, "Returns the names of the reported values."},
    {"learning_rate", model_learning_rate, METH_NOARGS, "Returns the learning rate."},
    {"set_learning_rate", model_set_learning_rate, METH_VARARGS, "Sets the learning rate."},
    {"optimizer_iterations", model_optimizer_iterations, METH_NOARGS, "Returns the optimizer's steps."},
    {"set", model_set, METH_VARARGS, "Changes a setting."},
    {"device", model_device, METH_NOARGS, "Returns where the model computes."},
    {"weights", model_weights, METH_NOARGS, "Lists the weights."},
    {"get_weight", model_get_weight, METH_VARARGS, "Copies a weight into an array."},
    {"set_weight", model_set_weight, METH_VARARGS, "Copies an array into a weight."},
    {"copy_weights", model_copy_weights, METH_VARARGS, "Copies the weights of another model."},
    {"reset_states", model_reset_states, METH_NOARGS, "Sets the states of stateful layers to zero."},
    {"reset_metrics", model_reset_metrics, METH_NOARGS, "Begins the metrics of single batches anew."},
    {"layers", model_layers, METH_NOARGS, "Lists the layers."},
    {"layer_config", model_layer_config, METH_VARARGS, "Returns a layer's configuration."},
    {"set_trainable", model_set_trainable, METH_VARARGS, "Freezes layers, or makes them trainable."},
    {"inputs", model_inputs, METH_NOARGS, "Lists the inputs."},
    {"outputs", model_outputs, METH_NOARGS, "Lists the outputs."},
    {"publish", model_publish, METH_NOARGS, "Offers the weights to the predictors."},
    {"stop", model_stop, METH_NOARGS, "Stops the running fit; any thread may call it."},
    {"fit", model_fit, METH_VARARGS, "Trains."},
    {"evaluate", model_evaluate, METH_VARARGS, "Evaluates."},
    {"predict", model_predict, METH_VARARGS, "Predicts."},
    {"train_on_batch", model_train_on_batch, METH_VARARGS, "Trains on one batch."},
    {"test_on_batch", model_test_on_batch, METH_VARARGS, "Evaluates one batch."},
    {"predict_on_batch", model_predict_on_batch, METH_VARARGS, "Predicts for one batch."},
    {0}};

static PyType_Slot model_slots[] = {{Py_tp_dealloc, (void *)model_dealloc},
                                    {Py_tp_methods, (void *)model_methods},
                                    {0}};
PyType_Spec model_spec = {"leat._trainer.Model", sizeof(model), 0, Py_TPFLAGS_DEFAULT, model_slots};

static PyObject *source_help(PyObject *self, PyObject *nothing) {
    (void)self;
    (void)nothing;
    return PyUnicode_FromString(leat_source_help());
}

static PyMethodDef functions[] = {{"load", load, METH_VARARGS, "Loads a model from a file."},
                                  {"load_memory", load_memory, METH_VARARGS, "Loads a model from bytes."},
                                  {"from_json", from_json, METH_VARARGS,
                                   "Creates a model from an architecture."},
                                  {"arrays_data", arrays_data, METH_VARARGS, "Data of arrays."},
                                  {"source_data", source_data, METH_VARARGS, "Data that a SPEC names."},
                                  {"source_help", source_help, METH_NOARGS, "Describes SPECs."},
                                  {"python_data", python_data, METH_VARARGS, "Data that Python makes."},
                                  {0}};

int trainer_add(PyObject *module) {
    leat_set_log(leat_log_to_stderr, NULL);
    if (PyModule_AddFunctions(module, functions) != 0) return -1;
    return add_type(module, "Memory", &memory_spec, &memory_type) ||
           add_type(module, "Data", &data_spec, &data_type) ||
           add_type(module, "Model", &model_spec, &model_type) ||
           add_type(module, "Predictor", &predictor_spec, &predictor_type);
}
