"""`InferenceSession` and what belongs to it; beside ONNX Runtime where that is installed."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from numpy.testing import assert_allclose

import tilewright as tw
from tests.expect import raises_code
from tests.small import expected, rows, text_inside, two_outputs

MODEL = two_outputs().SerializeToString()


def options() -> tw.SessionOptions:
    settings = tw.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.add_session_config_entry("tilewright.cache", "off")
    return settings


@pytest.fixture(scope="module")
def session() -> tw.InferenceSession:
    return tw.InferenceSession(MODEL, options())


@pytest.fixture(scope="module")
def other():
    ort = pytest.importorskip("onnxruntime")
    return ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"])


def test_results_are_those_of_onnxruntime(session, other):
    for names in (None, [], ["positive"], ("positive", "scores"), ["scores", "scores"]):
        found, wanted = (s.run(names, {"x": rows(5)}) for s in (session, other))
        for a, b in zip(found, wanted, strict=True):
            assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_scalar_may_have_a_dimension_of_one():
    scaled = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 20]>
        scaled (float[n] x, float k) => (float[n] y) { y = Mul(x, k) }""").SerializeToString()
    feeds = {"x": np.ones(3, np.float32), "k": np.array([2], np.float32)}
    (found,) = tw.InferenceSession(scaled, options()).run(None, feeds)
    assert found.tolist() == [2, 2, 2]
    ort = pytest.importorskip("onnxruntime")
    (wanted,) = ort.InferenceSession(scaled, providers=["CPUExecutionProvider"]).run(None, feeds)
    assert found.tolist() == wanted.tolist()


def test_descriptions_are_those_of_onnxruntime(session, other):
    for method in ("get_inputs", "get_outputs"):
        found, wanted = getattr(session, method)(), getattr(other, method)()
        assert [(a.name, a.shape, a.type) for a in found] == [
            (b.name, b.shape, b.type) for b in wanted
        ]
        assert list(map(str, found)) == list(map(str, wanted))
    assert session.get_providers() == other.get_providers()
    assert session.get_provider_options() == other.get_provider_options()
    assert session.get_overridable_initializers() == other.get_overridable_initializers()


def test_what_the_author_wrote_is_that_of_onnxruntime(session, other):
    found, wanted = session.get_modelmeta(), other.get_modelmeta()
    for name in found.to_dict():
        assert getattr(found, name) == getattr(wanted, name), name


def test_names_of_onnxruntime_exist():
    """Whatever its sessions, settings, values and bindings offer, apart from other devices."""
    ort = pytest.importorskip("onnxruntime")
    left_out = {
        "InferenceSession": {
            "create_ortvalue_from_shape_and_type", "get_input_epdevices", "get_input_memory_infos",
            "get_output_memory_infos", "get_provider_graph_assignment_info", "get_tuning_results",
            "release_captured_graph", "run_with_ortvaluevector", "set_ep_dynamic_options",
            "set_tuning_results",
        },
        "OrtValue": {
            "as_sparse_tensor", "ort_value_from_sparse_tensor",
            "ortvalue_from_numpy_with_onnx_type",
        },
        "RunOptions": {"add_active_adapter"},
        "SessionOptions": {
            "add_external_initializers", "add_external_initializers_from_files_in_memory",
            "add_initializer", "add_provider", "add_provider_for_devices",
            "clear_ep_context_data_read_func", "has_providers", "set_ep_context_data_read_func",
            "set_load_cancellation_flag", "set_provider_selection_policy",
            "set_provider_selection_policy_delegate",
        },
    }  # fmt: skip
    for name, missing in left_out.items():
        own, theirs = (set(dir(_example(m, name))) for m in (tw, ort))
        public = {word for word in theirs if not word.startswith("_")}
        assert public - own <= missing, name


def _example(package, name):
    """Settings are objects whose attributes count; of the others the class is enough."""
    kind = getattr(package, name)
    return kind() if name.endswith("Options") else kind


def test_outputs_are_chosen_by_name(session):
    (positive,) = session.run(["positive"], {"x": rows(3)})
    assert np.array_equal(positive, np.maximum(rows(3), 0))


def test_unknown_outputs_are_refused_with_the_nearest(session, golden):
    with raises_code("C022") as caught:
        session.run(["score"], {"x": rows(3)})
    assert golden == caught.value


def test_wrong_feeds_are_explained(session, golden):
    with raises_code("C023") as caught:
        session.run(None, {"X": rows(3).astype(np.float64)})
    assert golden == caught.value


