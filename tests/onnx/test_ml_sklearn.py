"""Models of scikit-learn as skl2onnx writes them: native, and as the library predicts itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tilewright
from tests.onnx.beside_ort import onnxruntime_results

pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
sklearn = pytest.importorskip("sklearn")

TEXTS = np.array(["a", "b", "c"])
ROWS, FEATURES, CLASSES = 60, 5, 3


def models() -> dict[str, Any]:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return {
        "random forest": RandomForestClassifier(7, random_state=0),
        "extra trees": ExtraTreesClassifier(5, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=6, random_state=0),
        "logistic": LogisticRegression(),
        "svm": SVC(probability=True, random_state=0),
        "pipeline": make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()),
        "neighbours": KNeighborsClassifier(3),
        "bayes": GaussianNB(),
        "network": MLPClassifier((6,), max_iter=50, random_state=0),
    }


def exported(model: Any, x: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
        return skl2onnx.to_onnx(model, x[:1], target_opset={"": 18, "ai.onnx.ml": 3})


@pytest.mark.parametrize("classes", ["two", "three", "texts"])
@pytest.mark.parametrize("name", models())
def test_classifiers(rng: np.random.Generator, name: str, classes: str) -> None:
    x = rng.normal(size=(ROWS, FEATURES)).astype("f4")
    y = np.argmax(x[:, :CLASSES] + rng.normal(0, 0.3, (ROWS, CLASSES)), axis=1)
    y = y % 2 if classes == "two" else TEXTS[y] if classes == "texts" else y
    model = models()[name]
    proto = exported(model, x, y)
    module = tilewright.compile(proto, cache=False, threads=1)
    assert not module.by_reference, module.by_reference
    label, rows = module.run({"X": x})
    wanted = onnxruntime_results(proto, {"X": x})
    assert label.tolist() == wanted[0].tolist()
    assert label.tolist() == model.predict(x).tolist()
    found = np.array([list(row.values()) for row in rows])
    assert [list(row) for row in rows] == [list(row) for row in wanted[1]]
    np.testing.assert_allclose(found, [list(row.values()) for row in wanted[1]], atol=1e-4)
    tolerance = 1e-2 if name == "svm" else 1e-4  # it ends its search a little earlier
    np.testing.assert_allclose(found, model.predict_proba(x), atol=tolerance)


def test_regressors(rng: np.random.Generator) -> None:
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.svm import SVR

    x = rng.normal(size=(ROWS, FEATURES)).astype("f4")
    y = x @ rng.normal(size=FEATURES)
    for model in (
        RandomForestRegressor(6, random_state=0),
        GradientBoostingRegressor(n_estimators=6, random_state=0),
        Ridge(),
        SVR(),
    ):
        proto = exported(model, x, y)
        module = tilewright.compile(proto, cache=False, threads=1)
        assert not module.by_reference
        (found,) = module.run({"X": x})
        np.testing.assert_allclose(found.ravel(), model.predict(x), rtol=1e-3, atol=1e-4)
