# SPDX-License-Identifier: Apache-2.0
"""Functions of keras.ops that functional models call as layers: keras-3/layers/operation_*.npz.  A Dense layer is in front
of each function and behind it, so that gradients pass through the function."""
import numpy as np

import keras
from keras import ops

from .keras3_case import L, functional


def one(name, function, *shapes, units=None, **options):
    """Records the function of one tensor, or of several tensors, of these shapes."""
    def build():
        x = [L.Input(shape, name="x%d" % i) for i, shape in enumerate(shapes)]
        y = function(*[L.Dense(units or shape[-1], name="before%d" % i)(v)
                       for i, (v, shape) in enumerate(zip(x, shapes))])
        several = isinstance(y, (list, tuple))
        for i, v in enumerate(y if several else [y]):
            v = L.Flatten()(v) if several and len(v.shape) > 2 else v
            v = ops.expand_dims(v, -1) if len(v.shape) == 1 else v
            v = L.Dense(2, name="after%d" % i)(v)
            total = v if i == 0 else ops.add(total, v)
        return x, total
    functional("operation_" + name, "Operation", build, **options)


def mild(name, function, *shapes, **options):
    """Like one(), but numbers are between -1 and 1 before the function, and small behind it, so that few steps change little."""
    def limited(*x):
        y = function(*[ops.tanh(v) for v in x])
        return [0.2 * v for v in (y if isinstance(y, (list, tuple)) else [y])]
    one(name, limited, *shapes, **options)


def ends(name, function, *values):
    """Records the predictions of a function of these numbers, which may be infinite or NaN, as (samples, ...)."""
    values = [np.array(v, "float32") for v in values]
    functional("operation_" + name, "Operation", lambda: (lambda x: (x, function(*x)))(
        [L.Input(v.shape[1:], name="x%d" % i) for i, v in enumerate(values)]), inputs=values, trains=False)


