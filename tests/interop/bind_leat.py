# SPDX-License-Identifier: Apache-2.0
"""Binds leat by docs/api.json alone, and trains with it: that the description says all that a binding needs.

bind_leat.py API.json libleat.so FOLDER; needs Python 3.6 and nothing else.  No header is read, and no function is declared
by hand: types, layouts, who owns what and how errors are told come from the description."""
import array
import ctypes
import json
import os
import sys


class LeatError(Exception):
    """An error of leat: the name of the status and the message."""


class Api:
    """The functions, types and constants of leat, made from the description."""

    def __init__(self, description, library):
        self.library = ctypes.CDLL(library)
        with open(description, encoding="utf-8") as file:
            api = json.load(file)
        self.types = {enum["name"]: ctypes.c_int for enum in api["enums"]}
        self.values = {macro["name"]: macro["value"] for macro in api["macros"]}
        self.values.update((v["name"], v["value"]) for enum in api["enums"] for v in enum["values"])
        self.names = {v["value"]: v["name"] for e in api["enums"] if e["name"] == "leat_status" for v in e["values"]}
        for struct in api["structs"]:  # they may point to each other
            self.types[struct["name"]] = type(str(struct["name"]), (ctypes.Structure,), {})
        for callback in api["callbacks"]:
            self.types[callback["name"]] = self.function(callback)
        for struct in self.by_need(api["structs"]):
            self.lay_out(struct)
        self.functions = {f["name"]: f for f in api["functions"] if "defined_by_plugins" not in f}
        for function in self.functions.values():
            entry = getattr(self.library, function["name"])
            entry.restype = self.type(function["returns"])
            entry.argtypes = [self.type(p["type"]) for p in function["parameters"]]

    def function(self, description):
        """The type of a pointer to a function."""
        parameters = [self.type(p["type"]) for p in description["parameters"]]
        return ctypes.CFUNCTYPE(self.type(description["returns"]), *parameters)

    def type(self, t):
        """The ctypes type of a type of the description."""
        kind = t["kind"]
        if kind == "pointer":
            to = t["to"]
            if to["kind"] == "char" and t["const"]:
                return ctypes.c_char_p
            if to["kind"] in ("void", "opaque", "char"):
                return ctypes.c_void_p
            return ctypes.POINTER(self.type(to))
        if kind == "integer":
            return getattr(ctypes, "c_%sint%d" % ("" if t["signed"] else "u", t["bits"]))
        if kind == "float":
            return {32: ctypes.c_float, 64: ctypes.c_double}[t["bits"]]
        if kind == "array":
            return self.type(t["of"]) * t["count"]
        if kind == "function":
            return self.function(t)
        if kind in ("struct", "enum", "callback"):
            return self.types[t["name"]]
        return {"void": None, "bool": ctypes.c_bool, "char": ctypes.c_char}[kind]

    @staticmethod
    def by_need(structs):
        """Yields the structs, each after the structs that it contains."""
        def held(t):
            return held(t["of"]) if t["kind"] == "array" else [t["name"]] if t["kind"] == "struct" else []
        done, waiting = set(), list(structs)
        while waiting:
            for struct in list(waiting):
                if all(name in done for field in struct["fields"] for name in held(field["type"])):
                    yield struct
                    done.add(struct["name"])
                    waiting.remove(struct)

    def lay_out(self, struct):
        """Gives a struct its fields and checks their offsets against the description."""
        made = self.types[struct["name"]]
        made._fields_ = [(f["name"], self.type(f["type"])) for f in struct["fields"]]
        check(ctypes.sizeof(made) == struct["size"], "the size of " + struct["name"])
        for field in struct["fields"]:
            check(getattr(made, field["name"]).offset == field["offset"],
                  "the offset of %s.%s" % (struct["name"], field["name"]))

    def __getattr__(self, name):
        """Makes leat_NAME a method: it takes str, returns the out parameters, and raises for a bad status."""
        description = self.functions["leat_" + name]

        def call(*given):
            given, arguments, outs, error = list(given), [], [], self.types["leat_error"]()
            for parameter in description["parameters"]:
                kind = self.type(parameter["type"])
                if parameter["name"] == "err":
                    arguments.append(ctypes.byref(error))
                elif parameter.get("direction") == "out" and kind is not ctypes.c_void_p:
                    outs.append((kind._type_(), parameter))
                    arguments.append(ctypes.byref(outs[-1][0]))
                else:
                    value = given.pop(0)
                    arguments.append(value.encode() if isinstance(value, str) else value)
            check(not given, "too many arguments of leat_" + name)
            result = getattr(self.library, "leat_" + name)(*arguments)
            if description["returns"].get("name") == "leat_status" and result != 0:
                raise LeatError("%s: %s" % (self.names[result], error.message.decode()))
            results = [self.received(*out) for out in outs]
            if description["returns"].get("name") != "leat_status":
                results.insert(0, result.decode() if isinstance(result, bytes) else result)
            return results[0] if len(results) == 1 else results

        return call

    def defaults(self, name):
        """leat_NAME_init in Python's memory: a struct with its size and its defaults."""
        made = self.types["leat_" + name]()
        getattr(self, name + "_init")(ctypes.byref(made), ctypes.sizeof(made))
        return made

    def received(self, value, parameter):
        """Returns the value of an out parameter; a string is copied and freed."""
        if parameter.get("release") == "leat_string_free":
            text = ctypes.string_at(value.value).decode()
            self.library.leat_string_free(value)
            return text
        return value


