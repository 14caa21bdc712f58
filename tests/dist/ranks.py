# SPDX-License-Identifier: Apache-2.0
"""What the programs share that lose ranks of `leat fit`: tests/dist/hosts and tools/kill-ranks."""
import glob, os, signal

MODEL = '''{"class_name": "Sequential", "config": {"name": "m", "layers": [
{"class_name": "Dense", "config": {"name": "a", "units": 48, "activation": "relu", "batch_input_shape": [null, 20]}},
{"class_name": "BatchNormalization", "config": {"name": "n"}},
{"class_name": "Dropout", "config": {"name": "d", "rate": 0.2}},
{"class_name": "Dense", "config": {"name": "b", "units": 3, "activation": "softmax"}}]}}'''


def write_data(folder):
    """Writes train.npz, of 500 samples, and m.json."""
    import numpy
    numbers = numpy.random.RandomState(0)
    x = numbers.rand(500, 20).astype('f4')
    numpy.savez(f'{folder}/train.npz', x=x, y=numpy.eye(3, dtype='f4')[x[:, :3].argmax(1)])
    with open(f'{folder}/m.json', 'w') as file:
        file.write(MODEL)


def fit_words(leat, *more):
    """Returns the command that trains this model on this data, with the same bytes on any number of ranks."""
    return [leat, 'fit', 'm.json', '--train', 'npz:train.npz', '--loss', 'categorical_crossentropy', '--optimizer', 'adam',
            '--metrics', 'accuracy', '--verbose', '0', '--deterministic', '--threads', '1', *more]


def ranks_in(folder):
    """Returns the ranks: the processes of leat whose working directory is the folder."""
    found = []
    for link in glob.glob('/proc/[0-9]*/cwd'):
        try:
            if os.readlink(link) == folder and open(os.path.dirname(link) + '/comm').read() == 'leat\n':
                found.append(int(link.split('/')[2]))
        except OSError:
            pass
    return found


def kill(process, number=signal.SIGKILL):
    """Sends a signal; returns False if the process has ended."""
    try:
        os.kill(process, number)
        return True
    except ProcessLookupError:
        return False
