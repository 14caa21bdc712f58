# SPDX-License-Identifier: Apache-2.0
"""Cases: keys that have their default value in all other cases, most of them initializers."""
from .layers_conv import FIRST
from .layers_core import GROUP, stack
from .model_case import record
from .session import keras

L = keras.layers
AFFINE = dict(kernel_initializer="he_normal", bias_initializer=keras.initializers.Constant(0.5))
BATCHNORM = dict(gamma_initializer=keras.initializers.RandomUniform(0.5, 1.5), beta_initializer="random_normal",
                 moving_mean_initializer="ones", moving_variance_initializer=keras.initializers.Constant(2.0))


def initializers(root):
    """Every key of an initializer."""
    def case(kind, shape, *arguments, **options):
        record(root, GROUP, kind.__name__.lower() + "_initializers", kind.__name__,
               stack(shape, lambda: kind(*arguments, **options)), batch=2)

    case(L.Dense, (3,), 2, **AFFINE)
    case(L.Conv1D, (4, 2), 2, 2, **AFFINE)
    case(L.Conv2D, (3, 3, 2), 2, 2, **AFFINE)
    case(L.Conv3D, (2, 3, 2, 2), 2, 2, **AFFINE)
    case(L.Conv2DTranspose, (2, 3, 2), 2, 2, **AFFINE)
    case(L.Conv3DTranspose, (2, 2, 2, 2), 2, 2, **AFFINE)
    case(L.LocallyConnected1D, (4, 2), 2, 2, **AFFINE)
    case(L.LocallyConnected2D, (3, 3, 2), 2, 2, **AFFINE)
    case(L.DepthwiseConv2D, (3, 3, 2), 2, depthwise_initializer="lecun_normal", bias_initializer="ones")
    for kind in (L.SimpleRNN, L.GRU, L.LSTM):
        case(kind, (3, 2), 2, recurrent_initializer="glorot_normal", **AFFINE)
    record(root, GROUP, "batchnorm_initializers", "BatchNormalization",
           stack((4,), lambda: L.Dense(3), lambda: L.BatchNormalization(**BATCHNORM), lambda: L.Dense(2)), batch=4)


def noise(root):
    """Options that only training uses.  Training is random here, so only predictions are recorded."""
    def case(name, shape, make, **options):
        record(root, GROUP, name, make().__class__.__name__, stack(shape, lambda: L.Dense(2), make), train=False,
               **options)

    case("alphadropout_noise_shape", (3, 2), lambda: L.AlphaDropout(0.3, noise_shape=(2, 1, 2), seed=5), batch=2)
    case("spatialdropout2d_channels_first", (2, 3, 2), lambda: L.SpatialDropout2D(0.3, data_format="channels_first"),
         notes=FIRST)
    case("spatialdropout3d_channels_first", (2, 2, 3, 2),
         lambda: L.SpatialDropout3D(0.3, data_format="channels_first"), notes=FIRST)


def run(root):
    """Records all cases of this module."""
    initializers(root)
    noise(root)