def test_paths_may_be_onnx_files_or_compiled_models(session, tmp_path):
    onnx_file, compiled = tmp_path / "model.onnx", tmp_path / "model.bin"
    onnx_file.write_bytes(MODEL)
    session.module.save(compiled)
    for path in (onnx_file, str(onnx_file), compiled, str(compiled)):
        found = tw.InferenceSession(path, options())
        assert_allclose(found.run(None, {"x": rows(2)})[0], expected(rows(2))[0], rtol=1e-5)


def test_a_session_can_leave_the_compiled_model_behind(tmp_path):
    settings = options()
    settings.optimized_model_filepath = str(tmp_path / "model.tw")
    tw.InferenceSession(MODEL, settings)
    assert tw.load(tmp_path / "model.tw").name == "small"


@pytest.mark.parametrize("source", [3, None, b"\x89tw\r\n\x1a\n\0rest"], ids=["int", "none", "tw"])
def test_other_sources_are_refused(source):
    with raises_code("C033"):
        tw.InferenceSession(source)


@pytest.mark.parametrize("source", [b"not a model", b""], ids=["text", "empty"])
def test_bytes_that_are_no_model_are_refused(source):
    with raises_code("M001"):
        tw.InferenceSession(source, options())


def test_runs_in_the_background(session):
    done, results = threading.Event(), []

    def callback(outputs, data, error):
        results.append((outputs, data, error))
        done.set()

    session.run_async(["scores"], {"x": rows(4)}, callback, "mine")
    assert done.wait(60)
    ((outputs, data, error),) = results
    assert (data, error) == ("mine", "")
    assert_allclose(outputs[0], expected(rows(4))[0], rtol=1e-5, atol=1e-6)


def test_errors_in_the_background_go_to_the_callback(session):
    results = []
    session.run_async(None, {}, lambda *given: results.append(given)).result(timeout=60)
    ((outputs, data, error),) = results
    assert (outputs, data) == ([], None)
    assert error.startswith("C021")


def test_values_go_in_and_come_out(session):
    value = tw.OrtValue.ortvalue_from_numpy(rows(3))
    (scores,) = session.run_with_ort_values(["scores"], {"x": value})
    assert (scores.shape(), scores.data_type()) == ([3, 4], "tensor(float)")
    assert_allclose(scores, expected(rows(3))[0], rtol=1e-5, atol=1e-6)


def test_profiles_are_chrome_traces(tmp_path):
    settings = options()
    settings.enable_profiling = True
    settings.profile_file_prefix = str(tmp_path / "profile")
    session = tw.InferenceSession(MODEL, settings)
    for _ in range(2):
        session.run(None, {"x": rows(2)})
    assert session.get_profiling_start_time_ns() > 0
    file = session.end_profiling()
    assert file.startswith(settings.profile_file_prefix)
    events = json.loads(Path(file).read_text(encoding="utf-8"))
    names = [event["name"] for event in events]
    assert names.count("model_run") == names.count("relu") == names.count("product") == 2
    runs = [event for event in events if event["name"] == "model_run"]
    product = next(event for event in events if event["name"] == "product")
    assert runs[0]["ts"] <= product["ts"] <= runs[0]["ts"] + runs[0]["dur"]
    assert session.end_profiling() == ""


def test_free_dimensions_can_be_given_a_size():
    settings = options()
    settings.add_free_dimension_override_by_name("rows", 3)
    session = tw.InferenceSession(MODEL, settings)
    assert session.get_inputs()[0].shape == [3, 8]
    with raises_code("C005"):
        session.run(None, {"x": rows(2)})


def test_dimensions_with_a_meaning_can_be_given_a_size():
    model = two_outputs()
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    settings = options()
    settings.add_free_dimension_override_by_denotation("DATA_BATCH", 2)
    session = tw.InferenceSession(model.SerializeToString(), settings)
    assert session.get_inputs()[0].shape == [2, 8]


def test_layouts_are_a_setting():
    settings = options()
    settings.add_session_config_entry("tilewright.layouts", "nchw")
    model = two_outputs().SerializeToString()
    assert len(tw.InferenceSession(model, settings).run(None, {"x": rows(2)})) == 2
    settings.add_session_config_entry("tilewright.layouts", "nchw8")
    with raises_code("K060"):
        tw.InferenceSession(model, settings)


