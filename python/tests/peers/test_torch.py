# SPDX-License-Identifier: Apache-2.0
"""leat.torch with PyTorch.  Run by hand:  PYTHONPATH=build/dev/python python -m unittest -v test_torch"""

import gc
import itertools
import json
import os
import sys
import tempfile
import unittest
import warnings

try:
    import torch
    from torch.utils.data import DistributedSampler, Sampler, SubsetRandomSampler, WeightedRandomSampler
except ImportError:
    print("skipped: PyTorch is not installed", file=sys.stderr)
    raise unittest.SkipTest("PyTorch is not installed")

import torch_data as data

import leat
from leat.torch import DataLoader, LateBatchError, StatefulDataLoader, WorkerDiedError

FORK = {"multiprocessing_context": "fork"}  # starts more quickly


def make(dataset, workers, kind=DataLoader, **options):
    if workers:
        options = {**FORK, **options}
    return kind(dataset, num_workers=workers, **options)


def values(batches):
    """Copies batches into lists."""
    if isinstance(batches, torch.Tensor):
        return batches.tolist()
    if isinstance(batches, (list, tuple)):
        return [values(batch) for batch in batches]
    return batches


class Endless(Sampler):
    def __iter__(self):
        return itertools.cycle(range(10))


class WithoutWarnings(unittest.TestCase):
    def setUp(self):
        guard = warnings.catch_warnings()
        guard.__enter__()
        self.addCleanup(guard.__exit__, None, None, None)
        warnings.simplefilter("ignore")


class Order(WithoutWarnings):
    def passes(self, workers, count=2, **options):
        torch.manual_seed(5)
        loader = make(data.Numbers(), workers, batch_size=4, shuffle=True, **options)
        return [values(list(loader)) for _ in range(count)]

    def test_bytes_do_not_depend_on_the_number_of_workers(self):
        expected = self.passes(0)
        self.assertNotEqual(expected[0], expected[1])
        self.assertEqual(self.passes(1), expected)
        self.assertEqual(self.passes(3, persistent_workers=True), expected)
        self.assertEqual(self.passes(2, multiprocessing_context="spawn"), expected)

    def test_the_order_is_that_of_torch(self):
        torch.manual_seed(5)
        theirs = [batch.tolist() for batch, *_ in torch.utils.data.DataLoader(data.Numbers(), 4, shuffle=True)]
        self.assertEqual([batch[0] for batch in self.passes(2)[0]], theirs)

    def test_a_seed_needs_nothing_else(self):
        first = self.passes(0, seed=3)
        torch.manual_seed(99)
        loader = make(data.Numbers(), 2, batch_size=4, shuffle=True, seed=3)
        self.assertEqual([values(list(loader)) for _ in range(2)], first)

    def test_samplers(self):
        weighted = WeightedRandomSampler([1.0] * 30, 10)
        subset = SubsetRandomSampler(range(10, 20))
        for sampler, count in ((weighted, 10), (subset, 10)):
            batches = values([batch[0] for batch in make(data.Numbers(), 2, batch_size=3, sampler=sampler)])
            self.assertEqual(len(sum(batches, [])), count)
        distributed = DistributedSampler(data.Numbers(), num_replicas=2, rank=1, shuffle=True)
        loader = make(data.Numbers(), 2, batch_size=5, sampler=distributed)
        for epoch in range(2):
            distributed.set_epoch(epoch)
            self.assertEqual(sum(values([batch[0] for batch in loader]), []), list(distributed))
        chosen = [[3, 1], [2], [7, 8, 9]]
        self.assertEqual(values([batch[0] for batch in make(data.Numbers(), 2, batch_sampler=chosen)]), chosen)

    def test_without_collation(self):
        self.assertEqual([sample[0] for sample in make(data.Numbers(6), 2, batch_size=None)], list(range(6)))

    def test_an_endless_sampler(self):
        loader = make(data.Numbers(), 2, batch_size=3, sampler=Endless())
        batches = values([batch[0] for batch, _ in zip(loader, range(20))])
        self.assertEqual(sum(batches, []), [i % 10 for i in range(60)])

    def test_two_iterators_at_once(self):
        loader = make(data.Numbers(), 2, batch_size=7)
        pairs = [(a[0].tolist(), b[0].tolist()) for a, b in zip(loader, loader)]
        self.assertEqual(len(pairs), len(loader))
        self.assertTrue(all(a == b for a, b in pairs))

    def test_a_pass_that_is_left_early(self):
        for persistent in (False, True):
            loader = make(
                data.Numbers(), 2, batch_size=4, persistent_workers=persistent, multiprocessing_context="spawn"
            )
            for _ in loader:
                break
            self.assertEqual(len(values(list(loader))), 8)

    def test_changes_of_the_data_set_are_seen_in_the_next_pass(self):
        dataset = data.Numbers(4)
        loader = make(dataset, 2, batch_size=4, multiprocessing_context="spawn")
        self.assertEqual(next(iter(loader))[0].tolist(), [0, 1, 2, 3])
        dataset.scale = 10
        self.assertEqual(next(iter(loader))[0].tolist(), [0, 10, 20, 30])