def arithmetic():
    """Arithmetic with tensors, numbers and constants, in both orders."""
    one("numbers", lambda x: 2 - (x * 3 + 1.5) / 4 - x, (4, 3))
    one("tensors", lambda x, y: (x + y) * (x - y) / (ops.square(y) + 1.0), (4, 3), (4, 3))
    one("broadcast", lambda x, y: x * ops.expand_dims(y, 1) + x[:, :1], (4, 3), (3,))
    one("constants", lambda x: ops.subtract(np.arange(3, dtype="float32"), x)
        * ops.convert_to_tensor([[1.0], [2.0], [-1.0], [0.5]]), (4, 3))
    one("powers", lambda x: x ** 2 + 2.0 ** x + ops.power(ops.exp(x), 1.5), (4, 3))
    one("divisions", lambda x: x * (x // 0.5) + x % 0.75, (4, 3))
    one("functions", lambda x: ops.log(ops.exp(x) + 1) + ops.sqrt(ops.abs(x)) + ops.tanh(-x) + ops.absolute(x), (4, 3))
    one("inverses", lambda x: ops.rsqrt(ops.square(x) + 1) + ops.reciprocal(ops.exp(x)) + ops.log1p(ops.square(x)), (4, 3))
    one("logarithms", lambda x: ops.log2(ops.square(x) + 1) + ops.log10(ops.square(x) + 2) + ops.expm1(x), (4, 3))
    one("rounded", lambda x: x * ops.floor(x) + ops.ceil(x) - x * ops.round(3 * x) + ops.sign(x) * x, (4, 3))
    one("extremes", lambda x, y: ops.maximum(x, y) + ops.minimum(x, 0.25) + ops.clip(y, -0.5, 0.5), (4, 3), (4, 3))
    one("comparisons", lambda x, y: x * ops.cast(x > y, "float32") + y * ops.cast(ops.less_equal(x, 0.5), "float32")
        + ops.cast(ops.logical_or(x >= 0.0, ops.logical_not(y < 0.0)), "float32"), (4, 3), (4, 3))
    one("logic", lambda x, y: y - x * ops.cast(ops.logical_and(ops.not_equal(x, y), ops.logical_xor(x > 0, y > 0)), "float32"),
        (4, 3), (4, 3))
    one("where", lambda x, y: ops.where(x > 0.0, x, ops.exp(y)) + ops.where(y > 0, 1.0, -1.0) + ops.where(x > y, x, 0.0),
        (4, 3), (4, 3))
    one("casts", lambda x: 0.25 * x * ops.cast(ops.cast(4 * x, "int32"), "float32") + ops.ones_like(x) - ops.zeros_like(x)
        + ops.full_like(x, 0.5), (4, 3))
    one("circle", lambda x: 0.2 * (ops.sin(x) + ops.cos(2 * x) + ops.tan(0.3 * x) + ops.arctan(x)
        + ops.arcsin(0.5 * ops.tanh(x)) - ops.arccos(0.5 * ops.tanh(x)) + ops.rad2deg(ops.deg2rad(x))), (4, 3))
    one("hyperbola", lambda x: ops.sinh(x) + ops.cosh(0.5 * x) + ops.arcsinh(x) + ops.arccosh(1.5 + ops.square(x))
        + ops.arctanh(0.5 * ops.tanh(x)), (4, 3))
    one("errors", lambda x: ops.erf(x) - ops.erfc(0.5 * x) + ops.exp2(x) + ops.cbrt(x) + ops.fabs(x)
        + ops.log1p(1e-4 * ops.square(x)) + ops.expm1(1e-4 * x), (4, 3))
    one("pairs", lambda x, y: ops.hypot(x, y) + ops.logaddexp(x, 3 * y) + x * ops.heaviside(y, x)
        + ops.divide_no_nan(x, ops.relu(y) + ops.cast(y > 0, "float32")), (4, 3), (4, 3))
    one("angles", lambda x, y: ops.arctan2(x, y) + ops.arctan2(0.1 * y, x), (4, 3), (4, 3))
    one("kinds", lambda x: x + 2.0 * ops.cast(ops.isnan(x), "float32") + 3.0 * ops.cast(ops.isfinite(1 / ops.maximum(x, 0.0)), "float32")
        + 4.0 * ops.cast(ops.isinf(1 / ops.maximum(x, 0.0)), "float32") - 5.0 * ops.cast(ops.isposinf(1 / ops.maximum(x, 0.0)), "float32")
        + 6.0 * ops.cast(ops.isneginf(-1 / ops.maximum(x, 0.0)), "float32"), (4, 3))
    one("stopped", lambda x: x * ops.stop_gradient(x), (4, 3))


def moves():
    """Slices, shapes, joins."""
    one("getitem", lambda x: [x[:, 1], x[:, -2:, 0], x[:, None, 0], x[..., 1]], (4, 3))
    one("getitem_steps", lambda x: [x[:, ::2], x[:, ::-1], x[:, 1::3, ::2], x[:, 3:0:-2]], (5, 3))
    one("getitem_images", lambda x: [x[:, :, 1:3, ...], x[:, 0, 1]], (3, 4, 2))
    one("reshape", lambda x: ops.reshape(ops.reshape(x, (-1, 12)), (-1, 2, 6)), (4, 3))
    one("transpose", lambda x: ops.swapaxes(ops.moveaxis(ops.transpose(x, (0, 3, 1, 2)), 1, -1), 1, 2), (2, 3, 4))
    one("dims", lambda x: ops.squeeze(ops.expand_dims(x, 1), 1) + ops.squeeze(ops.expand_dims(x, [-1, 1]), axis=[1, -1]),
        (4, 3))
    one("join", lambda x, y: [ops.concatenate([x, y, x], axis=-1), ops.stack([x, y], axis=2)], (4, 3), (4, 3))
    one("split", lambda x: ops.split(x, 2, axis=1) + ops.split(x, [1, 3], axis=1)[1:] + [ops.unstack(x, axis=1)[2]], (4, 3))
    one("copies", lambda x: [ops.repeat(x, 2, axis=1), ops.tile(x, (1, 2, 1))], (4, 3))
    one("turned", lambda x: ops.flip(x, 1) + ops.roll(x, 1, axis=1) - ops.roll(x, -2, axis=2), (4, 3))
    one("pad", lambda x: ops.pad(x, [[0, 0], [1, 2], [0, 1]]) + ops.pad(x, [[0, 0], [2, 1], [1, 0]], constant_values=0.5),
        (4, 3))
    one("take", lambda x: [ops.take(x, [0, -1, 2], axis=1), ops.take(x, np.array([[1, 0], [0, 0]]), axis=2)], (4, 3))


def reductions():
    """Means, sums, extremes."""
    one("means", lambda x: ops.mean(x, axis=-1, keepdims=True) + ops.sum(x, axis=[1, 2], keepdims=True)
        + ops.max(x, axis=1, keepdims=True) - ops.min(x, axis=-2, keepdims=True), (4, 3))
    one("sums", lambda x: [ops.mean(x, axis=1), ops.sum(x, axis=[1, 2]), ops.amax(x, axis=2), ops.amin(x, 1)], (4, 3))
    one("moments", lambda x: ops.var(x, axis=1) + ops.std(x, axis=1) * ops.average(x, axis=1), (4, 3))
    one("norms", lambda x: [ops.norm(x, axis=-1), ops.norm(x, ord=1, axis=1), ops.logsumexp(x, axis=-1),
                            ops.logsumexp(x, axis=1, keepdims=True)[:, 0], ops.normalize(x, axis=1)], (4, 3))
    one("products", lambda x: [ops.prod(1.0 + 0.25 * x, axis=1), 0.5 * ops.cumsum(x, axis=1), 0.5 * ops.cumsum(x, axis=2)], (4, 3))
    one("weighted", lambda x: [ops.average(x, axis=1, weights=np.array([1.0, 2.0, 3.0, 0.5], "float32"))], (4, 3))
    one("indices", lambda x: [x[:, 0] + ops.cast(ops.argmax(x, axis=1), "float32"),
                              x[:, 0] - ops.cast(ops.argmin(x, axis=-2), "float32"),
                              x[:, 0] * ops.cast(ops.any(x > 0.5, axis=1), "float32"),
                              x[:, 0] * ops.cast(ops.all(x > -0.5, axis=1), "float32"),
                              x[:, 0] * ops.cast(ops.count_nonzero(x > 0, axis=1), "float32")], (4, 3))
    one("one_hot", lambda x: [ops.one_hot(ops.argmax(x, axis=-1), 4) * x[..., :1], x], (5, 3))


def orders():
    """Sorting, the largest elements, elements at computed indices, places in a matrix."""
    one("sort", lambda x: [ops.sort(x), ops.sort(x, axis=1) * x], (4, 3))
    one("argsort", lambda x: x * (1.0 + ops.cast(ops.argsort(ops.round(2 * x), axis=1), "float32"))
        - x * ops.cast(ops.argsort(x), "float32"), (5, 3))
    one("top_k", lambda x: [ops.top_k(x, 2)[0], ops.cast(ops.top_k(x, 2)[1], "float32") * ops.top_k(x, 2)[0]], (4, 5))
    one("median", lambda x: [ops.median(x, axis=1), ops.median(x, axis=2, keepdims=True)[:, :, 0]], (4, 3))
    one("take_along", lambda x, y: [ops.take_along_axis(x, ops.argmax(y, axis=-1, keepdims=True), axis=-1)[..., 0],
                                    ops.take_along_axis(x, ops.argsort(y, axis=1), axis=1) / 4, y / 8], (4, 3), (4, 3))
    one("triangles", lambda x: ops.tril(x) + 2 * ops.triu(x, k=1) - ops.tril(x, k=-2), (4, 3))
    one("diagonals", lambda x: [ops.diagonal(x, axis1=1, axis2=2), ops.diagonal(x, offset=-1, axis1=1, axis2=2),
                                ops.expand_dims(ops.trace(x, axis1=1, axis2=2), -1)], (4, 3))
    one("cumprod", lambda x: [ops.cumprod(x, axis=1), ops.cumprod(x, axis=-1)], (5, 3))
    one("diff", lambda x: [ops.diff(x, axis=1), ops.diff(x, n=2, axis=-1)], (4, 3))
    one("mean_and_variance", lambda x: list(ops.moments(x, axes=[1])) + list(ops.moments(x, axes=[1, 2], keepdims=True)), (4, 3))
    one("dot_product_attention", lambda q, k, v: [ops.dot_product_attention(q, k, v),
                                                  ops.dot_product_attention(q, q, q, is_causal=True, scale=0.3), k],
        (4, 2, 3), (5, 2, 3), (5, 2, 3))
    one("dot_product_attention_mask", lambda q, k, v: [ops.dot_product_attention(
        q, k, v, bias=np.arange(20, dtype="float32").reshape(1, 1, 4, 5) / 10, mask=ops.greater(k[:, None, None, :, 0, 0] + 2, 1)), k],
        (4, 4, 3), (5, 2, 3), (5, 2, 3))


def products():
    """Products of matrices."""
    one("matmul", lambda x, y: x @ y, (4, 3), (3, 2))
    one("matmul_constant", lambda x: ops.matmul(x, np.array([[1.0, 2.0], [0.0, -1.0], [0.5, 0.25]], "float32")), (4, 3))
    one("matmul_vector", lambda x, y: [ops.matmul(x, ops.expand_dims(y, -1))[..., 0] / 8, ops.dot(x, np.ones(3, "float32"))],
        (4, 3), (3,))
    one("matmul_heads", lambda x, y: ops.matmul(x, ops.transpose(y, (0, 1, 3, 2))), (2, 4, 3), (1, 5, 3))
    one("einsum", lambda x, y: [ops.einsum("bij,bjk->bik", x, y), ops.einsum("bij,bjk->bi", x, y),
                                ops.einsum("bij->bji", x), ops.einsum("...ij,...jk->...ik", x, y)], (4, 3), (3, 4))
    one("tensordot", lambda x: ops.tensordot(x, np.arange(6, dtype="float32").reshape(3, 2) / 4, axes=1)
        + ops.tensordot(x, np.arange(6, dtype="float32").reshape(2, 3) / 5, axes=[[2], [1]]), (4, 3))
    one("attention", lambda q, k: ops.softmax(ops.einsum("bqd,bkd->bqk", q, k) / 3.0 ** 0.5) @ k, (4, 3), (5, 3))


def activations():
    """Activations, softmax and pooling."""
    one("relu", lambda x: ops.relu(x) + ops.relu6(4 * x) + keras.activations.relu(x, 0.1, 0.5, 0.25), (4, 3))
    one("sigmoid", lambda x: ops.sigmoid(x) + ops.silu(x) + ops.log_sigmoid(x) + ops.hard_sigmoid(x) + ops.hard_silu(x), (4, 3))
    one("softplus", lambda x: ops.softplus(x) + ops.softsign(x) + ops.elu(x, 0.5) + ops.selu(x) + ops.leaky_relu(x, 0.3),
        (4, 3))
    one("gelu", lambda x: ops.gelu(x, approximate=False) + ops.gelu(2 * x) + ops.celu(x, 0.5), (4, 3))
    one("shrinks", lambda x: ops.soft_shrink(x) + ops.hard_shrink(x) + ops.tanh_shrink(x) + ops.hard_tanh(x)
        + ops.threshold(x, 0.25, 0) + ops.squareplus(x) + ops.sparse_plus(x), (4, 3))
    one("softmax", lambda x: ops.softmax(x) + ops.softmax(x, axis=1) + ops.log_softmax(x, axis=-1), (4, 3))
    one("pooling", lambda x: [ops.max_pool(x, 2), ops.average_pool(x, 3, strides=2, padding="same")[:, :2, :2]], (5, 4, 2))


def patches():
    """Patches of images and of volumes."""
    one("patches", lambda x: ops.image.extract_patches(x, (3, 2)), (6, 5, 2))
    one("patches_overlapping", lambda x: [ops.image.extract_patches(x, 3, strides=(2, 1), padding="same"),
                                          ops.image.extract_patches(x, 2, strides=1, dilation_rate=2)], (6, 5, 2))
    one("patches_volume", lambda x: ops.image.extract_patches_3d(x, (2, 1, 2), strides=(1, 2, 1)), (3, 4, 3, 2))


def images():
    """Images of other sizes, blocks of pixels as channels, borders, shades of gray."""
    one("blocks", lambda x: [ops.nn.depth_to_space(x, 2), ops.nn.space_to_depth(x, 2)], (4, 6, 8))
    one("blocks_first", lambda x: [ops.nn.depth_to_space(x, 2, data_format="channels_first"),
                                   ops.nn.space_to_depth(x, 3, data_format="channels_first")], (4, 3, 6))
    one("resize", lambda x: [ops.image.resize(x, (6, 5)), ops.image.resize(x, (2, 3), interpolation="nearest"),
                             ops.image.resize(x, (5, 7), interpolation="bicubic"), ops.image.resize(x, (2, 2), antialias=True)],
        (4, 3, 2))
    one("borders", lambda x: [ops.image.pad_images(x, 1, 2, target_height=7, target_width=6),
                              ops.image.pad_images(x, 0, 1, bottom_padding=2, right_padding=0),
                              ops.image.crop_images(x, 1, 0, target_height=2, target_width=2),
                              ops.image.crop_images(x, bottom_cropping=1, right_cropping=1, target_height=2, target_width=1)], (4, 3, 2))
    one("gray", lambda x: [ops.image.rgb_to_grayscale(x), ops.image.rgb_to_grayscale(x[..., 1:2])], (4, 3, 3))
    one("pad_mirrored", lambda x: [ops.pad(x, [[0, 0], [2, 1], [0, 2], [0, 0]], mode="reflect"),
                                   ops.pad(x, [[0, 0], [4, 0], [1, 3], [0, 1]], mode="symmetric")], (4, 3, 2))


def choices():
    """Choices between values: NaN, conditions, bins."""
    def holes(x, above=0.75):
        return ops.where(x > above, ops.log(0 * x - 1), x)

    def some(x):
        return holes(x, 1.2)
    mild("nan_to_num", lambda x: ops.nan_to_num(ops.log(x) * 0.1 + x) + ops.nan_to_num(x / ops.relu(x), nan=1.0, posinf=2.0, neginf=-3.0),
        (4, 3))
    mild("nan_reductions", lambda x: [ops.nanmax(some(x), axis=1), ops.nanmin(some(x), axis=1), ops.nanmean(some(x), axis=1),
                                     ops.nansum(some(x), axis=1), ops.nanprod(some(x), axis=1), ops.nanstd(some(x), axis=1),
                                     ops.nanvar(some(x), axis=1, keepdims=True), ops.nancumsum(some(x), axis=1),
                                     ops.nancumprod(some(x), axis=1), ops.cast(ops.nanargmax(some(x), axis=1), "float32") * x[:, 0],
                                     ops.cast(ops.nanargmin(some(x), axis=2), "float32") * x[:, :, 0]], (4, 3))
    mild("extremes_without_nan", lambda x, y: ops.fmax(holes(x), y) + ops.fmin(x, holes(y)), (4, 3), (4, 3))
    mild("select", lambda x, y: ops.select([x > 0, y > 0], [x, 2 * y], default=3.0) + ops.select([x > 1, y > 0.5], [x, y], y * y),
        (4, 3), (4, 3))
    mild("tests", lambda x: x * ops.cast(ops.isclose(x, ops.round(x), atol=0.2), "float32") + 2 * ops.cast(
        ops.isin(ops.round(x), np.array([0.0, 1.0], "float32")), "float32") + x * ops.cast(ops.signbit(x), "float32")
        + ops.angle(x) + ops.imag(x) + x * ops.cast(ops.isreal(x), "float32") + ops.conj(x), (4, 3))
    mild("bins", lambda x: x * ops.cast(ops.digitize(x, np.array([-1.0, 0.0, 0.5], "float32")), "float32")
        + x * ops.cast(ops.saturate_cast(100 * x, "int8"), "float32") / 100, (4, 3))
    mild("pairs_of_numbers", lambda x, y: ops.fmod(x, y * y + 1) + ops.logaddexp2(x, y) + ops.ldexp(x, np.array([1, 2, 3])) + ops.sinc(x),
        (4, 3), (4, 3))
    mild("powers_of_tensors", lambda x, y: ops.power(ops.exp(ops.tanh(x)), y) + ops.tanh(ops.power(x, ops.round(ops.abs(y)))), (4, 3), (4, 3))
    mild("lines", lambda x, y: [ops.linspace(x, y, 5, axis=1), ops.linspace(x, y, 3, endpoint=False, axis=-1), ops.trapezoid(x, axis=1),
                               ops.trapezoid(y, dx=0.5), ops.ptp(x, axis=1)], (4, 3), (4, 3))
    mild("rounded_decimals", lambda x: x * ops.round(x, 1), (4, 3))
    mild("quantiles", lambda x: [ops.quantile(x, 0.3, axis=1), ops.percentile(x, 40, axis=-1), ops.quantile(x, 0.4, axis=1, keepdims=True)],
        (5, 3))
    mild("shrinks_by_options", lambda x: ops.soft_shrink(x, 0.3) + ops.hard_shrink(x, 0.2) + ops.squareplus(x, 2.0) + ops.threshold(x, 0.2, -1.0)
        + ops.sparsemax(x, axis=1), (4, 3))
    mild("glu", lambda x: [ops.glu(x, axis=1), ops.glu(x)], (4, 2))
    def norms(x):
        x = ops.tanh(x) + 0.25
        return [0.2 * v for v in (ops.norm(x, ord=3, axis=1), ops.normalize(x, axis=-1, order=1), ops.normalize(x, axis=1, order=3),
                                  ops.max(x, axis=1, initial=0.5), ops.min(x, axis=1, initial=-0.5),
                                  ops.prod(1 + 0.1 * x, axis=(1, 2), keepdims=True) * x)]
    mild("norms_by_order", norms, (4, 3))
    mild("erfinv", lambda x: ops.erfinv(0.9 * ops.tanh(x)), (4, 3))


def infinities():
    """Functions at infinite numbers, NaN, large numbers and other ends."""
    inf, nan = np.inf, np.nan

    def exactly(x, value):
        return x - ops.stop_gradient(x) + value  # with the gradient of x

    def joined(*values):
        return ops.stack([ops.cast(v, "float32") for v in values], axis=1)
    ends("threshold_ends", lambda x: joined(ops.threshold(x, 0.0, -inf), ops.threshold(x, 0.0, 0.0), ops.threshold(x, 0.5, -2.0)),
         [[1, -1, -inf, inf, 3]])
    one("threshold_infinite", lambda x: ops.exp(ops.threshold(x, 0.0, -inf)), (4, 3))
    ends("quantiles_with_nan", lambda x: joined(ops.quantile(x, 0.0, axis=1), ops.quantile(x, 0.4, axis=1), ops.median(x, axis=1)),
         [[nan, nan, nan, nan], [1, nan, 2, 3], [4, 3, 2, 1], [nan, nan, 1, nan]])
    ends("saturated", lambda x: joined(
        ops.saturate_cast(x, "bool"), ops.cast(ops.saturate_cast(x, "uint8"), "float32") / 255,
        ops.cast(ops.saturate_cast(ops.minimum(x, 500.0), "uint64"), "float32") / 500, ops.cast(ops.saturate_cast(x, "float16"), "float32") / 65504,
        ops.saturate_cast(x, "float32") / 2.0 ** 126), [[-3, 0.3, 300, 1e6, -1.5, inf, -inf, 0]])
    ends("log_sums", lambda x, y: joined(ops.logaddexp(x, y), ops.logaddexp2(x, y)),
         [[5, -inf, inf, -inf, -inf, 2]], [[-inf, -inf, inf, inf, 3, 2.5]])
    ends("remainders", lambda x, y: joined(ops.fmod(x, y), x % y),
         [[5, 5, 1e8, -7, 7, -6, 0]], [[0, inf, 3, 3, -3, 3, 2]])
    one("remainders_of_tensors", lambda x, y: 0.2 * (ops.fmod(x, ops.exp(y)) + x % ops.exp(y) - x % -ops.exp(y)), (4, 3), (4, 3))
    ends("powers_at_ends", lambda x, y: ops.power(x, y),
         [[-2, 0, inf, 1, 1.5, 0, 0, -2, 10]], [[3, 1, 0, inf, 2.5, -1, 0, 0.5, 3.5]])
    mild("power_gradients", lambda x, y: ops.power(x - 2, exactly(y, 3.0)) / 8 + ops.power(exactly(x, 0.0), exactly(y, 1.0))
        + ops.power(x + 2, y), (4, 3), (4, 3))
    ends("powers_of_two", lambda x, y: ops.ldexp(x, ops.cast(y, "int32")),
         [[0, inf, 2.0 ** -100, 1.7 * 2.0 ** 100, -3, -inf]], [[200, -200, 100, -100, 2, 200]])
    ends("rounded_large", lambda x: joined(ops.round(x, 3) / x, ops.round(x) / x, ops.floor(x) / x, ops.ceil(x) / x, ops.trunc(x) / x),
         [[1e16, 1.2345, -2.35, 1e20, -3e25, inf]])


def parts():
    """Parts of tensors."""
    one("stacks", lambda x, y: [ops.hstack([x, y]), ops.dstack([x, y]), ops.append(x, y, axis=2)], (4, 3), (4, 3))
    one("splits", lambda x: ops.array_split(x, 3, axis=1) + ops.hsplit(x, 2) + ops.dsplit(x, [1]), (4, 3))
    one("slice_update", lambda x, y: ops.slice_update(x, (0, 1, 1), y), (4, 3), (2, 2), trains=False)
    one("right_angles", lambda x: [ops.rot90(x, axes=(1, 2)), ops.rot90(x, k=-1, axes=(1, 2)), ops.fliplr(x)], (4, 3))
    one("repeats", lambda x: ops.repeat(x, [1, 2, 0, 1], axis=1), (4, 3))


def windows():
    """Windows over images and sequences."""
    def kernel(*shape):
        return ops.convert_to_tensor(np.random.RandomState(1).normal(0.0, 0.3, shape).astype("float32"))
    one("conv", lambda x: [ops.conv(x, kernel(3, 3, 2, 4), strides=1, padding="same"), ops.conv(x, kernel(2, 2, 2, 3), strides=2),
                           ops.conv(x, kernel(2, 2, 2, 4), dilation_rate=2)], (6, 5, 2))
    one("conv_steps", lambda x: ops.conv(x, kernel(3, 2, 4), dilation_rate=2), (7, 2))
    one("conv_first", lambda x: [ops.conv(x, kernel(2, 2, 2, 4), data_format="channels_first")], (2, 5, 4))
    one("conv_channels", lambda x: [ops.depthwise_conv(x, kernel(3, 3, 2, 2), padding="same"),
                                    ops.separable_conv(x, kernel(3, 3, 2, 2), kernel(1, 1, 4, 3))], (5, 4, 2))
    one("unfold", lambda x: [ops.unfold(x, 2), ops.unfold(x, (2, 3), padding=1, stride=(1, 2))], (2, 4, 5))
    one("fold", lambda x: ops.fold(x, (5, 4), 2, padding=1, stride=2), (8, 9))
    one("frames", lambda x: ops.extract_sequences(x, 4, 3), (2, 10))
    one("filters", lambda x: [ops.image.gaussian_blur(x, (3, 5), (1.5, 0.8)), 0.1 * ops.image.sobel_edges(x), x], (5, 6, 2))
    one("hsv", lambda x: ops.image.rgb_to_hsv(ops.sigmoid(x)), (3, 4, 3))


def matrices():
    """Linear algebra and Einstein sums."""
    unit = np.eye(3, dtype="float32")

    def positive(x):
        return ops.matmul(x, ops.transpose(x, (0, 2, 1))) + 3 * unit
    one("inverses_of_matrices", lambda x: [ops.inv(x + 4 * unit), ops.det(x + 2 * unit)[:, None] / 20, ops.logdet(positive(x))[:, None]], (3, 3))
    one("cholesky", lambda x: [ops.cholesky(positive(x)), ops.cholesky(positive(x), upper=True), ops.cholesky_inverse(ops.cholesky(positive(x)))],
        (3, 3))
    one("solve", lambda x, y: [ops.solve(x + 4 * unit, y), ops.solve(x + 4 * unit, y[:, :, 0]),
                               ops.solve_triangular(ops.tril(x) + 4 * unit, y, lower=True),
                               ops.solve_triangular(ops.triu(x) + 4 * unit, y)], (3, 3), (3, 2))
    one("vectors", lambda x, y: [ops.cross(x, y), ops.inner(x, np.arange(6, dtype="float32").reshape(2, 3) / 5), ops.cdist(x, y)], (4, 3), (4, 3))
    def sums(x, y):
        x, y = ops.tanh(x), ops.tanh(y)
        return [0.2 * ops.einsum("bij,bjk,bil->bkl", x, y, x), ops.einsum("bii->bi", y),
                ops.einsum("bi,ijk,bj->bk", x[:, 0], np.arange(18, dtype="float32").reshape(3, 3, 2) / 18, x[:, 1]),
                0.5 * ops.einsum("bii,bij->bj", y, y)]
    one("einsum_three", sums, (3, 3), (3, 3))


def transforms():
    """Fourier transforms."""
    one("fourier", lambda x, y: list(ops.fft((x, y))) + list(ops.rfft(x)) + [ops.irfft(ops.rfft(x))],
        (2, 8), (2, 8))
    one("fourier_planes", lambda x, y: list(ops.fft2((x, y))) + list(ops.ifft2((y, x))), (4, 6), (4, 6))


def statistics():
    """Normalizations, crossentropies, classes."""
    numbers = np.array([0.5, 1.5, 2.0], "float32")
    one("normalizations", lambda x: ops.batch_normalization(x, numbers - 1, numbers, -1, offset=numbers, scale=2 * numbers)
        + ops.layer_normalization(x, numbers, 0.5 * numbers, axis=-1) + ops.layer_normalization(x, axis=1), (4, 3))
    def crossentropies(x, y):
        x, y = ops.tanh(x), ops.tanh(y)
        return [0.3 * v for v in (
            ops.binary_crossentropy(ops.sigmoid(x), ops.sigmoid(y)), ops.binary_crossentropy(ops.sigmoid(x), y, from_logits=True),
            ops.categorical_crossentropy(ops.softmax(x), ops.softmax(y)),
            ops.categorical_crossentropy(ops.softmax(x), y, from_logits=True),
            ops.sparse_categorical_crossentropy(ops.argmax(x, -1), ops.softmax(y)),
            ops.sparse_categorical_crossentropy(ops.argmax(x, -1), y, from_logits=True))]
    one("crossentropies", crossentropies, (4, 3), (4, 3))
    def carried(x, y):
        x, z = ops.softmax(x), 20 * ops.tanh(y)
        return [0.05 * v for v in (
            ops.binary_crossentropy(x, ops.sigmoid(z)), ops.binary_crossentropy(x, L.Activation("softmax")(z)),
            ops.categorical_crossentropy(x, ops.softmax(z)), ops.categorical_crossentropy(x, ops.sigmoid(z), from_logits=True),
            ops.categorical_crossentropy(x, ops.softmax(z, axis=1), axis=1),
            ops.sparse_categorical_crossentropy(ops.argmax(x, -1), ops.softmax(z)))]
    one("crossentropies_of_logits", carried, (3, 3), (3, 3))
    one("classes_in_columns", lambda x, y: [ops.sparse_categorical_crossentropy(ops.argmax(x, -1, keepdims=True), ops.softmax(y)),
                                            ops.sparse_categorical_crossentropy(ops.argmax(x[:, 0], -1, keepdims=True), y[:, 0], from_logits=True)[:, None], x],
        (4, 3), (4, 3))
    one("classes", lambda x: [x[:, :, 0] * ops.cast(ops.multi_hot(ops.argmax(x, -1), 4), "float32"),
                              x[:, 0, 0] + ops.cast(ops.in_top_k(ops.argmax(x[:, 0], -1), x[:, 1], 2), "float32")], (4, 3))


def edges():
    """What is rare: types of results, slices without a number, infinite numbers, the unused triangle, hues beyond a turn."""
    def gaps(x):
        return ops.where(x[:, :, :1] > 0.0, ops.log(0 * x - 1), x)

    def number(x):
        return ops.cast(x, "float32")
    mild("slices_of_nan", lambda x: [ops.nan_to_num(ops.nanmax(gaps(x), axis=2), nan=-0.5), ops.nan_to_num(ops.nanmin(gaps(x), axis=-1), nan=0.75),
                                     number(ops.nanargmax(gaps(x), axis=2)) * x[:, :, 0],
                                     number(ops.nanargmin(gaps(x), axis=2, keepdims=True))[:, :, 0] * x[:, :, 1]], (4, 3))
    def without_end(x):
        return ops.where(x > 0.4, ops.stop_gradient(1.0 / ops.zeros_like(x)), x)
    mild("running_infinities", lambda x: [ops.clip(v, -2.0, 2.0) + x * number(ops.isinf(v)) for v in
                                          (ops.nancumsum(without_end(x), axis=1), ops.nancumprod(without_end(x), axis=2))], (4, 3), trains=False)
    mild("types", lambda x, y: [x * number(ops.array(3 * x, dtype="int32")), x * number(ops.convert_to_tensor(ops.relu(x), dtype="bool")),
                                x * number(ops.cumsum(3 * x, axis=1, dtype="int32")), x * number(ops.cumprod(2.5 * x, axis=1, dtype="int32")),
                                x * number(ops.nancumsum(3 * x, axis=2, dtype="int32")), x * number(ops.full_like(x, 1.7, dtype="int32")),
                                y[:, 0] * number(ops.prod(1 + x, axis=1, dtype="int32")),
                                y[:, None] * number(ops.linspace(3 * x, 9 * y, 4, axis=1, dtype="int32")),
                                y[:, None] * number(ops.linspace(3 * x, 9 * y, 3, axis=1, endpoint=False, dtype="int32"))], (4, 3), (4, 3))
    bins = np.array([-0.5, 0.0, 0.5], "float32")
    mild("infinite_tests", lambda x, y: [x * number(ops.isclose(without_end(x), without_end(x))) + y * number(
        ops.isclose(x, y, rtol=np.array([0.5, 1.0, 0.1], "float32"), atol=0.1)) + x * number(ops.digitize(gaps(x), bins)),
        y[:, 0, 0] * number(ops.searchsorted(bins, gaps(y)[:, 0, 0], side="right")) + y[:, 0, 1] * number(ops.searchsorted(bins, gaps(y)[:, 0, 0]))],
        (4, 3), (4, 3))
    unit = np.eye(3, dtype="float32")
    mild("triangles_inverted", lambda x: [ops.cholesky_inverse(x + 3 * unit), ops.cholesky_inverse(x + 3 * unit, upper=True),
                                          ops.logdet(x + 3 * unit)[:, None]], (3, 3))
    one("hues", lambda x: ops.image.hsv_to_rgb(2 * x), (3, 4, 3), trains=False)
    mild("initials", lambda x: [ops.max(x, axis=1, initial=[0.6, 0.5, 0.9]), ops.min(x, axis=2, initial=0.2)], (4, 3))


def run():
    """Records all cases of this module."""
    for part in (arithmetic, moves, reductions, orders, products, activations, patches, images, choices, infinities, parts, windows,
                 matrices, transforms, statistics, edges):
        part()
