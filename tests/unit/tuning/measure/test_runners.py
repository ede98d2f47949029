"""Runners by name, and how a cluster is reached."""

from __future__ import annotations

import sys

import pytest

from tests.expect import raises_code
from tilewright.options import ray_auth_mode, set_ray_defaults
from tilewright.tuning.measure.ray_connection import require_loopback, require_tokens
from tilewright.tuning.measure.runners import runner_named


@pytest.mark.parametrize("name", ["", "Local", "ray:", "rays", "local:3", "dask"])
def test_other_names_are_refused(name):
    with raises_code("U055"):
        runner_named(name)


@pytest.mark.parametrize("name", ["ray", "ray:127.0.0.1:6379"])
def test_ray_is_missed_where_it_is_not_installed(name, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.setitem(sys.modules, "ray", None)
    with raises_code("U050") as caught:
        runner_named(name)
    assert "pip install 'tilewright[ray]'" in str(caught.value)


@pytest.mark.parametrize("address", ["auto", "ray://127.0.0.1:10001", "127.0.0.1", "host:", ":1"])
def test_addresses_of_other_kinds_are_refused(address):
    with raises_code("U051"):
        runner_named(f"ray:{address}")


@pytest.mark.parametrize("address", ["127.0.0.1:6379", "localhost:6379", "[::1]:6379"])
def test_this_machine_needs_no_token(address):
    require_tokens(address, "disabled")


@pytest.mark.parametrize("address", ["192.0.2.5:6379", "head.example:6379", "[2001:db8::5]:6379"])
def test_other_machines_need_a_token(address):
    require_tokens(address, "token")
    with raises_code("U056"):
        require_tokens(address, "disabled")


def test_a_cluster_of_this_machine_keeps_to_it():
    variables: dict[str, str] = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}
    set_ray_defaults(variables, is_loopback=True)
    assert variables["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
    require_loopback("127.0.0.1")
    with raises_code("U051", text="192.0.2.5"):
        require_loopback("192.0.2.5")


def test_tokens_are_on_and_nothing_is_reported_unless_somebody_says_so():
    variables: dict[str, str] = {}
    assert ray_auth_mode(variables) == "token"
    set_ray_defaults(variables, is_loopback=False)
    assert variables == {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
    variables["RAY_AUTH_MODE"] = "disabled"
    set_ray_defaults(variables, is_loopback=False)
    assert ray_auth_mode(variables) == "disabled"