class Batches(WithoutWarnings):
    def test_nestings(self):
        batch = next(iter(make(data.Nested(), 1, batch_size=2)))
        self.assertEqual(values(batch["x"]), [[0.0] * 3, [1.0] * 3])
        self.assertEqual(values(batch["pair"][0]), [0, 1])
        self.assertEqual(tuple(batch["pair"][1]), ("name 0", "name 1"))
        self.assertEqual(values(batch["array"]), [[0, 1], [1, 2]])

    def test_tensors_view_the_slot_and_are_writable(self):
        loader = make(data.Nested(), 1, batch_size=2)
        iterator = iter(loader)
        x = next(iterator)["x"]
        self.assertFalse(x.is_shared())
        x += 1
        del x
        for _ in range(5):
            next(iterator)
        self.assertEqual(loader.stats()["copied"], 0)
        self.assertEqual(loader.stats()["batches"], 6)

    def test_batches_that_are_kept_are_copied_and_stay_valid(self):
        loader = make(data.Nested(), 1, batch_size=1, keep=2)
        iterator = iter(loader)
        kept = [next(iterator)["x"] for _ in range(6)]
        self.assertEqual(loader.stats()["copied"], 4)
        del kept[:5]
        gc.collect()
        next(iterator)
        self.assertEqual(loader.stats()["copied"], 4)
        del iterator, loader
        self.assertEqual(values(kept[0]), [[5.0] * 3])

    def test_a_slot_belongs_to_a_tensor_that_dlpack_made(self):
        with leat.Feed(data.Numbers(40), batch_size=1, workers=1, kind="fork", keep=1) as feed:
            batches = iter(feed)
            tensor = torch.from_dlpack(next(batches)[1].numpy())
            expected = tensor.tolist()
            next(batches)
            self.assertEqual(feed.stats()["copied"], 1)
            self.assertEqual(tensor.tolist(), expected)
            del tensor
            next(batches)
            self.assertEqual(feed.stats()["copied"], 1)

    def test_pinning_without_an_accelerator_warns(self):
        if torch.cuda.is_available():
            self.skipTest("there is an accelerator")
        loader = make(data.Numbers(4), 1, pin_memory=True)
        with self.assertWarnsRegex(UserWarning, "no accelerator"):
            list(loader)


class Workers(WithoutWarnings):
    def test_worker_information(self):
        found = {(int(a), int(b)) for a, b, _ in make(data.Where(), 2)}
        self.assertTrue(found <= {(0, 2), (1, 2)})
        self.assertIsNone(torch.utils.data.get_worker_info())

    def test_a_worker_that_dies_costs_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            loader = make(data.Faulty("dies", os.path.join(folder, "died")), 2)
            self.assertEqual([int(batch) for batch in loader], list(range(12)))

    def test_a_batch_that_kills_each_worker_is_an_error(self):
        loader = make(data.Faulty("dies"), 2)
        with self.assertRaisesRegex(WorkerDiedError, r"DataLoader worker \(pid \d+\) is killed by signal: Killed"):
            list(loader)
        self.assertTrue(issubclass(WorkerDiedError, RuntimeError))

    def test_an_exception_and_the_batches_after_it(self):
        iterator = iter(make(data.Faulty("raises"), 2))
        for _ in range(5):
            next(iterator)
        with self.assertRaisesRegex(KeyError, "(?s)Caught KeyError in DataLoader worker.*no such picture"):
            next(iterator)
        self.assertEqual([int(batch) for batch in iterator], list(range(6, 12)))

    def test_retries_and_skips(self):
        with tempfile.TemporaryDirectory() as folder:
            loader = make(data.Faulty("raises", os.path.join(folder, "raised")), 2, retries=1)
            self.assertEqual(len(list(loader)), 12)
        self.assertEqual(len(list(make(data.Faulty("raises"), 2, bad_batch="skip"))), 11)

    def test_a_late_batch(self):
        with self.assertRaisesRegex(LateBatchError, "DataLoader timed out after 0.5 seconds"):
            list(make(data.Faulty("sleeps"), 2, timeout=0.5))
        self.assertTrue(issubclass(LateBatchError, RuntimeError) and issubclass(LateBatchError, TimeoutError))

    def test_worker_init_fn(self):
        with self.assertRaisesRegex(ValueError, "the file is missing"):
            list(make(data.Numbers(4), 1, worker_init_fn=data.fail_to_begin))
        a, b = [values(list(make(data.Numbers(4), 1, worker_init_fn=data.seed_torch))) for _ in range(2)]
        self.assertEqual([batch[1] for batch in a], [batch[1] for batch in b])

    def test_what_cannot_be_pickled_is_forked_with_a_warning(self):
        loader = DataLoader(data.Unpicklable(), num_workers=1)
        with self.assertWarnsRegex(RuntimeWarning, r"loader\.dataset\.function, a function cannot be pickled"):
            self.assertEqual(len(list(loader)), 6)
        with self.assertRaises(leat.PickleError):
            list(DataLoader(data.Unpicklable(), num_workers=1, multiprocessing_context="spawn"))

    def test_workers_end_with_the_loader(self):
        iterator = iter(make(data.Numbers(), 2, multiprocessing_context="spawn"))
        next(iterator)
        handles = iterator._workers
        del iterator
        gc.collect()
        for handle in handles:
            handle.join(20)
            self.assertFalse(handle.is_alive())