def check(condition, what):
    """Exits with a message if the condition is false; assert could be disabled."""
    if not condition:
        sys.exit("binding: " + what)


def view(leat, memory, *shape):
    """Makes a tensor whose memory is borrowed from an array.array."""
    code = {"f": "LEAT_F32", "d": "LEAT_F64", "i": "LEAT_I32"}[memory.typecode]
    address, count = memory.buffer_info()
    size = 1
    for dimension in shape:
        size *= dimension
    check(size == count, "a shape that does not fit its memory")
    return leat.tensor_view_into(leat.values[code], len(shape), (ctypes.c_int64 * len(shape))(*shape), address)


def build(leat):
    """x (4) -> Dense(8, tanh) -> Dense(3, softmax), weights from a seed."""
    builder = leat.builder_create()
    x = leat.input(builder, (ctypes.c_int64 * 1)(4), 1)
    hidden = leat.layer(x, "Dense", "{'units': 8, 'activation': 'tanh', 'name': 'hidden'}")
    y = leat.layer(hidden, "Dense", "{'units': 3, 'activation': 'softmax', 'name': 'y'}")
    model = leat.model_create(ctypes.byref(builder), (ctypes.c_void_p * 1)(x), 1, (ctypes.c_void_p * 1)(y), 1)
    check(not builder.value, "leat_model_create takes the builder over")
    leat.model_initialize(model, 7)
    return model


def compile_model(leat, model):
    """Adam, crossentropy, accuracy."""
    options = leat.defaults("compile_options")
    options.optimizer, options.loss, options.metrics = b"Adam(learning_rate=0.05)", b"categorical_crossentropy", b"accuracy"
    leat.model_compile(model, ctypes.byref(options))


def clusters(samples):
    """Points around three centres, one-hot labels."""
    x, t = array.array("f"), array.array("f")
    for i in range(samples):
        x.extend((1.0 if j == i % 3 else -0.5) + 0.01 * ((i * 7 + j * 5) % 11) for j in range(4))
        t.extend(1.0 if j == i % 3 else 0.0 for j in range(3))
    return x, t


def arrays_of(leat, inputs, targets=None):
    """Makes a leat_arrays."""
    make, arrays = leat.types["leat_array"], leat.types["leat_arrays"]()
    arrays.inputs, arrays.input_count = (make * 1)(make(None, inputs)), 1
    if targets is not None:
        arrays.targets, arrays.target_count = (make * 1)(make(None, targets)), 1
    return arrays


