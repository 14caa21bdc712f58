# SPDX-License-Identifier: Apache-2.0
"""Common networks in current Keras that keras.applications does not have, for bench/applications.py --models common.

Each function returns the layers in their order, or a Model where a value has several readers."""
from keras import Input, Model, Sequential
from keras import layers as L


def normalized(x, filters, strides=1, activation=True):
    x = L.BatchNormalization()(L.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)(x))
    return L.ReLU()(x) if activation else x


def unet():
    """U-Net: segmentation of pictures."""
    start = x = Input((128, 128, 3))
    skips = []
    for filters in (32, 64, 128):
        x = normalized(normalized(x, filters), filters)
        skips.append(x)
        x = L.MaxPooling2D()(x)
    x = normalized(normalized(x, 256), 256)
    for filters, skip in zip((128, 64, 32), skips[::-1]):
        x = L.Concatenate()([L.Conv2DTranspose(filters, 2, strides=2, padding="same")(x), skip])
        x = normalized(normalized(x, filters), filters)
    return Model(start, L.Conv2D(1, 1, activation="sigmoid")(x))


def vnet():
    """V-Net: segmentation of volumes."""
    start = Input((16, 48, 48, 1))
    fine = L.Conv3D(16, 3, padding="same", activation="relu")(start)
    middle = L.Conv3D(32, 3, strides=2, padding="same", activation="relu")(fine)
    x = L.Conv3D(64, 3, strides=2, padding="same", activation="relu")(middle)
    x = L.Concatenate()([L.Conv3DTranspose(32, 2, strides=2, activation="relu")(x), middle])
    x = L.Concatenate()([L.Conv3DTranspose(16, 2, strides=2, activation="relu")(x), fine])
    return Model(start, L.Conv3D(1, 1, activation="sigmoid")(x))


def resnet20():
    """The residual network of CIFAR-10."""
    start = Input((32, 32, 3))
    x = normalized(start, 16)
    for filters in (16, 32, 64):
        for block in range(3):
            strides = 2 if filters > 16 and block == 0 else 1
            y = normalized(normalized(x, filters, strides), filters, activation=False)
            x = L.ReLU()(L.Add()([L.Conv2D(filters, 1, strides=2)(x) if strides == 2 else x, y]))
    return Model(start, L.Dense(10, activation="softmax")(L.GlobalAveragePooling2D()(x)))


def resnext():
    """Three blocks of ResNeXt-50's first stage: convolutions in 32 groups."""
    start = x = Input((56, 56, 64))
    for block in range(3):
        y = L.ReLU()(L.BatchNormalization()(L.Conv2D(128, 1, use_bias=False)(x)))
        y = L.ReLU()(L.BatchNormalization()(L.Conv2D(128, 3, padding="same", groups=32, use_bias=False)(y)))
        y = L.BatchNormalization()(L.Conv2D(256, 1, use_bias=False)(y))
        x = L.ReLU()(L.Add()([x if block else L.Conv2D(256, 1, use_bias=False)(x), y]))
    return Model(start, L.Dense(10)(L.GlobalAveragePooling2D()(x)))


def autoencoder():
    return [Input((28, 28, 1)), L.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            L.Conv2D(64, 3, strides=2, padding="same", activation="relu"),
            L.Conv2DTranspose(64, 3, strides=2, padding="same", activation="relu"),
            L.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu"),
            L.Conv2D(1, 3, padding="same", activation="sigmoid")]


def dcgan():
    """The generator of a DCGAN."""
    return [Input((100,)), L.Dense(7 * 7 * 128), L.Reshape((7, 7, 128)), L.BatchNormalization(), L.LeakyReLU(),
            L.Conv2DTranspose(64, 5, padding="same", use_bias=False), L.BatchNormalization(), L.LeakyReLU(),
            L.Conv2DTranspose(32, 5, strides=2, padding="same", use_bias=False), L.BatchNormalization(), L.LeakyReLU(),
            L.Conv2DTranspose(1, 5, strides=2, padding="same", use_bias=False, activation="tanh")]


def discriminator():
    """The discriminator of a GAN."""
    layers = [Input((96, 96, 3))]
    for filters in (32, 64, 128):
        layers += [L.Conv2D(filters, 3, strides=2, padding="same"), L.BatchNormalization(), L.LeakyReLU()]
    return layers + [L.Flatten(), L.Dense(1, activation="sigmoid")]


def conv3d():
    """Classes of short films."""
    return [Input((16, 56, 56, 3)), L.Conv3D(16, 3, padding="same", activation="relu"), L.MaxPooling3D(),
            L.Conv3D(32, 3, padding="same", activation="relu"), L.MaxPooling3D(),
            L.Conv3D(64, 3, padding="same", activation="relu"), L.GlobalAveragePooling3D(), L.Dense(10, activation="softmax")]


def tcn():
    """A temporal convolutional network: causal and dilated."""
    return [Input((256, 16))] + [L.Conv1D(64, 3, padding="causal", dilation_rate=rate, activation="relu")
                                 for rate in (1, 2, 4, 8, 16)] + [L.GlobalAveragePooling1D(), L.Dense(10, activation="softmax")]


def wave():
    """Words from the samples of a sound."""
    layers = [Input((4096, 1))]
    for filters, size, strides in ((16, 80, 4), (32, 3, 1), (64, 3, 1)):
        layers += [L.Conv1D(filters, size, strides=strides, activation="relu"), L.BatchNormalization(), L.MaxPooling1D(4)]
    return layers + [L.GlobalAveragePooling1D(), L.Dense(35, activation="softmax")]