def test_settings_that_do_not_exist_are_refused():
    settings = tw.SessionOptions()
    with raises_code("K030", text="intra_op_num_threads"):
        settings.intra_op_threads = 2
    with raises_code("K030", text="tilewright.accuracy"):
        settings.add_session_config_entry("tilewright.acuracy", "strict")
    with raises_code("K030"):
        settings.get_session_config_entry("session.unknown")


def test_settings_without_effect_are_kept():
    settings = tw.SessionOptions()
    settings.graph_optimization_level = tw.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.execution_mode = tw.ExecutionMode.ORT_PARALLEL
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert settings.graph_optimization_level == 0
    assert settings.get_session_config_entry("session.intra_op.allow_spinning") == "0"


@pytest.mark.parametrize("count", [-1, "two", 1.5])
def test_threads_are_a_number(count):
    with raises_code("K031"):
        tw.SessionOptions().intra_op_num_threads = count


def test_operators_of_others_are_refused():
    with raises_code("K032"):
        tw.SessionOptions().register_custom_ops_library("custom.so")


def test_a_run_that_was_ended_does_not_begin(session):
    run_options = tw.RunOptions()
    run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    assert session.run(None, {"x": rows(1)}, run_options)
    run_options.terminate = True
    with raises_code("C032"):
        session.run(None, {"x": rows(1)}, run_options)
    with raises_code("C032"):
        session.run_with_iobinding(session.io_binding(), run_options)


def test_other_providers_are_named_in_a_warning():
    with pytest.warns(tw.TilewrightWarning, match="CUDAExecutionProvider"):
        tw.InferenceSession(
            MODEL, options(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"]
        )


def test_warnings_can_be_silenced():
    settings = options()
    settings.log_severity_level = 3
    session = tw.InferenceSession(text_inside(), settings, providers=["TensorrtExecutionProvider"])
    assert session.module.by_reference  # and no warning, which would be an error here


def test_the_device_is_this_processor(session):
    assert tw.get_device() == "CPU"
    assert tw.get_available_providers() == session.get_providers() == ["CPUExecutionProvider"]


@pytest.mark.parametrize(
    ("value", "kept"), [("on", True), ("1", True), ("off", False), ("0", False)]
)
def test_the_cache_is_switched_by_words_and_by_numbers(value, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    settings = tw.SessionOptions()
    settings.add_session_config_entry("tilewright.cache", value)
    tw.InferenceSession(MODEL, settings)
    assert (tmp_path / "cache").exists() == kept
    assert not (tmp_path / value).exists()


def test_names_of_the_other_runtime_are_there():
    assert tw.get_version_string() == tw.__version__
    assert tw.__version__ in tw.get_build_info()
    device = tw.OrtDevice.make("cpu", 0)
    assert (device.device_type(), device.device_id()) == ("cpu", 0)
    with raises_code("C030"):
        tw.OrtDevice.make("cuda", 0)
    for nothing in (tw.disable_telemetry_events, tw.enable_telemetry_events):
        assert nothing() is None
    assert tw.set_seed(1) is None
    assert tw.set_default_logger_verbosity(3) is None


def test_bindings_and_metadata_have_names_at_the_top(session):
    binding = tw.IOBinding(session)
    binding.bind_cpu_input("x", rows(2))
    binding.bind_output("scores")
    session.run_with_iobinding(binding)
    assert_allclose(binding.copy_outputs_to_cpu()[0], expected(rows(2))[0], rtol=1e-5, atol=1e-6)
    assert isinstance(session.get_modelmeta(), tw.ModelMetadata)


def test_weights_can_be_exchanged():
    model = two_outputs()
    weight = next(w for w in model.graph.initializer if len(w.dims) == 2)
    settings = options()
    zeros = np.zeros(tuple(weight.dims), np.float32)
    settings.add_initializer(weight.name, tw.OrtValue.ortvalue_from_numpy(zeros))
    found = tw.InferenceSession(model, settings).run(["scores"], {"x": rows(2)})[0]
    without = expected(np.zeros_like(rows(2)))[0]
    assert_allclose(found, without, rtol=1e-5, atol=1e-6)
    other = tw.OrtValue.ortvalue_from_numpy(zeros[:1])
    settings.add_external_initializers([weight.name], [other])
    with raises_code("K031"):
        tw.InferenceSession(model, settings)
    with raises_code("K031"):
        settings.add_external_initializers(["a", "b"], [])