def train(leat, model, samples):
    """Fits with a callback; returns the History and what the callback saw."""
    x, t = clusters(samples)
    seen = []

    def at_epoch_end(user, training, epoch, logs, err):
        try:
            loss = ctypes.c_double()
            if not leat.logs_get(logs, "loss", ctypes.byref(loss)):
                raise ValueError("an epoch without a loss")
            seen.append(loss.value)
            leat.training_write_text(training, "an epoch, 100 % of it\n")
            return leat.values["LEAT_OK"]
        except Exception as error:  # an exception must not pass through C
            return leat.library.leat_error_set_text(err, leat.values["LEAT_EUSER"], str(error).encode())

    callback = leat.defaults("callback")
    callback.on_epoch_end = leat.types["leat_hook"](at_epoch_end)
    options = leat.defaults("fit_options")
    options.epochs, options.verbose, options.threads = 30, 0, 1
    options.callbacks = (ctypes.POINTER(leat.types["leat_callback"]) * 1)(ctypes.pointer(callback))
    options.callback_count = 1
    arrays = arrays_of(leat, view(leat, x, samples, 4), view(leat, t, samples, 3))
    history = leat.model_fit(model, ctypes.byref(arrays), 8, ctypes.byref(options))
    return history, seen


def sequence_of(leat, samples, size):
    """Makes a leat_sequence of the points of clusters(); a worker thread gets the batches from Python."""
    (x, t), sequence = clusters(samples), leat.defaults("sequence")
    spec, keep = sequence.spec, []
    spec.batch_size = size
    for part, width in (("LEAT_PART_INPUT", 4), ("LEAT_PART_TARGET", 3)):
        leat.batch_spec_add(ctypes.byref(spec), leat.values[part], None, leat.values["LEAT_F32"], 1,
                            (ctypes.c_int64 * 1)(width))

    def get(user, index, rng, batch, err):
        batch[0].size = min(size, samples - index * size)
        for tensor, memory, width in ((0, x, 4), (1, t, 3)):
            part = memory[index * size * width:(index * size + batch[0].size) * width]
            ctypes.memmove(batch[0].tensors[tensor].data, part.buffer_info()[0], len(part) * part.itemsize)
        return leat.values["LEAT_OK"]

    for name, function in (("get", get), ("length", lambda user: (samples + size - 1) // size)):
        keep.append(dict(type(sequence)._fields_)[name](function))
        setattr(sequence, name, keep[-1])
    return sequence, keep


def check_sequence(leat, x, samples):
    """A fit with batches that Python makes gives the same weights as a fit with arrays."""
    options, weights = leat.defaults("fit_options"), []
    options.epochs, options.verbose, options.threads = 2, 0, 1
    options.shuffle = leat.values["LEAT_SHUFFLE_NONE"]
    sequence, keep = sequence_of(leat, samples, 7)
    points, targets = clusters(samples)
    arrays = arrays_of(leat, view(leat, points, samples, 4), view(leat, targets, samples, 3))
    for fit in (lambda m: leat.model_fit_generator(m, ctypes.byref(sequence), ctypes.byref(options)),
                lambda m: leat.model_fit(m, ctypes.byref(arrays), 7, ctypes.byref(options))):
        model = build(leat)
        compile_model(leat, model)
        history = fit(model)
        leat.history_destroy(ctypes.byref(history))
        weights.append(predict(leat, model, x, samples))
        leat.model_destroy(ctypes.byref(model))
    check(len(keep) == 2 and weights[0] == weights[1], "a sequence of Python's trains otherwise than arrays")


def predict(leat, model, x, samples):
    """Predicts into memory that belongs to Python."""
    y = array.array("f", [0.0]) * (3 * samples)
    options = leat.defaults("evaluate_options")
    options.threads = 1
    arrays, out = arrays_of(leat, view(leat, x, samples, 4)), view(leat, y, samples, 3)
    leat.model_predict_into(model, ctypes.byref(arrays), 0, ctypes.byref(options), ctypes.byref(out))
    check(out.shape[0] == samples, "leat_model_predict_into says how many samples there are")
    return y


def structure(leat, model):
    """Returns (name, class, weights) of each layer."""
    layers = []
    for i in range(leat.model_layer_count(model)):
        config = json.loads(leat.model_layer_config(model, i))
        check(config["name"] == leat.model_layer_name(model, i), "a layer's configuration names another layer")
        weights = [leat.model_weight_name(model, leat.model_layer_weight(model, i, j))
                   for j in range(leat.model_layer_weight_count(model, i))]
        layers.append((config["name"], leat.model_layer_class(model, i), weights))
    return layers


def through_memory(leat, model, path):
    """Saves a model as bytes, checks that they are those of the file at path, and loads a model from them."""
    data, size = leat.model_save_memory(model, leat.values["LEAT_MODEL_FORMAT_H5"], True)
    content = ctypes.string_at(data.value, size.value)
    leat.bytes_free(data)
    with open(path, "rb") as file:
        check(content == file.read(), "the saved bytes differ from those of the file")
    return leat.model_load_memory(content, len(content), None)


def main():
    """Builds, trains, looks inside, clones, saves and loads."""
    leat, folder, samples = Api(sys.argv[1], sys.argv[2]), sys.argv[3], 48
    check(leat.version() == leat.values["LEAT_VERSION_STRING"], "library and description are of two versions")
    model = build(leat)
    compile_model(leat, model)
    history, seen = train(leat, model, samples)
    count = ctypes.c_int()
    losses = leat.history_values(history, "loss", ctypes.byref(count))[:30]
    check(count.value == 30 and seen == losses, "the callback saw other losses than the History has")
    check(losses[-1] < 0.2 * losses[0], "training does not learn: %r" % losses)
    verdict = leat.history_verdict_into(history, ctypes.sizeof(leat.types["leat_verdict"]))[1]
    check(verdict.steps == 30 * samples // 8 and verdict.text, "the verdict counts %d steps" % verdict.steps)
    leat.history_destroy(ctypes.byref(history))
    names = [leat.model_metric_name(model, i, room) or room.value.decode()
             for i in range(leat.model_metric_count(model)) for room in [ctypes.create_string_buffer(128)]]
    check(names == ["loss", "accuracy"], "metric names: %r" % names)
    check(structure(leat, model)[1:] == [("hidden", "Dense", ["hidden/kernel:0", "hidden/bias:0"]),
                                         ("y", "Dense", ["y/kernel:0", "y/bias:0"])], "the model's structure")
    kernel = leat.model_weight_into(model, leat.model_find_weight(model, "hidden/kernel"))
    check(list(kernel.shape[:kernel.rank]) == [4, 8], "the kernel's shape")
    check(json.loads(leat.model_optimizer_config(model))["class_name"] == "Adam", "the optimizer")
    x = clusters(samples)[0]
    y = predict(leat, model, x, samples)
    right = sum(max(range(3), key=lambda c: y[3 * i + c]) == i % 3 for i in range(samples))
    check(right == samples, "%d of %d points are told right" % (right, samples))
    path = os.path.join(folder, "model.h5")
    leat.model_save(model, path, True)
    for other in (leat.model_clone(model, True), leat.model_load(path), through_memory(leat, model, path)):
        check(predict(leat, other, x, samples) == y, "a clone, or the loaded model, predicts something else")
        leat.model_destroy(ctypes.byref(other))
    try:
        leat.model_weight_into(model, 99)
        check(False, "weight 99 is there")
    except LeatError as error:
        check(str(error) == "LEAT_EINVAL: expected the index of a weight from 0 to 3, received 99", str(error))
    leat.model_destroy(ctypes.byref(model))
    check_sequence(leat, x, samples)
    print("binding: %d functions and %d structs by the description alone" %
          (len(leat.functions), sum(isinstance(t, type) and issubclass(t, ctypes.Structure) for t in leat.types.values())))


if __name__ == "__main__":
    main()
