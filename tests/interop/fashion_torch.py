# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST in place of torchvision.datasets.MNIST, for run_training_script.py; worker processes import it."""
import os

from PIL import Image
from run_training_script import load
from torchvision.datasets.vision import VisionDataset


class MNIST(VisionDataset):
    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.data, self.targets = load(int(os.environ["FASHION_SAMPLES"]))[0 if train else 1]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image = Image.fromarray(self.data[index])
        return self.transform(image) if self.transform else image, int(self.targets[index])
