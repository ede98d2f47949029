"""Small networks at many sizes: right with one thread and two, and the same bits in every run."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tests.onnx.networks import NETWORKS, PAST
from tilewright.graph.ops.winograd import WinogradConv
from tilewright.testing.accuracy import MODELS

CASES = [(name, number) for name, net in NETWORKS.items() for number in range(len(net.sizes))]


@functools.cache
def compiled(name: str, threads: int) -> tw.Module:
    module = tw.compile(NETWORKS[name].make(), threads=threads, cache=False)
    assert not module.by_reference
    return module


@functools.cache
def evaluator(name: str) -> ReferenceEvaluator:
    return ReferenceEvaluator(NETWORKS[name].make())


def deviation(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference relative to the largest value."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def same_bits(first: list[np.ndarray], second: list[np.ndarray]) -> bool:
    return [a.tobytes() for a in first] == [b.tobytes() for b in second]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_networks_agree_with_the_reference_on_one_thread_and_two(name, number):
    net = NETWORKS[name]
    feeds = net.feeds(net.sizes[number])
    wanted = evaluator(name).run(None, feeds)
    for threads in (1, 2):
        for found, right in zip(compiled(name, threads).run(feeds), wanted, strict=True):
            assert deviation(found, right) <= MODELS["models"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_runs_give_the_same_bits_whatever_ran_between(name, threads):
    """Again at once, after all other sizes, and from a module that was compiled again."""
    net = NETWORKS[name]
    module = compiled(name, threads)
    all_feeds = [net.feeds(sizes, seed) for seed, sizes in enumerate(net.sizes)]
    first = [module.run(feeds) for feeds in all_feeds]
    for feeds, before in zip(reversed(all_feeds), reversed(first), strict=True):
        assert same_bits(module.run(feeds), before)
        assert same_bits(module.run(feeds), before)
    again = tw.compile(net.make(), threads=threads, cache=False)
    for feeds, before in zip(all_feeds, first, strict=True):
        assert same_bits(again.run(feeds), before)


@pytest.mark.parametrize("threads", [1, 2])
def test_saved_networks_give_the_same_bits(tmp_path, threads):
    for name, net in NETWORKS.items():
        path = tmp_path / f"{name}{threads}.tw"
        compiled(name, threads).save(path)
        feeds = net.feeds(net.sizes[-1])
        assert same_bits(tw.load(path).run(feeds), compiled(name, threads).run(feeds))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_decoder_goes_on_from_its_own_keys_and_values(threads):
    """Ten steps, each from what the one before gave; the reference takes its own steps."""
    net, module, meaning = NETWORKS["decoder"], compiled("decoder", threads), evaluator("decoder")
    feeds = net.feeds({"batch": 2, "past": 1})
    wanted_feeds = dict(feeds)
    for step in range(10):
        (logits, *kept), (right, *kept_right) = module.run(feeds), meaning.run(None, wanted_feeds)
        assert deviation(logits, right) <= MODELS["models"]
        assert kept[0].shape[2] == step + 2
        ids = {"ids": logits.argmax(-1)}
        feeds = {**ids, **dict(zip(PAST, kept, strict=True))}
        wanted_feeds = {**ids, **dict(zip(PAST, kept_right, strict=True))}


def test_strict_and_default_networks_agree():
    """The convolutional network has layers that the default computes with fewer products."""
    net = NETWORKS["convolutional"]
    strict = tw.compile(net.make(), threads=1, cache=False, accuracy="strict")
    default = compiled("convolutional", 1)
    assert any(isinstance(node.op, WinogradConv) for node in default.graph.nodes)
    assert not any(isinstance(node.op, WinogradConv) for node in strict.graph.nodes)
    feeds = net.feeds(net.sizes[0])
    assert deviation(default.run(feeds)[0], strict.run(feeds)[0]) <= MODELS["models"]