class Iterables(WithoutWarnings):
    def test_workers_take_turns(self):
        loader = make(data.Shares([3, 0, 5]), 3, batch_size=2)
        expected = [[0, 1], [200, 201], [2], [202, 203], [204]]
        for _ in range(2):
            self.assertEqual(values([batch[0] for batch in loader]), expected)

    def test_one_worker_makes_the_bytes_of_none(self):
        results = []
        for workers in (0, 1):
            torch.manual_seed(4)
            loader = make(data.Shares([5]), workers, batch_size=2)
            results.append([values(list(loader)) for _ in range(2)])
        self.assertEqual(results[0], results[1])

    def test_the_data_set_is_fresh_in_each_pass(self):
        for persistent in (False, True):
            loader = make(
                data.Resumable([3, 4]), 2, persistent_workers=persistent, multiprocessing_context="spawn"
            )
            for _ in loader:
                break
            found = sorted(sum(values([batch[0] for batch in loader]), []))
            if not persistent:
                self.assertEqual(found, [0, 1, 2, 100, 101, 102, 103])


class Position(WithoutWarnings):
    def check(self, dataset, workers, at, later_workers, kind=DataLoader, **options):
        torch.manual_seed(8)
        loader = make(dataset, workers, kind, batch_size=3, **options)
        list(loader)
        iterator = iter(loader)
        for _ in range(at):
            next(iterator)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = values(list(iterator))
        torch.manual_seed(77)
        before = torch.get_rng_state()
        other = make(dataset, later_workers, kind, batch_size=3, **options)
        other.load_state_dict(state)
        self.assertEqual(values(list(other)), rest)
        self.assertEqual(torch.equal(before, torch.get_rng_state()), at > 0)

    def test_map_style(self):
        for at in (0, 1, 7, 10):
            for workers, later in ((2, 1), (0, 2), (2, 0)):
                with self.subTest(at=at, workers=workers, later=later):
                    self.check(data.Numbers(), workers, at, later, shuffle=True)
        self.check(data.Numbers(), 2, 4, 1, sampler=WeightedRandomSampler([1.0] * 30, 20))

    def test_iterables_are_read_again(self):
        for workers in (0, 2):
            self.check(data.Shares([7, 5]), workers, 2, workers)

    def test_iterables_with_a_state(self):
        for workers in (0, 2):
            self.check(data.Resumable([7, 5]), workers, 2, workers, kind=StatefulDataLoader)

    def test_after_the_end(self):
        torch.manual_seed(1)
        loader = make(data.Numbers(), 2, batch_size=3, shuffle=True)
        list(loader)
        state = loader.state_dict()
        following = values(list(loader))
        torch.manual_seed(55)
        other = make(data.Numbers(), 1, batch_size=3, shuffle=True)
        other.load_state_dict(state)
        self.assertEqual(values(list(other)), following)

    def test_another_number_of_workers_for_an_iterable(self):
        state = make(data.Shares([4, 4]), 2).state_dict()
        with self.assertRaisesRegex(leat.Error, "the state is of 2 workers"):
            make(data.Shares([4, 4]), 1).load_state_dict(state)


if __name__ == "__main__":
    unittest.main()