def sepconv():
    return [Input((300, 64)), L.SeparableConv1D(64, 5, padding="same", activation="relu"), L.MaxPooling1D(2),
            L.SeparableConv1D(128, 5, padding="same", activation="relu"), L.GlobalAveragePooling1D(),
            L.Dense(20, activation="softmax")]


def tabular():
    layers = [Input((500,))]
    for units in (512, 256, 128):
        layers += [L.Dense(units), L.BatchNormalization(), L.ReLU(), L.Dropout(0.3)]
    return layers + [L.Dense(1, activation="sigmoid")]


def mlp():
    return [Input((784,)), L.Dense(1024, activation="relu"), L.Dropout(0.2), L.Dense(1024, activation="relu"), L.Dropout(0.2),
            L.Dense(10, activation="softmax")]


def cifar():
    """A network like VGG for CIFAR-10."""
    layers = [Input((32, 32, 3))]
    for filters in (32, 64, 128):
        for _ in range(2):
            layers += [L.Conv2D(filters, 3, padding="same", activation="relu"), L.BatchNormalization()]
        layers += [L.MaxPooling2D(), L.Dropout(0.3)]
    return layers + [L.Flatten(), L.Dense(128, activation="relu"), L.BatchNormalization(), L.Dropout(0.5),
                     L.Dense(10, activation="softmax")]


def lenet():
    return [Input((28, 28, 1)), L.Conv2D(6, 5, padding="same", activation="tanh"), L.AveragePooling2D(2),
            L.Conv2D(16, 5, activation="tanh"), L.AveragePooling2D(2), L.Flatten(), L.Dense(120, activation="tanh"),
            L.Dense(84, activation="tanh"), L.Dense(10, activation="softmax")]


def alexnet():
    return [Input((227, 227, 3)), L.Conv2D(96, 11, strides=4, activation="relu"), L.MaxPooling2D(3, 2),
            L.Conv2D(256, 5, padding="same", activation="relu"), L.MaxPooling2D(3, 2),
            L.Conv2D(384, 3, padding="same", activation="relu"), L.Conv2D(384, 3, padding="same", activation="relu"),
            L.Conv2D(256, 3, padding="same", activation="relu"), L.MaxPooling2D(3, 2), L.Flatten(),
            L.Dense(4096, activation="relu"), L.Dropout(0.5), L.Dense(1000, activation="softmax")]


def atari():
    """Values of actions from four pictures of a game (deep Q-learning)."""
    return [Input((84, 84, 4)), L.Conv2D(32, 8, strides=4, activation="relu"), L.Conv2D(64, 4, strides=2, activation="relu"),
            L.Conv2D(64, 3, activation="relu"), L.Flatten(), L.Dense(512, activation="relu"), L.Dense(6)]


def srcnn():
    """A picture of more detail from one of less."""
    return [Input((64, 64, 1)), L.Conv2D(64, 9, padding="same", activation="relu"),
            L.Conv2D(32, 5, padding="same", activation="relu"), L.Conv2D(1, 5, padding="same")]


def upsampling():
    return [Input((32, 32, 32)), L.UpSampling2D(), L.Conv2D(32, 3, padding="same", activation="relu"),
            L.UpSampling2D(interpolation="bilinear"), L.Conv2D(16, 3, padding="same", activation="relu"),
            L.Conv2D(3, 3, padding="same", activation="tanh")]


def dilated():
    return [Input((64, 64, 3))] + [L.Conv2D(32, 3, padding="same", dilation_rate=rate, activation="relu")
                                   for rate in (1, 2, 4, 8)] + [L.Conv2D(1, 1)]


def groupnorm():
    layers = [Input((32, 32, 3))]
    for _ in range(2):
        layers += [L.Conv2D(64, 3, padding="same"), L.GroupNormalization(8), L.Activation("silu")]
    return layers + [L.GlobalAveragePooling2D(), L.Dense(10)]


def lstm():
    """The next value of a series."""
    return [Input((50, 32)), L.LSTM(128, return_sequences=True), L.Dropout(0.2), L.LSTM(128), L.Dense(32), L.Dense(1)]


def lstm_512():
    return [Input((20, 512)), L.LSTM(512, return_sequences=True), L.LSTM(512), L.Dense(100, activation="softmax")]


def gru():
    return [Input((100, 64)), L.GRU(256, return_sequences=True), L.GRU(256), L.Dense(10, activation="softmax")]


def tagger():
    """A class for each step of a sequence."""
    return [Input((50, 64)), L.LSTM(64, return_sequences=True), L.TimeDistributed(L.Dense(1000, activation="softmax"))]


MODELS = {made.__name__: made for made in (
    unet, vnet, resnet20, resnext, autoencoder, dcgan, discriminator, conv3d, tcn, wave, sepconv, tabular, mlp, cifar, lenet,
    alexnet, atari, srcnn, upsampling, dilated, groupnorm, lstm, lstm_512, gru, tagger)}


def build(name):
    """Returns the model with its layers in a graph, whose JSON has the shapes of what each layer reads."""
    made = MODELS[name]()
    if isinstance(made, Model):
        return made
    sequential = Sequential(made)
    return Model(sequential.inputs, sequential.outputs, name=name)
